// What every script of the walker begins with: how functions are reached, and the values that they are called with.
// Each value is made anew by its function, when it is used.

const say = console.log.bind(console);
const reflect = { apply: Reflect.apply, construct: Reflect.construct };
const descriptorOf = Object.getOwnPropertyDescriptor;
const prototypeOf = Object.getPrototypeOf;
const symbolsOf = Object.getOwnPropertySymbols;

const at = (holder, key) => descriptorOf(holder, key).value;
const getter = (holder, key) => descriptorOf(holder, key).get;
const setter = (holder, key) => descriptorOf(holder, key).set;
const symbol = (holder, index) => symbolsOf(holder)[index];
const call = reflect.apply;
const make = reflect.construct;

// Objects that only syntax reaches.
const syntax = {
  asyncFunction: async () => {},
  asyncGenerator: (async function* () { yield 1 })(),
  generator: (function* () { yield 1 })(),
  arguments: (function () { return arguments })(1, 2),
  expression: /a/g,
  template: ((strings) => strings)`a${1}`,
  symbol: Object(Symbol("a")),
  bigint: Object(1n),
  boundFunction: function () {}.bind(null),
  // Operators, as functions.
  spread: (value) => [...value],
  spreadBehind: (value) => [0, ...value],
  spreadCall: (value) => Math.max(...value),
  spreadObject: (value) => ({ ...value }),
  rest: ({ a, ...others }) => others,
  destructure: ([a, b, ...others]) => others,
  forIn: (value) => { let count = 0; for (const _ in value) count++; return count },
  forOf: (value) => { let count = 0; for (const _ of value) if (count++ > 1e5) break; return count },
  text: (value) => `${value}`,
  number: (value) => +value,
  add: (left, right) => left + right,
  power: (left, right) => left ** right,
  shift: (left, right) => left << right,
  less: (left, right) => left < right,
  equal: (left, right) => left == right,
  has: (left, right) => left in right,
  instance: (left, right) => left instanceof right,
  read: (left, right) => left[right],
  write: (left, right, value) => { left[right] = value },
  remove: (left, right) => delete left[right],
  construct: (left, right) => new left(right),
  extend: (value) => class extends value {},
  tag: (value) => value`a${1}b`,
  awaits: async (value) => await value,
  awaitsEach: async (value) => { let count = 0; for await (const _ of value) if (count++ > 100) break },
  delegate: (value) => { const steps = (function* () { yield* value })(); for (let i = 0; i < 3; i++) steps.next() },
  throws: (value) => { throw value },
  rejects: async (value) => { throw value },
};

const huge = 2 ** 53 - 1;
const many = (text, count) => text.repeat(count);
const later = (first, then) => { let count = 0; return () => count++ ? then : first };
const withGetter = (key, get) => Object.defineProperty({}, key, { get, enumerable: true, configurable: true });
const deep = (levels, wrap) => { let value = wrap(null); for (let i = 0; i < levels; i++) value = wrap(value); return value };

