// Guards for built-in functions on languages: what V8 passes to ICU, and cannot interrupt. See 20_guards.js.

import { primordials } from "ext:core/mod.js";
import { inTimeZone, withTimeZone } from "ext:cx/13_time_zone.js";
import { checkedIterable, defineBuiltIn, isObject, replace, wrapConstructor } from "ext:cx/20_guards.js";
import { boundedText, checkMarks, checkText, MAX_MARKS, toLength, toText } from "ext:cx/21_text_guards.js";

const {
  ArrayIsArray,
  ArrayPrototypePush,
  FunctionPrototypeCall,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectGetOwnPropertyNames,
  Proxy,
  RangeError,
  ReflectApply,
  ReflectGet,
  SafeWeakMap,
  StringPrototype,
  SymbolToPrimitive,
  WeakMapPrototypeGet,
  WeakMapPrototypeSet,
} = primordials;

// Maximum characters of a list that `Intl.ListFormat` joins, with what each element costs in addition. ICU copies them
// several times, into memory that is not counted as the run's.
const MAX_LISTED = 2 ** 22;
const ELEMENT_OVERHEAD = 16;
// Maximum number of locales in a list. V8 compares each with all before it.
const MAX_LOCALES = 1000;
// Maximum characters of a locale's name, of an option, and of what has a name in a language. The longest in use have
// some thirty. ICU compares each variant of a locale with all others.
const MAX_LOCALE_CHARACTERS = 1000;
// Maximum characters that are divided into words or sentences. ICU copies them into memory that is not counted as the
// run's, and looks for the words of some languages in all of them at once.
const MAX_SEGMENTED = 2 ** 22;

// --- comparing ----------------------------------------------------------------------------------

// What sorting compares most of the time.
function comparesQuickly(left, right) {
  return typeof left === "string" && left.length <= MAX_MARKS && typeof right === "string" &&
    right.length <= MAX_MARKS;
}

// `value` as text that ICU compares in linear time.
function comparedText(name, value) {
  const text = boundedText(name, value);
  checkMarks(name, text);
  return text;
}

replace(StringPrototype, "localeCompare", (original) => ({
  method(other, locales, options) {
    const isPlain = locales === undefined && options === undefined && comparesQuickly(this, other);
    if (isPlain || this === null || this === undefined) {
      return FunctionPrototypeCall(original, this, other, locales, options);
    }
    const text = comparedText("localeCompare", this);
    const otherText = comparedText("localeCompare", other);
    return FunctionPrototypeCall(original, text, otherText, localeList(locales), boundedOptions(options));
  },
}).method);

// V8 makes one function for each collator. So does this.
const comparisons = new SafeWeakMap();
const { prototype: CollatorPrototype } = Intl.Collator;
const compareProperty = ObjectGetOwnPropertyDescriptor(CollatorPrototype, "compare");
const getCompare = compareProperty.get;
compareProperty.get = ObjectGetOwnPropertyDescriptor({
  get compare() {
    const original = ReflectApply(getCompare, this, []);
    const known = WeakMapPrototypeGet(comparisons, original);
    if (known !== undefined) {
      return known;
    }
    const compare = (left, right) => {
      if (comparesQuickly(left, right)) {
        return original(left, right);
      }
      const text = comparedText("compare", left);
      return original(text, comparedText("compare", right));
    };
    ObjectDefineProperty(compare, "name", { __proto__: null, value: "", configurable: true });
    WeakMapPrototypeSet(comparisons, original, compare);
    return compare;
  },
}, "compare").get;
ObjectDefineProperty(CollatorPrototype, "compare", compareProperty);

// --- locales -------------------------------------------------------------------------------------

const LocalePrototype = Intl.Locale.prototype;
const localeToString = LocalePrototype.toString;

// Whether V8 takes this object as a locale. Its prototype does not say so.
function isLocale(value) {
  try {
    ReflectApply(localeToString, value, []);
    return true;
  } catch {
    return false;
  }
}

// One locale, whose text V8 would otherwise ask for.
function checkedLocale(locale) {
  if (isObject(locale)) {
    if (isLocale(locale)) {
      return locale;
    }
    locale = toText(locale);
  }
  if (typeof locale === "string") {
    checkText("a locale", locale, MAX_LOCALE_CHARACTERS);
  }
  return locale;
}

