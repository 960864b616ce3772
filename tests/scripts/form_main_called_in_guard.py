import asyncio


async def main():
    return "main"


if __name__ == "__main__":
    result = asyncio.run(main())
    print(result)
