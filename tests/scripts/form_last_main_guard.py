def compute():
    return 5


if __name__ == "__main__":
    compute()
