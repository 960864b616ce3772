try {
  await mock.fail({ message: "no such file" });
} catch (error) {
  return {
    isToolError: error instanceof McpToolError,
    isError: error instanceof Error,
    name: error.name,
    server: error.server,
    tool: error.tool,
    code: error.code,
    message: error.message,
    content: error.content,
    stack: error.stack.split("\n")[0],
  };
}
