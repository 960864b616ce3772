// Decorators see what surrounds them: `this`, private names, arguments, and they may wait.
/*---
flags: [async]
includes: [doneprintHandle.js]
---*/

const log: any[] = [];
const put = (value: any): any => { log.push(value); return () => {}; };
const receiver = { name: "receiver", d(this: any) { log.push(this.name); } };
const make = () => { log.push("made"); return receiver; };

class Outer {
  static #outer = 1;
  static make(this: any, argument: string) {
    const self = this;
    return @put(this.#outer) class {
      #inner = 2;
      @put(self === this) a() {}
      @put(arguments[0]) [`b${this.#outer}`]() {}
      @(((value: any, context: any) => { log.push(context.access.has(new this.Inner())); }) as any) c() {}
      @put((object: any) => object.#inner) d() {}
    };
  }
  static Inner = class { c() {} };
}
Outer.make("argument");
assert.same(log.filter((value) => typeof value !== "function"), [1, true, "argument", true]);

log.length = 0;
class A {
  @receiver.d a() {}
  @(receiver.d) b() {}
  @(make().d) c() {}
}
assert.same(log, ["made", "receiver", "receiver", "receiver"]);

function* generate(): any {
  return @put(yield 1) class { @put(yield 2) x; [yield 3]() {} };
}
log.length = 0;
const generator = generate();
assert.same([generator.next().value, generator.next("a").value, generator.next("b").value], [1, 2, 3]);
assert.same(Object.getOwnPropertyNames(generator.next("c").value.prototype), ["constructor", "c"]);
assert.same(log, ["a", "b"]);

// Each evaluation of a class has its own state.
const recursive = (depth: number): any => {
  class R { @((value: any) => () => depth) get(): any { return 0; } @put(depth > 0 && recursive(depth - 1)) x; }
  return R;
};
assert.same(new (recursive(3))().get(), 3);

(async () => {
  log.length = 0;
  const B = @put(await 1) class extends (await Object) { @put(await 2) static x = 1; [await "y"]() {} };
  assert.same(log, [1, 2]);
  assert.same(Object.getOwnPropertyNames(B.prototype), ["constructor", "y"]);
})().then($DONE, $DONE);
