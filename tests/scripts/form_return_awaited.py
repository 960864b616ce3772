return await mock.echo(a=1)
