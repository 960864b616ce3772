return {"answer": tools.mock.echo(a=1)}
