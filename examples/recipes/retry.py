# Retries calls that were refused for now: errors that pass have `retry_after_ms`.
import random

zones = (inputs or {}).get("zones") or ["Asia/Tokyo", "Asia/Kolkata", "Africa/Cairo", "Europe/Oslo", "America/Lima"]
retries = 0


async def patiently(work, attempts=6):
    """Calls `work` again while its error says when that is worth it. For calls without an effect only."""
    global retries
    for attempt in range(1, attempts + 1):
        try:
            return await work()
        except McpToolError as error:
            if error.retry_after_ms is None or attempt == attempts:
                raise
            retries += 1
            # A little more each time, so that calls that were refused together do not all come back together.
            await asyncio.sleep(error.retry_after_ms / 1000 + random.random() * 0.1 * attempt)


times = await asyncio.gather(*(patiently(lambda zone=zone: tools.time.get_current_time(timezone=zone)) for zone in zones))
{"zones": [time["timezone"] for time in times], "retried": retries > 0}
