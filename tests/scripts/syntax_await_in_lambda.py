f = lambda: await mock.echo()
