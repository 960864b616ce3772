enum E { A, B = 1 << 2, C = "c", D = `${A}-x` } const enum F { G = E.B } namespace N { export const x = 1 } namespace N { export let y = x }
return [E.A, F.G, N.y]
