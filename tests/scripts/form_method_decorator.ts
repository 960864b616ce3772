function log(v: any, c: any) { return function (...a: any[]) { return [c.name, v.apply(this, a)] } }
class A { @log m(x: number) { return x } }
return new A().m(4)