// A list of locales that V8 may iterate over: its elements, read once, if they are not too many or too long.
function localeList(locales) {
  if (!isObject(locales) || (!ArrayIsArray(locales) && isLocale(locales))) {
    return typeof locales === "string" ? checkedLocale(locales) : locales;
  }
  const length = toLength(locales.length);
  if (length > MAX_LOCALES) {
    throw new RangeError(`${length} locales, at most ${MAX_LOCALES} here`);
  }
  const list = [];
  for (let index = 0; index < length; index++) {
    if (index in locales) {
      ArrayPrototypePush(list, checkedLocale(locales[index]));
    }
  }
  return list;
}

// An option as V8 may convert it. Objects are converted to text that is not too long, or to a number.
function boundedOption(value) {
  if (typeof value === "string") {
    checkText("an option", value, MAX_LOCALE_CHARACTERS);
    return value;
  }
  return !isObject(value) ? value : {
    __proto__: null,
    [SymbolToPrimitive]: (hint) => hint === "number" ? +value : boundedOption(toText(value)),
  };
}

// Options of which V8 reads the same, in the same order, and no long text.
function boundedOptions(options) {
  return !isObject(options) ? options : new Proxy({ __proto__: null }, {
    __proto__: null,
    get: (_, key) => boundedOption(ReflectGet(options, key, options)),
  });
}

// The arguments `(locales, options)`, of which `bounded` checks the first.
function boundedArguments(args, bounded) {
  if (args.length > 0) {
    args[0] = bounded(args[0]);
  }
  if (args.length > 1) {
    args[1] = boundedOptions(args[1]);
  }
  return args;
}

function guardLocales(holder, name, change = (original) => original) {
  replace(holder, name, (original) => {
    const changed = change(original);
    return {
      method(...args) {
        return ReflectApply(changed, this, boundedArguments(args, localeList));
      },
    }.method;
  });
}

// V8's own, in no standard and replaced by `Intl.Segmenter`: takes texts of any length.
delete Intl.v8BreakIterator;

guardLocales(Intl, "getCanonicalLocales");
const intlNames = ObjectGetOwnPropertyNames(Intl);
for (let index = 0; index < intlNames.length; index++) {
  const name = intlNames[index];
  const original = Intl[name];
  if (typeof original !== "function" || original.prototype === undefined) {
    continue;
  }
  guardLocales(original, "supportedLocalesOf");
  const guarded = wrapConstructor(original, (args) => {
    const bounded = boundedArguments(args, name === "Locale" ? checkedLocale : localeList);
    return name === "DateTimeFormat" ? withTimeZone(bounded) : bounded;
  });
  defineBuiltIn(Intl, name, guarded);
  defineBuiltIn(original.prototype, "constructor", guarded);
}
guardLocales(StringPrototype, "toLocaleLowerCase");
guardLocales(StringPrototype, "toLocaleUpperCase");
guardLocales(Number.prototype, "toLocaleString");
guardLocales(BigInt.prototype, "toLocaleString");
const DATE = { __proto__: null, year: "numeric", month: "numeric", day: "numeric" };
const TIME = { __proto__: null, hour: "numeric", minute: "numeric", second: "numeric" };
const DATES = Date.prototype;
guardLocales(DATES, "toLocaleString", (original) => inTimeZone(original, { __proto__: null, ...DATE, ...TIME }));
guardLocales(DATES, "toLocaleDateString", (original) => inTimeZone(original, DATE));
guardLocales(DATES, "toLocaleTimeString", (original) => inTimeZone(original, TIME));

// --- names, segments and lists ------------------------------------------------------------------

// Methods that take one text, with what a message calls it.
const TAKE_TEXT = [
  [Intl.DisplayNames.prototype, "of", "a code", MAX_LOCALE_CHARACTERS],
  [Intl.Segmenter.prototype, "segment", "segment", MAX_SEGMENTED],
];
for (let index = 0; index < TAKE_TEXT.length; index++) {
  const what = TAKE_TEXT[index][2];
  const most = TAKE_TEXT[index][3];
  replace(TAKE_TEXT[index][0], TAKE_TEXT[index][1], (original) => ({
    method(value) {
      const text = toText(value);
      checkText(what, text, most);
      return FunctionPrototypeCall(original, this, text);
    },
  }).method);
}

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
            const name = LIST_METHODS[index];
            throw new RangeError(`${name}: a list of more than ${MAX_LISTED} characters; join it in parts`);
          }
          return { __proto__: null, done: false, value };
        });
      }
      return ReflectApply(original, this, args);
    },
  }).method);
}
