// Guards for built-in functions on languages, that is, for what V8 passes to ICU and cannot interrupt: see 20_guards.js.

import { primordials } from "ext:core/mod.js";
import { inTimeZone, withTimeZone } from "ext:cx/13_time_zone.js";
import { checkedIterable, isObject, replace, setGlobal, wrapConstructor } from "ext:cx/20_guards.js";
import { boundedText, checkMarks, checkText, MAX_MARKS, toLength } from "ext:cx/21_text_guards.js";

const {
  ArrayPrototypePush,
  FunctionPrototypeCall,
  ObjectGetOwnPropertyNames,
  ObjectGetPrototypeOf,
  RangeError,
  ReflectApply,
  StringPrototype,
} = primordials;

// Maximum characters of a list that `Intl.ListFormat` joins, with what each element costs in addition. ICU copies them
// several times, into memory that is not counted as the run's.
const MAX_LISTED = 2 ** 22;
const ELEMENT_OVERHEAD = 16;
// Maximum number of locales in a list. V8 compares each with all before it.
const MAX_LOCALES = 1000;
// Maximum characters of a locale's name; the longest in use have some thirty.
const MAX_LOCALE_CHARACTERS = 1000;

replace(StringPrototype, "localeCompare", (original) => ({
  method(other, locales, options) {
    // What sorting does most of the time.
    if (
      typeof this === "string" && typeof other === "string" && locales === undefined &&
      this.length <= MAX_MARKS && other.length <= MAX_MARKS
    ) {
      return FunctionPrototypeCall(original, this, other, locales, options);
    }
    if (this === null || this === undefined) {
      return FunctionPrototypeCall(original, this, other, locales, options);
    }
    const text = boundedText("localeCompare", this);
    checkMarks("localeCompare", text);
    const otherText = boundedText("localeCompare", other);
    checkMarks("localeCompare", otherText);
    return FunctionPrototypeCall(original, text, otherText, localeList(locales), options);
  },
}).method);

// --- locales -------------------------------------------------------------------------------------

// A list of locales that V8 may iterate over: its elements, read once, if they are not too many or too long.
function localeList(locales) {
  if (typeof locales === "string") {
    checkLocale(locales);
    return locales;
  }
  if (!isObject(locales) || ObjectGetPrototypeOf(locales) === LocalePrototype) {
    return locales;
  }
  const length = toLength(locales.length);
  if (length > MAX_LOCALES) {
    throw new RangeError(`${length} locales, at most ${MAX_LOCALES} here`);
  }
  const list = [];
  for (let index = 0; index < length; index++) {
    if (index in locales) {
      const locale = locales[index];
      if (typeof locale === "string") {
        checkLocale(locale);
      }
      ArrayPrototypePush(list, locale);
    }
  }
  return list;
}

function checkLocale(name) {
  checkText("a locale", name, MAX_LOCALE_CHARACTERS);
}

const LocalePrototype = Intl.Locale.prototype;

function guardLocales(holder, name, position, change = (original) => original) {
  replace(holder, name, (original) => {
    const changed = change(original);
    return {
      method(...args) {
        if (args.length > position) {
          args[position] = localeList(args[position]);
        }
        return ReflectApply(changed, this, args);
      },
    }.method;
  });
}

guardLocales(Intl, "getCanonicalLocales", 0);
const intlNames = ObjectGetOwnPropertyNames(Intl);
for (let index = 0; index < intlNames.length; index++) {
  const name = intlNames[index];
  const original = Intl[name];
  if (typeof original !== "function" || original.prototype === undefined) {
    continue;
  }
  guardLocales(original, "supportedLocalesOf", 0);
  const guarded = wrapConstructor(original, (args) => {
    if (args.length > 0) {
      args[0] = localeList(args[0]);
    }
    return name === "DateTimeFormat" ? withTimeZone(args) : args;
  });
  setGlobal(Intl, name, guarded);
  setGlobal(original.prototype, "constructor", guarded);
}
const TAKE_LOCALES = [
  [StringPrototype, "toLocaleLowerCase", 0],
  [StringPrototype, "toLocaleUpperCase", 0],
  [Number.prototype, "toLocaleString", 0],
  [BigInt.prototype, "toLocaleString", 0],
];
for (let index = 0; index < TAKE_LOCALES.length; index++) {
  guardLocales(TAKE_LOCALES[index][0], TAKE_LOCALES[index][1], TAKE_LOCALES[index][2]);
}
const DATE = { __proto__: null, year: "numeric", month: "numeric", day: "numeric" };
const TIME = { __proto__: null, hour: "numeric", minute: "numeric", second: "numeric" };
const DATES = Date.prototype;
guardLocales(DATES, "toLocaleString", 0, (original) => inTimeZone(original, { __proto__: null, ...DATE, ...TIME }));
guardLocales(DATES, "toLocaleDateString", 0, (original) => inTimeZone(original, DATE));
guardLocales(DATES, "toLocaleTimeString", 0, (original) => inTimeZone(original, TIME));

const LIST_METHODS = ["format", "formatToParts"];
for (let index = 0; index < LIST_METHODS.length; index++) {
  replace(Intl.ListFormat.prototype, LIST_METHODS[index], (original) => ({
    method(...args) {
      if (args.length > 0) {
        let length = 0;
        args[0] = checkedIterable(args[0], (result) => {
          // V8 gets copies of the two properties: a getter may return another text the second time.
          if (!isObject(result)) {
            return result;
          }
          if (result.done) {
            return { __proto__: null, done: true, value: undefined };
          }
          const value = result.value;
          length += ELEMENT_OVERHEAD + (typeof value === "string" ? value.length : 0);
          if (length > MAX_LISTED) {
            throw new RangeError(`${LIST_METHODS[index]}: a list of more than ${MAX_LISTED} characters; join it in parts`);
          }
          return { __proto__: null, done: false, value };
        });
      }
      return ReflectApply(original, this, args);
    },
  }).method);
}
