// Guards for typed arrays and buffers; see 20_guards.js.

import { core, primordials } from "ext:core/mod.js";
import {
  defineBuiltIn,
  guardAfterRestore,
  isGuestProxy,
  isObject,
  iteratesOrdinarily,
  lengthOf,
  makesArrays,
  noteOriginal,
  replace,
  steppingIterable,
  steppingProxy,
  wrapConstructor,
} from "ext:cx/20_guards.js";
import { checkKeys, checkText } from "ext:cx/21_text_guards.js";

const {
  ArrayBufferIsView,
  ArrayFrom,
  Object,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectGetPrototypeOf,
  ObjectSetPrototypeOf,
  Proxy,
  RangeError,
  ReflectApply,
  ReflectConstruct,
  ReflectDefineProperty,
  ReflectGet,
  ReflectOwnKeys,
  SymbolIterator,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypeError,
} = primordials;

const TypedArray = ObjectGetPrototypeOf(Uint8Array);

// Maximum characters of a text that does not count as one step when V8 makes a number of it.
const MAX_QUICK_NUMBER = 256;

// Whether V8 makes numbers of all elements at once: not of long texts, nor of objects that become them.
function convertsQuickly(list) {
  for (let index = 0; index < list.length; index++) {
    const element = list[index];
    if (typeof element === "string" ? element.length > MAX_QUICK_NUMBER : isObject(element)) {
      return false;
    }
  }
  return true;
}

// The source of a typed array, with steps that run JavaScript. `isMapped`: a function makes the numbers.
function steppingSource(name, items, isMapped = false) {
  if (items === null || items === undefined) {
    return items;
  }
  if (iteratesOrdinarily(items)) {
    if (isMapped || core.isTypedArray(items) || convertsQuickly(items)) {
      return items;
    }
  } else {
    const method = items[SymbolIterator];
    if (method === undefined || method === null) {
      const source = Object(items);
      return steppingProxy(source, lengthOf(name, source));
    }
    if (isMapped || typeof method !== "function") {
      return steppingIterable(items);
    }
  }
  // As V8, which takes all elements before it makes a number of the first. The spread calls the script's own iterator,
  // as V8 would, or that of arrays, which was checked.
  const list = [...steppingIterable(items)];
  return iteratesOrdinarily(list) && convertsQuickly(list) ? list : steppingProxy(list, list.length);
}

const arrayFrom = TypedArray.from;

replace(TypedArray, "from", (original) => ({
  method(...args) {
    args[0] = typeof args[0] === "string"
      ? steppingIterable(args[0])
      : steppingSource("TypedArray.from", args[0], args[1] !== undefined);
    return ReflectApply(original, this, args);
  },
}).method);

replace(TypedArray, "of", (original) => ({
  method(...args) {
    return convertsQuickly(args)
      ? ReflectApply(original, this, args)
      : ReflectApply(arrayFrom, this, [steppingProxy(args, args.length)]);
  },
}).method);

replace(Array, "of", (original) => ({
  method(...args) {
    // Of an array-like, `from` makes the same as `of`.
    return makesArrays(this) || convertsQuickly(args)
      ? ReflectApply(original, this, args)
      : ReflectApply(ArrayFrom, this, [steppingProxy(args, args.length)]);
  },
}).method);

// V8 reads the length once, after it has checked the receiver and the offset.
const ELEMENTS = {
  __proto__: null,
  get: (list, key) => key === "length" ? lengthOf("set", list) : ReflectGet(list, key, list),
};

replace(TypedArray.prototype, "set", (original) => ({
  method(...args) {
    const source = args[0];
    if (source !== null && source !== undefined && TypedArrayPrototypeGetSymbolToStringTag(source) === undefined) {
      // An object as the offset could change the elements after this look.
      const isQuick = !isObject(args[1]) && iteratesOrdinarily(source) && convertsQuickly(source);
      args[0] = isQuick ? source : new Proxy(Object(source), ELEMENTS);
    }
    return ReflectApply(original, this, args);
  },
}).method);

// Reading each property is a step of JavaScript.
const STEPS = { __proto__: null, get: (object, key) => ReflectGet(object, key, object) };

// Whether V8 may make numbers of what is written to this object. A proxy may be one of a typed array.
function takesNumbers(target) {
  return ArrayBufferIsView(target) || isGuestProxy(target);
}

replace(Object, "assign", (original) => ({
  method(...args) {
    const inSteps = takesNumbers(args[0]);
    for (let index = 1; index < args.length; index++) {
      const source = args[index];
      checkKeys("assign", source);
      if (inSteps && isObject(source)) {
        args[index] = new Proxy(source, STEPS);
      }
    }
    return ReflectApply(original, this, args);
  },
}).method);

// As `original`, which reads all descriptors before it defines the first property: each definition is a step.
function defineInSteps(original, target, properties) {
  const proxy = new Proxy({ __proto__: null }, {
    __proto__: null,
    defineProperty(defined, key, descriptor) {
      // A script can give `Object.prototype` what a descriptor does not have.
      ObjectSetPrototypeOf(descriptor, null);
      ObjectDefineProperty(target, key, descriptor);
      // V8 compares the target of the proxy with the descriptor.
      return ReflectDefineProperty(defined, key, descriptor);
    },
  });
  original(proxy, properties);
  return target;
}

