// Enums in parts, computed members, and constant enums as objects.

enum A { Cat = 1 }
enum A { Dog = 2 }
const Cat = 10;
enum A { Both = Cat | Dog }
assert.same(A, { 1: "Cat", 2: "Dog", 3: "Both", Cat: 1, Dog: 2, Both: 3 } as any);

const text = () => "computed";
enum B { Text = text() as any, Number = text().length, Next, Template = `${Text}!`, Joined = "a" + Text, Other = "b" }
assert.same(B, { 8: "Number", 9: "Next", Text: "computed", Number: 8, Next: 9, Template: "computed!", Joined: "acomputed", Other: "b" } as any);

const enum C { Up = 1, Down }
assert.same([C[C.Up as any], Object.keys(C)], ["Up", ["1", "2", "Up", "Down"]]);
assert.same(early(), 3);
function early() { return Early.Value; }
const enum Early { Value = 1 << 1 | 1 }
assert.same(early(), 3);

function local(n: number) {
  enum A { N = n, Twice = N * 2 }
  return A;
}
assert.same([local(1).Twice, local(2).Twice, A.Cat], [2, 4, 1]);

namespace N { export enum E { A = 1 } export const b = E.A; }
namespace N { export enum E { B = b + 1 } export const c = E.B; }
assert.same([N.E.A, N.c, N.E.B], [1, 2, 2]);
enum M { A }
namespace M { export const of = (value: M) => M[value]; }
assert.same(M.of(M.A), "A");
enum Empty {}
assert.same(Empty, {} as any);

// Parts in several blocks of a namespace are one enum.
namespace P { export enum E { A = 1 } }
namespace P { export enum E { B = A + 1 } export const both = [E.A, E.B]; }
assert.same(P.both, [1, 2]);

// An enum does not see what a namespace of its name exports; its other blocks do.
const y = 2;
namespace Q { export const y = 1; }
enum Q { Outer = y }
namespace Q { export const z = y * 3; }
assert.same([Q.Outer, Q.z], [2, 3]);
