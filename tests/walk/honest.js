// What scripts do with the functions that have guards: 9,200 results, as a number and a hash for each function.
// `honest.json` is what V8's own functions give, in node:
// node -e 'console.log(JSON.stringify(new Function(require("fs").readFileSync("tests/walk/honest.js"))(), null, 1))'
// With `globalThis.showHonest = "flat"` before it the results for `flat` come out themselves.
const results = [];
const note = (what, make) => {
  let result;
  try { result = make() } catch (error) { result = `throws ${error.name}` }
  results.push([what, JSON.stringify(result, (_, value) => value === undefined ? "undefined" : Object.is(value, -0) ? "-0" : value !== value ? "NaN" : value) ?? "nothing"]);
};

const receivers = {
  list: () => [3, 1, 2], holes: () => [1, , 3], object: () => ({ length: 3, 0: "a", 2: "c" }), text: () => "abc",
  proxy: () => new Proxy([1, , 3], {}), textLength: () => ({ length: "2", 0: 1, 1: 2 }), empty: () => ({}), none: () => null,
  bytes: () => new Uint8Array([3, 1, 2]), arguments: () => (function () { return arguments })(5, 4),
  negative: () => ({ length: -5 }), fraction: () => ({ length: 2.7, 0: 1, 1: 2, 2: 3 }), nested: () => [[1, [2, [3]]], [, 4], 5],
  number: () => 5, subclass: () => class extends Array {}.from([1, 2]), later: () => { let n = 0; return { get length() { return ++n }, 0: 1, 1: 2 } },
};
const calls = {
  every: [[(x) => x > 0]], some: [[(x) => x > 1]], map: [[(x) => x], [function (v, i, o) { return [this?.a, i, typeof o] }, { a: 1 }]],
  filter: [[(x) => x]], find: [[(x) => x]], findIndex: [[(x) => x === 2]], findLast: [[(x) => x]], findLastIndex: [[(x) => x]],
  forEach: [[() => {}]], reduce: [[(a, b) => a + b], [(a, b) => a + b, 10]], reduceRight: [[(a, b) => a + b]],
  includes: [[2], [undefined]], indexOf: [[2], ["c"], ["x".repeat(500)], [3n]], lastIndexOf: [[2], ["c"], ["a", -1]],
  join: [[], ["-"]], reverse: [[]], slice: [[], [1], [-1]], splice: [[], [0, 1], [1, 1, "x", "y"]], fill: [[0], [0, 1]],
  copyWithin: [[0, 1]], sort: [[], [(a, b) => b > a ? 1 : -1]], toSorted: [[]], toReversed: [[]], toSpliced: [[0, 1, "q"]],
  with: [[0, "w"]], toString: [[]], toLocaleString: [[]], shift: [[]], unshift: [[], [7]],
  flat: [[], [0], [1], [Infinity], ["2"], [-1], [NaN]], flatMap: [[(x) => [x, [x]]], [5]],
  concat: [[], [1, [2, 3], { length: 1, 0: "q" }], [{ length: 2, 0: "q", [Symbol.isConcatSpreadable]: true }], [Object.assign([1], { [Symbol.isConcatSpreadable]: false })], [[1, , 3], new Proxy([9, 8], {})]],
};
for (const [name, lists] of Object.entries(calls)) {
  for (const [kind, make] of Object.entries(receivers)) {
    lists.forEach((args, index) => {
      const receiver = make();
      note(`${name} ${index} on ${kind}`, () => Array.prototype[name].apply(receiver, args));
      note(`${name} ${index} on ${kind}: after`, () => receiver);
    });
  }
}
for (const name of ["fill", "sort", "reverse", "copyWithin"]) {
  note(`${name} gives its receiver`, () => { const list = { length: 2, 0: 1, 1: 2 }; return Array.prototype[name].call(list) === list });
}
note("the callback's list", () => { const list = { length: 1, 0: 1 }; return Array.prototype.map.call(list, (v, i, o) => o === list) });
const sources = [
  () => [[1, 2]], () => [{ length: 3 }, (v, i) => i * 2], () => [new Set([1, 2]), (x) => x + 1], () => ["a\u{1f600}b"], () => [new Map([[1, 2]])],
  () => [null], () => [5], () => [{ length: 2, 0: 1 }], () => [(function* () { yield 1; yield 2 })()], () => [new Uint8Array(3), function () { return this.q }, { q: 1 }],
  () => [[1, , 3]], () => [{ [Symbol.iterator]: 5 }], () => [[1], 5],
];
sources.forEach((make, index) => {
  note(`from ${index}`, () => Array.from(...make()));
  note(`from ${index} of a subclass`, () => class extends Array {}.from(...make()));
  note(`from ${index} without a class`, () => Array.from.apply(undefined, make()));
  note(`bytes from ${index}`, () => [...Uint8Array.from(...make())]);
});
note("from closes", () => { const seen = []; try { Array.from({ [Symbol.iterator]: () => ({ next: () => ({ value: 1 }), return() { seen.push("return"); return {} } }) }, () => { throw new Error("a") }) } catch (error) { seen.push(error.message) } return seen });

