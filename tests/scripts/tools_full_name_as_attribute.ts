const { mcp__mock__echo } = tools;
const half = (() => {
  try {
    return tools[["mcp", "mock"].join("__")];
  } catch (error) {
    return error.code;
  }
})();
return [
  await tools.mcp__mock__echo({ a: 1 }),
  await tools["mcp__other-server__read_file"]({ b: 2 }),
  await mcp__mock__echo({ c: 3 }),
  tools.mcp__mock__echo.name,
  half,
  Object.keys(tools),
];
