const texts = ["mock.echo", "tools.mock.echo", "mcp__mock__echo", tools.mock.echo].map((topic) => help(topic));
return { all: texts.every((text) => text === texts[0]), tool: texts[0], server: help(tools.otherServer) };
