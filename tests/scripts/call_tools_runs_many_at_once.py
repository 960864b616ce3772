import time

calls = [{"server": "mock", "tool": "sleep", "args": {"ms": 20, "i": i}} for i in range(20)]
started = time.monotonic()
results = call_tools(calls)
return [[result["result"]["i"] for result in results], time.monotonic() - started < 0.3, call_tools([])]