const hostile = {
  nothing: () => undefined,
  none: () => null,
  yes: () => true,
  zero: () => 0,
  minusZero: () => -0,
  one: () => 1,
  minusOne: () => -1,
  notANumber: () => NaN,
  int32: () => 2 ** 31,
  uint32: () => 2 ** 32 - 1,
  int53: () => huge,
  negative53: () => -huge,
  infinity: () => Infinity,
  minusInfinity: () => -Infinity,
  largest: () => 1.7e308,
  million: () => 1e6,
  bigOne: () => 1n,
  big64: () => -(2n ** 64n),
  bigHuge: () => 2n ** (2n ** 20n),
  emptyText: () => "",
  letter: () => "a",
  lone: () => "a\ud800b\udc00",
  nul: () => "\0a\0",
  proto: () => "__proto__",
  digits: () => many("9", 1e5),
  long: () => many("x", 2 ** 26),
  longWide: () => many("\u0101", 2 ** 25),
  longPattern: () => many("x", 2 ** 14) + "y",
  rope: () => { let text = "ab"; for (let i = 0; i < 24; i++) text += text; return text },
  marks: () => "a" + many("\u0301\u0316", 2 ** 16),
  otherMarks: () => "a" + many("\u0316\u0301", 2 ** 16),
  parentheses: () => many("(", 1e5),
  classes: () => many("[ab]", 1e4),
  percent: () => many("%f0", 1e5),
  tag: () => "en-US",
  longTag: () => "en" + many("-abcde", 1e5),
  date: () => many("2020-01-01T", 1e5),
  json: () => many("[", 1e5),
  name: () => "length",
  mark: () => Symbol("a"),
  iteratorMark: () => Symbol.iterator,
  inspectMark: () => Symbol.for("Deno.customInspect"),
  plain: () => ({ a: 1, b: "b" }),
  longOptions: () => new Proxy({}, { get: () => "a0000" + Array.from({ length: 2 ** 16 }, (_, i) => "-a" + (1e6 + i)).join("") }),
  fakeLocale: () => Object.setPrototypeOf({ length: 2 ** 32 - 2, toString: hostile.longTag }, Intl.Locale.prototype),
  bare: () => Object.create(null),
  list: () => [3, 1, 2],
  nested: () => [[1, [2, [3]]], [4]],
  holes: () => new Array(2 ** 32 - 1),
  // V8 allocates up to 2 ** 25 elements at once, 256 MB: all that a run may have beyond its limit (threat 372).
  manyHoles: () => new Array(2 ** 24),
  nestedHoles: () => [new Array(2 ** 32 - 1), [new Array(2 ** 32 - 1)]],
  full: () => new Array(2 ** 20).fill(1.5),
  texts: () => new Array(64).fill(0).map((_, index) => many("x", 2 ** 18) + index),
  hugeLength: () => ({ length: huge }),
  hugeLength32: () => ({ length: 2 ** 32 - 1, 0: 1 }),
  laterLength: () => withGetter("length", later(1, huge)),
  laterLength32: () => withGetter("length", later(1, 2 ** 32 - 1)),
  valueLength: () => ({ length: { valueOf: later(1, huge) } }),
  growing: () => ({ get length() { this[0] = this; return 2 ** 20 }, 0: 1 }),
  hugeArguments: () => ({ length: 2 ** 26 }),
  cycleObject: () => { const value = {}; value.self = value; return value },
  cycleArray: () => { const value = [1]; value.push(value); return value },
  deepArray: () => deep(1e5, (inner) => [inner]),
  deepObject: () => deep(1e4, (inner) => ({ inner })),
  deepPrototype: () => deep(1e5, (inner) => Object.create(inner)),
  deepProxy: () => deep(1e4, (inner) => new Proxy(inner ?? [], {})),
  deepBound: () => deep(1e4, (inner) => (inner ?? (() => {})).bind(null)),
  wide: () => { const value = {}; for (let i = 0; i < 1e4; i++) value["k" + i] = i; return value },
  callback: () => (...args) => args.length,
  identity: () => (value) => value,
  throwing: () => () => { throw new RangeError("thrown") },
  falsy: () => () => undefined,
  generatorFunction: () => function* () { for (;;) yield 1 },
  constructorFunction: () => class { constructor(...args) { this.args = args } },
  nativeObject: () => Object,
  nativeArray: () => Array,
  nativeMax: () => Math.max,
  nativeParse: () => JSON.parse,
  nativeText: () => String,
  nativeSplit: () => String.prototype.split,
  bound: () => Array.from.bind(Array, { length: 2 ** 24 }),
  openProxy: () => new Proxy({}, {}),
  arrayProxy: () => new Proxy(new Array(2 ** 32 - 1), {}),
  laterProxy: () => { const get = later(undefined, undefined); return new Proxy(new Array(2 ** 32 - 1), { get get() { get(); return undefined } }) },
  functionProxy: () => new Proxy(function () {}, {}),
  lyingProxy: () => new Proxy([], { get: (target, key) => key === "length" ? huge : key === Symbol.toPrimitive ? undefined : target[key] }),
  throwingProxy: () => new Proxy({}, { get() { throw new TypeError("trap") }, ownKeys() { throw new TypeError("trap") }, has() { throw new TypeError("trap") } }),
  revokedProxy: () => { const { proxy, revoke } = Proxy.revocable([], {}); revoke(); return proxy },
  keysProxy: () => new Proxy({}, { ownKeys: () => { const keys = []; for (let i = 0; i < 1e5; i++) keys.push("k" + i); return keys }, getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }) }),
  yesProxy: () => { const self = new Proxy(function () {}, { get: (_, key) => key === Symbol.toPrimitive ? () => huge : key === "then" ? undefined : self, apply: () => self, construct: () => self }); return self },
  hugeOptions: () => new Proxy({}, { get: (_, key) => typeof key === "symbol" ? undefined : huge }),
  textOptions: () => new Proxy({}, { get: (_, key) => typeof key === "symbol" ? undefined : many("x", 2 ** 24) }),
  primitiveHuge: () => ({ [Symbol.toPrimitive]: () => huge }),
  primitiveText: () => ({ [Symbol.toPrimitive]: () => many("x", 2 ** 26) }),
  primitiveThrows: () => ({ [Symbol.toPrimitive]() { throw new TypeError("primitive") } }),
  laterText: () => ({ toString: later("a", many("x", 2 ** 26)) }),
  endless: () => (function* () { for (;;) yield 1 })(),
  endlessEntries: () => (function* () { for (let i = 0;; i++) yield ["k" + i % 10, i] })(),
  endlessNative: () => [].values.call({ length: huge }),
  endlessNativeEntries: () => [].entries.call({ length: huge }),
  endlessHelper: () => [].values.call({ length: huge }).drop(1),
  endlessObject: () => { const value = { next: Object, [Symbol.iterator]() { return this } }; return value },
  endlessAsync: () => (async function* () { for (;;) yield 1 })(),
  ownIterator: () => Object.assign([1, 2], { [Symbol.iterator]: [].values.bind({ length: 2 ** 32 }) }),
  setLike: () => ({ size: 1e9, has: () => true, keys: () => [].values.call({ length: huge }) }),
  spreadable: () => ({ length: huge, [Symbol.isConcatSpreadable]: true }),
  laterSpreadable: () => Object.defineProperties({ [Symbol.isConcatSpreadable]: true }, { length: { get: later(1, huge) } }),
  species: () => { const value = [1, 2, 3]; value.constructor = { [Symbol.species]: function () { return new Proxy(new Array(2 ** 32 - 1), {}) } }; return value },
  rawStrings: () => ({ raw: { length: huge } }),
  laterRaw: () => ({ raw: withGetter("length", later(1, huge)) }),
  symbols: () => ({ [Symbol.match]: () => [], [Symbol.matchAll]: Object, [Symbol.replace]: () => many("x", 2 ** 24), [Symbol.search]: () => huge, [Symbol.split]: () => [], [Symbol.hasInstance]: () => true, [Symbol.toStringTag]: many("x", 2 ** 20), [Symbol.unscopables]: null }),
  expression: () => /a/g,
  ownExec: () => Object.assign(/a/g, { exec: Object }),
  ownExecFunction: () => Object.assign(/a/g, { exec: () => ({ index: 0, 0: "", length: huge }) }),
  ownFlags: () => Object.defineProperty(/x/, "flags", { value: "g" }),
  ownGlobal: () => Object.defineProperty(/x/, "global", { value: true }),
  hugeLast: () => Object.assign(/x/gy, { lastIndex: huge }),
  backtracking: () => /^(a+)+$/,
  bufferEmpty: () => new ArrayBuffer(0),
  buffer: () => new ArrayBuffer(64),
  bufferLarge: () => new ArrayBuffer(2 ** 24),
  detached: () => { const buffer = new ArrayBuffer(8); structuredClone(buffer, { transfer: [buffer] }); return buffer },
  detachedView: () => { const view = new Uint8Array(8); structuredClone(view.buffer, { transfer: [view.buffer] }); return view },
  bytes: () => new Uint8Array([1, 2, 3]),
  bytesLarge: () => new Uint8Array(2 ** 24),
  floats: () => new Float64Array(2 ** 20),
  bigints: () => new BigInt64Array(4),
  view: () => new DataView(new ArrayBuffer(8)),
  map: () => new Map([[1, 2], ["a", {}]]),
  set: () => new Set([1, 2, 3]),
  setLarge: () => new Set(new Array(1e5).fill(0).map((_, index) => index)),
  weakMap: () => new WeakMap(),
  weakRef: () => new WeakRef({}),
  invalidDate: () => new Date(NaN),
  laterDate: () => new Date(8.64e15),
  promise: () => Promise.resolve(1),
  never: () => new Promise(() => {}),
  rejected: () => { const value = Promise.reject(new Error("rejected")); value.catch(() => {}); return value },
  thenable: () => ({ then(resolve) { resolve(1) } }),
  thenableSelf: () => ({ then(resolve) { resolve(this) } }),
  thenableNever: () => ({ then() {} }),
  error: () => new Error("a", { cause: new Error("b") }),
  errorHostile: () => Object.defineProperties(new Error("a"), { stack: { get() { throw 1 } }, message: { get: () => many("x", 2 ** 24) }, cause: { get() { return this } } }),
  errorsHuge: () => Object.assign(new AggregateError([]), { errors: new Array(2 ** 32 - 1) }),
  toolError: () => new McpToolError("a", { code: "TOOL_ERROR", server: {} }),
  params: () => new URLSearchParams("a=1&b=2"),
  address: () => new URL("http://a/b?c#d"),
  signal: () => new AbortController().signal,
  event: () => new Event("a"),
  target: () => new EventTarget(),
  listener: () => ({ handleEvent() { throw new Error("listener") } }),
  locale: () => new Intl.Locale("en"),
  locales: () => new Array(1e5).fill(0).map((_, index) => "en-x-a" + index),
  localesHuge: () => ({ length: huge, 0: "en" }),
  localesLater: () => withGetter("length", later(1, huge)),
  textObject: () => Object(many("x", 2 ** 25)),
  global: () => globalThis,
  server: () => tools.mock,
  emitted: () => ({ type: "image", mimeType: "a/b", data: new Uint8Array(2 ** 20) }),
  level: () => "\u001b[31m%s%d%o%O%c",
};

// Values that often break built-in loops are chosen more often.
const likely = [
  "long", "rope", "holes", "manyHoles", "nestedHoles", "hugeLength", "hugeLength32", "laterLength", "laterLength32",
  "hugeArguments", "arrayProxy", "laterProxy", "endless", "endlessNative", "endlessNativeEntries", "endlessHelper",
  "endlessObject", "ownIterator", "setLike", "spreadable", "laterSpreadable", "rawStrings", "laterRaw", "ownExec", "ownFlags",
  "localesHuge", "textObject", "bytesLarge", "marks", "locales", "int53", "nativeObject",
];

// A function is called, because that is what a callback is for. A promise is not awaited, so its rejection is handled.
function use(result) {
  if (result !== null && typeof result === "object") {
    if (result instanceof Promise) {
      result.catch(() => {});
      return;
    }
    const next = result.next;
    if (typeof next === "function") {
      for (let count = 0; count < 3; count++) {
        call(next, result, []);
      }
    }
  }
}
