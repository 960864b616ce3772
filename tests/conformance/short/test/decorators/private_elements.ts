// Private elements are replaced, and `context.access` reaches them.

const contexts: Record<string, any> = {};
const keep = (value: any, context: any) => { contexts[context.name] = context; };
const twice = (value: any, context: any) => {
  contexts[context.name] = context;
  return function (this: any, ...args: any[]) { return value.call(this, ...args) * 2; };
};

class A {
  #n = 3;
  @twice #method(by: number) { return this.#n * by; }
  @twice get #getter() { return this.#n; }
  @keep set #setter(value: number) { this.#n = value; }
  @keep #field = 4;
  @keep accessor #auto = 5;
  @twice static #fixed() { return 7; }
  @keep static #shared = 8;

  read() { return [this.#method(2), this.#getter, this.#field, this.#auto]; }
  write() { this.#setter = 10; this.#field++; this.#auto += 1; return this.read(); }
  replaceMethod() { (this as any).#method = () => 1; }
  static read() { return [A.#fixed(), A.#shared]; }
}

const a = new A();
assert.same(a.read(), [12, 6, 4, 5]);
assert.same(a.write(), [40, 20, 5, 6]);
assert.same(A.read(), [14, 8]);
assert.throws(TypeError, () => a.replaceMethod());

const { "#field": field, "#auto": auto, "#setter": setter, "#method": method } = contexts;
assert.same([field.access.has(a), field.access.has({}), auto.access.has(a)], [true, false, true]);
assert.same(field.access.get(a), 5);
field.access.set(a, 50);
auto.access.set(a, 60);
setter.access.set(a, 1);
assert.same(a.read(), [4, 2, 50, 60]);
assert.same(method.access.get(a).call(a, 5), 10);
assert.same(contexts["#shared"].access.get(A), 8);
assert.throws(TypeError, () => field.access.get({}));
