"""A client on the official Python SDK that offers its model: runs a script of each language that asks it, and prints
what came back as one line of JSON.

    python sampling.py MODE COMMAND [ARGUMENT...]

MODE: `legacy`, with a handshake; `auto`, which asks for the newest revision first."""

import json
import os
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import CreateMessageResult, TextContent

MODE, COMMAND, *ARGUMENTS = sys.argv[1:]

SCRIPTS = {
    "executeTypescript": "return await Promise.all([1, 2, 3, 4, 5].map((n) => llm.ask(`number ${n}`, { maxTokens: 9 })))",
    "executePython": (
        "import asyncio\n"
        "await asyncio.gather(*(llm.ask(f'number {n}', max_tokens=9) for n in range(1, 6)))"
    ),
}


async def sample(_context, params):
    content = params.messages[-1].content
    text = f"re: {content.text}, at most {params.max_tokens}"
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text=text), model="mine")


async def main():
    pipes = StdioServerParameters(command=COMMAND, args=ARGUMENTS, env=dict(os.environ))
    with anyio.fail_after(90):
        async with Client(pipes, mode=MODE, sampling_callback=sample) as client:
            seen = {"protocol": client.protocol_version}
            for name, code in SCRIPTS.items():
                result = await client.call_tool(name, {"code": code, "enableSampling": True, "timeoutMs": 60000})
                content = result.structured_content
                calls = content.get("samplingCalls", [])
                models = sorted({(call["provider"], call.get("model")) for call in calls})
                seen[name] = [content.get("value", content.get("error")), models, len(calls)]
            print(json.dumps(seen))


anyio.run(main)
