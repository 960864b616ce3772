// Formats values as text, for `console` and for thrown values: the same output as Deno's, with bounds.
//
// No library is used. object-inspect, loupe and node-inspect-extracted (Node's own) run proxy traps, call built-ins
// that a script has replaced, and print every key of an object. deno_web's inspector is in Rust, allocates as much as a
// script asks for and cannot be interrupted. Here everything runs in the guest: its time ends with the run's limit, its
// memory is the heap that the limit counts, and every number from a script is clamped before it is used.
//
// The layout is that of Node's lib/internal/util/inspect.js as Deno has changed it; tests/inspect compares them.

import { core, primordials } from "ext:core/mod.js";
import {
  clip,
  escapeKey,
  indentLines,
  indexIn,
  isIdentifier,
  isLastEntry,
  isSpent,
  makeList,
  makeState,
  MAX_CHARACTERS,
  MAX_DEPTH,
  MAX_ENTRIES,
  MAX_LINES,
  MAX_NAME,
  nameOf,
  numberText,
  plural,
  push,
  quote,
  spaces,
  spend,
  symbolText,
  widthOf,
} from "ext:cx/31_text.js";
import {
  hasOwn,
  hasProxyPrototype,
  isAbove,
  isError,
  KEYS_ALL,
  KEYS_ENUMERABLE,
  KEYS_WITHOUT_INDICES,
  KIND_ARGUMENTS,
  KIND_ARRAY,
  KIND_ARRAY_BUFFER,
  KIND_ASYNC_FUNCTION,
  KIND_ASYNC_GENERATOR_FUNCTION,
  KIND_BIGINT,
  KIND_BOOLEAN,
  KIND_DATA_VIEW,
  KIND_DATE,
  KIND_FUNCTION,
  KIND_GENERATOR_FUNCTION,
  KIND_MAP,
  KIND_MAP_ITERATOR,
  KIND_NAMESPACE,
  KIND_NUMBER,
  KIND_PROMISE,
  KIND_PROXY,
  KIND_REGEXP,
  KIND_SET,
  KIND_SET_ITERATOR,
  KIND_STRING,
  KIND_SYMBOL,
  KIND_TYPED_ARRAY,
  KIND_WEAK_MAP,
  KIND_WEAK_SET,
  kindOf,
  MAX_PROTOTYPES,
  ownValue,
  prefixOf,
  read,
  readText,
} from "ext:cx/32_objects.js";
import { AS_ELEMENT, AS_LIST, AS_OBJECT, layOut } from "ext:cx/33_layout.js";
import { formatError } from "ext:cx/34_stack.js";
import {
  ENTRIES,
  formatArray,
  formatArrayBuffer,
  formatDataView,
  formatIterator,
  formatMap,
  formatPromise,
  formatSet,
  formatTypedArray,
  formatWeak,
  MORE,
} from "ext:cx/36_entries.js";
import { boxedBase, dateText, functionBase, prefixUnless, regExpText } from "ext:cx/37_bases.js";

const {
  AggregateErrorPrototype,
  ArrayBufferPrototype,
  ArrayBufferPrototypeGetByteLength,
  ArrayPrototype,
  ArrayPrototypeSort,
  BigIntPrototypeToString,
  BooleanPrototype,
  DataViewPrototype,
  DatePrototype,
  ErrorPrototype,
  FunctionPrototype,
  MapPrototype,
  MapPrototypeGet,
  MapPrototypeGetSize,
  MapPrototypeSet,
  MathFloor,
  MathMax,
  MathMin,
  NumberIsNaN,
  NumberPrototype,
  ObjectHasOwn,
  ObjectPrototype,
  PromisePrototype,
  RangeErrorPrototype,
  ReflectApply,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  ReflectHas,
  RegExpPrototype,
  SafeMap,
  SetPrototype,
  SetPrototypeGetSize,
  String,
  StringPrototype,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  SymbolFor,
  SymbolPrototypeGetDescription,
  SymbolToStringTag,
  TypeErrorPrototype,
  TypedArrayPrototype,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetSymbolToStringTag,
  WeakMapPrototype,
  WeakSetPrototype,
} = primordials;

