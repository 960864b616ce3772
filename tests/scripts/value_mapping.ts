class Point { x = 1; #secret = 2; get y() { return 3; } }
return {
  numbers: [NaN, Infinity, -Infinity, -0, 2 ** 53 + 1, 1e-400],
  date: new Date(0),
  map: new Map([[1, 2]]),
  set: new Set([1]),
  regexp: /a/g,
  query: new URLSearchParams({ a: "1", b: "x y" }),
  error: new Error("x"),
  point: new Point(),
  short: new Int16Array([1, 2]),
  undef: undefined,
  holes: [, 1, undefined],
  boxed: [new Number(1), new String("s"), new Boolean(false)],
  proto: JSON.parse('{"__proto__": {"a": 1}}'),
  text: "\u0000 \u2028 \u001b[31m \u202e",
};
