// Custom inspectors: methods of a script that give the text of an object, and errors that they throw.

import { primordials } from "ext:core/mod.js";
import { clip, indentLines, MAX_DEPTH, MAX_NAME, spaces, spend } from "ext:cx/31_text.js";
import { KIND_PROXY, kindOf, ownValue, read, readText } from "ext:cx/32_objects.js";
import { applyOptions, makeContext, optionsFor } from "ext:cx/33_options.js";
import { formatValue, inspect } from "ext:cx/35_inspect.js";

const { ReflectApply, ReflectHas, String, SymbolFor } = primordials;

const CUSTOM_INSPECT = SymbolFor("Deno.customInspect");
const PRIVATE_CUSTOM_INSPECT = SymbolFor("Deno.privateCustomInspect");
const NODE_CUSTOM_INSPECT = SymbolFor("nodejs.util.inspect.custom");

// The context of the inspection whose custom inspector is running.
let current;

// `inspect` for custom inspectors: part of the inspection that called them, within its budgets.
function inspectWithin(value, options) {
  if (current === undefined) {
    return inspect(value, options);
  }
  const { state } = current;
  if (state.level >= MAX_DEPTH) {
    return "[Object]";
  }
  const context = makeContext(state);
  context.currentDepth = current.currentDepth;
  applyOptions(context, options);
  const { length } = state.seen;
  state.level++;
  try {
    return formatValue(context, value, 0);
  } finally {
    // Also after an error inside, which the inspector may have caught.
    state.level--;
    while (state.seen.length > length) {
      delete state.seen[--state.seen.length];
    }
  }
}

// The text of a thrown value; with `onlyMessage`, only the message of an error.
export function thrownText(error, onlyMessage = false) {
  try {
    if (onlyMessage && error !== null && typeof error === "object") {
      const message = readText(error, "message");
      if (message !== undefined) {
        return clip(message, MAX_NAME);
      }
    }
    return clip(String(error), MAX_NAME);
  } catch {
    return "a value that cannot be printed";
  }
}

// The result of the custom inspector of `value`; undefined if there is none or it returns `value` itself.
export function formatCustom(context, value, recurseTimes) {
  const ofDeno = ReflectHas(value, CUSTOM_INSPECT)
    ? CUSTOM_INSPECT
    : ReflectHas(value, PRIVATE_CUSTOM_INSPECT)
    ? PRIVATE_CUSTOM_INSPECT
    : undefined;
  const key = ofDeno ?? (ReflectHas(value, NODE_CUSTOM_INSPECT) ? NODE_CUSTOM_INSPECT : undefined);
  if (key === undefined) {
    return undefined;
  }
  const inspector = read(value, key);
  if (typeof inspector !== "function") {
    return undefined;
  }
  if (ofDeno === undefined) {
    // The prototype of a class has the method but is not an instance to call it on.
    const constructor = ownValue(value, "constructor");
    const isClass = typeof constructor === "function" && kindOf(constructor) !== KIND_PROXY;
    if (isClass && ownValue(constructor, "prototype") === value) {
      return undefined;
    }
  }
  const { state } = context;
  const options = optionsFor(context);
  const args = ofDeno === undefined
    ? [context.depth - recurseTimes, options, inspectWithin]
    : [inspectWithin, options];
  const previous = current;
  current = context;
  let result;
  let text;
  try {
    result = ReflectApply(inspector, value, args);
    if (typeof result === "string") {
      text = result;
    } else if (ofDeno !== undefined) {
      text = String(result);
    }
  } catch (error) {
    text = `[Custom inspector threw: ${thrownText(error)}]`;
  } finally {
    current = previous;
  }
  if (text !== undefined) {
    const cut = spend(state, text);
    return ofDeno === undefined ? indentLines(state, cut, spaces(context.indentation)) : cut;
  }
  if (result === value) {
    return undefined;
  }
  if (state.level >= MAX_DEPTH) {
    return "[Object]";
  }
  state.level++;
  const formatted = formatValue(context, result, recurseTimes);
  state.level--;
  return formatted;
}
