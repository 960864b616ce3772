WeakSet.prototype.has = () => { throw new Error("has") };
WeakSet.prototype.add = () => { throw new Error("add") };
JSON.stringify = () => '"not this"';
const answer = await mock.echo({ a: 1 });
return JSON.parse(answer);
