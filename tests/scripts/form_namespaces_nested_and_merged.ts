namespace N { export const a = 1; export namespace M { export function f() { return a + 1 } } }
namespace N { export const b = a + 10 }
return [N.M.f(), N.b]
