// Does a task with a tool that was not named: finds it, reads its schema, and calls it if all that it needs is there.
const { task, values } = input as { task: string; values: Record<string, unknown> };
const [found] = await searchTools(task, 1);
const { name, parameters } = await getToolSchema(found.name);

const missing = (parameters.required ?? []).filter((field) => !(field in values));
if (missing.length > 0) {
  return { tool: name, missing, how: found.usage };
}
const known = Object.entries(values).filter(([field]) => field in parameters.properties);
return { tool: name, result: await callMCPTool(name, Object.fromEntries(known)) };
