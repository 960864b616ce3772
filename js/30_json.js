// Serializes values to JSON text. Runs the guest's own toJSON methods and getters, inside the guest and within its time
// limit.

import { core, primordials } from "ext:core/mod.js";
// Makes the classes of the web, some of which JSON does not have.
import "ext:cx/10_web.js";
import { guardedPrimordials } from "ext:cx/24_lists.js";

const {
  ArrayBufferIsView,
  ArrayIsArray,
  ArrayPrototype,
  BigIntPrototypeToString,
  JSONParse,
  JSONStringify,
  MapPrototype,
  MapPrototypeForEach,
  MapPrototypeGetSize,
  ObjectGetPrototypeOf,
  ObjectHasOwn,
  ObjectKeys,
  ObjectPrototype,
  ObjectPrototypeIsPrototypeOf,
  ObjectSetPrototypeOf,
  PromisePrototype,
  RangeError,
  RangeErrorPrototype,
  ReflectApply,
  RegExpPrototypeToString,
  SafeSet,
  SetPrototype,
  SetPrototypeAdd,
  SetPrototypeForEach,
  SetPrototypeGetSize,
  SetPrototypeHas,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypeError,
  TypeErrorPrototype,
} = primordials;

// Not among the primordials. Kept before a script can replace them.
const rawJson = globalThis.JSON.rawJSON;
const SearchParametersPrototype = globalThis.URLSearchParams.prototype;
const searchToString = SearchParametersPrototype.toString;
const IteratorPrototype = globalThis.Iterator.prototype;
const AsyncIteratorPrototype = ObjectGetPrototypeOf(ObjectGetPrototypeOf((async function* () {}).prototype));

// Bounds of the search for the value that JSON refused. Beyond them the error has no path.
const MAX_LEVELS = 64;
const MAX_NODES = 10_000;

// Maximum characters of JSON in one host call, far above every limit of a call. The host copies text before it can
// refuse it.
const MAX_CHARACTERS = 2 ** 26;

// Maximum numbers of a typed array that stands in JSON as a list. V8 makes a text of each index at once.
const MAX_NUMBERS = 2 ** 20;

// What V8 says if a value has too many levels for the stack.
const STACK_OVERFLOW = "Maximum call stack size exceeded";

// Whether an object is a list or a plain object: most values are, and no other question has to be asked of them.
function isPlain(object) {
  const prototype = ObjectGetPrototypeOf(object);
  return prototype === ObjectPrototype || prototype === ArrayPrototype || prototype === null;
}

// Why JSON cannot represent a value, or undefined. `JSON.stringify` leaves out functions and symbols, and makes `{}` of
// a promise and of an iterator: the author would get less than was returned and no error.
function refusal(value) {
  switch (typeof value) {
    case "bigint":
      return "is a BigInt, which JSON does not have; use String() or Number()";
    case "function":
      return "is a function, which JSON does not have; call it, or leave it out";
    case "symbol":
      return "is a symbol, which JSON does not have; leave it out";
    case "object":
      return value === null || isPlain(value) ? undefined : refusalOfObject(value);
    default:
      return undefined;
  }
}

function refusalOfObject(object) {
  if (ObjectPrototypeIsPrototypeOf(PromisePrototype, object)) {
    return "is a promise that was not awaited; write `await` before the call";
  }
  if (ObjectPrototypeIsPrototypeOf(IteratorPrototype, object)) {
    return "is an iterator, which is read only once; use Array.from()";
  }
  if (ObjectPrototypeIsPrototypeOf(AsyncIteratorPrototype, object)) {
    return "is an asynchronous iterator, which is read only once; use await Array.fromAsync()";
  }
  return refusalOfNumbers(object);
}

// The same for an ArrayBuffer and what reads one: bytes have no form in JSON, as in Python, and other numbers are a list
// if they are not too many.
function refusalOfNumbers(object) {
  const kind = TypedArrayPrototypeGetSymbolToStringTag(object);
  const isView = kind === undefined && ArrayBufferIsView(object);
  if (kind === "Uint8Array" || kind === "Uint8ClampedArray" || isView || core.isAnyArrayBuffer(object)) {
    const bytes = kind === "Uint8Array" ? "bytes" : "new Uint8Array(data)";
    return `is bytes, which JSON does not have; use ${bytes}.toBase64(), or new TextDecoder().decode() for text`;
  }
  if (kind !== undefined && TypedArrayPrototypeGetLength(object) > MAX_NUMBERS) {
    return `is a typed array of ${TypedArrayPrototypeGetLength(object)} numbers, at most ${MAX_NUMBERS} can be passed on`;
  }
  return undefined;
}

