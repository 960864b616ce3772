import builtins


async def work():
    pass


def print(*arguments, **named):
    raise RuntimeError("this is no print")


builtins.print = print
work()
held = work()
1
