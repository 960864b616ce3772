// Anonymous classes are named after where they stand, and functions after their elements.

const named = (wanted: any) => (value: any, context: any) => {
  assert.same(context.name, wanted);
  assert.same(value.name, wanted);
};
const A = @named("A") class {};
const [B = @named("B") class {}] = [];
const { C = @named("C") class {} } = {} as any;
let D: any;
D = @named("D") class {};
D ??= 1;
const object = { E: @named("E") class {}, "f g": (@named("f g") class {}), h: @named("H") class H {} };
class Fields {
  I = @named("I") class {};
  static J = @named("J") class {};
  accessor K = @named("K") class {};
  #L = @named("#L") class {};
}
new Fields();
((_: any) => _)(@named("") class {});
((M = @named("M") class {}) => M)();

let names: string[] = [];
const name = (value: any, { kind }: any) => {
  names.push(kind === "accessor" ? `${value.get.name}, ${value.set.name}` : value.name);
};
const key = Symbol("key");
class N {
  @name method() {}
  @name [key]() {}
  @name get getter() { return 1; }
  @name accessor auto = 1;
  @name #method() {}
  @name get #getter() { return 1; }
  @name accessor #auto = 1;
}
assert.same(names, ["method", "[key]", "get getter", "get auto, set auto", "#method", "get #getter", "get #auto, set #auto"]);

// Decorators do not take a function's name away.
const leave = () => {};
class O {
  @leave field = () => 1;
  @leave #field = () => 1;
  @leave static ["com" + "puted"] = class {};
  @leave accessor auto = () => 1;
  accessor plain = function () {};
  names = [this.field.name, this.#field.name, (O as any).computed.name, this.auto.name, this.plain.name];
}
assert.same(new O().names, ["field", "#field", "computed", "auto", "plain"]);
