let calls = 0;
const value = { get a() { return ++calls }, b: { toJSON() { return { c: ++calls } } } };
const sent = await mock.echo(value);
return { sent, calls, value };
