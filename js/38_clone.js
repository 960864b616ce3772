// `structuredClone` as in the HTML standard (2.7.3 and 2.7.6), in the guest. V8's own version writes every string into
// a buffer of the host, shared strings each time; it cannot be interrupted, and no meter counts it: an array of sixty
// references to one string took four gigabytes. Here strings stay shared, and the clone is in the script's own heap.

import { core, primordials } from "ext:core/mod.js";
import { loadPart } from "ext:cx/09_parts.js";
// Before files of deno_web are loaded.
import "ext:cx/24_lists.js";
import {
  flagsOf,
  KIND_ARRAY_BUFFER,
  KIND_BIGINT,
  KIND_BOOLEAN,
  KIND_DATA_VIEW,
  KIND_DATE,
  KIND_ERROR,
  KIND_GENERATOR,
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
} from "ext:cx/32_objects.js";

const {
  ArrayBufferPrototypeGetByteLength,
  ArrayBufferPrototypeSlice,
  ArrayIsArray,
  ArrayPrototypePush,
  BigIntPrototypeValueOf,
  BooleanPrototypeValueOf,
  DataView,
  DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset,
  Date,
  DatePrototypeGetTime,
  Error,
  EvalError,
  FunctionPrototypeToString,
  Map,
  MapPrototypeForEach,
  MapPrototypeSet,
  NumberPrototypeValueOf,
  Object,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectKeys,
  ObjectPrototypeHasOwnProperty,
  ObjectPrototypeIsPrototypeOf,
  RangeError,
  ReferenceError,
  ReflectHas,
  RegExp,
  RegExpPrototypeGetSource,
  SafeMap,
  MapPrototypeGet,
  MapPrototypeHas,
  Set,
  SetPrototypeAdd,
  SetPrototypeForEach,
  String,
  StringPrototypeSlice,
  StringPrototypeValueOf,
  SymbolPrototypeToString,
  SyntaxError,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypeError,
  URIError,
  uncurryThis,
} = primordials;

const webidl = core.loadExtScript("ext:deno_webidl/00_webidl.js");
const { DOMException } = core.loadExtScript("ext:deno_web/01_dom_exception.js");

const transferBuffer = uncurryThis(ArrayBuffer.prototype.transfer);
const isDetached = uncurryThis(ObjectGetOwnPropertyDescriptor(ArrayBuffer.prototype, "detached").get);
const WeakRefPrototype = WeakRef.prototype;
const derefWeakRef = uncurryThis(WeakRefPrototype.deref);
const DOMExceptionPrototype = DOMException.prototype;
const domExceptionName = uncurryThis(ObjectGetOwnPropertyDescriptor(DOMExceptionPrototype, "name").get);
const domExceptionMessage = uncurryThis(ObjectGetOwnPropertyDescriptor(DOMExceptionPrototype, "message").get);

const TYPED_ARRAYS = {
  __proto__: null,
  BigInt64Array,
  BigUint64Array,
  Float16Array: globalThis.Float16Array,
  Float32Array,
  Float64Array,
  Int16Array,
  Int32Array,
  Int8Array,
  Uint16Array,
  Uint32Array,
  Uint8Array,
  Uint8ClampedArray,
};

