import time
import datetime

before = time.monotonic()
time.sleep(0.02)
passed = time.monotonic() - before
return [
    0.019 < passed < 1,
    abs(time.time() - datetime.datetime.now(datetime.UTC).timestamp()) < 5,
    datetime.datetime.now().year >= 2024,
    time.perf_counter() > 0,
    time.tzname[0],
]