// Maximum indentation: two columns per level, and as much again for custom inspectors.
const MAX_INDENTATION = 4 * MAX_DEPTH;

const MIN_LINE_LENGTH = 16;
const DEFAULT_DEPTH = 4;

const CUSTOM_INSPECT = SymbolFor("Deno.customInspect");
const PRIVATE_CUSTOM_INSPECT = SymbolFor("Deno.privateCustomInspect");
const NODE_CUSTOM_INSPECT = SymbolFor("nodejs.util.inspect.custom");

// Names of built-in prototypes, even if a script has changed their `constructor`.
const wellKnown = new SafeMap();
const WELL_KNOWN = [
  [ArrayPrototype, "Array"],
  [ArrayBufferPrototype, "ArrayBuffer"],
  [FunctionPrototype, "Function"],
  [MapPrototype, "Map"],
  [SetPrototype, "Set"],
  [ObjectPrototype, "Object"],
  [TypedArrayPrototype, "TypedArray"],
  [RegExpPrototype, "RegExp"],
  [DatePrototype, "Date"],
  [DataViewPrototype, "DataView"],
  [ErrorPrototype, "Error"],
  [AggregateErrorPrototype, "AggregateError"],
  [RangeErrorPrototype, "RangeError"],
  [TypeErrorPrototype, "TypeError"],
  [BooleanPrototype, "Boolean"],
  [NumberPrototype, "Number"],
  [StringPrototype, "String"],
  [PromisePrototype, "Promise"],
  [WeakMapPrototype, "WeakMap"],
  [WeakSetPrototype, "WeakSet"],
];
for (let index = 0; index < WELL_KNOWN.length; index++) {
  MapPrototypeSet(wellKnown, WELL_KNOWN[index][0], WELL_KNOWN[index][1]);
}

// --- Options --------------------------------------------------------------------------------------------------------

const QUOTES = { __proto__: null, length: 3, 0: '"', 1: "'", 2: "`" };

