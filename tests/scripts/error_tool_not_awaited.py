result = mock.echo(a=1)
return result["a"]
