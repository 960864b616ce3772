function d(v, c) { return v }
@d class A {}
function f(): never {
  throw  new Error('x')
}
f()
