// What the files of deno_web get of each other. Three of them would be in every isolate for one function each; those
// functions are written here, or in 38_clone.js, instead.

import { core, primordials } from "ext:core/mod.js";

const { ObjectDefineProperty, ObjectFreeze, ObjectGetOwnPropertyDescriptor, ObjectGetPrototypeOf } = primordials;

function inheritedDescriptor(object, key) {
  for (let holder = object; holder !== null; holder = ObjectGetPrototypeOf(holder)) {
    const descriptor = ObjectGetOwnPropertyDescriptor(holder, key);
    if (descriptor !== undefined) {
      return descriptor;
    }
  }
  return undefined;
}

// An object that is printed in place of `object`, with these properties: their values, or without `evaluate`, as for a
// prototype, on which a getter would throw, what describes them.
function createFilteredInspectProxy({ object, keys, evaluate }) {
  const Shown = class {};
  const name = object.constructor?.name;
  if (name) {
    ObjectDefineProperty(Shown, "name", { __proto__: null, value: name });
  }
  const shown = new Shown();
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    const descriptor = evaluate ? undefined : inheritedDescriptor(object, key);
    ObjectDefineProperty(shown, key, {
      __proto__: null,
      ...descriptor ?? { configurable: true, enumerable: true, value: object[key] },
    });
  }
  return shown;
}

const PARTS = {
  __proto__: null,
  "ext:deno_web/01_console.js": { createFilteredInspectProxy },
  // 38_clone.js adds its function.
  "ext:deno_web/02_structured_clone.js": { __proto__: null },
  // Scripts have no message ports.
  "ext:deno_web/13_message_port.js": {
    markNotSerializable() {},
    MessagePortPrototype: ObjectFreeze({ __proto__: null }),
  },
};

// In place of `core.loadExtScript`.
export function loadPart(name) {
  return PARTS[name] ?? core.loadExtScript(name);
}
