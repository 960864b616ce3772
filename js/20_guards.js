// Guards for built-in functions that V8 cannot interrupt. V8 checks for termination at the entry of a JavaScript
// function and at intervals in a JavaScript loop, and nowhere in its own native loops. So a call that may loop
// for long gets an argument whose every step runs JavaScript: a proxy around the receiver, an iterator or a loop of
// 19_guarding.js or of this file, each turn of which is short. Ordinary calls (real arrays of ordinary size) go to V8
// unchanged. Defense in depth only; see README.md. `21_text_guards.js` does the same for text, `22_buffer_guards.js`
// for typed arrays and buffers, `22_date_guards.js` for dates, `22_number_guards.js` for functions of many numbers,
// `22_from_async.js` for one function of lists, `23_locale_guards.js` for languages.

import { primordials } from "ext:core/mod.js";
import {
  append,
  argumentList,
  callStepping,
  closeQuietly,
  concatenate,
  concatPart,
  copiesQuickly,
  defineBuiltIn,
  flatten,
  isConcatReady,
  isObject,
  isOrdinaryArray,
  lengthOf,
  makesArray,
  MAX_NATIVE_SORT,
  MAX_QUICK_COMPARE,
  noteProxy,
  originalOf,
  replace,
  steppingIterator,
  steppingProxy,
  stillIs,
  wrapConstructor,
} from "ext:cx/19_guarding.js";

export {
  defineBuiltIn,
  guardAfterRestore,
  guardRestored,
  isGuestProxy,
  isObject,
  isOrdinaryArray,
  lengthOf,
  noteOriginal,
  replace,
  steppingProxy,
  wrapConstructor,
} from "ext:cx/19_guarding.js";

const {
  Array,
  ArrayIsArray,
  ArrayPrototype,
  MathTrunc,
  Object,
  ObjectDefineProperty,
  ObjectGetPrototypeOf,
  ObjectHasOwn,
  ReflectApply,
  String,
  SymbolIterator,
  TypeError,
  TypedArrayPrototypeGetSymbolToStringTag,
} = primordials;

replace(globalThis.Proxy, "revocable", (original) => ({
  method(target, handler) {
    return original(target, handler, noteProxy());
  },
}).method);
defineBuiltIn(globalThis, "Proxy", wrapConstructor(globalThis.Proxy, noteProxy));

function guardArrayMethod(name, callbackTakes, copies = false) {
  replace(ArrayPrototype, name, (original) => ({
    method(...args) {
      return isOrdinaryArray(this) && (!copies || copiesQuickly(this, args))
        ? ReflectApply(original, this, args)
        : callStepping(original, name, this, args, callbackTakes);
    },
  }).method);
}

const PLAIN_METHODS = [
  "copyWithin", "fill", "join", "reverse", "shift", "toLocaleString", "toReversed", "toSpliced", "unshift", "with",
];
for (let index = 0; index < PLAIN_METHODS.length; index++) {
  guardArrayMethod(PLAIN_METHODS[index], 0);
}

// They copy elements to what the species of the array makes. `map` and `filter` call a function for each.
guardArrayMethod("slice", 0, true);
guardArrayMethod("splice", 0, true);

const CALLBACK_METHODS = [
  "every", "filter", "find", "findIndex", "findLast", "findLastIndex", "forEach", "map", "some",
];
for (let index = 0; index < CALLBACK_METHODS.length; index++) {
  guardArrayMethod(CALLBACK_METHODS[index], 3);
}
guardArrayMethod("reduce", 4);
guardArrayMethod("reduceRight", 4);

// Whether a search for this value is quick. A search for a long text or a BigInt compares it with each element without
// an interruption.
function comparesQuickly(value) {
  return typeof value === "string" ? value.length <= MAX_QUICK_COMPARE : typeof value !== "bigint";
}

const SEARCH_METHODS = ["includes", "indexOf", "lastIndexOf"];
for (let index = 0; index < SEARCH_METHODS.length; index++) {
  const name = SEARCH_METHODS[index];
  replace(ArrayPrototype, name, (original) => ({
    method(...args) {
      return isOrdinaryArray(this) && comparesQuickly(args[0])
        ? ReflectApply(original, this, args)
        : callStepping(original, name, this, args, 0);
    },
  }).method);
}

// The default comparison of `sort`: as text.
function compareAsText(left, right) {
  const leftText = `${left}`;
  const rightText = `${right}`;
  return leftText < rightText ? -1 : leftText > rightText ? 1 : 0;
}

const SORT_METHODS = ["sort", "toSorted"];
for (let index = 0; index < SORT_METHODS.length; index++) {
  const name = SORT_METHODS[index];
  replace(ArrayPrototype, name, (original) => ({
    method(...args) {
      const isOrdinary = isOrdinaryArray(this);
      if (args[0] === undefined && !(isOrdinary && this.length <= MAX_NATIVE_SORT)) {
        args[0] = compareAsText;
      }
      return isOrdinary ? ReflectApply(original, this, args) : callStepping(original, name, this, args, 0);
    },
  }).method);
}

