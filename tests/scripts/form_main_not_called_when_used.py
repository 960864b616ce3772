def main():
    print("once")
    return 1


value = main()
value + 1
