// `Array.fromAsync` in JavaScript: see 20_guards.js. V8's own goes from microtask to microtask without a JavaScript
// function in between.

import { primordials } from "ext:core/mod.js";
import { append, isObject, lengthOf, replace } from "ext:cx/19_guarding.js";

const { Array, Object, ReflectApply, ReflectConstruct, SymbolAsyncIterator, SymbolIterator, TypeError } = primordials;

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

replace(Array, "fromAsync", () => ({
  method(items, map, receiver) {
    return fromAsync(this, items, map, receiver);
  },
}).method);
