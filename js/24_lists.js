// The primordials for files that call them on what a script may have made. deno_web keeps lists under symbols, which a
// script can find, and put another list there. So those that loop natively are the guarded ones.

import { core, primordials } from "ext:core/mod.js";
import { loadPart } from "ext:cx/09_parts.js";
import "ext:cx/20_guards.js";
import "ext:cx/21_text_guards.js";

const { ArrayPrototype, uncurryThis } = primordials;

export const guardedPrimordials = {
  __proto__: primordials,
  ArrayFrom: Array.from,
  ArrayPrototypeFilter: uncurryThis(ArrayPrototype.filter),
  ArrayPrototypeIncludes: uncurryThis(ArrayPrototype.includes),
  ArrayPrototypeIndexOf: uncurryThis(ArrayPrototype.indexOf),
  ArrayPrototypeJoin: uncurryThis(ArrayPrototype.join),
  ArrayPrototypeMap: uncurryThis(ArrayPrototype.map),
  ArrayPrototypeSlice: uncurryThis(ArrayPrototype.slice),
  ArrayPrototypeSome: uncurryThis(ArrayPrototype.some),
  ArrayPrototypeSort: uncurryThis(ArrayPrototype.sort),
  ArrayPrototypeSplice: uncurryThis(ArrayPrototype.splice),
  ArrayPrototypeUnshift: uncurryThis(ArrayPrototype.unshift),
  JSONParse: JSON.parse,
  JSONStringify: JSON.stringify,
  ObjectKeys: Object.keys,
  ReflectOwnKeys: Reflect.ownKeys,
};

// For the files of deno_web that are loaded before 10_web.js, which does the same with a `core` of its own.
core.ops.op_set_captured_bootstrap({
  __proto__: null,
  primordials: guardedPrimordials,
  internals: globalThis.__bootstrap.internals,
  core: { __proto__: core, loadExtScript: loadPart },
});
