results = [hasattr(tools, "mokk"), getattr(tools, "mokk", "default"), "mokk" in mcp_servers]
try:
    mcp_servers["mokk"]
except KeyError as error:
    results.append([type(error).__name__, str(error)])
try:
    from mcp_tools import mokk
except ImportError as error:
    results.append([type(error).__name__, str(error)])
return results