note("proxies have keys", () => [Object.keys(new Proxy({ a: 1 }, {})), Reflect.ownKeys(new Proxy({ a: 1, b: 2 }, { ownKeys: () => ["b"] })), Object.entries(new Proxy([4, 5], {})), Object.assign({}, new Proxy(new Proxy({ c: 3 }, {}), {}))]);
const lists = { array: [1, 2, 3], holes: [1, , 3], object: { length: 2, 0: "a", 1: "b" }, bytes: new Uint8Array([7, 8]), none: null, missing: undefined, number: 5, text: "ab", odd: { length: "2.5", 0: 1, 1: 2 }, empty: [], proxy: new Proxy([4, 5], {}), arguments: (function () { return arguments })(6, 7) };
const told = function (...args) { return [this?.a ?? null, args.length, ...args] };
for (const [name, list] of Object.entries(lists)) {
  note(`apply to ${name}`, () => told.apply({ a: "this" }, list));
  note(`Reflect.apply to ${name}`, () => Reflect.apply(told, { a: "this" }, list));
  note(`Reflect.construct with ${name}`, () => Reflect.construct(Array, list));
}
note("apply alone", () => [told.apply(), told.apply(null), String.fromCharCode.apply(null, new Uint8Array([104, 105]))]);
note("apply to no function", () => Function.prototype.apply.call({}, null, []));
note("too many arguments", () => Math.max.apply(null, { length: 2 ** 30 }));
const views = ["BigInt64Array", "BigUint64Array", "Float32Array", "Float64Array", "Int16Array", "Int32Array", "Int8Array", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray"];
const plain = (view) => [view.constructor.name, [...view].map(String)];
for (const name of views) {
  const View = globalThis[name];
  const values = name.startsWith("Big") ? [1n, 2n, 300n] : [1, 2.5, 300];
  const made = [[3], [values], [new Set(values)], [{ length: 2, 0: values[0], 1: values[1] }], [new ArrayBuffer(16)], [new ArrayBuffer(16), 8], [new ArrayBuffer(16), 8, 1], [new View(values)], [], ["2"], [undefined], [null], [-1], [{}], [{ [Symbol.iterator]: 5 }], [new ArrayBuffer(3), 1]];
  made.forEach((args, index) => note(`new ${name} ${index}`, () => plain(new View(...args))));
  note(`${name} as a class`, () => [new View(1) instanceof View, new View(1).constructor === View, View.name, View.length, View.BYTES_PER_ELEMENT, Object.getPrototypeOf(View) === Object.getPrototypeOf(Int8Array), plain(new View(values).slice(1)), plain(new View(values).subarray(1, 2)), plain(new View(values).map((value) => value)), plain(new (class Own extends View {})(values).filter(() => true)), plain(View.of(...values)), Object.prototype.toString.call(new View(0))]);
  note(`${name} called`, () => View(1));
}
note("views of buffers", () => { const buffer = new Uint8Array([1, 2, 3, 4]).buffer; return [buffer.constructor === ArrayBuffer, plain(new Uint16Array(buffer)), new Uint8Array(buffer, 1, 2).byteOffset, buffer.slice(1).byteLength] });
note("expressions are made", () => { const r = /a(b)/gi; return [RegExp(r) === r, new RegExp(r) === r, RegExp(r, "g") === r, new RegExp(r).flags, new RegExp(r, "m").flags, new RegExp("a/b").source, new RegExp().source, RegExp(undefined, "g").source, new RegExp(null).source, new RegExp({ toString: () => "q" }).source, r.constructor === RegExp, r instanceof RegExp, RegExp.name, RegExp.length, RegExp.prototype === Object.getPrototypeOf(/x/), new (class extends RegExp { two() { return 2 } })("a").two(), RegExp[Symbol.species] === RegExp] });
note("expressions fail", () => new RegExp("("));
note("expressions from what looks like one", () => String(new RegExp({ [Symbol.match]: true, source: "a", flags: "g" })));
note("compile", () => { const r = /a/g; r.compile("b", "i"); return [r.source, r.flags, r.test("B"), r.compile(/c/m) === r, r.source] });
note("search", () => ["abc".search("c"), "abc".search(/b/), "abc".search("."), "a.c".search("\\."), "abc".search(), "undefined".search(undefined), "nul".search(null), "abc".search({ [Symbol.search]: () => 7 }), String.prototype.search.call(12345, 3)]);
note("matches of texts", () => ["a.c".match("."), "abc".match("b").index, "abc".match(), [..."aXbX".matchAll("X")].map((m) => m.index), "abc".match({ [Symbol.match]: () => 8 }), [..."ab".matchAll()].length]);
const texts = ["", "a", "abc", "aXbXc", "\u{1f600}a\u{1f600}", "aaa", "foo-bar-baz", "2020-01-02", "a,b,,c", "xay"];
const expressions = [/a/, /a/g, /(?:)/g, /(?:)/gu, /(b)|(X)/g, /(?<y>\d+)-(?<m>\d+)/, /(?<y>\d)/g, /,/, /(,)/, /-/g, /./gu, /./g, /x*/g, /^/gm, /a/y, /a/gy, /(a)(b)?/g];
const replacements = ["", "$&", "[$1]", "$$", "$`|$'", "$<y>", "$01", "$10", "$2$1", "$", "$0", "$<", "$<z>", (...a) => a.length + String(a[0])];
for (const text of texts) {
  for (const original of expressions) {
    for (const own of [false, true]) {
      // A regular expression with its own property takes cx's code, the other one V8's.
      const expression = () => { const made = new RegExp(original); if (own) made.own = 1; return made };
      replacements.forEach((replacement, index) => note(`replace ${text} ${original} ${index}`, () => text.replace(expression(), replacement)));
      note(`match ${text} ${original}`, () => text.match(expression()));
      for (const limit of [undefined, 0, 1, 2, -1]) note(`split ${text} ${original} ${limit}`, () => text.split(expression(), limit));
    }
  }
  for (const pattern of ["", "a", "b", "-", "$"]) {
    note(`replace ${text} ${pattern}`, () => [text.replace(pattern, "[$&]"), text.replaceAll(pattern, "[$&]"), text.split(pattern), text.split(pattern, 2), text.includes(pattern, 1), text.indexOf(pattern, 1), text.lastIndexOf(pattern, 1)]);
  }
}
note("objects as texts", () => [String.prototype.indexOf.call({ toString: () => "abcb" }, "b", 2), String.prototype.includes.call(12345, 34), String.prototype.replace.call(["a,b"], ",", "-"), "a1b".split(1), "undefined".indexOf(), "null".lastIndexOf(null)]);
note("includes of an expression", () => "a".includes(/a/));
const text = "ab".repeat(2 ** 19) + "abc" + "ab".repeat(2 ** 10);
const pattern = "ab".repeat(200) + "abc";
note("long", () => [text.indexOf(pattern), text.lastIndexOf(pattern), text.includes(pattern), text.includes(pattern + "x"), text.split(pattern).map((part) => part.length), text.replace(pattern, "-").length, text.replaceAll(pattern, () => "--").length, text.indexOf(pattern, 2 ** 20), text.lastIndexOf(pattern, 5)]);
note("cases", () => ["AbC\u00df\u0130".toLowerCase(), "AbC\u00df".toUpperCase(), "I".toLocaleLowerCase("tr"), "i".toLocaleUpperCase("tr"), "\ud800a".toWellFormed?.(), String.prototype.toUpperCase.call(12), ["b", "a", "\u00e4"].sort((a, b) => a.localeCompare(b)), "a".localeCompare("A", "en", { sensitivity: "base" }), "a".localeCompare()]);
note("cases of nothing", () => String.prototype.toUpperCase.call(null));
note("normalize", () => ["e\u0301".normalize(), ("a" + "\u0301".repeat(60)).normalize("NFD").length, ("x".repeat(100) + "\u00e9").normalize("NFD").length, "\u1100\u1161\u11a8".repeat(50).normalize().length, "\ufb01".normalize("NFKC")]);
note("normalize badly", () => "x".repeat(100).normalize("bad"));
note("stringify", () => [JSON.stringify({ a: 1, b: 2, c: { a: 3 } }, ["a", "c"]), JSON.stringify({ 1: 1, a: 2 }, [1]), JSON.stringify({ a: 1 }, [Object("a"), {}]), JSON.stringify([1, 2], null, 2), JSON.stringify({ a: [1] }, (k, v) => v, 1)]);
note("parse", () => [JSON.parse("[1,{\"a\":[2]}]"), JSON.parse("3", (key, value) => [key, value]), JSON.parse(Object("[4]")), JSON.parse(null)]);
note("parse nothing", () => JSON.parse());
note("parse a symbol", () => JSON.parse(Symbol()));
const long = JSON.stringify(Array.from({ length: 60000 }, (_, index) => ({ index, text: "[{\"\\".repeat(index % 5), list: [[], {}] })));
note("parse long", () => [long.length > 2 ** 20, JSON.stringify(JSON.parse(long)) === long, JSON.parse("\"" + "[".repeat(2 ** 21) + "\"").length]);
note("parse long and wrong", () => JSON.parse(long + "]"));
note("lists", () => [new Intl.ListFormat("en").format(["a", "b", "c"]), new Intl.ListFormat("de", { type: "disjunction" }).format(new Set(["x", "y"])), new Intl.ListFormat("en").formatToParts(["a", "b"]), new Intl.ListFormat("en").format(), new Intl.ListFormat("en").format("abc"), new Intl.ListFormat("en").format(Array(1000).fill("ab")).length]);
note("lists of numbers", () => new Intl.ListFormat("en").format([1]));
note("lists of nothing", () => new Intl.ListFormat("en").format(null));
note("keys", () => [Object.keys("ab"), Object.entries([7]), Object.assign({}, "ab", null, { c: 1 }), Reflect.ownKeys(new Uint8Array(2)), Object.keys(Object("ab")), Object.values({ length: 1 }), Object.getOwnPropertyNames([])]);
note("locales", () => [(1234.5).toLocaleString("de"), new Intl.NumberFormat(["en", "de"]).format(1), Intl.NumberFormat("de").format(1.5), Intl.getCanonicalLocales(["EN-us"]), "a".localeCompare("b", "de"), new Intl.Locale("en").maximize().toString(), "I".toLocaleLowerCase("tr"), Intl.NumberFormat.supportedLocalesOf(["de", "xx"])]);
note("locales that are objects", () => [new Intl.NumberFormat(new Intl.Locale("de")).format(1.5), new Intl.NumberFormat([new Intl.Locale("de"), "en"]).format(1.5), new Intl.NumberFormat([{ toString: () => "de" }]).format(1.5), Intl.getCanonicalLocales([new Intl.Locale("EN"), Object("de")]), new Intl.Locale(["de"]).toString(), new Intl.Locale({ toString: () => "de" }).toString(), "I".toLocaleLowerCase(new Intl.Locale("tr"))]);
note("locales that are numbers", () => new Intl.NumberFormat([5]));
note("options", () => {
  const read = [];
  new Intl.NumberFormat("en", { get style() { read.push("style"); return "percent" }, get minimumFractionDigits() { read.push("minimum"); return 1 } });
  class Style { #style = "percent"; get style() { return this.#style } }
  return [read, new Intl.NumberFormat("en", new Style()).format(0.5), (5.1).toLocaleString("de", Object.freeze({ minimumFractionDigits: 2 })), (5.123).toLocaleString("en", { maximumFractionDigits: { valueOf: () => 1, toString: () => "2" } }), new Intl.NumberFormat("en", "text").format(0.5), new Intl.NumberFormat("en", { style: Object("percent") }).format(0.5), (10n ** 6n).toLocaleString("de", { minimumFractionDigits: 2 }), Intl.NumberFormat.supportedLocalesOf("de", { localeMatcher: "lookup" })];
});
note("options of nothing", () => new Intl.NumberFormat("en", null));
note("options of dates of nothing", () => new Intl.DateTimeFormat("en", null));
const compareOf = Object.getOwnPropertyDescriptor(Intl.Collator.prototype, "compare").get;
note("collators", () => { const german = new Intl.Collator("de"); return [german.compare === german.compare, german.compare === new Intl.Collator("de").compare, german.compare.name, german.compare.length, compareOf.name, compareOf.length, "prototype" in compareOf, ["z", "\u00e4", "a"].sort(german.compare), german.compare(10, 9), german.compare("a".repeat(100), "b"), german.compare(), new Intl.Collator("en", { numeric: true }).compare("a10", "a9")] });
note("collators of nothing", () => compareOf.call({}));
note("segments", () => [[...new Intl.Segmenter("en", { granularity: "word" }).segment("a b")].map(({ segment }) => segment), [...new Intl.Segmenter().segment()].length, new Intl.Segmenter().segment(12).containing(1).segment, Intl.Segmenter.prototype.segment.length]);
note("segments of nothing", () => Intl.Segmenter.prototype.segment.call({}, "a"));
note("names", () => [new Intl.DisplayNames("en", { type: "region" }).of("US"), Intl.DisplayNames.prototype.of.name]);
note("names of nothing", () => new Intl.DisplayNames("en", { type: "region" }).of());
note("bytes as JSON", () => [JSON.stringify(new Uint8Array(2)), JSON.stringify(Object.assign(new Uint8Array(2 ** 20 + 1), { toJSON: () => 1 }))]);
note("raw", () => [String.raw`a${1}b\n`, String.raw({ raw: "abc" }, 1, 2, 3), String.raw({ raw: { length: 2, 0: "x", 1: "y" } }, 7)]);
note("raw of nothing", () => String.raw());
note("sets", () => [[...new Set([1, 2]).values()].length, Object.fromEntries(new Map([["a", 1]])), Object.fromEntries([["b", 2]])]);
const groups = {};
for (const [what, result] of results) {
  const name = what.split(" ")[0];
  if (name === globalThis.showHonest) {
    (groups[name] ??= []).push([what, result]);
    continue;
  }
  const group = groups[name] ??= [0, 0x811c9dc5];
  group[0]++;
  // FNV-1a.
  for (const character of what + result) group[1] = Math.imul(group[1] ^ character.codePointAt(0), 0x01000193) >>> 0;
}
return groups;
