return [
    await mock.echo(a=1, b=[2]),
    await mock.echo({"a": 1}),
    await mock.echo({"a": 1}, b=2),
    await mock.echo({"from": "x", "class": "y"}),
    await mock.echo(**{"from": "x"}),
    await mock.echo(),
    await mock.echo(None),
    await mock.echo({}),
]
