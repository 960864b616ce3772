class P { constructor(private readonly a: number, public b = 2) {} sum() { return this.a + this.b } }
return new P(3).sum()
