"""A client on the official Python SDK whose connection is cut while a script runs. Prints a line for each progress
notification, and at the end what the script has returned.

    python cut.py ADDRESS SOURCE"""

import sys

import anyio
from mcp import Client

ADDRESS, SOURCE = sys.argv[1:]


async def main():
    async def progress(*_progress):
        print("read", flush=True)

    async with Client(ADDRESS, mode="legacy") as client:
        result = await client.call_tool("executeTypescript", {"code": SOURCE}, progress_callback=progress)
        print(result.content[0].text, flush=True)


anyio.run(main)
