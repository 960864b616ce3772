const result = await tools.mock.echo({ a: 1 });
return result.a;
