// Serializes values to JSON text. Runs the guest's own toJSON methods and getters, inside the guest and within its time
// limit.

import { primordials } from "ext:core/mod.js";

const {
  ArrayIsArray,
  JSONParse,
  JSONStringify,
  ObjectKeys,
  RangeError,
  SafeSet,
  SetPrototypeAdd,
  SetPrototypeHas,
  TypeError,
} = primordials;

// Bounds of the search for the value that JSON refused. Beyond them the error has no path.
const MAX_LEVELS = 64;
const MAX_NODES = 10_000;

// Maximum characters of JSON in one host call, far above every limit of a call. The host copies text before it can
// refuse it.
const MAX_CHARACTERS = 2 ** 26;

// The path of the first BigInt in `value`, or undefined.
function findBigInt(value, path, level, seen) {
  if (typeof value === "bigint") {
    return path;
  }
  if (
    value === null || typeof value !== "object" || level > MAX_LEVELS || SetPrototypeHas(seen.values, value) ||
    ++seen.count > MAX_NODES
  ) {
    return undefined;
  }
  SetPrototypeAdd(seen.values, value);
  const isArray = ArrayIsArray(value);
  const keys = ObjectKeys(value);
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    const found = findBigInt(value[key], isArray ? `${path}[${key}]` : `${path}.${key}`, level + 1, seen);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

// `value` as JSON text, or undefined if JSON cannot represent it (undefined, a function, a symbol). `what` names the
// value in errors.
export function toJson(what, value, maxCharacters = MAX_CHARACTERS) {
  let text;
  try {
    text = JSONStringify(value);
  } catch (error) {
    const path = typeof value === "bigint" || typeof value === "object"
      ? findBigInt(value, what, 0, { __proto__: null, values: new SafeSet(), count: 0 })
      : undefined;
    if (path !== undefined) {
      throw new TypeError(`${path} is a BigInt, which JSON does not have; use String() or Number()`);
    }
    throw error;
  }
  if (text !== undefined && text.length > maxCharacters) {
    throw new RangeError(`${what} is ${text.length} characters of JSON, at most ${maxCharacters} can be passed on`);
  }
  return text;
}

export function fromJson(text) {
  return JSONParse(text);
}
