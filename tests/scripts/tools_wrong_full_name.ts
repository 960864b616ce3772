const messages = [];
for (const name of ["mcp__mock__ecco", "mcp__mokk__echo", "echo", "", "mock.ekho"]) {
  try {
    await callMCPTool(name);
  } catch (error) {
    messages.push([error.code, error.message]);
  }
}
return messages;
