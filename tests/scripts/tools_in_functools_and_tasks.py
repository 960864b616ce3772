import asyncio
from functools import partial

echo = partial(mock.echo, a=1)
calls = [echo(b=n) for n in range(2)]
return [await asyncio.gather(*calls), await asyncio.create_task(mock.echo(c=3))]
