async def work():
    return await mock.echo(a=1)


work()
