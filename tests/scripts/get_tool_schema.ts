return [
  await getToolSchema("mcp__mock__wrapped"),
  await getToolSchema("mcp__mock__nope"),
  await getToolSchema("mcp__nope__echo"),
  await getToolSchema("nonsense"),
  (await getToolSchema("mock.echo")).annotations,
];
