const page = await mock.echo({ ["next" + "_cursor"]: "2" });
return page.nextCursor ?? "no more";
