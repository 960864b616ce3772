return await tools["mock.echo"]({ a: 1 });
