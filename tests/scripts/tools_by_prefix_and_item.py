return [
    await mcp_mock.echo(a=1),
    await mcp_other_server.read_file(b=2),
    await mcp_servers["mock"].echo(c=3),
    await mcp_servers["other-server"].read_file(d=4),
    await mcp_servers["mock"]["echo"](e=5),
    await getattr(tools, "mock").echo(f=6),
    list(mcp_servers),
]
