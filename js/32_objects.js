// Reads objects without running a script's code as far as possible: no proxy traps, and no getters except those that
// are requested by name.

import { core, primordials } from "ext:core/mod.js";
import { isWhiteSpace } from "ext:cx/31_text.js";

const {
  ErrorPrototype,
  ObjectHasOwn,
  ObjectPrototype,
  ObjectPrototypeIsPrototypeOf,
  ReflectApply,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  RegExpPrototypeGetDotAll,
  RegExpPrototypeGetGlobal,
  RegExpPrototypeGetHasIndices,
  RegExpPrototypeGetIgnoreCase,
  RegExpPrototypeGetMultiline,
  RegExpPrototypeGetSticky,
  RegExpPrototypeGetUnicode,
  RegExpPrototypeGetUnicodeSets,
  StringPrototypeCharCodeAt,
  StringPrototypeIndexOf,
  StringPrototypeStartsWith,
} = primordials;

// Maximum number of prototypes that are searched for a constructor, a tag or a custom inspector.
export const MAX_PROTOTYPES = 1_000;

// Return values of `op_cx_kind` (src/engine/typescript/ops.rs).
export const KIND_PROXY = 1;
export const KIND_ARRAY = 2;
export const KIND_FUNCTION = 3;
export const KIND_ASYNC_FUNCTION = 4;
export const KIND_GENERATOR_FUNCTION = 5;
export const KIND_ASYNC_GENERATOR_FUNCTION = 6;
export const KIND_MAP = 7;
export const KIND_SET = 8;
export const KIND_TYPED_ARRAY = 9;
export const KIND_MAP_ITERATOR = 10;
export const KIND_SET_ITERATOR = 11;
export const KIND_ARGUMENTS = 12;
export const KIND_REGEXP = 13;
export const KIND_DATE = 14;
export const KIND_ERROR = 15;
export const KIND_ARRAY_BUFFER = 16;
export const KIND_DATA_VIEW = 17;
export const KIND_PROMISE = 18;
export const KIND_WEAK_SET = 19;
export const KIND_WEAK_MAP = 20;
export const KIND_NAMESPACE = 21;
export const KIND_NUMBER = 22;
export const KIND_STRING = 23;
export const KIND_BOOLEAN = 24;
export const KIND_BIGINT = 25;
export const KIND_SYMBOL = 26;
export const KIND_GENERATOR = 27;

// Flags of `op_cx_keys`.
export const KEYS_ALL = 0;
export const KEYS_ENUMERABLE = 1;
export const KEYS_WITHOUT_INDICES = 2;

export const kindOf = (value) => core.ops.op_cx_kind(value);

export function hasOwn(object, name) {
  try {
    return ObjectHasOwn(object, name);
  } catch {
    return false;
  }
}

// Whether a property lookup on `value`, which is not a proxy, would reach a proxy.
export function hasProxyPrototype(value) {
  let holder = value;
  for (let links = 0; links < MAX_PROTOTYPES; links++) {
    holder = ReflectGetPrototypeOf(holder);
    if (holder === null || holder === ObjectPrototype) {
      return false;
    }
    if (kindOf(holder) === KIND_PROXY) {
      return true;
    }
  }
  return true;
}

// Reads a property of an object that is not a proxy, or of its prototypes up to the first proxy. With `runs` a getter
// is called. That is used only for what classes define in this way (a tag, an error's name and message) and for
// `stack`, which is a getter of V8; never for values that are shown.
export function read(value, key, runs = false) {
  let holder = value;
  for (let links = 0; links < MAX_PROTOTYPES && holder !== null && kindOf(holder) !== KIND_PROXY; links++) {
    try {
      const descriptor = ReflectGetOwnPropertyDescriptor(holder, key);
      if (descriptor !== undefined) {
        if (ObjectHasOwn(descriptor, "value")) {
          return descriptor.value;
        }
        return runs && typeof descriptor.get === "function" ? ReflectApply(descriptor.get, value, []) : undefined;
      }
    } catch {
      // A getter that throws, or an export that is not initialized yet.
      return undefined;
    }
    holder = ReflectGetPrototypeOf(holder);
  }
  return undefined;
}

// The value of a property that can be read without running code.
export function ownValue(object, key) {
  const descriptor = ReflectGetOwnPropertyDescriptor(object, key);
  return descriptor !== undefined && ObjectHasOwn(descriptor, "value") ? descriptor.value : undefined;
}

// The flags of a regular expression. The getter of `flags` would read properties, which may be the script's.
export function flagsOf(expression) {
  return (RegExpPrototypeGetHasIndices(expression) ? "d" : "") + (RegExpPrototypeGetGlobal(expression) ? "g" : "") +
    (RegExpPrototypeGetIgnoreCase(expression) ? "i" : "") + (RegExpPrototypeGetMultiline(expression) ? "m" : "") +
    (RegExpPrototypeGetDotAll(expression) ? "s" : "") + (RegExpPrototypeGetUnicode(expression) ? "u" : "") +
    (RegExpPrototypeGetUnicodeSets(expression) ? "v" : "") + (RegExpPrototypeGetSticky(expression) ? "y" : "");
}

export function isError(value, kind) {
  return kind === KIND_ERROR || (!hasProxyPrototype(value) && ObjectPrototypeIsPrototypeOf(ErrorPrototype, value));
}

export function isFunctionKind(kind) {
  return kind >= KIND_FUNCTION && kind <= KIND_ASYNC_GENERATOR_FUNCTION;
}

// Whether `prototype` is in the prototype chain of `value`.
export function isAbove(prototype, value) {
  let holder = value;
  for (let links = 0; links < MAX_PROTOTYPES; links++) {
    if (kindOf(holder) === KIND_PROXY) {
      return false;
    }
    holder = ReflectGetPrototypeOf(holder);
    if (holder === prototype) {
      return true;
    }
    if (holder === null) {
      return false;
    }
  }
  return false;
}

// Whether a function's source is a class: `class` that is not followed by a parenthesis, as it is in a method of that
// name.
export function isClassSource(source) {
  if (!StringPrototypeStartsWith(source, "class")) {
    return false;
  }
  let index = 5;
  while (index < source.length) {
    if (isWhiteSpace(StringPrototypeCharCodeAt(source, index))) {
      index++;
    } else if (StringPrototypeStartsWith(source, "//", index)) {
      index = StringPrototypeIndexOf(source, "\n", index);
    } else if (StringPrototypeStartsWith(source, "/*", index)) {
      index = StringPrototypeIndexOf(source, "*/", index + 2) + 2;
    } else {
      break;
    }
  }
  return source[index] !== "(";
}

export function readText(value, key) {
  const text = read(value, key, true);
  return typeof text === "string" ? text : undefined;
}

export function prefixOf(constructor, tag, fallback, size = "") {
  if (constructor === null) {
    return tag !== "" && fallback !== tag
      ? `[${fallback}${size}: null prototype] [${tag}] `
      : `[${fallback}${size}: null prototype] `;
  }
  return tag !== "" && constructor !== tag ? `${constructor}${size} [${tag}] ` : `${constructor}${size} `;
}
