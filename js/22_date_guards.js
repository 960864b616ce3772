// Guards for dates that are read from text; see 20_guards.js. V8 goes through all of a text, also through any number of
// brackets, of which a date may have a comment.

import { primordials } from "ext:core/mod.js";
import { defineBuiltIn, isObject, noteOriginal, replace } from "ext:cx/20_guards.js";
import { toText } from "ext:cx/21_text_guards.js";

const {
  Date,
  DatePrototypeGetTime,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ReflectApply,
  ReflectConstruct,
  ReflectOwnKeys,
  SymbolToPrimitive,
  TypeError,
} = primordials;

// Maximum characters of a date. A longer text is none, as any other that V8 cannot read.
const MAX_DATE = 1_000;

replace(Date, "parse", (original) => ({
  method(value) {
    const text = toText(value);
    return text.length > MAX_DATE ? NaN : original(text);
  },
}).method);

const CONVERSIONS = ["valueOf", "toString"];

// As ToPrimitive with the hint "default".
function toPrimitive(value) {
  const exotic = value[SymbolToPrimitive];
  if (exotic !== undefined && exotic !== null) {
    const primitive = ReflectApply(exotic, value, ["default"]);
    if (!isObject(primitive)) {
      return primitive;
    }
  } else {
    for (let index = 0; index < CONVERSIONS.length; index++) {
      const conversion = value[CONVERSIONS[index]];
      if (typeof conversion === "function") {
        const primitive = ReflectApply(conversion, value, []);
        if (!isObject(primitive)) {
          return primitive;
        }
      }
    }
  }
  throw new TypeError("Cannot convert object to primitive value");
}

// The argument of `new Date(value)`, converted once.
function timeOrText(value) {
  if (isObject(value)) {
    let time;
    try {
      time = DatePrototypeGetTime(value);
    } catch {
      // Only a date has a time of its own.
      return timeOrText(toPrimitive(value));
    }
    return time;
  }
  return typeof value === "string" && value.length > MAX_DATE ? NaN : value;
}

// Dates are made often, so that the usual ways have no list of arguments.
const GuardedDate = function (value) {
  if (new.target === undefined) {
    return Date();
  }
  const count = arguments.length;
  const isPlain = new.target === GuardedDate;
  if (count === 1) {
    const time = typeof value === "number" ? value : timeOrText(value);
    return isPlain ? new Date(time) : ReflectConstruct(Date, [time], new.target);
  }
  if (isPlain && count === 0) {
    return new Date();
  }
  return ReflectConstruct(Date, arguments, isPlain ? Date : new.target);
};

const keys = ReflectOwnKeys(Date);
for (let index = 0; index < keys.length; index++) {
  ObjectDefineProperty(GuardedDate, keys[index], ObjectGetOwnPropertyDescriptor(Date, keys[index]));
}
noteOriginal(GuardedDate, Date);
defineBuiltIn(globalThis, "Date", GuardedDate);
defineBuiltIn(Date.prototype, "constructor", GuardedDate);
