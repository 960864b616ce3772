const found = tools.mock.echo({ list: [] });
await new Promise((resolve) => setTimeout(resolve, 50));
return found.list.length;
