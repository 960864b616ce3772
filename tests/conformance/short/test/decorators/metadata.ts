// Metadata is inherited from the metadata of the parent, and shared by the decorators of a class.

const symbol: any = Symbol.metadata;
const mark = (value: any, { name, metadata }: any) => { metadata[name] = Object.keys(metadata).length; };

@mark class A { @mark x = 1; @mark static y = 2; @mark #z = 3; }
class B extends A { @mark own = 1; }
class C extends B {}
class D {}
// It has no decorator itself.
class E { static accessor x = 1; static ["y" + 1] = @mark class {}; }

const metadata = (value: any) => value[symbol];
assert.same(metadata(A), { y: 0, x: 1, "#z": 2, A: 3 });
assert.same(metadata(B), { own: 0 });
assert.same(metadata(B).x, 1);
assert.same(Object.getPrototypeOf(metadata(B)) === metadata(A), true);
assert.same(Object.getPrototypeOf(metadata(A)), null);
assert.same(metadata(C) === metadata(B), true);
assert.same(metadata(D) ?? null, null);
assert.same(Object.getOwnPropertySymbols(E).length, 0);
assert.same(Object.keys(metadata((E as any).y1)), ["y1"]);
