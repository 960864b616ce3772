const pages = await Promise.all([1, 2].map(() => mock.echo({ content: "a text" })));
return pages.map((page) => page.content[0].text);
