import asyncio
import time

started = time.monotonic()
results = await asyncio.gather(*(mock.sleep(ms=50, i=i) for i in range(10)))
return [[result["i"] for result in results], time.monotonic() - started < 0.4]
