function f(this: { k: number }, a?: number): a is number { return (this.k + (a ?? 0)) as any }
return f.call({ k: 1 }, 2)
