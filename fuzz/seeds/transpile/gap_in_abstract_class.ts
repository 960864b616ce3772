export abstract class A { get u() { return this./p } }