replace(ArrayPrototype, "flat", (original) => ({
  method(...args) {
    if (this === null || this === undefined) {
      return ReflectApply(original, this, args);
    }
    return flatten("flat", Object(this), args[0] === undefined ? 1 : MathTrunc(+args[0]));
  },
}).method);

replace(ArrayPrototype, "flatMap", (original) => ({
  method(...args) {
    if (this === null || this === undefined || typeof args[0] !== "function") {
      return ReflectApply(original, this, args);
    }
    return flatten("flatMap", Object(this), 1, args[0], args[1]);
  },
}).method);

replace(ArrayPrototype, "concat", (original) => ({
  method(...args) {
    for (let index = 0; index < args.length; index++) {
      if (!isConcatReady(args[index])) {
        args[index] = concatPart(args[index]);
      }
    }
    if (this === null || this === undefined) {
      return ReflectApply(original, this, args);
    }
    const receiver = Object(this);
    const array = isConcatReady(receiver) ? receiver : concatPart(receiver);
    if ((array === receiver || !ArrayIsArray(receiver) || makesArray(receiver)) && makesArray(array)) {
      return ReflectApply(original, array, args);
    }
    const values = [array];
    for (let index = 0; index < args.length; index++) {
      append(values, index + 1, args[index], false);
    }
    return concatenate(receiver, values);
  },
}).method);

const ArrayIteratorPrototype = ObjectGetPrototypeOf([][SymbolIterator]());
const TypedArray = ObjectGetPrototypeOf(Uint8Array);
const TypedArrayPrototype = TypedArray.prototype;
const arrayValues = ArrayPrototype[SymbolIterator];
const typedArrayValues = TypedArrayPrototype[SymbolIterator];
const arrayIteratorNext = ArrayIteratorPrototype.next;

// Whether iterating over `value` iterates over the elements of an ordinary array or typed array.
export function iteratesOrdinarily(value) {
  if (!isObject(value)) {
    return false;
  }
  let usual;
  if (isOrdinaryArray(value)) {
    usual = ObjectGetPrototypeOf(value) === ArrayPrototype && stillIs(ArrayPrototype, SymbolIterator, arrayValues);
  } else if (TypedArrayPrototypeGetSymbolToStringTag(value) !== undefined) {
    const prototype = ObjectGetPrototypeOf(value);
    usual = prototype !== null && ObjectGetPrototypeOf(prototype) === TypedArrayPrototype &&
      !ObjectHasOwn(prototype, SymbolIterator) && stillIs(TypedArrayPrototype, SymbolIterator, typedArrayValues);
  }
  return usual === true && !ObjectHasOwn(value, SymbolIterator) &&
    stillIs(ArrayIteratorPrototype, "next", arrayIteratorNext);
}

// V8 may group or add as many elements of a list at once.
const MAX_NATIVE_STEPS = 2 ** 16;

// `values`, or an iterable with the same elements whose steps run JavaScript.
export function steppingIterable(values) {
  return iteratesOrdinarily(values) && values.length <= MAX_NATIVE_STEPS ? values : checkedIterable(values);
}

// An iterable with the same elements whose steps run JavaScript. `checkResult` gets each result of the iterator and
// returns the one to use.
export function checkedIterable(values, checkResult) {
  if (values === null || values === undefined) {
    return values;
  }
  return {
    __proto__: null,
    get [SymbolIterator]() {
      const method = values[SymbolIterator];
      if (!isObject(values) && (method === undefined || method === null)) {
        // As V8 says of the value itself. Of what is returned here it would say that it is an object.
        const shown = `${typeof values} ${String(values)}`;
        throw new TypeError(`${shown} is not iterable (cannot read property Symbol(Symbol.iterator))`);
      }
      return typeof method !== "function" ? method : () => {
        const iterator = ReflectApply(method, values, []);
        return isObject(iterator) ? steppingIterator(iterator, checkResult) : iterator;
      };
    },
  };
}

// As `Array.from` called on Array itself.
function arrayFrom(items, map, receiver) {
  const result = [];
  const method = items[SymbolIterator];
  let next = 0;
  if (method === undefined || method === null) {
    const source = Object(items);
    const length = lengthOf("Array.from", source);
    for (; next < length; next++) {
      const value = source[next];
      result[next] = map === undefined ? value : ReflectApply(map, receiver, [value, next]);
    }
    return result;
  }
  const iterator = ReflectApply(method, items, []);
  if (!isObject(iterator)) {
    throw new TypeError("Array.from: the iterator is not an object");
  }
  const advance = iterator.next;
  for (;; next++) {
    const step = ReflectApply(advance, iterator, []);
    if (!isObject(step)) {
      throw new TypeError("Array.from: the iterator's answer is not an object");
    }
    if (step.done) {
      return result;
    }
    const value = step.value;
    if (map === undefined) {
      result[next] = value;
      continue;
    }
    try {
      result[next] = ReflectApply(map, receiver, [value, next]);
    } catch (error) {
      closeQuietly(iterator);
      throw error;
    }
  }
}

