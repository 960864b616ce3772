// Syntax that is easily refused.

class A { static declare readonly x: number; static y = 1; override z = 2; readonly override w = 3; }
assert.same([Object.keys(A), Object.keys(new A())], [["y"], ["z", "w"]]);

let disposed = 0, turns = 0;
for (using resource = { [Symbol.dispose]() { disposed++; } }; turns < 3; turns++) { assert.same(disposed, 0); }
assert.same([disposed, turns], [1, 3]);
outer: for (using resource = null; ; ) { for (;;) break outer; }

class B extends ((() => {}) && class { b = 1; }) {}
assert.same(new B().b, 1);
assert.throws(TypeError, () => { class C extends ((() => {}) as any) {} });

function isText(asserts: any): asserts is string { return typeof asserts === "string"; }
assert.same(isText(""), true);
function call<T>(run: T) { return run; }
assert.same(call<<T>(value: T) => T>((value) => value)(1), 1);

class D {
  static constructor() { return 1; }
  static get constructor2() { return 2; }
  constructor() {}
}
assert.same((D as any).constructor(), 1);

function waits(await: number) { const { await: other } = { await: await }; return await + other; }
assert.same(waits(2), 4);
const of = 8, set = 4, type = 2, get = 2;
assert.same([of / set / type, get / 2 /1], [1, 1]);

let first: any;
for ([first] in { abc: 1 });
assert.same(first, "a");
let file: typeof import("fs", { assert: { type: "json" } }) | undefined;
assert.same(file, undefined);
