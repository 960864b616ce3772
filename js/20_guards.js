// Guards for built-in functions that V8 cannot interrupt. V8 checks for termination at the entry of a JavaScript
// function and, every so many turns, in a JavaScript loop, and nowhere in its own native loops. So a call that may loop
// for long gets an argument whose every step runs JavaScript: a proxy around the receiver, an iterator or a loop of
// this file, each turn of which is short. Ordinary calls (real arrays of ordinary size) go to V8 unchanged. Defense in
// depth only; see README.md. `21_text_guards.js` does the same for text, `22_buffer_guards.js` for typed arrays and
// buffers, `23_locale_guards.js` for languages.

import { core, primordials } from "ext:core/mod.js";

const {
  ArrayIsArray,
  ArrayPrototype,
  ArrayPrototypePush,
  MathTrunc,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectGetPrototypeOf,
  ObjectHasOwn,
  ObjectPrototype,
  Proxy,
  RangeError,
  ReflectApply,
  ReflectConstruct,
  ReflectDefineProperty,
  ReflectDeleteProperty,
  ReflectGet,
  ReflectGetOwnPropertyDescriptor,
  ReflectHas,
  ReflectSet,
  SymbolAsyncIterator,
  SymbolIsConcatSpreadable,
  SymbolIterator,
  SymbolSpecies,
  TypeError,
  TypedArrayPrototypeGetSymbolToStringTag,
} = primordials;

// With at most this many elements no array, however unusual, can make V8 loop for long.
const MAX_ANY_ARRAY = 1024;
// V8's own loop over this many elements takes less than a fifth of a second if the prototypes are the usual ones.
const MAX_NATIVE_ELEMENTS = 2 ** 22;
// More elements are refused at once. The bounds are far above what a script does on purpose: even under the largest
// memory limit a dense array has room for fewer elements, and an array-like for still fewer.
const MAX_ARRAY_ELEMENTS = 2 ** 26;
const MAX_GENERIC_ELEMENTS = 2 ** 24;
// The comparison of longer texts does not count as one step.
const MAX_QUICK_COMPARE = 256;
// Maximum number of elements that V8 may sort as text in one native call. The texts may be long.
const MAX_NATIVE_SORT = 32;
// More arguments than the stack has room for. V8 makes a list of all of them before it checks.
const MAX_ARGUMENTS = 2 ** 20;

// V8 adds its newest functions when an isolate is restored from the snapshot. Missing functions are guarded then; until
// then the objects that V8 adds them to must be V8's originals.
const later = [];

export function guardAfterRestore(guard) {
  ArrayPrototypePush(later, guard);
}

export function guardRestored() {
  for (let index = 0; index < later.length; index++) {
    later[index]();
  }
}

// A replacement must look like the original: same name, same length, no prototype, same attributes.
export function replace(holder, key, makeStandIn) {
  if (!replacePresent(holder, key, makeStandIn)) {
    guardAfterRestore(() => replacePresent(holder, key, makeStandIn));
  }
}

function replacePresent(holder, key, makeStandIn) {
  const descriptor = ObjectGetOwnPropertyDescriptor(holder, key);
  if (descriptor === undefined) {
    return false;
  }
  const original = descriptor.value;
  const standIn = makeStandIn(original);
  ObjectDefineProperty(standIn, "name", { __proto__: null, value: original.name, configurable: true });
  ObjectDefineProperty(standIn, "length", { __proto__: null, value: original.length, configurable: true });
  descriptor.value = standIn;
  ObjectDefineProperty(holder, key, descriptor);
  return true;
}

