const messages = [];
const cyclic: any = {};
cyclic.self = cyclic;
let deep: any[] = [];
for (let level = 0; level < 200; level++) deep = [deep];
for (const args of ["text", 1, [1], true, () => 1, { n: Symbol() }, cyclic, { deep }]) {
  try {
    messages.push(await mock.echo(args as any));
  } catch (error) {
    messages.push([error.name, error.code ?? null, error.message.split("\n")[0]]);
  }
}
messages.push(await mock.echo(), await mock.echo(null), await mock.echo({ u: undefined, d: new Date(0) }));
return messages;