// Whether `value` is a Map or a Set and not only an object that inherits from one: `getSize` throws then.
function hasEntries(prototype, getSize, value) {
  if (!ObjectPrototypeIsPrototypeOf(prototype, value)) {
    return false;
  }
  try {
    getSize(value);
    return true;
  } catch {
    return false;
  }
}

// The text of `URLSearchParams`; undefined for anything else, also for an object that only inherits from them.
function parametersAsText(value) {
  if (!ObjectPrototypeIsPrototypeOf(SearchParametersPrototype, value)) {
    return undefined;
  }
  try {
    return ReflectApply(searchToString, value, []);
  } catch (error) {
    if (ObjectPrototypeIsPrototypeOf(TypeErrorPrototype, error)) {
      return undefined;
    }
    throw error;
  }
}

// A list without a prototype, so that an element can be assigned: no setter of the guest's `Array.prototype` is called.
function emptyList() {
  return ObjectSetPrototypeOf([], null);
}

// The own properties of an error that are not enumerable and say more than its message.
const PARTS_OF_ERRORS = ["cause", "errors"];

// What stands in JSON for an object of which `JSON.stringify` would make `{}`, as in Python: an object for a Map whose
// keys are text, numbers or booleans and have different texts, a list of pairs for another Map, a list for a Set, text
// for a regular expression or parameters of a URL, and for an error its name, its message, its cause and its own fields.
// A typed array, of which it would make an object, is a list. Anything else is returned as it is.
function represented(value) {
  if (TypedArrayPrototypeGetSymbolToStringTag(value) !== undefined) {
    const list = emptyList();
    const length = TypedArrayPrototypeGetLength(value);
    for (let index = 0; index < length; index++) {
      list[index] = value[index];
    }
    return list;
  }
  if (core.isRegExp(value)) {
    return RegExpPrototypeToString(value);
  }
  const parameters = parametersAsText(value);
  if (parameters !== undefined) {
    return parameters;
  }
  if (hasEntries(SetPrototype, SetPrototypeGetSize, value)) {
    const list = emptyList();
    SetPrototypeForEach(value, (item) => {
      list[list.length] = item;
    });
    return list;
  }
  if (hasEntries(MapPrototype, MapPrototypeGetSize, value)) {
    return representedMap(value);
  }
  if (core.isNativeError(value)) {
    const object = { __proto__: null, name: value.name, message: value.message };
    for (let index = 0; index < PARTS_OF_ERRORS.length; index++) {
      const key = PARTS_OF_ERRORS[index];
      if (ObjectHasOwn(value, key)) {
        object[key] = value[key];
      }
    }
    const keys = ObjectKeys(value);
    for (let index = 0; index < keys.length; index++) {
      object[keys[index]] = value[keys[index]];
    }
    return object;
  }
  return value;
}

function representedMap(map) {
  let hasNames = true;
  MapPrototypeForEach(map, (_item, key) => {
    hasNames &&= typeof key === "string" || typeof key === "number" || typeof key === "boolean";
  });
  if (hasNames) {
    const object = { __proto__: null };
    MapPrototypeForEach(map, (item, key) => {
      object[`${key}`] = item;
    });
    // Fewer if two keys have one text, such as 1 and "1".
    if (ObjectKeys(object).length === MapPrototypeGetSize(map)) {
      return object;
    }
  }
  const pairs = emptyList();
  MapPrototypeForEach(map, (item, key) => {
    pairs[pairs.length] = [key, item];
  });
  return pairs;
}

// Thrown by `checked`, and caught where `toJson` calls it.
const REFUSED = { __proto__: null };

// A replacer for `JSON.stringify`. It gets each value after the guest's own `toJSON` and getters, once, so that nothing
// of the guest is called twice.
function checked(_key, value) {
  if (typeof value === "object" && (value === null || isPlain(value))) {
    return value;
  }
  if (refusal(value) !== undefined) {
    throw REFUSED;
  }
  return typeof value === "object" ? represented(value) : value;
}

