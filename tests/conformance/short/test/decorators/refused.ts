// What is no decorator, and what a decorator must not return.

const nothing = () => {};
for (const result of [null, 1, {}]) {
  const wrong: any = () => result;
  assert.throws(TypeError, () => { class A { @wrong m() {} } }, "method");
  assert.throws(TypeError, () => { class A { @wrong get g() { return 1; } } }, "getter");
  assert.throws(TypeError, () => { class A { @wrong static #f = 1; } }, "field");
  assert.throws(TypeError, () => { @wrong class A {} }, "class");
}
for (const decorator of [undefined, null, 1, {}]) {
  assert.throws(TypeError, () => { class A { @(decorator as any) m() {} } });
  assert.throws(TypeError, () => { @(decorator as any) class A {} });
}
let add: any;
const late = (value: any, context: any) => {
  add = context.addInitializer;
  assert.throws(TypeError, () => add({}));
};
class B { @late m() {} }
assert.throws(TypeError, () => add(nothing));
