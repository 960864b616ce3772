const found = tools.mock.echo({ list: [] });
await mock.echo();
return found.list.length;
