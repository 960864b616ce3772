const messages = [];
for (const options of [{ timeout: 5 }, { signal: "x" }, { timeoutMs: 0 }, "soon", []]) {
  await tools.mock.echo({}, options as any).catch((error) => messages.push(`${error.name}: ${error.message}`));
}
// An index and the list are no options.
const mapped = await Promise.all([{ a: 1 }, { a: 2 }].map(tools.mock.echo));
return [messages, mapped, call_tool("mock", "echo", {}, { timeoutMs: 5 } as any)];
