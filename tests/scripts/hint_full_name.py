await mcp__mock__echo(a=1)
