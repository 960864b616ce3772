// Formats values as text, for `console` and for thrown values: the same output as Deno's, with bounds.
//
// No library is used. object-inspect, loupe and node-inspect-extracted (Node's own) run proxy traps, call built-ins
// that a script has replaced, and print every key of an object. deno_web's inspector is in Rust, allocates as much as a
// script asks for and cannot be interrupted. Here everything runs in the guest: its time ends with the run's limit, its
// memory is the heap that the limit counts, and every number from a script is clamped before it is used.
//
// The layout is that of Node's lib/internal/util/inspect.js as Deno has changed it; tests/inspect compares them.

import { core, primordials } from "ext:core/mod.js";
import { indexIn, isLastEntry, isSpent, makeList, makeState, MAX_DEPTH, nameOf, push, spend } from "ext:cx/31_text.js";
import {
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
} from "ext:cx/32_objects.js";
import { AS_LIST, AS_OBJECT, layOut } from "ext:cx/33_layout.js";
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
import { applyOptions, makeContext } from "ext:cx/33_options.js";
import { formatPrimitive, plainPrefix } from "ext:cx/34_primitives.js";
import { formatCustom } from "ext:cx/35_custom.js";
import { formatProperty, sort, withoutSymbols } from "ext:cx/35_properties.js";

const {
  AggregateErrorPrototype,
  ArrayBufferPrototype,
  ArrayBufferPrototypeGetByteLength,
  ArrayPrototype,
  BooleanPrototype,
  DataViewPrototype,
  DatePrototype,
  ErrorPrototype,
  FunctionPrototype,
  MapPrototype,
  MapPrototypeGet,
  MapPrototypeGetSize,
  MapPrototypeSet,
  NumberPrototype,
  ObjectPrototype,
  PromisePrototype,
  RangeErrorPrototype,
  ReflectGetPrototypeOf,
  ReflectHas,
  RegExpPrototype,
  SafeMap,
  SetPrototype,
  SetPrototypeGetSize,
  StringPrototype,
  StringPrototypeSlice,
  SymbolToStringTag,
  TypeErrorPrototype,
  TypedArrayPrototype,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetSymbolToStringTag,
  WeakMapPrototype,
  WeakSetPrototype,
} = primordials;

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
