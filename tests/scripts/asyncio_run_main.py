import asyncio


async def main():
    return await mock.echo(a=1)


if __name__ == "__main__":
    asyncio.run(main())
