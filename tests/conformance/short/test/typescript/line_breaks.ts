// Words that a line break ends.

abstract class E {
  public
  private = 1
  static readonly
  abstract
  method(): number { return 2; }
}
class F extends E {
  static // readonly
  last = 1;
}
assert.same([Object.keys(new F()), Object.keys(E), Object.keys(F), new F().method()], [["public", "private", "abstract"], ["readonly"], ["last"], 2]);
let reads = 0;
Object.defineProperty(globalThis, "Read", { get() { reads++; } });
const namespace = 1, module = 2;
namespace
Read
{}
module
Read
{}
assert.same(reads, 2);
