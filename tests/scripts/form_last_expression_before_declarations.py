x = 5
x * 2


def helper():
    pass


class Row:
    a: int
