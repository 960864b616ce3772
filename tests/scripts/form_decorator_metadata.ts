// `Symbol.metadata` exists, as in Deno, and a polyfill that checks for it does not replace it.
(Symbol as any).metadata ??= Symbol("another")
const note = (value: any, { name, metadata }: any) => { metadata[name] = true }
class A { @note field = 1; @note method() {} }
class B extends A { @note own = 1 }
const { value, ...attributes } = Object.getOwnPropertyDescriptor(Symbol, "metadata")!
const own = [A, B].map((one) => Object.keys((one as any)[Symbol.metadata]))
return { symbol: String(value), isRegistered: Symbol.keyFor(value) !== undefined, ...attributes, own }
