def add(cls):
    cls.extra = 1
    return cls


@add
class A:
    pass


return A().extra
