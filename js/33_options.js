// Options of an inspection, and its context.

import { primordials } from "ext:core/mod.js";
import { MAX_CHARACTERS, MAX_DEPTH, MAX_ENTRIES } from "ext:cx/31_text.js";
import { hasOwn } from "ext:cx/32_objects.js";

const { MathFloor, MathMax, MathMin, NumberIsNaN, ObjectHasOwn, String } = primordials;

// Maximum indentation: two columns per level, and as much again for custom inspectors.
const MAX_INDENTATION = 4 * MAX_DEPTH;
const DEFAULT_DEPTH = 4;

const QUOTES = { __proto__: null, length: 3, 0: '"', 1: "'", 2: "`" };

export function makeContext(state) {
  return {
    __proto__: null,
    state,
    breakLength: 80,
    compact: 3,
    currentDepth: 0,
    customInspect: true,
    depth: DEFAULT_DEPTH,
    escapeSequences: true,
    getters: false,
    indentation: 0,
    maxArrayLength: 100,
    maxStringLength: 10_000,
    quotes: QUOTES,
    showHidden: false,
    showProxy: false,
    sorted: false,
    trailingComma: false,
  };
}

// A script's option, read once. Getters and traps run within the script's own time.
function option(options, name) {
  try {
    return ObjectHasOwn(options, name) ? options[name] : undefined;
  } catch {
    return undefined;
  }
}

function flag(options, name, otherwise) {
  const value = option(options, name);
  return value === undefined ? otherwise : !!value;
}

// A number between 0 and `most`; null means the maximum.
function bounded(value, most, otherwise) {
  if (value === null) {
    return most;
  }
  return typeof value === "number" && !NumberIsNaN(value) ? MathMin(MathMax(MathFloor(value), 0), most) : otherwise;
}

export function applyOptions(context, options) {
  if (options === null || typeof options !== "object") {
    return context;
  }
  const depth = option(options, "depth");
  if (typeof depth === "number" && !NumberIsNaN(depth)) {
    context.depth = MathMin(depth, MAX_DEPTH);
  } else if (depth === null || (depth === undefined && hasOwn(options, "depth"))) {
    context.depth = MAX_DEPTH;
  }
  context.breakLength = bounded(option(options, "breakLength"), MAX_CHARACTERS, context.breakLength);
  context.indentation = bounded(option(options, "indentationLvl"), MAX_INDENTATION, context.indentation);
  const elements = option(options, "iterableLimit") ?? option(options, "maxArrayLength");
  context.maxArrayLength = bounded(elements, MAX_ENTRIES, context.maxArrayLength);
  const characters = option(options, "strAbbreviateSize") ?? option(options, "maxStringLength");
  context.maxStringLength = bounded(characters, MAX_CHARACTERS, context.maxStringLength);
  if (option(options, "maxArrayLength") === null) {
    context.maxArrayLength = MAX_ENTRIES;
  }
  if (option(options, "maxStringLength") === null) {
    context.maxStringLength = MAX_CHARACTERS;
  }
  const compact = option(options, "compact");
  if (typeof compact === "boolean" || (typeof compact === "number" && !NumberIsNaN(compact))) {
    context.compact = compact === false ? 0 : compact;
  }
  const getters = option(options, "getters");
  if (getters !== undefined) {
    context.getters = getters === "get" || getters === "set" ? getters : !!getters;
  }
  const sorted = option(options, "sorted");
  if (sorted !== undefined) {
    context.sorted = typeof sorted === "function" ? sorted : !!sorted;
  }
  context.customInspect = flag(options, "customInspect", context.customInspect);
  context.escapeSequences = flag(options, "escapeSequences", context.escapeSequences);
  context.showHidden = flag(options, "showHidden", context.showHidden);
  context.showProxy = flag(options, "showProxy", context.showProxy);
  context.trailingComma = flag(options, "trailingComma", context.trailingComma);
  return context;
}

// The options that a custom inspector receives: copies of the settings, no internal objects.
export function optionsFor(context) {
  return {
    breakLength: context.breakLength,
    colors: false,
    compact: context.compact,
    currentDepth: context.currentDepth,
    customInspect: context.customInspect,
    depth: context.depth,
    escapeSequences: context.escapeSequences,
    getters: context.getters,
    indentationLvl: context.indentation,
    maxArrayLength: context.maxArrayLength,
    maxStringLength: context.maxStringLength,
    showHidden: context.showHidden,
    showProxy: context.showProxy,
    sorted: context.sorted,
    stylize: (text) => String(text),
    trailingComma: context.trailingComma,
  };
}
