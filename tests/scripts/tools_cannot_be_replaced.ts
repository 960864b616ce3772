const attempts = [
  () => { tools.mock = 1; },
  () => { delete tools.mock; },
  () => { mock.echo = 1; },
  () => { globalThis.callMCPTool = 1; },
  () => { Object.defineProperty(tools, "x", { value: 1 }); },
  () => { Object.setPrototypeOf(mock, {}); },
];
return attempts.map((attempt) => {
  try {
    attempt();
    return "replaced";
  } catch (error) {
    return error.name;
  }
});
