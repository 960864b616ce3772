from mcp import runtime

return [
    await runtime.discovered_servers(),
    (await runtime.describe_server("other-server"))["tools"],
    len(await runtime.capability_summary()) > 50,
    len(await runtime.list_loaded_server_metadata()),
]
