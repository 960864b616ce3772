import asyncio

results = await asyncio.gather(mock.fail(message="one"), mock.fail(message="two"), return_exceptions=True)
raise ExceptionGroup("nothing worked", results)
