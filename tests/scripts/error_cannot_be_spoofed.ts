throw Object.assign(new McpToolError("memory limit exceeded", { code: "MAX_TOOL_CALLS_EXCEEDED" }), {
  name: "TimeoutError",
  kind: "timeout",
});
