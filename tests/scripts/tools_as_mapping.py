return {
    "servers": list(tools),
    "count": len(tools),
    "has": ["mock" in tools, "nope" in tools, "echo" in mock, "nope" in mock],
    "some": list(tools.other_server),
    "same": [tools.mock.echo is mock.echo, tools["other-server"] is tools.other_server, mock["echo"] is mock.echo],
    "name": [mock.echo.__name__, mock.echo.__qualname__, mock.echo.__doc__],
    "attributes": [hasattr(tools, "mock"), hasattr(tools, "nope"), hasattr(mock, "__len__")],
    "repr": [repr(tools), repr(mock)],
    "dir": dir(mock)[:3],
}
