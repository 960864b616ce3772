import asyncio

results = []
for ms in (1, 60_000):
    try:
        results.append(await asyncio.wait_for(mock.sleep(ms=ms), timeout=0.2))
    except TimeoutError as error:
        results.append([type(error).__name__, str(error)])
return results
