const messages = [];
for (const bad of [{ fn() {} }, { list: [Symbol.iterator] }, { later: Promise.resolve(1) }]) {
  try {
    messages.push(await mock.echo(bad as any));
  } catch (error) {
    messages.push([error.code, error.message]);
  }
}
try {
  emit({ fn() {} });
} catch (error) {
  messages.push(error.message);
}
try {
  await state.set("key", { deep: { fn() {} } });
} catch (error) {
  messages.push([error.code, error.message]);
}
return [messages, JSON.stringify({ fn() {}, s: Symbol(), list: [() => 1] })];
