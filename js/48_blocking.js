// Calls of tools for which the thread of the script waits.

import { primordials } from "ext:core/mod.js";
import { checkKeys } from "ext:cx/21_text_guards.js";
import { remember } from "ext:cx/42_answers.js";
import { checkWord, decode, encodeArguments, ops } from "ext:cx/46_encoding.js";

const {
  ArrayIsArray,
  JSONStringify,
  NumberIsInteger,
  ObjectDefineProperty,
  ObjectHasOwn,
  ObjectKeys,
  String,
  TypeError,
} = primordials;

// The host reads `max_parallel` as 32 bits.
const MAX_PARALLEL = 2 ** 32 - 1;

// A wrong value in an error message: a number as it is, other values as their type.
export function shown(value) {
  return typeof value === "number" ? String(value) : `a ${typeof value}`;
}

function refused(message) {
  return { ok: false, error: { code: "INVALID_ARGUMENTS", message } };
}

// One call in the form that the host reads, or the refusal that the script receives for it.
function request(call) {
  if (call === null || typeof call !== "object") {
    return refused("expected {server, tool, args}");
  }
  const { server, tool } = call;
  if (typeof server !== "string" || typeof tool !== "string") {
    return refused("`server` and `tool` must be strings");
  }
  try {
    checkWord("the server's name", server);
    checkWord("the tool's name", tool);
    return { __proto__: null, server, tool, arguments: encodeArguments(call.args ?? call.arguments) };
  } catch (error) {
    return refused(`${error?.message ?? error}`);
  }
}

// Appends to an array of cx. A push would call a setter that the guest defined on Array.prototype.
export function append(list, value) {
  ObjectDefineProperty(list, list.length, {
    __proto__: null,
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

// Sends requests, at most `maxParallel` at the same time, and waits for all answers. Throws if the run has no calls
// left.
function send(requests, maxParallel) {
  // A toJSON that the guest defined must not be called instead.
  ObjectDefineProperty(requests, "toJSON", { __proto__: null, value: undefined });
  const batch = { __proto__: null, calls: requests, maxParallel };
  const answers = requests.length === 0 ? [] : decode(ops.op_cx_call_blocking(JSONStringify(batch)));
  for (let index = 0; index < answers.length; index++) {
    if (ObjectHasOwn(answers[index], "result")) {
      remember(answers[index].result);
    }
  }
  return answers;
}

// The option `max_parallel`; undefined if there is none.
function maxParallel(options) {
  if (options !== undefined && options !== null && typeof options !== "object") {
    throw new TypeError(`call_tools takes its options as an object, as in { max_parallel: 5 }: a ${typeof options}`);
  }
  checkKeys("the options of call_tools", options);
  const keys = options === undefined || options === null ? [] : ObjectKeys(options);
  for (let index = 0; index < keys.length; index++) {
    if (keys[index] !== "max_parallel" && keys[index] !== "maxParallel") {
      throw new TypeError(`call_tools has no option \`${keys[index]}\`: expected \`max_parallel\``);
    }
  }
  const max = options?.max_parallel ?? options?.maxParallel ?? undefined;
  if (max !== undefined && !(NumberIsInteger(max) && max >= 1 && max <= MAX_PARALLEL)) {
    throw new TypeError(`max_parallel must be a whole number from 1 to ${MAX_PARALLEL}: ${shown(max)}`);
  }
  return max;
}

// Every call is checked before the first one is sent.
export function call_tools(calls, options) {
  if (!ArrayIsArray(calls)) {
    throw new TypeError("call_tools takes an array of {server, tool, args}");
  }
  const requests = [];
  for (let index = 0; index < calls.length; index++) {
    const one = request(calls[index]);
    if (ObjectHasOwn(one, "ok")) {
      throw new TypeError(`call_tools: nothing was sent, because of call ${index}: ${one.error.message}`);
    }
    append(requests, one);
  }
  return send(requests, maxParallel(options));
}

export function call_tool(server, tool, args, options) {
  if (options !== undefined && options !== null) {
    // Nothing can end a call for which the script's thread waits.
    return refused(
      "call_tool blocks and takes no options: write `await tools.server.tool(args, { signal, timeoutMs })`",
    );
  }
  const one = request({ __proto__: null, server, tool, args });
  return ObjectHasOwn(one, "ok") ? one : send([one])[0];
}
