function add(v: any, c: any) { return class extends v { extra = 1 } }
@add class A {}
return (new A() as any).extra
