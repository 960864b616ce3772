def numbers():
    yield 1
    yield 1 / 0


sum(numbers())
