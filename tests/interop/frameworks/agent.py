"""A third-party agent framework in Python: loads the tools of `cx serve` as its agents do, calls them, and prints what
it saw as one line of JSON. No language model is needed: its tool calls are written here.

    python agent.py FRAMEWORK COMMAND [ARGUMENT...]

FRAMEWORK is the name of a function below."""

import asyncio
import json
import os
import re
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Awaitable, Callable

FRAMEWORK, COMMAND, *ARGUMENTS = sys.argv[1:]

# The maximum of every wait here.
MAX_WAIT = 140

SERVER = {"command": COMMAND, "args": ARGUMENTS, "env": dict(os.environ)}

INPUT = {"n": 42}
TYPESCRIPT = "return (await tools.well.echo({ n: input.n })).n"
PYTHON = "(await tools.well.echo(n=inputs['n']))['n']"


@dataclass
class Tools:
    """The tools as the framework has them."""

    # For each tool the JSON schema of its parameters, as the framework shows it to a model.
    schemas: dict[str, dict[str, Any]]
    # Calls a tool and returns the text that the framework would show to the model. Errors of tools are text too.
    call: Callable[[str, dict[str, Any]], Awaitable[str]]


def text_of(content) -> str:
    """The text of content blocks, whichever classes a framework has for them."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return content["text"]
    if isinstance(content, (list, tuple)):
        return "\n".join(text_of(block) for block in content)
    return content.text


def value_of(structured) -> str:
    """What a framework that shows structured content shows of a run's value, else all of it."""
    return json.dumps(structured.get("value", structured))


def openai_parameters(tool) -> dict[str, Any]:
    """The parameters of a tool in OpenAI's form."""
    return tool["function"]["parameters"]


@asynccontextmanager
async def smolagents(structured=False):
    from mcp import StdioServerParameters
    from smolagents import MCPClient
    from smolagents.models import get_tool_json_schema
    from smolagents.tools import validate_tool_arguments

    def connect():
        options = {"connect_timeout": MAX_WAIT, "client_session_timeout_seconds": MAX_WAIT}
        client = MCPClient(StdioServerParameters(**SERVER), options, structured_output=structured)
        return client, {tool.name: tool for tool in client.get_tools()}

    client, tools = await asyncio.to_thread(connect)
    schemas = {name: openai_parameters(get_tool_json_schema(tool)) for name, tool in tools.items()}
    # The texts that its agents put into their prompts.
    assert all(tool.to_tool_calling_prompt() and tool.to_code_prompt() for tool in tools.values())

    async def call(name, arguments):
        # Its agents refuse a call that leaves a parameter out, so their models fill in all of them.
        arguments = filled(schemas[name]) | arguments
        validate_tool_arguments(tools[name], arguments)
        result = await asyncio.to_thread(tools[name], **arguments)
        return value_of(result) if structured else text_of(result)

    try:
        yield Tools(schemas, call)
    finally:
        await asyncio.to_thread(client.disconnect)


def smolagents_structured():
    return smolagents(structured=True)


@asynccontextmanager
async def autogen():
    from autogen_core import CancellationToken
    from autogen_ext.tools.mcp import StdioServerParams, mcp_server_tools

    tools = await mcp_server_tools(StdioServerParams(**SERVER, read_timeout_seconds=MAX_WAIT))
    tools = {tool.name: tool for tool in tools}

    async def call(name, arguments):
        try:
            return text_of(await tools[name].run_json(arguments, CancellationToken()))
        except Exception as error:
            # By then the connection of the call is closed, which wraps the error in a group.
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            return str(error)

    yield Tools({name: tool.schema["parameters"] for name, tool in tools.items()}, call)


@asynccontextmanager
async def autogen_workbench():
    from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

    async with McpWorkbench(StdioServerParams(**SERVER, read_timeout_seconds=MAX_WAIT)) as workbench:
        schemas = {tool["name"]: tool["parameters"] for tool in await workbench.list_tools()}

        async def call(name, arguments):
            return (await workbench.call_tool(name, arguments)).to_text()

        yield Tools(schemas, call)