// Whether functions of `Array` make arrays. Another constructor may make a typed array, where V8 makes numbers.
export function makesArrays(constructor) {
  return constructor === Array || typeof constructor !== "function";
}

replace(Array, "from", (original) => ({
  method(...args) {
    const items = args[0];
    const map = args[1];
    if (items === null || items === undefined || (map !== undefined && typeof map !== "function")) {
      return ReflectApply(original, this, args);
    }
    if (iteratesOrdinarily(items)) {
      if (!makesArrays(this)) {
        // V8 calls the constructor first, which could add elements.
        args[0] = checkedIterable(items);
      }
      return ReflectApply(original, this, args);
    }
    if (ArrayIsArray(items)) {
      // A sparse array can have a huge length, and a loop over it would practically never end.
      lengthOf("Array.from", items);
    }
    if (this === Array) {
      return arrayFrom(items, map, args[2]);
    }
    const method = items[SymbolIterator];
    if (method === undefined || method === null) {
      const target = Object(items);
      args[0] = steppingProxy(target, lengthOf("Array.from", target));
    } else {
      args[0] = steppingIterable(items);
    }
    return ReflectApply(original, this, args);
  },
}).method);

// Functions that take an iterable as the first argument and iterate over it natively. For some a step may be slow: the
// names of properties may be long texts, and deno_core searches a promise that was rejected among all that were
// rejected in this turn, of which a script can make many. Their lists may be short and get more elements meanwhile.
const TAKE_ITERABLES = [
  [Promise, ["all", "allSettled", "any", "race"], checkedIterable],
  [Object, ["fromEntries"], checkedIterable],
  [Object, ["groupBy"], steppingIterable],
  [Map, ["groupBy"], steppingIterable],
  [Math, ["sumPrecise"], steppingIterable],
];
for (let index = 0; index < TAKE_ITERABLES.length; index++) {
  const holder = TAKE_ITERABLES[index][0];
  const names = TAKE_ITERABLES[index][1];
  const iterable = TAKE_ITERABLES[index][2];
  for (let position = 0; position < names.length; position++) {
    replace(holder, names[position], (original) => ({
      method(...args) {
        if (args.length > 0) {
          args[0] = iterable(args[0]);
        }
        return ReflectApply(original, this, args);
      },
    }).method);
  }
}

// Iterator methods that take many steps natively, or make iterators that do.
const ITERATOR_METHODS = [
  "drop", "every", "filter", "find", "flatMap", "forEach", "map", "reduce", "some", "take", "toArray",
];
for (let index = 0; index < ITERATOR_METHODS.length; index++) {
  replace(Iterator.prototype, ITERATOR_METHODS[index], (original) => ({
    method(...args) {
      return ReflectApply(original, isObject(this) ? steppingIterator(this) : this, args);
    },
  }).method);
}

// Set methods that iterate over a set-like argument. A set is one too: a script can give it other `keys`.
const SET_METHODS = [
  "difference", "intersection", "isDisjointFrom", "isSubsetOf", "isSupersetOf", "symmetricDifference", "union",
];
for (let index = 0; index < SET_METHODS.length; index++) {
  replace(Set.prototype, SET_METHODS[index], (original) => ({
    method(other) {
      if (!isObject(other)) {
        return ReflectApply(original, this, [other]);
      }
      const stepping = {
        __proto__: null,
        get size() {
          return other.size;
        },
        get has() {
          const has = other.has;
          return typeof has === "function" ? (value) => ReflectApply(has, other, [value]) : has;
        },
        get keys() {
          const keys = other.keys;
          return typeof keys !== "function" ? keys : () => {
            const iterator = ReflectApply(keys, other, []);
            return isObject(iterator) ? steppingIterator(iterator) : iterator;
          };
        },
      };
      return ReflectApply(original, this, [stepping]);
    },
  }).method);
}

// deno_core's wrapper of each async op looks up `call` when it is called. A script that replaced it would receive the
// unwrapped op. So `Function.prototype.call` cannot be replaced; a function may still have its own `call` property.
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

const TAKE_ARGUMENTS = [
  [FunctionPrototype, "apply", 1],
  [Reflect, "apply", 2],
  [Reflect, "construct", 1],
];
for (let index = 0; index < TAKE_ARGUMENTS.length; index++) {
  const position = TAKE_ARGUMENTS[index][2];
  replace(TAKE_ARGUMENTS[index][0], TAKE_ARGUMENTS[index][1], (original) => ({
    method(...args) {
      if (args.length > position) {
        args[position] = argumentList(args[position]);
      }
      return ReflectApply(original, this, args);
    },
  }).method);
}

// The text of a stand-in is that of its original: libraries look for `[native code]`.
replace(FunctionPrototype, "toString", (original) => ({
  method() {
    return ReflectApply(original, typeof this === "function" ? originalOf(this) : this, []);
  },
}).method);
