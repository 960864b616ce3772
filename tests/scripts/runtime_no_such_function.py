from mcp import runtime

runtime.list_toolz()