const ERRORS = { __proto__: null, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

// Maximum characters of a function's text in an error.
const MAX_SHOWN = 80;

function nameOf(value) {
  if (typeof value === "symbol") {
    return SymbolPrototypeToString(value);
  }
  if (typeof value === "function") {
    return StringPrototypeSlice(FunctionPrototypeToString(value), 0, MAX_SHOWN);
  }
  return "#<Object>";
}

function refuse(value) {
  throw new DOMException(`${nameOf(value)} could not be cloned.`, "DataCloneError");
}

// Without WeakRef's prototype it is cloned as the object that it looks like. The prototype is looked for first because
// an exception for each ordinary object would take longer than cloning it.
function isWeakRef(value) {
  if (!ObjectPrototypeIsPrototypeOf(WeakRefPrototype, value)) {
    return false;
  }
  try {
    derefWeakRef(value);
    return true;
  } catch {
    return false;
  }
}

// Whether `value` is of one of deno_web's classes, whose state is in fields that only its methods can read.
function isBranded(value) {
  return value[webidl.brand] === webidl.brand;
}

function define(object, key, value) {
  // Faster, and equivalent if nothing is inherited under that name.
  if (!ReflectHas(object, key)) {
    object[key] = value;
    return;
  }
  ObjectDefineProperty(object, key, {
    __proto__: null,
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

function clonedBuffer(buffer, memory) {
  if (isDetached(buffer)) {
    throw new DOMException("an ArrayBuffer is detached and could not be cloned.", "DataCloneError");
  }
  const copy = ArrayBufferPrototypeSlice(buffer, 0, ArrayBufferPrototypeGetByteLength(buffer));
  memory.remember(buffer, copy);
  return copy;
}

function clonedView(view, memory) {
  const tag = TypedArrayPrototypeGetSymbolToStringTag(view);
  if (tag === undefined) {
    const buffer = clone(DataViewPrototypeGetBuffer(view), memory);
    return new DataView(buffer, DataViewPrototypeGetByteOffset(view), DataViewPrototypeGetByteLength(view));
  }
  const buffer = clone(TypedArrayPrototypeGetBuffer(view), memory);
  return new TYPED_ARRAYS[tag](buffer, TypedArrayPrototypeGetByteOffset(view), TypedArrayPrototypeGetLength(view));
}

function clonedError(error, memory) {
  const name = error.name;
  const Constructor = ERRORS[typeof name === "string" ? name : "Error"] ?? Error;
  const copy = new Constructor();
  memory.remember(error, copy);
  const keys = ["message", "stack", "cause"];
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    if (!ObjectPrototypeHasOwnProperty(error, key)) {
      if (key === "stack") {
        delete copy.stack;
      }
      continue;
    }
    const value = error[key];
    ObjectDefineProperty(copy, key, {
      __proto__: null,
      value: key === "cause" ? clone(value, memory) : String(value),
      writable: true,
      enumerable: false,
      configurable: true,
    });
  }
  return copy;
}

function clonedMap(map, memory) {
  const copy = new Map();
  memory.remember(map, copy);
  // All entries are collected before the first is cloned: cloning may run getters, which may change the map.
  const entries = [];
  MapPrototypeForEach(map, (value, key) => {
    ArrayPrototypePush(entries, key, value);
  });
  for (let index = 0; index < entries.length; index += 2) {
    MapPrototypeSet(copy, clone(entries[index], memory), clone(entries[index + 1], memory));
  }
  return copy;
}

function clonedSet(set, memory) {
  const copy = new Set();
  memory.remember(set, copy);
  const values = [];
  SetPrototypeForEach(set, (value) => {
    ArrayPrototypePush(values, value);
  });
  for (let index = 0; index < values.length; index++) {
    SetPrototypeAdd(copy, clone(values[index], memory));
  }
  return copy;
}

function clonedObject(value, memory) {
  const copy = ArrayIsArray(value) ? [] : {};
  memory.remember(value, copy);
  const keys = ObjectKeys(value);
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    // A getter of an earlier property may have removed it.
    if (ObjectPrototypeHasOwnProperty(value, key)) {
      define(copy, key, clone(value[key], memory));
    }
  }
  if (ArrayIsArray(value)) {
    copy.length = value.length;
  }
  return copy;
}

function clone(value, memory) {
  if (typeof value === "symbol" || typeof value === "function") {
    refuse(value);
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  if (MapPrototypeHas(memory.copies, value)) {
    return MapPrototypeGet(memory.copies, value);
  }
  switch (kindOf(value)) {
    case KIND_ARRAY_BUFFER:
      return clonedBuffer(value, memory);
    case KIND_TYPED_ARRAY:
    case KIND_DATA_VIEW:
      return memory.remember(value, clonedView(value, memory));
    case KIND_MAP:
      return clonedMap(value, memory);
    case KIND_SET:
      return clonedSet(value, memory);
    case KIND_DATE:
      return memory.remember(value, new Date(DatePrototypeGetTime(value)));
    case KIND_REGEXP:
      return memory.remember(value, new RegExp(RegExpPrototypeGetSource(value), flagsOf(value)));
    case KIND_NUMBER:
      return memory.remember(value, new Object(NumberPrototypeValueOf(value)));
    case KIND_STRING:
      return memory.remember(value, new Object(StringPrototypeValueOf(value)));
    case KIND_BOOLEAN:
      return memory.remember(value, new Object(BooleanPrototypeValueOf(value)));
    case KIND_BIGINT:
      return memory.remember(value, new Object(BigIntPrototypeValueOf(value)));
    case KIND_ERROR:
      return isBranded(value)
        ? memory.remember(value, new DOMException(domExceptionMessage(value), domExceptionName(value)))
        : clonedError(value, memory);
    // Their state is not in properties.
    case KIND_PROXY:
    case KIND_PROMISE:
    case KIND_WEAK_MAP:
    case KIND_WEAK_SET:
    case KIND_GENERATOR:
    case KIND_MAP_ITERATOR:
    case KIND_SET_ITERATOR:
    case KIND_NAMESPACE:
    case KIND_SYMBOL:
      return refuse(value);
    default:
      return isWeakRef(value) || isBranded(value) ? refuse(value) : clonedObject(value, memory);
  }
}

// Only buffers can be transferred here: deno_web's other transferable types are not available to scripts.
function transferred(transfer) {
  const buffers = [];
  if (transfer === undefined || transfer === null) {
    return buffers;
  }
  if (!ArrayIsArray(transfer)) {
    throw new TypeError("structuredClone: `transfer` must be an array");
  }
  for (let index = 0; index < transfer.length; index++) {
    const buffer = transfer[index];
    if (!core.isArrayBuffer(buffer) || isDetached(buffer)) {
      throw new DOMException("only array buffers that are not detached can be transferred", "DataCloneError");
    }
    ArrayPrototypePush(buffers, buffer);
  }
  return buffers;
}

export function structuredClone(value, options) {
  const buffers = transferred(options?.transfer);
  const copies = new SafeMap();
  const memory = {
    __proto__: null,
    copies,
    remember(original, copy) {
      MapPrototypeSet(copies, original, copy);
      return copy;
    },
  };
  const copy = clone(value, memory);
  for (let index = 0; index < buffers.length; index++) {
    // Buffers that are not part of the value are transferred too, so they are detached.
    transferBuffer(buffers[index], 0);
  }
  return copy;
}

// deno_web's own files also clone: `performance.mark` clones its `detail`.
loadPart("ext:deno_web/02_structured_clone.js").structuredClone = structuredClone;