function makeContext(state) {
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

function applyOptions(context, options) {
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
function optionsFor(context) {
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

// The name of the class of `value`, or null if it has no prototype.
function constructorName(context, value, recurseTimes) {
  let holder = value;
  let first;
  for (let links = 0; links < MAX_PROTOTYPES && holder !== null; links++) {
    if (links > 0) {
      const name = MapPrototypeGet(wellKnown, holder);
      if (name !== undefined) {
        return name;
      }
      if (kindOf(holder) === KIND_PROXY) {
        break;
      }
    }
    const constructor = ownValue(holder, "constructor");
    if (typeof constructor === "function" && kindOf(constructor) !== KIND_PROXY) {
      const name = ownValue(constructor, "name");
      if (typeof name === "string" && name !== "") {
        const prototype = ownValue(constructor, "prototype");
        if (prototype !== null && typeof prototype === "object" && isAbove(prototype, value)) {
          return nameOf(name);
        }
      }
    }
    holder = ReflectGetPrototypeOf(holder);
    if (first === undefined) {
      first = holder;
    }
  }
  if (first === null) {
    return null;
  }
  const internal = nameOf(core.ops.op_cx_constructor_name(value));
  if (first === undefined || kindOf(first) === KIND_PROXY || recurseTimes > context.depth) {
    return `${internal} <Complex prototype>`;
  }
  const above = constructorName(context, first, recurseTimes + 1);
  if (above !== null) {
    return nameOf(`${internal} <${above}>`);
  }
  const shallow = makeContext(context.state);
  shallow.customInspect = false;
  shallow.depth = -1;
  return nameOf(`${internal} <${formatValue(shallow, first, 0)}>`);
}

function plainPrefix(value, constructor, tag) {
  let fallback = "";
  if (constructor === null) {
    fallback = nameOf(core.ops.op_cx_constructor_name(value));
    if (fallback === tag) {
      fallback = "Object";
    }
  }
  return prefixOf(constructor, tag, fallback);
}

function formatString(context, value) {
  const { state } = context;
  let text = value;
  let trailer = "";
  const most = MathMin(context.maxStringLength, MathMax(state.characters, 0));
  if (text.length > most) {
    const missing = text.length - most;
    text = StringPrototypeSlice(text, 0, most);
    trailer = `... ${missing} more character${plural(missing)}`;
  }
  if (
    context.compact !== true && text.length > MIN_LINE_LENGTH &&
    text.length > context.breakLength - context.indentation - 4 && StringPrototypeIncludes(text, "\n")
  ) {
    const separator = ` +\n${spaces(context.indentation + 2)}`;
    let result = "";
    let start = 0;
    for (let lines = 1; start < text.length; lines++) {
      const end = StringPrototypeIndexOf(text, "\n", start);
      const next = end === -1 || lines >= MAX_LINES ? text.length : end + 1;
      if (start > 0) {
        result += separator;
        state.characters -= separator.length;
      }
      result += spend(state, quote(context, StringPrototypeSlice(text, start, next)));
      start = next;
      if (isSpent(state) && start < text.length) {
        return `${result}... ${value.length - start} more characters`;
      }
    }
    return result + trailer;
  }
  // Not cut, because the quotes would be missing. Escaping adds at most five times the length of the text.
  const quoted = quote(context, text);
  state.characters -= quoted.length;
  return quoted + trailer;
}

function formatSymbol(context, value) {
  const description = SymbolPrototypeGetDescription(value);
  if (description === undefined || isIdentifier(nameOf(description), true)) {
    return symbolText(value);
  }
  return `Symbol(${quote(context, nameOf(description))})`;
}

export function formatPrimitive(context, value) {
  switch (typeof value) {
    case "string":
      return formatString(context, value);
    case "number":
      return spend(context.state, numberText(value));
    case "bigint":
      return spend(context.state, `${BigIntPrototypeToString(value)}n`);
    case "symbol":
      return spend(context.state, formatSymbol(context, value));
    default:
      return spend(context.state, `${value}`);
  }
}

// --- Custom inspectors ----------------------------------------------------------------------------------------------

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
function thrownText(error, onlyMessage = false) {
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
function formatCustom(context, value, recurseTimes) {
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

// --- Objects --------------------------------------------------------------------------------------------------------

export function formatValue(context, value, recurseTimes, isInTypedArray = false) {
  if (value === null) {
    return spend(context.state, "null");
  }
  if (typeof value !== "object" && typeof value !== "function") {
    return formatPrimitive(context, value);
  }
  const { state } = context;
  if (isSpent(state)) {
    return "...";
  }
  let object = value;
  let kind = kindOf(object);
  if (kind === KIND_PROXY) {
    const details = core.ops.op_cx_details(object);
    if (details[0] === null) {
      return spend(state, "<Revoked Proxy>");
    }
    if (context.showProxy) {
      return `Proxy ${formatObject(context, [details[0], details[1]], KIND_ARRAY, recurseTimes, false)}`;
    }
    for (let links = 0; kind === KIND_PROXY; links++) {
      object = core.ops.op_cx_details(object)[0];
      if (object === null) {
        return spend(state, "<Revoked Proxy>");
      }
      if (links === MAX_PROTOTYPES) {
        return spend(state, "[Proxy]");
      }
      kind = kindOf(object);
    }
  }
  if (context.customInspect && !hasProxyPrototype(object)) {
    const custom = formatCustom(context, object, recurseTimes);
    if (custom !== undefined) {
      return custom;
    }
  }
  if (indexIn(state.seen, object) !== -1) {
    state.circular ??= new SafeMap();
    let index = MapPrototypeGet(state.circular, object);
    if (index === undefined) {
      index = MapPrototypeGetSize(state.circular) + 1;
      MapPrototypeSet(state.circular, object, index);
    }
    return spend(state, `[Circular *${index}]`);
  }
  return formatObject(context, object, kind, recurseTimes, isInTypedArray);
}

function keysOf(context, value, bits) {
  // Numbers are indices. The list does not use its prototype.
  return core.ops.op_cx_keys(value, context.showHidden ? bits & ~KEYS_ENUMERABLE : bits);
}

// `keys` are the properties that are shown. `entries` fills a list with the object's other contents and returns whether
// it omitted any.
function formatObject(context, value, kind, recurseTimes, isInTypedArray) {
  const { state } = context;
  const constructor = constructorName(context, value, recurseTimes);
  let tag = "";
  if (kind === KIND_TYPED_ARRAY) {
    tag = TypedArrayPrototypeGetSymbolToStringTag(value);
  } else if (!hasProxyPrototype(value) && ReflectHas(value, SymbolToStringTag)) {
    const given = read(value, SymbolToStringTag, true);
    if (typeof given === "string") {
      tag = nameOf(given);
    }
  }

  let base = "";
  let keys;
  let entries;
  let open = "{";
  let close = "}";
  let layout = AS_OBJECT;
  switch (kind) {
    case KIND_ARRAY: {
      keys = keysOf(context, value, KEYS_ENUMERABLE | KEYS_WITHOUT_INDICES);
      const isPlain = constructor === "Array" && tag === "";
      open = `${isPlain ? "" : prefixOf(constructor, tag, "Array", `(${value.length})`)}[`;
      close = "]";
      if (value.length === 0 && keys.length === 0) {
        return spend(state, `${open}]`);
      }
      layout = AS_LIST;
      entries = formatArray;
      break;
    }
    case KIND_TYPED_ARRAY: {
      const size = TypedArrayPrototypeGetLength(value);
      keys = keysOf(context, value, KEYS_ENUMERABLE | KEYS_WITHOUT_INDICES);
      open = `${prefixOf(constructor, tag, TypedArrayPrototypeGetSymbolToStringTag(value), `(${size})`)}[`;
      close = "]";
      if (size === 0 && keys.length === 0) {
        return spend(state, `${open}]`);
      }
      layout = AS_LIST;
      entries = formatTypedArray;
      break;
    }
    case KIND_SET:
    case KIND_MAP: {
      const isSet = kind === KIND_SET;
      const size = isSet ? SetPrototypeGetSize(value) : MapPrototypeGetSize(value);
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, isSet ? "Set" : "Map", `(${size})`)}{`;
      if (size === 0 && keys.length === 0) {
        return spend(state, `${open}}`);
      }
      entries = isSet ? formatSet : formatMap;
      break;
    }
    case KIND_MAP_ITERATOR:
    case KIND_SET_ITERATOR: {
      const expected = kind === KIND_MAP_ITERATOR ? "Map Iterator" : "Set Iterator";
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `[${tag === expected || tag === "" ? "" : `${tag}] [`}${expected}] {`;
      entries = formatIterator;
      break;
    }
    case KIND_FUNCTION:
    case KIND_ASYNC_FUNCTION:
    case KIND_GENERATOR_FUNCTION:
    case KIND_ASYNC_GENERATOR_FUNCTION:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      base = functionBase(value, kind, constructor, tag);
      if (keys.length === 0) {
        return spend(state, base);
      }
      break;
    case KIND_REGEXP:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      base = `${prefixUnless("RegExp", constructor, tag)}${regExpText(value)}`;
      if (keys.length === 0 || recurseTimes > context.depth) {
        return spend(state, base);
      }
      break;
    case KIND_DATE:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      base = `${prefixUnless("Date", constructor, tag)}${dateText(value)}`;
      if (keys.length === 0) {
        return spend(state, base);
      }
      break;
    case KIND_ARRAY_BUFFER: {
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, "ArrayBuffer")}{`;
      if (isInTypedArray && keys.length === 0) {
        return spend(state, `${open} byteLength: ${ArrayBufferPrototypeGetByteLength(value)} }`);
      }
      entries = formatArrayBuffer;
      break;
    }
    case KIND_DATA_VIEW:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, "DataView")}{`;
      entries = formatDataView;
      break;
    case KIND_PROMISE:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, "Promise")}{`;
      entries = formatPromise;
      break;
    case KIND_WEAK_SET:
    case KIND_WEAK_MAP:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, kind === KIND_WEAK_SET ? "WeakSet" : "WeakMap")}{`;
      entries = formatWeak;
      break;
    case KIND_NAMESPACE:
      // All exports are enumerable; a query would throw for one that is not initialized yet.
      keys = core.ops.op_cx_keys(value, KEYS_ALL);
      keys = withoutSymbols(keys);
      open = `${prefixOf(constructor, tag, "Module")}{`;
      break;
    case KIND_NUMBER:
    case KIND_STRING:
    case KIND_BOOLEAN:
    case KIND_BIGINT:
    case KIND_SYMBOL:
      keys = keysOf(context, value, KEYS_ENUMERABLE | KEYS_WITHOUT_INDICES);
      base = boxedBase(context, value, kind, constructor, tag);
      if (keys.length === 0) {
        return base;
      }
      break;
    default: {
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      if (isError(value, kind)) {
        const shown = makeList();
        base = formatError(context, value, kind, constructor, tag, keys, shown);
        keys = shown;
        if (keys.length === 0) {
          return base;
        }
      } else if (kind === KIND_ARGUMENTS && constructor === "Object") {
        open = "[Arguments] {";
      } else if (constructor !== "Object" || tag !== "") {
        open = `${plainPrefix(value, constructor, tag)}{`;
      }
      if (base === "" && keys.length === 0) {
        return spend(state, `${open}}`);
      }
    }
  }

  if (recurseTimes > context.depth || state.level >= MAX_DEPTH) {
    const style = plainPrefix(value, constructor, tag);
    const name = StringPrototypeSlice(style, 0, style.length - 1);
    return spend(state, constructor === null ? name : `[${name}]`);
  }

  const level = recurseTimes + 1;
  state.characters -= open.length + base.length;
  state.level++;
  push(state.seen, value);
  context.currentDepth = level;
  const output = makeList();
  let isCut = false;
  if (entries !== undefined) {
    const answer = entries(context, value, level, output);
    if (answer === MORE) {
      isCut = true;
    } else if (answer === ENTRIES) {
      open = `${StringPrototypeSlice(open, 0, open.length - " Iterator] {".length)} Entries] {`;
    }
  }
  const firstProperty = output.length;
  for (let index = 0; index < keys.length; index++) {
    if (isLastEntry(state)) {
      const missing = keys.length - index;
      push(output, `... ${missing} more propert${missing === 1 ? "y" : "ies"}`);
      break;
    }
    push(output, formatProperty(context, value, level, keys[index], layout));
  }
  delete state.seen[--state.seen.length];
  state.level--;

  if (state.circular !== undefined) {
    const index = MapPrototypeGet(state.circular, value);
    if (index !== undefined) {
      const reference = `<ref *${index}>`;
      if (context.compact === true) {
        open = `${reference} ${open}`;
      } else {
        base = base === "" ? reference : `${reference} ${base}`;
      }
    }
  }
  if (context.sorted !== false) {
    sort(context, output, layout === AS_OBJECT ? 0 : firstProperty);
  }
  return layOut(context, output, base, open, close, layout, level, value, isCut);
}

function withoutSymbols(keys) {
  const list = makeList();
  for (let index = 0; index < keys.length; index++) {
    if (typeof keys[index] !== "symbol") {
      push(list, keys[index]);
    }
  }
  return list;
}

// Sorts the entries from `start` on.
function sort(context, output, start) {
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

// --- What others use ------------------------------------------------------------------------------------------------

// Starts one inspection, in which several values share the same budgets.
export function beginInspection(options) {
  return applyOptions(makeContext(makeState()), options);
}

export function inspectIn(context, value) {
  return formatValue(context, value, 0);
}

export function isSpentIn(context) {
  return isSpent(context.state);
}

// A value as text. Throws nothing but V8's stack overflow.
export function inspect(value, options) {
  return inspectIn(beginInspection(options), value);
}
