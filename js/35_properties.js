// Properties of objects as text.

import { primordials } from "ext:core/mod.js";
import {
  escapeKey,
  isIdentifier,
  makeList,
  nameOf,
  push,
  quote,
  spaces,
  spend,
  symbolText,
  widthOf,
} from "ext:cx/31_text.js";
import { read } from "ext:cx/32_objects.js";
import { AS_ELEMENT, AS_OBJECT } from "ext:cx/33_layout.js";
import { thrownText } from "ext:cx/35_custom.js";
import { formatValue } from "ext:cx/35_inspect.js";

const { ArrayPrototypeSort, ObjectHasOwn, ReflectApply, ReflectGetOwnPropertyDescriptor } = primordials;

export function withoutSymbols(keys) {
  const list = makeList();
  for (let index = 0; index < keys.length; index++) {
    if (typeof keys[index] !== "symbol") {
      push(list, keys[index]);
    }
  }
  return list;
}

// Sorts the entries from `start` on.
export function sort(context, output, start) {
  const part = makeList();
  for (let index = start; index < output.length; index++) {
    push(part, output[index]);
  }
  try {
    ArrayPrototypeSort(part, typeof context.sorted === "function" ? context.sorted : undefined);
  } catch {
    return;
  }
  for (let index = 0; index < part.length; index++) {
    output[start + index] = `${part[index]}`;
  }
}

export function formatProperty(context, value, recurseTimes, key, layout) {
  const { state } = context;
  let descriptor;
  let isMissing = false;
  try {
    descriptor = ReflectGetOwnPropertyDescriptor(value, key);
  } catch {
    // An export of a module that has not been evaluated yet.
    isMissing = true;
  }
  let text;
  let gap = " ";
  let isEnumerable = true;
  if (descriptor === undefined) {
    // The `cause` and `errors` of an error may be defined by its class.
    text = isMissing ? spend(state, "<uninitialized>") : formatNested(context, read(value, key), recurseTimes);
  } else {
    isEnumerable = descriptor.enumerable;
    if (ObjectHasOwn(descriptor, "value")) {
      const step = context.compact === true && layout === AS_OBJECT ? 3 : 2;
      context.indentation += step;
      text = formatValue(context, descriptor.value, recurseTimes);
      if (step === 3 && context.breakLength < widthOf(text)) {
        gap = `\n${spaces(context.indentation)}`;
      }
      context.indentation -= step;
    } else {
      text = formatAccessor(context, value, descriptor, recurseTimes);
    }
  }
  state.characters -= context.indentation + 3;
  if (layout === AS_ELEMENT) {
    return text;
  }
  let name;
  if (typeof key === "symbol") {
    name = escapeKey(symbolText(key));
  } else {
    const whole = nameOf(`${key}`);
    if (whole === "__proto__") {
      name = "['__proto__']";
    } else {
      name = isIdentifier(whole, false) ? whole : quote(context, whole);
    }
  }
  state.characters -= name.length;
  return `${isEnumerable ? name : `[${name}]`}:${gap}${text}`;
}

export function formatNested(context, value, recurseTimes, isInTypedArray = false) {
  context.indentation += 2;
  const text = formatValue(context, value, recurseTimes, isInTypedArray);
  context.indentation -= 2;
  return text;
}

function formatAccessor(context, value, descriptor, recurseTimes) {
  const { get, set } = descriptor;
  if (get === undefined) {
    return spend(context.state, set === undefined ? "undefined" : "[Setter]");
  }
  const label = set === undefined ? "Getter" : "Getter/Setter";
  const isAsked = context.getters === true || (context.getters === "get" && set === undefined) ||
    (context.getters === "set" && set !== undefined);
  if (!isAsked) {
    return spend(context.state, `[${label}]`);
  }
  let result;
  try {
    result = ReflectApply(get, value, []);
  } catch (error) {
    return spend(context.state, `[${label}: <Inspection threw (${thrownText(error, true)})>]`);
  }
  if (result !== null && (typeof result === "object" || typeof result === "function")) {
    return `[${label}] ${formatNested(context, result, recurseTimes)}`;
  }
  return `[${label}: ${formatNested(context, result, recurseTimes)}]`;
}
