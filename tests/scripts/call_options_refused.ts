const messages = [];
for (const options of [{ timeout: 5 }, { signal: "x" }, { timeoutMs: 0 }, "soon", []]) {
  await tools.mock.echo({}, options as any).catch((error) => messages.push(`${error.name}: ${error.message}`));
}
return [messages, call_tool("mock", "echo", {}, { timeoutMs: 5 } as any)];
