// An anonymous class under a key that is known only when the script runs is named after it. The key is evaluated once,
// before the decorators.

const log: string[] = [];
const said = <T>(text: string, value: T): T => { log.push(text); return value; };
const key = (value: any) => said("key", value);
const named = (wanted: any) => {
  said("decorator", 0);
  return (value: any, context: any) => {
    said("applied", 0);
    assert.same(context.name, wanted);
    assert.same(value.name, wanted);
  };
};
const taken = () => log.splice(0);
const symbol = Symbol("s");
const described: any = { toString() { return said("toString", "text"); } };

const object: any = {
  [key("c" + 1)]: @named("c1") class { static own = this.name; },
  [key(symbol)]: (@named("[s]") class {}),
  [key(Symbol())]: @named("") class {},
  [key(described)]: @named("text") class extends (said("heritage", Object) as any) {},
  [`t${1}`]: @named("t1") class {},
  1e21: @named("1e+21") class {},
  0.5: @named("0.5") class {},
  0x10: @named("16") class {},
  ["__proto__"]: @named("__proto__") class {},
};
assert.same(taken().join(), ["key,decorator,applied", "key,decorator,applied", "key,decorator,applied",
  "key,toString,decorator,heritage,applied", ...Array(5).fill("decorator,applied")].join());
assert.same(object.c1.own, "c1");
assert.same(Object.hasOwn(object, "__proto__"), true);
assert.same(Object.keys(object), ["16", "c1", "text", "t1", "1e+21", "0.5", "__proto__"]);
// This is no property.
assert.same(({ __proto__: @named("") class {} } as any).prototype !== undefined, true);
taken();

// A decorator that makes another such class does not disturb the name.
const make = (depth: number): any => ({
  [key(`d${depth}`)]: @((_: any, { name }: any) => { assert.same(name, `d${depth}`); }) @inner(depth) class {},
});
function inner(depth: number) {
  if (depth < 3) make(depth + 1);
  return (value: any) => { if (depth < 3) make(depth + 1); assert.same(value.name, `d${depth}`); };
}
assert.same(make(1).d1.name, "d1");
taken();

class Fields {
  [key("a" + 1)] = @named("a1") class {};
  static [key("b" + 1)] = @named("b1") class { static own = this.name; };
  accessor [key("c" + 2)] = @named("c2") class {};
  static accessor [key("d" + 1)] = @named("d1") class {};
  [key(symbol)] = @named("[s]") class {};
  plain = 1;
}
assert.same(taken().join(), "key,key,key,key,key,decorator,applied,decorator,applied");
assert.same((Fields as any).b1.own, "b1");
const fields: any = [new Fields(), new Fields()];
assert.same(fields[0].a1 === fields[1].a1, false);
assert.same([fields[0].a1.name, fields[0].c2.name, fields[0][symbol].name], ["a1", "c2", "[s]"]);
// Each evaluation of a class has its own keys.
const classes = ["x", "y"].map((name) => class { [name + 1] = @named(`${name}1`) class {}; });
assert.same(Object.keys(new classes[0]!()), ["x1"]);
assert.same(Object.keys(new classes[1]!()), ["y1"]);
new classes[0]!();

// In a class that its decorators may replace.
const whole: any = (value: any) => value;
@whole class Replaced {
  static [key("e" + 1)] = @named("e1") class { static own = this.name; };
  [key("f" + 1)] = @named("f1") class {};
}
assert.same((Replaced as any).e1.own, "e1");
assert.same(Object.keys(new Replaced()), ["f1"]);

// In a class that is anonymous itself.
const outer: any = { [key("g" + 1)]: @named("g1") class { static [key("h" + 1)] = @named("h1") class {}; } };
const plain: any = { [key("i" + 1)]: class { static [key("j" + 1)] = @named("j1") class {}; } };
assert.same([outer.g1.name, outer.g1.h1.name, plain.i1.name, plain.i1.j1.name], ["g1", "h1", "i1", "j1"]);

// Keys and decorators that wait or yield.
const waited: any = { [await Promise.resolve("k" + 1)]: @(await Promise.resolve(named("k1"))) class {} };
assert.same(waited.k1.name, "k1");
function* yielding(): any { return { [yield 1]: @(yield 2) class {} }; }
const steps = yielding();
assert.same([steps.next().value, steps.next("l1").value], [1, 2]);
assert.same(steps.next(named("l1")).value.l1.name, "l1");

// No name is given where the language gives none.
object[key("m" + 1)] = @named("") class {};
assert.same(object.m1.name, "");
