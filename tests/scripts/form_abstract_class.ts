abstract class S { abstract area(): number; twice() { return this.area() * 2 } }
class Q extends S { area() { return 4 } }
return new Q().twice()
