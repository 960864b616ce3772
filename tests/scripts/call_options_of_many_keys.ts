// V8 makes a text of each index of such an object, natively. Threat 654.
const messages: string[] = [];
for (const large of [new Uint8Array(2 ** 24), new String("x".repeat(2 ** 24))] as any[]) {
  for (
    const use of [
      () => tools.mock.echo({}, large),
      () => callMCPTool("mcp__mock__echo", {}, large),
      () => call_tools([], large),
      () => llm.think(large),
      () => llm.extract(1, {}, large),
      () => fs.truncate("/tmp/a", large),
      () => fs.writeFile("/tmp/a", "x", { flag: large }),
      () => emit(Object.assign(large, { file: "a" })),
    ]
  ) {
    try {
      await use();
      messages.push("no error");
    } catch (error) {
      messages.push(`${error.name}: ${error.message}`);
    }
  }
}
return messages;
