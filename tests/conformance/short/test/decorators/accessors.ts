// `accessor` fields: a getter, a setter and storage, of which decorators may replace each.

class A {
  accessor x = 1;
  accessor #y = 2;
  static accessor z = 3;
  accessor [("w" as any)]: any;
  accessor "quoted name" = 4;
  sum() { return this.x + this.#y; }
  add() { this.#y += 10; return this.sum(); }
}
const a = new A();
assert.same([a.x, a.sum(), a.add(), A.z, (a as any).w, a["quoted name"]], [1, 3, 13, 3, undefined, 4]);
assert.same(Object.keys(a), []);
assert.same(Object.getOwnPropertyNames(A.prototype).sort(), ["add", "constructor", "quoted name", "sum", "w", "x"]);
assert.throws(TypeError, () => Object.create(A.prototype).x);

// A static one belongs to its class, also when it is read from one that is derived.
class B extends A {}
B.z = 30;
assert.same([A.z, B.z], [30, 30]);

const clamp = ({ get, set }: any, context: any) => ({
  get(this: any) { return get.call(this); },
  set(this: any, value: number) { set.call(this, Math.min(value, 9)); },
  init: (value: number) => value * 2,
});
class C {
  @clamp accessor x = 4;
  @clamp static accessor y = 4;
  @clamp accessor #z = 4;
  z(value?: number) { if (value !== undefined) this.#z = value; return this.#z; }
}
const c = new C();
assert.same([c.x, C.y, c.z()], [8, 8, 8]);
c.x = 100;
C.y = 100;
assert.same([c.x, C.y, c.z(100)], [9, 9, 9]);

for (const result of [null, 1, { get: 1 }, { set: 1 }, { init: 1 }]) {
  assert.throws(TypeError, () => { class D { @(() => result as any) accessor x; } });
}
