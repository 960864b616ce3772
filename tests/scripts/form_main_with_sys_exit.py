import sys


def main() -> int:
    print("work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
