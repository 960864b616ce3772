const controller = new AbortController();
const hanging = tools.mock.hang({}, { signal: controller.signal });
await tools.mock.sleep({ ms: 200 });
controller.abort(new Error("enough"));
const ended = await hanging.catch((error) => error.message);
// Nothing is sent.
const late = await tools.mock.echo({ a: 1 }, { signal: controller.signal }).catch((error) => error.message);
const fine = await callMCPTool("mcp__mock__echo", { a: 2 }, { signal: new AbortController().signal });
return [ended, late, fine];
