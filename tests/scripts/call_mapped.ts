// The index that these functions pass is no options of a call.
const list = [{ a: 1 }, { a: 2 }];
return [
  await Promise.all(list.map(tools.mock.echo)),
  await Promise.all(Array.from(list, tools.mock.echo)),
  await Array.fromAsync(list, tools.mock.echo),
  await Promise.all(list.values().map(tools.mock.echo)),
  await Promise.all(list.map(tools.mcp__mock__echo)),
];
