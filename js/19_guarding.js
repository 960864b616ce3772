// What guards are made of: bounds, stand-ins for built-in functions, and lists that are read step by step. It changes
// nothing itself; see 20_guards.js.

import { core, primordials } from "ext:core/mod.js";

const {
  Array,
  ArrayIsArray,
  ArrayPrototype,
  ArrayPrototypePush,
  MathTrunc,
  Object,
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
  SymbolIsConcatSpreadable,
  SymbolIterator,
  SymbolSpecies,
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
export const MAX_QUICK_COMPARE = 256;
// Maximum number of elements that V8 may sort as text in one native call. The texts may be long.
export const MAX_NATIVE_SORT = 32;
// Maximum number of elements that V8 may copy at once to what a species makes. It may make numbers of them, and they
// may be long texts.
const MAX_NATIVE_COPIES = 64;
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

function itself(value) {
  return value;
}

// What a stand-in replaces, in a private field of the stand-in: no script can see or change it.
class StandIn extends itself {
  #original;

  constructor(standIn, original) {
    super(standIn);
    this.#original = original;
  }

  static note(standIn, original) {
    if (!(#original in standIn)) {
      new StandIn(standIn, original);
    }
  }

  static originalOf(standIn) {
    return #original in standIn ? standIn.#original : undefined;
  }
}

// From now on the text of `standIn` is that of `original`.
export function noteOriginal(standIn, original) {
  StandIn.note(standIn, original);
}

// The function of V8 that this function stands in for; other functions as they are.
export function originalOf(value) {
  let found = value;
  for (let before = found; before !== undefined; before = StandIn.originalOf(found)) {
    found = before;
  }
  return found;
}

// A replacement must look like the original: same name, same length, no prototype, same attributes, same text.
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
  noteOriginal(standIn, original);
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

// Wraps the constructor `original`, whose text is that of the result: `change` receives the arguments and returns those
// to use.
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
  noteOriginal(wrapped, original);
  return wrapped;
}

// Defines a property as the language defines its own: a script may replace it, and no loop over `holder` shows it.
export function defineBuiltIn(holder, name, value) {
  ObjectDefineProperty(holder, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

export function noteProxy(args) {
  hasGuestProxies = true;
  return args;
}

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

// Whether a property still has this value. An accessor does not count: it could return another value later.
export function stillIs(holder, key, value) {
  const descriptor = ObjectGetOwnPropertyDescriptor(holder, key);
  return descriptor !== undefined && descriptor.value === value;
}

const arraySpecies = ObjectGetOwnPropertyDescriptor(Array, SymbolSpecies).get;

// Whether V8's methods of this array make an array, and call no function of the script for that. Its species may make a
// typed array, where V8 makes numbers of texts, and may add elements to the arrays that are copied.
export function makesArray(array) {
  return ObjectGetPrototypeOf(array) === ArrayPrototype && !ObjectHasOwn(array, "constructor") &&
    stillIs(ArrayPrototype, "constructor", Array) &&
    ObjectGetOwnPropertyDescriptor(Array, SymbolSpecies)?.get === arraySpecies;
}

// Whether V8 may copy elements of this ordinary array. It makes numbers of the first two arguments before it reads the
// species: an object's `valueOf` could change that.
export function copiesQuickly(array, args) {
  return array.length <= MAX_NATIVE_COPIES || (!isObject(args[0]) && !isObject(args[1]) && makesArray(array));
}

// The length of a value that is not an ordinary array, read once, as V8 reads it.
export function lengthOf(name, value) {
  const number = +value.length;
  // As ToLength, also for NaN and for infinity, which is refused.
  const length = number > 0 ? MathTrunc(number) : 0;
  const most = ArrayIsArray(value) ? MAX_ARRAY_ELEMENTS : MAX_GENERIC_ELEMENTS;
  if (length > most) {
    throw new RangeError(`${name} on ${length} elements, at most ${most} here`);
  }
  return length;
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
export function callStepping(original, name, receiver, args, callbackTakes) {
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
export function append(list, index, value, isOurs) {
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

export function flatten(name, source, depth, map, receiver) {
  const length = lengthOf(name, source);
  const made = speciesCreate(source);
  const result = made === undefined ? [] : made;
  flattenInto(result, made === undefined, 0, source, length, depth, map, receiver);
  return result;
}

// A real array of the elements that `concat` takes from an object that is not an ordinary array.
export function concatPart(value) {
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

export function isConcatReady(value) {
  return !isObject(value) || (isOrdinaryArray(value) && !(SymbolIsConcatSpreadable in value));
}

// As V8 concatenates. `receiver` says what is made, and each of `values` is an ordinary array, or no list.
export function concatenate(receiver, values) {
  const made = speciesCreate(receiver);
  const result = made === undefined ? [] : made;
  let next = 0;
  for (let position = 0; position < values.length; position++) {
    const value = values[position];
    if (!ArrayIsArray(value)) {
      append(result, next, value, false);
      next++;
      continue;
    }
    const length = value.length;
    for (let index = 0; index < length; index++) {
      if (index in value) {
        append(result, next + index, value[index], false);
      }
    }
    next += length;
  }
  result.length = next;
  return result;
}

// An iterator with the results of `iterator` whose steps run JavaScript. `checkResult` gets each result and returns the
// one to use.
export function steppingIterator(iterator, checkResult) {
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

// Closes an iterator early. Errors are ignored, because the error in flight has precedence.
export function closeQuietly(iterator) {
  try {
    const end = iterator.return;
    if (end !== undefined && end !== null) {
      ReflectApply(end, iterator, []);
    }
  } catch {
    // As IteratorClose with an abrupt completion.
  }
}

// An argument list that V8 may take unchanged: a real array, and not too long for the stack.
export function argumentList(list) {
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
