class Refused extends RangeError {
  constructor(message: string, readonly code: number) {
    super(message);
  }
}
class Tally extends Map {
  toJSON() {
    return "its own";
  }
}
const toolError = await mock.fail({ message: "no" }).catch((error) => error);
return {
  names: new Map<unknown, unknown>([["b", new Set([[1], new Map([[true, 0]])])], [1, null]]),
  proto: new Map([["__proto__", { a: 1 }]]),
  pairs: new Map<unknown, unknown>([[{ id: 1 }, "x"], ["y", 2]]),
  sameText: new Map<unknown, unknown>([[1, "a"], ["1", "b"]]),
  empty: [new Map(), new Set()],
  cause: new Error("outer", { cause: new AggregateError([1, new Error("inner")], "several") }),
  raw: JSON.rawJSON('"\\ud83d\\ude00 \\ud83d \\uDE00 \\\\ud83d"'),
  own: new Tally([[1, 2]]),
  refused: new Refused("bad", 7),
  toolError,
  heir: Object.create(Map.prototype),
  heirs: Object.create(URLSearchParams.prototype, { a: { value: 1, enumerable: true } }),
  sent: await mock.echo({ ids: new Set(["a", "b"]), by: new Map([["a", 1n]]) }),
};
