import asyncio


async def main() -> None:
    answers = await asyncio.gather(*(mock.sleep(ms=1, i=i) for i in range(3)))
    print([answer["i"] for answer in answers])


asyncio.run(main())
