const answer = await mock.echo({ items: [{ id: 1, title: "secret words" }], next: null });
const { items } = answer.structuredContent;
return items.length;