@asynccontextmanager
async def langchain():
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.client import MultiServerMCPClient

    client = MultiServerMCPClient({"cx": {"transport": "stdio", **SERVER}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    schemas = {name: openai_parameters(convert_to_openai_tool(tool)) for name, tool in tools.items()}
    assert all(convert_to_openai_tool(tool, strict=True) for tool in tools.values())

    async def call(name, arguments):
        request = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        return text_of((await tools[name].ainvoke(request)).content)

    yield Tools(schemas, call)


@asynccontextmanager
async def openai_agents(strict=False):
    from agents import Agent, RunContextWrapper
    from agents.mcp import MCPServerStdio, MCPUtil
    from agents.tool_context import ToolContext

    async with MCPServerStdio(SERVER, client_session_timeout_seconds=MAX_WAIT) as server:
        context = RunContextWrapper(context=None)
        tools = await MCPUtil.get_function_tools(server, strict, context, Agent(name="interop"))
        tools = {tool.name: tool for tool in tools}
        for tool in tools.values():
            # What the service checks of a strict schema: each parameter is required and has a type.
            if tool.strict_json_schema:
                schema = tool.params_json_schema
                assert schema["additionalProperties"] is False
                assert sorted(schema["required"]) == sorted(schema["properties"])
                assert all("type" in parameter for parameter in schema["properties"].values())

        async def call(name, arguments):
            written = json.dumps(arguments)
            context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=written)
            return text_of(await tools[name].on_invoke_tool(context, written))

        yield Tools({name: tool.params_json_schema for name, tool in tools.items()}, call)


def openai_agents_strict():
    return openai_agents(strict=True)


@asynccontextmanager
async def pydantic_ai():
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    schemas, request = {}, None

    def model(messages, info):
        nonlocal request
        schemas.update({tool.name: tool.parameters_json_schema for tool in info.function_tools})
        if request is None:
            content = messages[-1].parts[-1].content
            return ModelResponse([TextPart(value_of(content) if isinstance(content, dict) else content)])
        (name, arguments), request = request, None
        return ModelResponse([ToolCallPart(name, arguments)])

    transport = StdioTransport(COMMAND, ARGUMENTS, env=SERVER["env"], keep_alive=False)
    agent = Agent(FunctionModel(model), toolsets=[MCPToolset(transport, init_timeout=MAX_WAIT)])

    async def call(name, arguments):
        nonlocal request
        request = (name, arguments)
        return (await agent.run("go")).output

    async with agent:
        await agent.run("what is there?")
        yield Tools(schemas, call)


@asynccontextmanager
async def mcp_use():
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from mcp_use import MCPClient
    from mcp_use.agents.adapters.langchain_adapter import LangChainAdapter

    client = MCPClient(config={"mcpServers": {"cx": SERVER}})
    try:
        await client.create_all_sessions()
        adapter = LangChainAdapter()
        await adapter.create_all(client)
        tools = {tool.name: tool for tool in adapter.tools}
        schemas = {name: openai_parameters(convert_to_openai_tool(tool)) for name, tool in tools.items()}

        async def call(name, arguments):
            answer = await tools[name].ainvoke(arguments)
            # An error has its own form.
            return answer["details"] if isinstance(answer, dict) else text_of(answer)

        yield Tools(schemas, call)
    finally:
        await client.close_all_sessions()


@asynccontextmanager
async def llama_index():
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    client = BasicMCPClient(COMMAND, args=ARGUMENTS, env=SERVER["env"], timeout=MAX_WAIT)
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client).to_tool_list_async()}
    schemas = {name: openai_parameters(tool.metadata.to_openai_tool()) for name, tool in tools.items()}

    async def call(name, arguments):
        return text_of((await tools[name].acall(**arguments)).raw_output.content)

    yield Tools(schemas, call)


@asynccontextmanager
async def google_adk():
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from google.genai import types
    from mcp import StdioServerParameters

    schemas, requests = {}, []

    class Model(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            for tool in llm_request.config.tools:
                for declared in tool.function_declarations:
                    schema = declared.parameters_json_schema
                    if schema is None:
                        schema = declared.parameters.model_dump(exclude_none=True) if declared.parameters else {}
                    schemas[declared.name] = schema
            if requests:
                name, arguments = requests.pop()
                part = types.Part.from_function_call(name=name, args=arguments)
            else:
                part = types.Part.from_text(text="done")
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    connection = StdioConnectionParams(server_params=StdioServerParameters(**SERVER), timeout=MAX_WAIT)
    toolset = McpToolset(connection_params=connection)
    agent = LlmAgent(name="interop", model=Model(model="none"), tools=[toolset])
    runner = InMemoryRunner(agent=agent, app_name="interop")
    session = await runner.session_service.create_session(app_name="interop", user_id="interop")

    async def run():
        message = types.Content(role="user", parts=[types.Part.from_text(text="go")])
        results = []
        async for event in runner.run_async(user_id="interop", session_id=session.id, new_message=message):
            results += event.get_function_responses()
        return results

    async def call(name, arguments):
        requests.append((name, arguments))
        (result,) = await run()
        return text_of(result.response["content"])

    try:
        await run()
        yield Tools(schemas, call)
    finally:
        await toolset.close()
        await runner.close()


def neutral(schema) -> Any:
    """What a model fills in where it has nothing to say."""
    for option in schema.get("anyOf", []):
        if option.get("type") == "null":
            return None
    values = {"string": "", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": ["well.*"]}
    return values[str(schema["type"]).lower().removeprefix("type.")]


def filled(schema) -> dict[str, Any]:
    return {name: neutral(parameter) for name, parameter in schema.get("properties", {}).items()}


# In the text of an answer, or in its structured content: frameworks show one or the other.
LOCATION = re.compile(r"line\W+1\W+column\W+7")


async def main():
    async with asyncio.timeout(MAX_WAIT), globals()[FRAMEWORK]() as tools:
        parameters = tools.schemas["executeTypescript"]["properties"]
        seen = {"tools": sorted(tools.schemas), "parameters": sorted(parameters)}

        async def first_line(tool, arguments):
            return (await tools.call(tool, arguments)).splitlines()[0]

        seen["typescript"] = await first_line("executeTypescript", {"code": TYPESCRIPT, "input": INPUT})
        seen["python"] = await first_line("executePython", {"code": PYTHON, "input": INPUT})
        everything = filled(tools.schemas["executeTypescript"]) | {"code": "return 6 * 7"}
        seen["filled"] = await first_line("executeTypescript", everything)
        failing = await tools.call("executeTypescript", {"code": "throw new RangeError('no')"})
        seen["failing"] = "RUNTIME_ERROR" in failing and LOCATION.search(failing) is not None
        seen["health"] = '"healthy":true' in (await tools.call("health", {})).replace(" ", "")
        print(json.dumps(seen))


asyncio.run(main())
