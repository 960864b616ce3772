def attempt(action):
    try:
        action()
        return "replaced"
    except AttributeError as error:
        return str(error)


return [
    attempt(lambda: setattr(tools, "mock", 1)),
    attempt(lambda: delattr(tools, "mock")),
    attempt(lambda: tools.__setitem__("mock", 1)),
    attempt(lambda: setattr(mock, "echo", 1)),
    attempt(lambda: mock.__delitem__("echo")),
]
