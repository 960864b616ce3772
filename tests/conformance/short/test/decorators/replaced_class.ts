// A class decorator may return another class: that is what the name means inside, and what has the static elements.

class Other { static made = "other"; }
let original: any;
const replace = (value: any): any => { original = value; return Other; };

const seen: any[] = [];
@replace
class A {
  static #secret = 1;
  static #peek() { return this.#secret; }
  static get #double() { return A.#secret * 2; }
  static field = seen.push(this === (Other as any), A === (Other as any));
  static named = () => {};
  static ["computed"] = 2;
  static { seen.push(this === (Other as any)); A.#secret++; }
  static read() { return [A.#secret, A.#peek(), A.#double, #secret in A]; }
  static accessor auto = 5;
  self() { return A; }
}
assert.same(A === (Other as any), true);
assert.same(seen, [true, true, true]);
assert.same(original.read(), [2, 2, 4, true]);
assert.same(new original().self() === Other, true);
assert.same(Object.keys(Other), ["made", "field", "named", "computed"]);
assert.same((Other as any).named.name, "named");
assert.same(original.auto, 5);
original.auto = 6;
assert.same(original.auto, 6);

// Until then the name is not bound inside, and it cannot be changed from outside.
const early = (run: () => any): any => { assert.throws(ReferenceError, run); return () => {}; };
let get: any;
@early(() => B)
class B {
  @early(() => B) method() { return B; }
  static { get = () => B; }
}
const before = B;
(B as any) = 1;
assert.same(get() === before && new before().method() === before, true);

const inherits = (value: any) => {};
@inherits
class C extends Array {
  static base = super.name;
  static same = super.isArray([]);
  first = super.length;
}
assert.same([(C as any).base, (C as any).same, new C().first], ["Array", true, 0]);
assert.throws(TypeError, () => { @((() => 1) as any) class D {} });
