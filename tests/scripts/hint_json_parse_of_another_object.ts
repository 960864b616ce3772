await mock.echo({ a: 1 });
const messages = [];
for (const value of [{ a: 1 }, new Date(0), (await mock.echo({ b: { c: 1 } })).b]) {
  try {
    messages.push(JSON.parse(value as any));
  } catch (error) {
    messages.push(`${error.name}: ${error.message}`);
  }
}
return [messages, JSON.parse([5] as any), JSON.parse({ toString: () => '{"d":1}' } as any)];
