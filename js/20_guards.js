// Refuses calls of built-in functions that loop without looking for an interrupt (found by trying
// them on this V8: DESIGN.md 6). Defence in depth only; see README.md.

import { primordials } from "ext:core/mod.js";

const {
  ArrayIsArray,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  Proxy,
  RangeError,
  ReflectApply,
  ReflectConstruct,
  String,
  SymbolReplace,
  SymbolSplit,
  SymbolMatchAll,
  TypeError,
} = primordials;

// Far above what a script does on purpose; a few hundred milliseconds of work for V8.
const MOST_GENERIC_ELEMENTS = 2 ** 24;
const MOST_ARRAY_ELEMENTS = 2 ** 26;
const MOST_REPLACE_CHARACTERS = 2 ** 25;

function checkLength(name, value) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) {
    return;
  }
  const isArray = ArrayIsArray(value);
  const most = isArray ? MOST_ARRAY_ELEMENTS : MOST_GENERIC_ELEMENTS;
  const length = +value.length;
  if (length > most) {
    throw new RangeError(`${name} on ${length} elements, at most ${most} here`);
  }
}

// A stand-in must look like what it stands for: same name, same length, no prototype, same attributes.
function replace(holder, key, name, makeStandIn) {
  const descriptor = ObjectGetOwnPropertyDescriptor(holder, key);
  const original = descriptor.value;
  const standIn = makeStandIn(original);
  ObjectDefineProperty(standIn, "name", { __proto__: null, value: original.name, configurable: true });
  ObjectDefineProperty(standIn, "length", { __proto__: null, value: original.length, configurable: true });
  descriptor.value = standIn;
  ObjectDefineProperty(holder, key, descriptor);
}

const GENERIC = [
  "indexOf", "lastIndexOf", "includes", "reverse", "flat", "flatMap", "copyWithin", "some", "every", "find",
  "findIndex", "findLast", "findLastIndex", "forEach", "map", "filter", "reduce", "reduceRight", "join", "splice",
  "unshift", "shift", "slice", "concat", "fill", "sort", "toReversed", "toSorted", "toSpliced", "with", "toString",
  "toLocaleString",
];

for (let index = 0; index < GENERIC.length; index++) {
  const name = GENERIC[index];
  if (ObjectGetOwnPropertyDescriptor(Array.prototype, name) === undefined) {
    continue;
  }
  replace(Array.prototype, name, name, (original) => ({
    method(...args) {
      checkLength(name, this);
      return ReflectApply(original, this, args);
    },
  }).method);
}

replace(Array, "from", "from", (original) => ({
  method(...args) {
    checkLength("Array.from", args[0]);
    return ReflectApply(original, this, args);
  },
}).method);

const TypedArray = Object.getPrototypeOf(Uint8Array);
replace(TypedArray, "from", "from", (original) => ({
  method(...args) {
    checkLength("TypedArray.from", args[0]);
    return ReflectApply(original, this, args);
  },
}).method);

replace(String, "raw", "raw", (original) => ({
  method(...args) {
    const strings = args[0];
    if (strings !== null && strings !== undefined) {
      checkLength("String.raw", strings.raw);
    }
    return ReflectApply(original, this, args);
  },
}).method);

function checkText(name, value) {
  if (typeof value === "string" && value.length > MOST_REPLACE_CHARACTERS) {
    throw new RangeError(`${name} on ${value.length} characters, at most ${MOST_REPLACE_CHARACTERS} here`);
  }
}

const TEXT = ["replace", "replaceAll", "split", "matchAll", "match"];
for (let index = 0; index < TEXT.length; index++) {
  const name = TEXT[index];
  replace(String.prototype, name, name, (original) => ({
    method(...args) {
      checkText(name, this);
      return ReflectApply(original, this, args);
    },
  }).method);
}

const BY_SYMBOL = [SymbolReplace, SymbolSplit, SymbolMatchAll];
for (let index = 0; index < BY_SYMBOL.length; index++) {
  replace(RegExp.prototype, BY_SYMBOL[index], "", (original) => ({
    method(...args) {
      checkText(original.name, args[0]);
      return ReflectApply(original, this, args);
    },
  }).method);
}

// A resizable buffer gets its pages past the allocator that counts them.
const OriginalArrayBuffer = ArrayBuffer;
const FixedArrayBuffer = new Proxy(OriginalArrayBuffer, {
  __proto__: null,
  construct(target, args, newTarget) {
    const options = args[1];
    if (options !== null && typeof options === "object" && options.maxByteLength !== undefined) {
      throw new TypeError("resizable array buffers are not available here; allocate the final size");
    }
    // Only the length is passed on: the options were read once and may answer otherwise next time.
    return ReflectConstruct(target, args.length === 0 ? [] : [args[0]], newTarget === FixedArrayBuffer ? target : newTarget);
  },
});
ObjectDefineProperty(globalThis, "ArrayBuffer", {
  __proto__: null,
  value: FixedArrayBuffer,
  writable: true,
  enumerable: false,
  configurable: true,
});
ObjectDefineProperty(OriginalArrayBuffer.prototype, "constructor", {
  __proto__: null,
  value: FixedArrayBuffer,
  writable: true,
  enumerable: false,
  configurable: true,
});
delete OriginalArrayBuffer.prototype.resize;

// deno_core's wrapper of each async op looks `call` up when it is called. Whoever replaced it would be
// given the bare op. So it stays what it is; a function may still have a `call` of its own.
const FunctionPrototype = Function.prototype;
const originalCall = FunctionPrototype.call;
ObjectDefineProperty(FunctionPrototype, "call", {
  __proto__: null,
  get() {
    return originalCall;
  },
  set(value) {
    if (this === FunctionPrototype) {
      throw new TypeError("Function.prototype.call cannot be replaced here");
    }
    ObjectDefineProperty(this, "call", {
      __proto__: null,
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  },
  enumerable: false,
  configurable: false,
});
