// The values that `structuredClone` copies, and those that it refuses.
class Point { constructor(public x = 1) {} get double() { return 2 * this.x; } }
const shared = { shared: true };
const cycle: Record<string, unknown> = { shared, again: shared };
cycle.self = cycle;
const copied = structuredClone({
  point: new Point(), list: [1, , 3], date: new Date(5), expression: /a/gi, error: new TypeError("wrong", { cause: shared }),
  set: new Set([shared]), map: new Map([[shared, 1n]]), boxed: Object("text"), bytes: new Uint16Array([1, 2]), cycle,
  looksLikeOne: Object.create(WeakRef.prototype, { a: { value: 1, enumerable: true } }),
});
const refused: [string, unknown][] = [
  ["function", () => 1], ["symbol", Symbol("s")], ["promise", Promise.resolve()], ["proxy", new Proxy({}, {})],
  ["weak map", new WeakMap()], ["weak set", new WeakSet()], ["weak reference", new WeakRef({})],
  ["weak reference in a list", [new WeakRef([])]], ["generator", (function* () {})()], ["address", new URL("http://a/")],
];
return {
  plain: [copied.point instanceof Point, copied.point.x, "double" in copied.point, 1 in copied.list, copied.list.length],
  values: [copied.date.getTime(), String(copied.expression), copied.error.name, copied.error.message, typeof copied.boxed, copied.bytes[1]],
  shared: [copied.cycle.self === copied.cycle, copied.cycle.shared === copied.cycle.again, copied.cycle.shared !== shared,
    copied.set.has(copied.cycle.shared as never), copied.map.get(copied.cycle.shared as never) === 1n, copied.error.cause === copied.cycle.shared],
  looksLikeOne: [copied.looksLikeOne.a, copied.looksLikeOne instanceof WeakRef],
  refused: refused.map(([what, value]) => {
    try {
      structuredClone(value);
      return `${what}: copied`;
    } catch (error) {
      return `${what}: ${(error as Error).name}`;
    }
  }),
};
