namespace N {
  export const a = 1;
  export let counter = 0;
  export const { b, c: [d] } = { b: 2, c: [3] };
  export function twice(x: number) {
    return x * 2;
  }
  export enum E { One = 1 }
  export namespace Inner {
    export const deep = 5;
  }
  const hidden = 1;
}
namespace N {
  const b = "own";
  export const sum = a + d + E.One + Inner.deep;
  export const seen = () => ({ a, b, twice: twice(a), hidden: typeof hidden });
  counter = counter + 1;
  counter++;
  export function shadow(a: string) {
    return a;
  }
  export namespace Inner {
    export const deeper = deep + a;
  }
}
return [N.sum, N.seen(), N.counter, N.shadow("s"), N.Inner.deeper];
