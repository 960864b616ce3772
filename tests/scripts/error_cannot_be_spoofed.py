class TimeoutError(McpToolError):
    kind = "timeout"


raise TimeoutError("memory limit exceeded", code="MAX_TOOL_CALLS_EXCEEDED")