export function isObject(value) {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

// Whether the guest has made a proxy. Only then can an array be a proxy, and asking V8 about each array costs as much
// as the call.
let hasGuestProxies = false;

export function isGuestProxy(value) {
  return hasGuestProxies && core.isProxy(value);
}

// Wraps the constructor `original`: `change` receives the arguments and returns those to use.
export function wrapConstructor(original, change) {
  const wrapped = new Proxy(original, {
    __proto__: null,
    apply(target, receiver, args) {
      return ReflectApply(target, receiver, change(args));
    },
    construct(target, args, newTarget) {
      return ReflectConstruct(target, change(args), newTarget === wrapped ? target : newTarget);
    },
  });
  return wrapped;
}

export function setGlobal(holder, name, value) {
  ObjectDefineProperty(holder, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

function noteProxy(args) {
  hasGuestProxies = true;
  return args;
}

replace(globalThis.Proxy, "revocable", (original) => ({
  method(target, handler) {
    return original(target, handler, noteProxy());
  },
}).method);
setGlobal(globalThis, "Proxy", wrapConstructor(globalThis.Proxy, noteProxy));

// Whether V8 may loop over this value natively: an array that is not a proxy and is either short, or not very long and
// without unusual prototypes in which each missing element would be looked up.
export function isOrdinaryArray(value) {
  if (!ArrayIsArray(value) || isGuestProxy(value)) {
    return false;
  }
  const length = value.length;
  return length <= MAX_ANY_ARRAY ||
    (length <= MAX_NATIVE_ELEMENTS && ObjectGetPrototypeOf(value) === ArrayPrototype &&
      ObjectGetPrototypeOf(ArrayPrototype) === ObjectPrototype);
}

// The length of a value that is not an ordinary array, read once, as V8 reads it.
export function lengthOf(name, value) {
  const number = +value.length;
  // As ToLength, including for NaN.
  const length = number > 0 ? number - number % 1 : 0;
  const most = ArrayIsArray(value) ? MAX_ARRAY_ELEMENTS : MAX_GENERIC_ELEMENTS;
  if (length > most) {
    throw new RangeError(`${name} on ${length} elements, at most ${most} here`);
  }
  return length || 0;
}

// `target` for V8's own functions: each of their steps runs JavaScript, and they see the length that was checked.
// Passed as an array-like, because it was checked before whether it is iterable.
export function steppingProxy(target, length) {
  return new Proxy(target, {
    __proto__: null,
    get: (object, key) =>
      key === "length" ? length : key === SymbolIterator ? undefined : ReflectGet(object, key, object),
    set: (object, key, value) => ReflectSet(object, key, value, object),
    has: (object, key) => ReflectHas(object, key),
    deleteProperty: (object, key) => ReflectDeleteProperty(object, key),
    defineProperty: (object, key, descriptor) => ReflectDefineProperty(object, key, descriptor),
    getOwnPropertyDescriptor: (object, key) => ReflectGetOwnPropertyDescriptor(object, key),
  });
}

// Calls an array method with a receiver that is not an ordinary array.
function callStepping(original, name, receiver, args, callbackTakes) {
  if (receiver === null || receiver === undefined) {
    return ReflectApply(original, receiver, args);
  }
  const target = isObject(receiver) ? receiver : Object(receiver);
  const proxy = steppingProxy(target, lengthOf(name, target));
  const callback = args[0];
  if (callbackTakes !== 0 && typeof callback === "function") {
    // The callback's last argument is the receiver.
    args[0] = callbackTakes === 3
      ? function (value, index) {
        return ReflectApply(callback, this, [value, index, target]);
      }
      : (result, value, index) => callback(result, value, index, target);
  }
  const result = ReflectApply(original, proxy, args);
  return result === proxy ? target : result;
}

function guardArrayMethod(name, callbackTakes) {
  replace(ArrayPrototype, name, (original) => ({
    method(...args) {
      return isOrdinaryArray(this)
        ? ReflectApply(original, this, args)
        : callStepping(original, name, this, args, callbackTakes);
    },
  }).method);
}

const PLAIN_METHODS = [
  "copyWithin", "fill", "join", "reverse", "shift", "slice", "splice", "toLocaleString", "toReversed", "toSpliced",
  "unshift", "with",
];
for (let index = 0; index < PLAIN_METHODS.length; index++) {
  guardArrayMethod(PLAIN_METHODS[index], 0);
}

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

// As ArraySpeciesCreate; undefined if the result is an ordinary array.
function speciesCreate(original) {
  if (!ArrayIsArray(original)) {
    return undefined;
  }
  let constructor = original.constructor;
  if (isObject(constructor)) {
    constructor = constructor[SymbolSpecies];
  }
  return constructor === undefined || constructor === null || constructor === Array
    ? undefined
    : ReflectConstruct(constructor, [0]);
}

// Appends an element to a list of this file, or to one that the guest's constructor made.
function append(list, index, value, isOurs) {
  if (isOurs) {
    list[index] = value;
  } else {
    ObjectDefineProperty(list, index, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  }
}

function flattenInto(result, isOurs, start, source, length, depth, map, receiver) {
  let next = start;
  for (let index = 0; index < length; index++) {
    if (!(index in source)) {
      continue;
    }
    let element = source[index];
    if (map !== undefined) {
      element = ReflectApply(map, receiver, [element, index, source]);
    }
    if (depth > 0 && ArrayIsArray(element)) {
      next = flattenInto(result, isOurs, next, element, lengthOf("flat", element), depth - 1);
    } else {
      append(result, next, element, isOurs);
      next++;
    }
  }
  return next;
}

function flatten(name, source, depth, map, receiver) {
  const length = lengthOf(name, source);
  const made = speciesCreate(source);
  const result = made === undefined ? [] : made;
  flattenInto(result, made === undefined, 0, source, length, depth, map, receiver);
  return result;
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

// A real array of the elements that `concat` takes from an object that is not an ordinary array.
function concatPart(value) {
  const flag = value[SymbolIsConcatSpreadable];
  if (!(flag === undefined ? ArrayIsArray(value) : flag)) {
    return [value];
  }
  const length = lengthOf("concat", value);
  const part = [];
  for (let index = 0; index < length; index++) {
    if (index in value) {
      append(part, index, value[index], true);
    }
  }
  part.length = length;
  return part;
}

function isConcatReady(value) {
  return !isObject(value) || (isOrdinaryArray(value) && !(SymbolIsConcatSpreadable in value));
}

replace(ArrayPrototype, "concat", (original) => ({
  method(...args) {
    for (let index = 0; index < args.length; index++) {
      if (!isConcatReady(args[index])) {
        args[index] = concatPart(args[index]);
      }
    }
    if (this === null || this === undefined || (isObject(this) && isConcatReady(this))) {
      return ReflectApply(original, this, args);
    }
    return ReflectApply(original, concatPart(Object(this)), args);
  },
}).method);

// An iterator with the results of `iterator` whose steps run JavaScript. `checkResult` gets each result and returns the
// one to use.
function steppingIterator(iterator, checkResult) {
  return {
    __proto__: null,
    get next() {
      const next = iterator.next;
      if (typeof next !== "function") {
        return next;
      }
      return (...args) => {
        const result = ReflectApply(next, iterator, args);
        return checkResult === undefined ? result : checkResult(result);
      };
    },
    get return() {
      const end = iterator.return;
      return typeof end === "function" ? (...args) => ReflectApply(end, iterator, args) : end;
    },
  };
}

const ArrayIteratorPrototype = ObjectGetPrototypeOf([][SymbolIterator]());
const TypedArray = ObjectGetPrototypeOf(Uint8Array);
const TypedArrayPrototype = TypedArray.prototype;
const arrayValues = ArrayPrototype[SymbolIterator];
const typedArrayValues = TypedArrayPrototype[SymbolIterator];
const arrayIteratorNext = ArrayIteratorPrototype.next;

// Whether a property still has this value. An accessor does not count: it could return another value later.
function stillIs(holder, key, value) {
  const descriptor = ObjectGetOwnPropertyDescriptor(holder, key);
  return descriptor !== undefined && descriptor.value === value;
}

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

// `values`, or an iterable with the same elements whose steps run JavaScript.
export function steppingIterable(values) {
  return iteratesOrdinarily(values) ? values : checkedIterable(values);
}

// The same, where `checkResult` gets each result of the iterator and returns the one to use.
export function checkedIterable(values, checkResult) {
  if (!isObject(values) && typeof values !== "string") {
    return values;
  }
  return {
    __proto__: null,
    get [SymbolIterator]() {
      const method = values[SymbolIterator];
      return typeof method !== "function" ? method : () => {
        const iterator = ReflectApply(method, values, []);
        return isObject(iterator) ? steppingIterator(iterator, checkResult) : iterator;
      };
    },
  };
}

// Closes an iterator early. Errors are ignored, because the error in flight has precedence.
function closeQuietly(iterator) {
  try {
    const end = iterator.return;
    if (end !== undefined && end !== null) {
      ReflectApply(end, iterator, []);
    }
  } catch {
    // As IteratorClose with an abrupt completion.
  }
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

replace(Array, "from", (original) => ({
  method(...args) {
    const items = args[0];
    const map = args[1];
    if (
      items === null || items === undefined || (map !== undefined && typeof map !== "function") ||
      iteratesOrdinarily(items)
    ) {
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
    } else if (typeof method === "function") {
      args[0] = steppingIterable(items);
    }
    return ReflectApply(original, this, args);
  },
}).method);

function isConstructor(value) {
  try {
    // Constructs an unused object whose prototype is read from `value`; throws if `value` is not a constructor.
    ReflectConstruct(Object, [], value);
    return true;
  } catch {
    return false;
  }
}

async function fromAsync(constructor, items, map, receiver) {
  if (map !== undefined && typeof map !== "function") {
    throw new TypeError("Array.fromAsync: the second argument must be a function");
  }
  const isOurs = constructor === Array || !isConstructor(constructor);
  const asyncMethod = items[SymbolAsyncIterator];
  const method = asyncMethod ?? items[SymbolIterator];
  let next = 0;
  if (method !== undefined && method !== null) {
    const isAsync = asyncMethod !== undefined && asyncMethod !== null;
    const result = isOurs ? [] : new constructor();
    const iterator = ReflectApply(method, items, []);
    if (!isObject(iterator)) {
      throw new TypeError("Array.fromAsync: the iterator is not an object");
    }
    const advance = iterator.next;
    for (;;) {
      const answer = ReflectApply(advance, iterator, []);
      const step = isAsync ? await answer : answer;
      if (!isObject(step)) {
        throw new TypeError("Array.fromAsync: the iterator's answer is not an object");
      }
      if (step.done) {
        result.length = next;
        return result;
      }
      try {
        let value = isAsync ? step.value : await step.value;
        if (map !== undefined) {
          value = await ReflectApply(map, receiver, [value, next]);
        }
        append(result, next, value, isOurs);
      } catch (error) {
        const end = iterator.return;
        if (typeof end === "function") {
          const ended = ReflectApply(end, iterator, []);
          if (isAsync) {
            await ended;
          }
        }
        throw error;
      }
      next++;
    }
  }
  const source = Object(items);
  const length = lengthOf("Array.fromAsync", source);
  const result = isOurs ? [] : new constructor(length);
  for (; next < length; next++) {
    let value = await source[next];
    if (map !== undefined) {
      value = await ReflectApply(map, receiver, [value, next]);
    }
    append(result, next, value, isOurs);
  }
  result.length = length;
  return result;
}

// V8's own version goes from microtask to microtask without a JavaScript function in between.
replace(Array, "fromAsync", () => ({
  method(items, map, receiver) {
    return fromAsync(this, items, map, receiver);
  },
}).method);

// Functions that take an iterable as the first argument and iterate over it natively.
const TAKE_ITERABLES = [
  [Promise, ["all", "allSettled", "any", "race"]],
  [Object, ["fromEntries", "groupBy"]],
  [Map, ["groupBy"]],
  [Math, ["sumPrecise"]],
];
for (let index = 0; index < TAKE_ITERABLES.length; index++) {
  const holder = TAKE_ITERABLES[index][0];
  const names = TAKE_ITERABLES[index][1];
  for (let position = 0; position < names.length; position++) {
    replace(holder, names[position], (original) => ({
      method(...args) {
        if (args.length > 0) {
          args[0] = steppingIterable(args[0]);
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

// Set methods that iterate over a set-like argument.
const SET_METHODS = [
  "difference", "intersection", "isDisjointFrom", "isSubsetOf", "isSupersetOf", "symmetricDifference", "union",
];
for (let index = 0; index < SET_METHODS.length; index++) {
  replace(Set.prototype, SET_METHODS[index], (original) => ({
    method(other) {
      if (!isObject(other) || core.isSet(other)) {
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

// An argument list that V8 may take unchanged: a real array, and not too long for the stack.
function argumentList(list) {
  if (!isObject(list)) {
    return list;
  }
  const isOrdinary = isOrdinaryArray(list);
  const length = isOrdinary ? list.length : lengthOf("a list of arguments", list);
  if (length > MAX_ARGUMENTS) {
    throw new RangeError("Maximum call stack size exceeded");
  }
  if (isOrdinary) {
    return list;
  }
  const values = [];
  for (let index = 0; index < length; index++) {
    append(values, index, list[index], false);
  }
  return values;
}

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
