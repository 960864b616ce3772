"""The MCP server that the documents are about: issues of a repository, and the weather.

    python3 issues.py FILE

Newline-delimited JSON-RPC with the standard library only. If FILE exists, the descriptions of the tools are others than
before.
"""

import json
import os
import sys

TOOLS = {
    "list_issues": {
        "description": "Lists the issues of a repository",
        "inputSchema": {
            "type": "object",
            "properties": {
                "owner": {"type": "string"}, "repo": {"type": "string"}, "state": {"enum": ["open", "closed", "all"]},
            },
        },
        "annotations": {"readOnlyHint": True},
    },
    "forecast": {
        "description": "The weather of a city",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "annotations": {"readOnlyHint": True},
    },
}
ISSUES = [{"number": 2, "title": "it is slow"}, {"number": 1, "title": "it is fast"}]


def call(name, arguments):
    if name == "list_issues":
        return {"content": [{"type": "text", "text": json.dumps(ISSUES)}]}
    return {"content": [{"type": "text", "text": json.dumps({"city": arguments["city"], "sky": "clear"})}]}


def answer(method, parameters):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "issues", "version": "1"},
        }
    if method == "tools/list":
        more = ", of today" if os.path.exists(sys.argv[1]) else ""
        return {"tools": [{"name": name, **tool, "description": tool["description"] + more} for name, tool in TOOLS.items()]}
    if method == "tools/call":
        return call(parameters["name"], parameters.get("arguments") or {})
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    reply |= {"result": result} if result else {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps(reply), flush=True)
