namespace N { export let x = 1; export function f(N: number) { return x + N } }
return N.f(2)
