await mock.echo("a", "b")
