// The text before the properties of a function, a date, a regular expression or a boxed primitive.

import { primordials } from "ext:core/mod.js";
import { clip, MAX_NAME, nameOf } from "ext:cx/31_text.js";
import {
  flagsOf,
  isClassSource,
  KIND_ASYNC_FUNCTION,
  KIND_ASYNC_GENERATOR_FUNCTION,
  KIND_BIGINT,
  KIND_BOOLEAN,
  KIND_FUNCTION,
  KIND_GENERATOR_FUNCTION,
  KIND_NUMBER,
  KIND_STRING,
  KIND_SYMBOL,
  prefixOf,
  read,
} from "ext:cx/32_objects.js";
import { formatPrimitive } from "ext:cx/34_primitives.js";

const {
  BigIntPrototypeValueOf,
  BooleanPrototypeValueOf,
  DatePrototypeGetTime,
  DatePrototypeToISOString,
  FunctionPrototypeToString,
  NumberIsNaN,
  NumberPrototypeValueOf,
  ObjectHasOwn,
  ReflectGetPrototypeOf,
  RegExpPrototypeGetSource,
  StringPrototypeValueOf,
  SymbolPrototypeValueOf,
} = primordials;

export function prefixUnless(expected, constructor, tag) {
  const prefix = prefixOf(constructor, tag, expected);
  return prefix === `${expected} ` ? "" : prefix;
}

export function regExpText(value) {
  return `/${clip(RegExpPrototypeGetSource(value), MAX_NAME)}/${flagsOf(value)}`;
}

export function dateText(value) {
  return NumberIsNaN(DatePrototypeGetTime(value)) ? "Invalid Date" : DatePrototypeToISOString(value);
}

const BOXED = {
  __proto__: null,
  [KIND_NUMBER]: ["Number", NumberPrototypeValueOf],
  [KIND_STRING]: ["String", StringPrototypeValueOf],
  [KIND_BOOLEAN]: ["Boolean", BooleanPrototypeValueOf],
  [KIND_BIGINT]: ["BigInt", BigIntPrototypeValueOf],
  [KIND_SYMBOL]: ["Symbol", SymbolPrototypeValueOf],
};

export function boxedBase(context, value, kind, constructor, tag) {
  const name = BOXED[kind][0];
  const valueOf = BOXED[kind][1];
  let base = `[${name}`;
  if (name !== constructor) {
    base += constructor === null ? " (null prototype)" : ` (${constructor})`;
  }
  base += `: ${formatPrimitive(context, valueOf(value))}]`;
  return tag !== "" && tag !== constructor ? `${base} [${tag}]` : base;
}

const FUNCTIONS = {
  __proto__: null,
  [KIND_FUNCTION]: "Function",
  [KIND_ASYNC_FUNCTION]: "AsyncFunction",
  [KIND_GENERATOR_FUNCTION]: "GeneratorFunction",
  [KIND_ASYNC_GENERATOR_FUNCTION]: "AsyncGeneratorFunction",
};

export function functionBase(value, kind, constructor, tag) {
  const name = read(value, "name");
  const own = typeof name === "string" ? nameOf(name) : "";
  const tagged = tag !== "" && tag !== constructor ? ` [${tag}]` : "";
  if (kind === KIND_FUNCTION && isClassSource(FunctionPrototypeToString(value))) {
    let base = `class ${ObjectHasOwn(value, "name") && own !== "" ? own : "(anonymous)"}`;
    if (constructor !== null && constructor !== "Function") {
      base += ` [${constructor}]`;
    }
    base += tagged;
    if (constructor === null) {
      return `[${base} extends [null prototype]]`;
    }
    const parent = ReflectGetPrototypeOf(value);
    const parentName = parent === null ? undefined : read(parent, "name");
    return typeof parentName === "string" && parentName !== ""
      ? `[${base} extends ${nameOf(parentName)}]`
      : `[${base}]`;
  }
  const type = FUNCTIONS[kind];
  let base = `[${type}${constructor === null ? " (null prototype)" : ""}${own === "" ? " (anonymous)" : `: ${own}`}]`;
  if (constructor !== null && constructor !== type && constructor !== "Function") {
    base += ` ${constructor}`;
  }
  return base + tagged;
}
