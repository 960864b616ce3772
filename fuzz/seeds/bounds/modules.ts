import d, { a as b, type T } from "mcp:server"; import * as ns from "mcp:other"; import type { U } from "x"
export { b as default, ns }; export const e = d(b); export type V = keyof typeof e | `a${string}`; declare module "m" { }
