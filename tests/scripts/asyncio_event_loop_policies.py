import asyncio
import warnings

# Policies are deprecated, and still written.
warnings.simplefilter("ignore")
values = []


async def main():
    return await tools.mock.echo(n=len(values))


asyncio.set_event_loop_policy(None)
values.append(asyncio.run(main()))
asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
values.append(asyncio.run(main()))
values.append(asyncio.new_event_loop().run_until_complete(main()))
loop = asyncio.new_event_loop()
try:
    loop.add_signal_handler(15, print)
except NotImplementedError as error:
    values.append(str(error))
values
