type A = { b: string };
const c = <A>{ b: 'x' };
c!.b
