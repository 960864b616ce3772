await mock.echo({ a: 1 });
throw new Error("dirs.split is not a function");
