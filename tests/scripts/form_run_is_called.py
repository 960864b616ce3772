async def run():
    return await mock.echo(a=1)
