import asyncio


def broken():
    raise ZeroDivisionError("in a callback")


asyncio.get_running_loop().call_soon(broken)
await asyncio.sleep(0.001)
return "done"
