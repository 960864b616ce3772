const answer = await mock.echo({ a: [1, { b: null }] });
const list = await mock.text({ text: "[5]" });
const parsed = JSON.parse(answer);
const revived = JSON.parse(answer, (key, value) => key === "b" ? "revived" : value);
answer.c = 1;
return [
  parsed,
  parsed !== answer,
  revived,
  JSON.parse(answer),
  JSON.parse(list),
  JSON.parse(await mock.text({ text: '"5"' })),
  JSON.parse(await callMCPTool("mcp__mock__echo", { d: 1 })),
  JSON.parse(call_tool("mock", "echo", { e: 1 }).result),
  [JSON.parse.name, JSON.parse.length, Object.keys(JSON)],
];
