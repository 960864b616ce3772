// Guards for functions that make numbers of all their arguments in one call, of which there may be a hundred thousand;
// see 20_guards.js. An argument that is no number becomes an object that V8 converts with a step of JavaScript. No long
// list of arguments is passed on, because all of them would be on the stack twice.

import { primordials } from "ext:core/mod.js";
import { replace } from "ext:cx/20_guards.js";

const { Float64Array, MathSqrt, ReflectApply } = primordials;

// An argument whose conversion is a step. In a loop alone V8 looks for a termination after hundreds of turns, of which
// each may make a number of megabytes.
function stepping(value) {
  return typeof value === "number" ? value : { __proto__: null, valueOf: () => +value };
}

// As V8 compares: all arguments are made numbers, in order. `extremeOf` is V8's function.
function extreme(extremeOf, values) {
  let result = extremeOf();
  for (let index = 0; index < values.length; index++) {
    result = extremeOf(result, stepping(values[index]));
  }
  return result;
}

// As V8 computes it: relative to the longest side, with Kahan's sum. `lengthOf` is V8's function, of one argument.
function hypotenuse(lengthOf, values) {
  const count = values.length;
  const sides = new Float64Array(count);
  let hasNaN = false;
  let longest = 0;
  for (let index = 0; index < count; index++) {
    const side = lengthOf(stepping(values[index]));
    if (side !== side) {
      hasNaN = true;
    } else if (side > longest) {
      longest = side;
    }
    sides[index] = side;
  }
  if (longest === Infinity) {
    return Infinity;
  }
  if (hasNaN || longest === 0) {
    return hasNaN ? NaN : 0;
  }
  let sum = 0;
  let compensation = 0;
  for (let index = 0; index < count; index++) {
    const ratio = sides[index] / longest;
    const summand = ratio * ratio - compensation;
    const next = sum + summand;
    compensation = (next - sum) - summand;
    sum = next;
  }
  return MathSqrt(sum) * longest;
}

const OF_MANY = [["max", extreme], ["min", extreme], ["hypot", hypotenuse]];
for (let index = 0; index < OF_MANY.length; index++) {
  const inSteps = OF_MANY[index][1];
  replace(Math, OF_MANY[index][0], (original) => ({
    // Two or three numbers are what is computed in loops.
    method(first, second) {
      const count = arguments.length;
      if (typeof first === "number" && typeof second === "number") {
        if (count === 2) {
          return original(first, second);
        }
        if (count === 3 && typeof arguments[2] === "number") {
          return original(first, second, arguments[2]);
        }
      }
      return inSteps(original, arguments);
    },
  }).method);
}

// As many numbers are passed on, because that is faster.
const MAX_PASSED = 2 ** 15;

function areNumbers(values) {
  for (let index = 0; index < values.length; index++) {
    if (typeof values[index] !== "number") {
      return false;
    }
  }
  return true;
}

const MAKE_TEXT = ["fromCharCode", "fromCodePoint"];
for (let index = 0; index < MAKE_TEXT.length; index++) {
  replace(String, MAKE_TEXT[index], (original) => ({
    method(first) {
      const count = arguments.length;
      if (count === 1 && typeof first === "number") {
        return original(first);
      }
      if (count <= MAX_PASSED && areNumbers(arguments)) {
        return ReflectApply(original, undefined, arguments);
      }
      let text = "";
      for (let position = 0; position < count; position++) {
        text += original(stepping(arguments[position]));
      }
      return text;
    },
  }).method);
}
