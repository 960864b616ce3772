class A:
    x = 1
    return x
