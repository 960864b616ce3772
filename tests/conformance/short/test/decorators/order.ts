// Decorators and keys are evaluated as they stand; then decorators are called from the inside out, static elements first;
// then initializers run, each after what it belongs to.

const log: string[] = [];
const d = (label: string): any => {
  log.push(`@${label}`);
  return (value: any, context: any) => {
    log.push(`call ${label}`);
    context.addInitializer(() => { log.push(`init ${label}`); });
    if (context.kind === "field") return (first: any) => { log.push(`start ${label}`); return first; };
  };
};
const key = (name: string) => { log.push(`key ${name}`); return name; };

@d("class 1") @d("class 2")
class A extends (log.push("heritage"), Object) {
  @d("field 1") @d("field 2") [key("field")] = log.push("field");
  @d("static field") static [key("staticField")] = log.push("static field");
  @d("method") [key("method")]() {}
  @d("static method") static [key("staticMethod")]() {}
  @d("accessor") accessor [key("accessor")] = log.push("accessor");
  static { log.push("block"); }
  last = log.push("last");
}
const evaluated = [
  "@class 1", "@class 2", "heritage", "@field 1", "@field 2", "key field", "@static field", "key staticField",
  "@method", "key method", "@static method", "key staticMethod", "@accessor", "key accessor",
];
const called = [
  "call static method", "call method", "call accessor", "call static field", "call field 2", "call field 1",
  "call class 2", "call class 1",
];
const initialized = [
  "init static method", "static field", "start static field", "init static field", "block", "init class 2", "init class 1",
];
assert.same(log, [...evaluated, ...called, ...initialized]);

log.length = 0;
new A();
assert.same(log, [
  "init method", "field", "start field 1", "start field 2", "init field 2", "init field 1", "accessor", "init accessor", "last",
]);
