function d(v: any, c: any) { return v }
@d export abstract class A<T> extends B implements C { @d static #p?: T = 1; accessor q = 2; constructor(public r: string, private readonly s = 3) { super(r) } static { f() } declare t: number; [k: string]: any; get u() { return this.#p } }