// The same for arguments of tools, in which a BigInt is a number with all its digits.
function checkedExact(_key, value) {
  return typeof value === "bigint" ? rawJson(BigIntPrototypeToString(value)) : checked(_key, value);
}

// The path of the first value that JSON refuses and why, as the start of a sentence; undefined if it is not found.
function findRefused(value, path, level, seen) {
  const reason = typeof value === "bigint" && seen.takesBigInt ? undefined : refusal(value);
  if (reason !== undefined) {
    const isListed = path[path.length - 1] === "]" && ObjectPrototypeIsPrototypeOf(PromisePrototype, value);
    return `${path} ${isListed ? "is a promise that was not awaited; write `await Promise.all(list)`" : reason}`;
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
  const object = isPlain(value) ? value : represented(value);
  if (typeof object !== "object") {
    return undefined;
  }
  const isArray = ArrayIsArray(object);
  const keys = ObjectKeys(object);
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    const found = findRefused(object[key], isArray ? `${path}[${key}]` : `${path}.${key}`, level + 1, seen);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

// The hexadecimal digit that tells the halves of a surrogate pair apart: the second one of `\ud83d\ude00`.
const HIGH_HALF = "89abAB";
const LOW_HALF = "cdefCDEF";

// Whether half a surrogate pair is written as an escape at this position.
function isHalfAt(text, at, digits) {
  const start = StringPrototypeSlice(text, at, at + 3);
  return (start === "\\ud" || start === "\\uD") && at + 3 < text.length && StringPrototypeIncludes(digits, text[at + 3]);
}

// JSON text with U+FFFD for each lone surrogate, as in Python: half of a character that a script has cut has no UTF-8.
// `JSON.stringify` escapes only lone ones, in lower case. What `JSON.rawJSON` was given can also have pairs.
function wellFormed(text) {
  if (!StringPrototypeIncludes(text, "\\ud") && !StringPrototypeIncludes(text, "\\uD")) {
    return text;
  }
  let result = "";
  let from = 0;
  for (let at = StringPrototypeIndexOf(text, "\\"); at >= 0;) {
    const isHigh = isHalfAt(text, at, HIGH_HALF);
    if (isHigh && isHalfAt(text, at + 6, LOW_HALF)) {
      at = StringPrototypeIndexOf(text, "\\", at + 12);
    } else if (isHigh || isHalfAt(text, at, LOW_HALF)) {
      result += StringPrototypeSlice(text, from, at) + "\ufffd";
      from = at + 6;
      at = StringPrototypeIndexOf(text, "\\", from);
    } else {
      at = StringPrototypeIndexOf(text, "\\", at + 2);
    }
  }
  return result + StringPrototypeSlice(text, from);
}

// `value` as JSON text, or undefined if it is undefined, a function or a symbol. `what` names the value in errors: a
// TypeError if something inside of it is a function, a symbol, a BigInt, a promise, an iterator or bytes, or if it is circular.
export function toJson(what, value, maxCharacters = MAX_CHARACTERS, replacer = checked) {
  let text;
  try {
    // Of these two the caller says what is wrong, if something is.
    const isAbsent = typeof value === "function" || typeof value === "symbol";
    text = isAbsent ? JSONStringify(value) : JSONStringify(value, replacer);
  } catch (error) {
    if (error !== REFUSED) {
      if (ObjectPrototypeIsPrototypeOf(RangeErrorPrototype, error) && error.message === STACK_OVERFLOW) {
        throw new TypeError(`${what} is circular or nested too deeply, which JSON does not have`);
      }
      throw error;
    }
    const seen = { __proto__: null, values: new SafeSet(), count: 0, takesBigInt: replacer === checkedExact };
    const found = findRefused(value, what, 0, seen);
    const kinds = "a function, a symbol, a BigInt, a promise, an iterator or bytes";
    throw new TypeError(found ?? `${what} has ${kinds}, which JSON does not have`);
  }
  return bounded(what, text === undefined ? text : wellFormed(text), maxCharacters);
}

// Arguments of a tool as JSON text, as `toJson`. A BigInt is a number.
export function toArguments(value) {
  return toJson("arguments", value, MAX_CHARACTERS, checkedExact);
}

// The text that the guest's own `JSON.stringify` gives: functions and symbols are left out.
export function toLooseJson(what, value) {
  return bounded(what, guardedPrimordials.JSONStringify(value), MAX_CHARACTERS);
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
