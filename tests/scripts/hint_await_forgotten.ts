const found = callMCPTool("mcp__mock__sleep", { ms: 5000 });
await new Promise((resolve) => setTimeout(resolve, 50));
return found.list.length;
