answers = await asyncio.gather(mock.echo(a=1), mock.echo(a=2))
return answers
