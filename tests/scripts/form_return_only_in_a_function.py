def helper():
    return 1


helper() + 1
