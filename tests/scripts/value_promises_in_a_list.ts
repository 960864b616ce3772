return [1, 2].map(async (n) => await tools.mock.echo({ n }));
