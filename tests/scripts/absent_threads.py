import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor


async def attempt(action):
    try:
        result = action()
        return await result if asyncio.iscoroutine(result) else result
    except Exception as error:
        return [type(error).__name__, str(error)]


return {
    "thread": await attempt(lambda: threading.Thread(target=print).start()),
    "pool": await attempt(lambda: ThreadPoolExecutor().submit(print)),
    "to_thread": await attempt(lambda: asyncio.to_thread(print, "x")),
    "main": threading.current_thread() is threading.main_thread(),
    "lock": threading.Lock().acquire(),
}
