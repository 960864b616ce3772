from functools import wraps


def log(method):
    @wraps(method)
    def logged(*arguments):
        return [method.__name__, method(*arguments)]

    return logged


class A:
    @log
    def m(self, x):
        return x


return A().m(4)
