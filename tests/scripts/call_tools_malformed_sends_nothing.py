class Opaque:
    pass


good = {"server": "mock", "tool": "echo"}
batches = [
    ([good, "nonsense"], None),
    ([good, None], None),
    ([good, {"server": "mock"}], None),
    ([good, {**good, "args": {"n": Opaque()}}], None),
    ([good], {"max_parallel": 0}),
    ([good], {"max_parallel": 1.5}),
    ([good], {"max_parallel": "2"}),
    ([good], 5),
]


def attempt(calls, options):
    try:
        return call_tools(calls, options)
    except Exception as error:
        print(error)
        return type(error).__name__


return [attempt(*batch) for batch in batches]
