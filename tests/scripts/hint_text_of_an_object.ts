const dirs = await mock.echo({ content: "Allowed directories:\n/home/ada" });
return dirs.split("\n");
