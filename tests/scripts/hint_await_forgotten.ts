const found = callMCPTool("mcp__mock__sleep", { ms: 100 });
return found.list.length;
