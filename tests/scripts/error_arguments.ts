const messages = [];
const cyclic: any = {};
cyclic.self = cyclic;
for (const args of ["text", 1, [1], true, () => 1, { n: Symbol() }, cyclic, { f() {} }]) {
  try {
    messages.push(await mock.echo(args as any));
  } catch (error) {
    messages.push([error.name, error.code ?? null, error.message.split("\n")[0]]);
  }
}
messages.push(await mock.echo(), await mock.echo(null), await mock.echo({ u: undefined, d: new Date(0) }));
return messages;
