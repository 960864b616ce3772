async def work() -> None:
    await mock.fail(message="no such file")


await work()