replace(Object, "defineProperties", (original) => ({
  method(target, properties) {
    checkKeys("defineProperties", properties);
    return takesNumbers(target) && isObject(properties)
      ? defineInSteps(original, target, properties)
      : original(target, properties);
  },
}).method);

// Maximum number of elements that are sorted with a function. V8 first makes two lists of all of them at once, with an
// object for each that is no small integer: up to 32 bytes for a single byte.
const MAX_SORTED = 2 ** 22;
const SORT_METHODS = ["sort", "toSorted"];
for (let index = 0; index < SORT_METHODS.length; index++) {
  const name = SORT_METHODS[index];
  replace(TypedArray.prototype, name, (original) => ({
    method(...args) {
      if (args[0] !== undefined && TypedArrayPrototypeGetSymbolToStringTag(this) !== undefined) {
        const length = TypedArrayPrototypeGetLength(this);
        if (length > MAX_SORTED) {
          throw new RangeError(`${name} with a function on ${length} elements, at most ${MAX_SORTED} here`);
        }
      }
      return ReflectApply(original, this, args);
    },
  }).method);
}

// Methods that go through all elements, each time for a fraction of a second. A loop that calls nothing else is
// interrupted between two calls of a function that is JavaScript, and after thousands of calls of V8's own.
const LOOPS = [
  "copyWithin", "fill", "includes", "indexOf", "join", "lastIndexOf", "reverse", "toReversed", "with",
];
const LOOPS_OF_BYTES = ["toBase64", "toHex"];

function interruptBefore(holder, names) {
  for (let index = 0; index < names.length; index++) {
    replace(holder, names[index], (original) => ({
      method(...args) {
        return ReflectApply(original, this, args);
      },
    }).method);
  }
}

interruptBefore(TypedArray.prototype, LOOPS);
interruptBefore(Uint8Array.prototype, LOOPS_OF_BYTES);

function guardView(name) {
  const original = globalThis[name];
  const guarded = function (...args) {
    if (new.target === undefined) {
      throw new TypeError(`Constructor ${name} requires 'new'`);
    }
    const source = args[0];
    if (isObject(source) && !core.isAnyArrayBuffer(source) && !core.isTypedArray(source)) {
      args[0] = steppingSource(name, source);
    }
    return ReflectConstruct(original, args, new.target === guarded ? original : new.target);
  };
  const keys = ReflectOwnKeys(original);
  for (let index = 0; index < keys.length; index++) {
    ObjectDefineProperty(guarded, keys[index], ObjectGetOwnPropertyDescriptor(original, keys[index]));
  }
  ObjectSetPrototypeOf(guarded, TypedArray);
  noteOriginal(guarded, original);
  defineBuiltIn(globalThis, name, guarded);
  defineBuiltIn(original.prototype, "constructor", guarded);
}

const VIEWS = [
  "BigInt64Array", "BigUint64Array", "Float32Array", "Float64Array", "Int16Array", "Int32Array", "Int8Array",
  "Uint16Array", "Uint32Array", "Uint8ClampedArray",
];
for (let index = 0; index < VIEWS.length; index++) {
  guardView(VIEWS[index]);
}

// Maximum characters of bytes that are read as text. The text may be a compact representation of a long one (`repeat`,
// `+`), of which V8 makes a copy.
const MAX_ENCODED = 2 ** 26;
const READ_TEXT = [
  [Uint8Array, "fromBase64"],
  [Uint8Array, "fromHex"],
  [Uint8Array.prototype, "setFromBase64"],
  [Uint8Array.prototype, "setFromHex"],
];
for (let index = 0; index < READ_TEXT.length; index++) {
  const name = READ_TEXT[index][1];
  replace(READ_TEXT[index][0], name, (original) => ({
    method(...args) {
      if (typeof args[0] === "string") {
        checkText(name, args[0], MAX_ENCODED);
      }
      return ReflectApply(original, this, args);
    },
  }).method);
}

// V8 adds Float16Array, and functions of Uint8Array, on restore. Those of Uint8Array have their guards then.
guardAfterRestore(() => guardView("Float16Array"));
guardAfterRestore(() => guardView("Uint8Array"));

// The pages of a resizable buffer are not allocated through the allocator that counts memory.
const OriginalArrayBuffer = ArrayBuffer;
const FixedArrayBuffer = wrapConstructor(OriginalArrayBuffer, (args) => {
  const options = args[1];
  if (options !== null && typeof options === "object" && options.maxByteLength !== undefined) {
    throw new TypeError("resizable array buffers are not available here; allocate the final size");
  }
  // Only the length is passed on: the options were read once, and a second read could give another result.
  return args.length === 0 ? [] : [args[0]];
});
defineBuiltIn(globalThis, "ArrayBuffer", FixedArrayBuffer);
defineBuiltIn(OriginalArrayBuffer.prototype, "constructor", FixedArrayBuffer);
delete OriginalArrayBuffer.prototype.resize;
