// Remembers what tools have returned, for `JSON.parse(await tools.server.tool())`. Scripts for programs that hand over a
// tool's answer as text parse it. Here an answer is parsed already, and `JSON.parse` of it gives what its text would.

import { primordials } from "ext:core/mod.js";
import { replace } from "ext:cx/20_guards.js";

const { JSONStringify, SafeWeakSet, WeakSetPrototypeAdd, WeakSetPrototypeHas } = primordials;

const answers = new SafeWeakSet();

function isObject(value) {
  return typeof value === "object" && value !== null;
}

export function remember(answer) {
  if (isObject(answer)) {
    WeakSetPrototypeAdd(answers, answer);
  }
  return answer;
}

// Of any other object `JSON.parse` makes a text first, as it always does, and fails.
replace(JSON, "parse", (original) => ({
  method(text, reviver) {
    return original(isObject(text) && WeakSetPrototypeHas(answers, text) ? JSONStringify(text) : text, reviver);
  },
}).method);
