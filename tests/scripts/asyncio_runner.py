import asyncio

with asyncio.Runner() as runner:
    first = runner.run(mock.echo(a=1))
    second = runner.run(asyncio.sleep(0.001, "slept"))
[first, second]
