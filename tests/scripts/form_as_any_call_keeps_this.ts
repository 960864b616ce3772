let o: any = { f() { return this.v }, v: 6 };
return (o as any).f()
