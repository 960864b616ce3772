def f():
    return [await g(x) for x in range(3)]
