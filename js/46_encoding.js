// What scripts pass to the host and get from it: arguments, queries, answers.

import { core, primordials } from "ext:core/mod.js";
import { fromJson, toArguments } from "ext:cx/30_json.js";
import { McpToolError, toolError } from "ext:cx/40_errors.js";

const {
  JSONStringify,
  ObjectKeys,
  ObjectPrototypeIsPrototypeOf,
  RangeError,
  StringPrototypeCharCodeAt,
  TypeError,
  TypeErrorPrototype,
} = primordials;

export const ops = core.ops;
const FAILURE = 33; // "!"

// Whether an answer of the host is an error: no JSON text begins with this sign.
export function isFailure(answer) {
  return StringPrototypeCharCodeAt(answer, 0) === FAILURE;
}

export function decode(answer) {
  if (isFailure(answer)) {
    throw toolError(answer);
  }
  return fromJson(answer);
}

// Maximum characters of a name or a word in a query to the host, which copies it before checking it.
const MAX_WORD = 2 ** 16;

// Refuses a text that is longer than any name.
export function checkWord(what, text) {
  if (text.length > MAX_WORD) {
    throw new RangeError(`${what} has ${text.length} characters, at most ${MAX_WORD} here`);
  }
}

// A query to the host as JSON text.
export function question(fields) {
  const keys = ObjectKeys(fields);
  for (let index = 0; index < keys.length; index++) {
    const word = fields[keys[index]];
    if (typeof word === "string") {
      checkWord(keys[index], word);
    }
  }
  return JSONStringify(fields);
}

// The arguments as JSON text; empty if there are none.
export function encodeArguments(args) {
  if (args === undefined || args === null) {
    return "";
  }
  return toArguments(args) ?? `"a ${typeof args}"`;
}

// The result of `make` for an argument. If JSON cannot represent it, the call of `server` and `tool` fails with that
// error.
export function orInvalid(server, tool, make) {
  try {
    return make();
  } catch (error) {
    if (core.isNativeError(error) && ObjectPrototypeIsPrototypeOf(TypeErrorPrototype, error)) {
      throw new McpToolError(error.message, { __proto__: null, server, tool, code: "INVALID_ARGUMENTS" });
    }
    throw error;
  }
}

// As `encodeArguments`, for a call of `server` and `tool`, which fails if JSON cannot represent the arguments.
export function argumentsOf(server, tool, args) {
  return orInvalid(server, tool, () => encodeArguments(args));
}

export function name(what, value) {
  if (typeof value !== "string") {
    throw new TypeError(`${what} must be a string: ${typeof value}`);
  }
  return value;
}

// A name that is passed to the host by itself, or within a query.
export function boundedName(what, value) {
  const text = name(what, value);
  checkWord(what, text);
  return text;
}
