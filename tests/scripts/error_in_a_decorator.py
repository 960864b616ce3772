def check(function):
    raise TypeError(f"{function.__name__} takes no decorator")


@check
def work():
    pass
