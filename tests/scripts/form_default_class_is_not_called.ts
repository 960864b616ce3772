export default class A { static v = 1 }; globalThis.called = 1
