// Serializes values to JSON text. Runs the guest's own toJSON methods and getters, inside the guest and within its time
// limit.

import { primordials } from "ext:core/mod.js";

const {
  ArrayIsArray,
  BigIntPrototypeToString,
  JSONParse,
  JSONStringify,
  ObjectKeys,
  ObjectPrototypeIsPrototypeOf,
  PromisePrototype,
  RangeError,
  RangeErrorPrototype,
  SafeSet,
  SetPrototypeAdd,
  SetPrototypeHas,
  TypeError,
} = primordials;

// Not among the primordials. Kept before a script can replace it.
const rawJson = globalThis.JSON.rawJSON;

// Bounds of the search for the value that JSON refused. Beyond them the error has no path.
const MAX_LEVELS = 64;
const MAX_NODES = 10_000;

// Maximum characters of JSON in one host call, far above every limit of a call. The host copies text before it can
// refuse it.
const MAX_CHARACTERS = 2 ** 26;

// What V8 says if a value has too many levels for the stack.
const STACK_OVERFLOW = "Maximum call stack size exceeded";

// Why JSON cannot represent a value, or undefined. `JSON.stringify` leaves out functions and symbols, and makes `{}` of
// a promise: the author would get less than was returned and no error.
function refusal(value) {
  switch (typeof value) {
    case "bigint":
      return "is a BigInt, which JSON does not have; use String() or Number()";
    case "function":
      return "is a function, which JSON does not have; call it, or leave it out";
    case "symbol":
      return "is a symbol, which JSON does not have; leave it out";
    case "object":
      return value !== null && ObjectPrototypeIsPrototypeOf(PromisePrototype, value)
        ? "is a promise that was not awaited; write `await` before the call"
        : undefined;
    default:
      return undefined;
  }
}

// Thrown by `checked`, and caught where `toJson` calls it.
const REFUSED = { __proto__: null };

// A replacer for `JSON.stringify`. It gets each value after the guest's own `toJSON` and getters, once, so that nothing
// of the guest is called twice.
function checked(_key, value) {
  if (refusal(value) !== undefined) {
    throw REFUSED;
  }
  return value;
}

// The same for arguments of tools, in which a BigInt is a number with all its digits.
function checkedExact(_key, value) {
  return typeof value === "bigint" ? rawJson(BigIntPrototypeToString(value)) : checked(_key, value);
}

// The path of the first value that JSON refuses and why, as the start of a sentence; undefined if it is not found.
function findRefused(value, path, level, seen) {
  const reason = typeof value === "bigint" && seen.takesBigInt ? undefined : refusal(value);
  if (reason !== undefined) {
    return `${path} ${reason}`;
  }
  if (
    value === null || typeof value !== "object" || level > MAX_LEVELS || SetPrototypeHas(seen.values, value) ||
    ++seen.count > MAX_NODES
  ) {
    return undefined;
  }
  SetPrototypeAdd(seen.values, value);
  // What its `toJSON` gave was refused, not what is in it.
  if (typeof value.toJSON === "function") {
    return undefined;
  }
  const isArray = ArrayIsArray(value);
  const keys = ObjectKeys(value);
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    const found = findRefused(value[key], isArray ? `${path}[${key}]` : `${path}.${key}`, level + 1, seen);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

// `value` as JSON text, or undefined if it is undefined, a function or a symbol. `what` names the value in errors: a
// TypeError if something inside of it is a function, a symbol, a BigInt or a promise, or if it is circular.
export function toJson(what, value, maxCharacters = MAX_CHARACTERS, replacer = checked) {
  let text;
  try {
    // Of these two the caller says what is wrong, if something is.
    const isAbsent = typeof value === "function" || typeof value === "symbol";
    text = isAbsent ? JSONStringify(value) : JSONStringify(value, replacer);
  } catch (error) {
    if (error !== REFUSED) {
      if (ObjectPrototypeIsPrototypeOf(RangeErrorPrototype, error) && error.message === STACK_OVERFLOW) {
        throw new TypeError(`${what} is nested too deeply, which JSON does not have`);
      }
      throw error;
    }
    const seen = { __proto__: null, values: new SafeSet(), count: 0, takesBigInt: replacer === checkedExact };
    const found = findRefused(value, what, 0, seen);
    throw new TypeError(found ?? `${what} has a function, a symbol, a BigInt or a promise, which JSON does not have`);
  }
  return bounded(what, text, maxCharacters);
}

// Arguments of a tool as JSON text, as `toJson`. A BigInt is a number.
export function toArguments(value) {
  return toJson("arguments", value, MAX_CHARACTERS, checkedExact);
}

// The text that the guest's own `JSON.stringify` gives: functions and symbols are left out.
export function toLooseJson(what, value) {
  return bounded(what, JSONStringify(value), MAX_CHARACTERS);
}

function bounded(what, text, maxCharacters) {
  if (text !== undefined && text.length > maxCharacters) {
    throw new RangeError(`${what} is ${text.length} characters of JSON, at most ${maxCharacters} can be passed on`);
  }
  return text;
}

export function fromJson(text) {
  return JSONParse(text);
}
