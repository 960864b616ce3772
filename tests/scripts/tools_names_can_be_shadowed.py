async def mock(text):
    return f"the script's own: {text}"


tools_found = await search_tools("image", limit=1)
return [await mock("x"), await tools.mock.echo(a=1), len(tools_found)]
