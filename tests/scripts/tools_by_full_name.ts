return [
  await callMCPTool("mcp__mock__echo", { a: 1 }),
  await callMCPTool("mcp__otherServer__readFile"),
  await callMCPTool("mock.echo", { b: 2 }),
];
