// `Symbol.metadata`, under which a decorated class has what its decorators noted (tc39/proposal-decorator-metadata). V8
// does not have it yet. Scripts have it, as in Deno and unlike in Node: without it the code that TypeScript emits gives
// decorators no `context.metadata`, and those that write to it fail.

import { primordials } from "ext:core/mod.js";

const { ObjectDefineProperty, ObjectHasOwn, Symbol } = primordials;

if (!ObjectHasOwn(Symbol, "metadata")) {
  // As the proposal has it: `Symbol.metadata ??= Symbol()`, which many scripts begin with, leaves it as it is.
  const value = Symbol("Symbol.metadata");
  ObjectDefineProperty(Symbol, "metadata", {
    __proto__: null,
    value,
    writable: false,
    enumerable: false,
    configurable: false,
  });
}
