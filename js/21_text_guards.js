// Guards for built-in functions on text, regular expressions and keys that V8 cannot interrupt: see 20_guards.js.

import { core, primordials } from "ext:core/mod.js";
import {
  isGuestProxy,
  isObject,
  isOrdinaryArray,
  lengthOf,
  replace,
  setGlobal,
  steppingProxy,
} from "ext:cx/20_guards.js";

const {
  ArrayBufferIsView,
  ArrayIsArray,
  ArrayPrototypePush,
  FunctionPrototypeCall,
  Int32Array,
  MathMin,
  ObjectGetOwnPropertyDescriptor,
  ObjectGetPrototypeOf,
  ObjectHasOwn,
  Proxy,
  RangeError,
  ReflectApply,
  ReflectConstruct,
  ReflectOwnKeys,
  RegExpPrototype,
  RegExpPrototypeExec,
  RegExpPrototypeTest,
  String,
  StringPrototype,
  StringPrototypeCharCodeAt,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  SymbolMatch,
  SymbolMatchAll,
  SymbolReplace,
  SymbolSearch,
  SymbolSpecies,
  SymbolSplit,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypeError,
} = primordials;

// V8's own loops over this many characters take less than a fifth of a second.
const MAX_NATIVE_CHARACTERS = 2 ** 22;
// Maximum characters that are replaced, split or matched: the result has at most one part per character.
const MAX_CHARACTERS = 2 ** 25;
// Maximum number of brackets that may be open at once in a text for `JSON.parse`, and the length up to which a text is
// not searched for them. For each of them V8 keeps some 70 bytes that are not counted as the run's.
const MAX_OPEN_BRACKETS = 2 ** 17;
const MAX_UNSEARCHED_JSON = 2 ** 20;
// Maximum characters of a pattern. V8 takes up to 250 bytes for each while it parses the pattern, and compiles none
// that is this long.
const MAX_PATTERN = 2 ** 19;
// Maximum characters that are escaped or unescaped.
const MAX_ESCAPED_CHARACTERS = 2 ** 24;
// Maximum product of text and pattern length for which V8's search is used, which can take that many steps.
const MAX_NATIVE_SEARCH = 2 ** 28;
// More combining marks on one letter than any language has (Unicode's stream-safe text has 30). V8 sorts them in
// quadratic time.
export const MAX_MARKS = 64;
// Maximum number of keys of an object that does not store its keys: strings and typed arrays.
const MAX_IMPLIED_KEYS = 2 ** 20;

export function checkText(name, text, most) {
  if (text.length > most) {
    throw new RangeError(`${name} on ${text.length} characters, at most ${most} here`);
  }
}

// `ToString`, which throws for symbols, unlike `String`.
export function toText(value) {
  return `${value}`;
}

// `value` as text that may be replaced, split, matched or copied.
export function boundedText(name, value) {
  const text = toText(value);
  checkText(name, text, MAX_CHARACTERS);
  return text;
}

export function toLength(value) {
  const number = +value;
  return number > 0 ? MathMin(number - number % 1 || number, Number.MAX_SAFE_INTEGER) : 0;
}

// --- searching for text -------------------------------------------------------------------------

// The index of `pattern` in `text` at or after `from`, in linear time (Knuth, Morris, Pratt). V8's own search is faster
// for ordinary patterns, and takes the product of both lengths for others.
function find(text, pattern, from) {
  const size = pattern.length;
  const borders = new Int32Array(size);
  for (let index = 1, border = 0; index < size; index++) {
    const code = StringPrototypeCharCodeAt(pattern, index);
    while (border > 0 && StringPrototypeCharCodeAt(pattern, border) !== code) {
      border = borders[border - 1];
    }
    if (StringPrototypeCharCodeAt(pattern, border) === code) {
      border++;
    }
    borders[index] = border;
  }
  for (let index = from, matched = 0; index < text.length; index++) {
    const code = StringPrototypeCharCodeAt(text, index);
    while (matched > 0 && StringPrototypeCharCodeAt(pattern, matched) !== code) {
      matched = borders[matched - 1];
    }
    if (StringPrototypeCharCodeAt(pattern, matched) === code) {
      matched++;
    }
    if (matched === size) {
      return index - size + 1;
    }
  }
  return -1;
}

// The same backwards: the last index at or before `from`.
function findLast(text, pattern, from) {
  const size = pattern.length;
  const borders = new Int32Array(size);
  const at = (index) => StringPrototypeCharCodeAt(pattern, size - 1 - index);
  for (let index = 1, border = 0; index < size; index++) {
    while (border > 0 && at(border) !== at(index)) {
      border = borders[border - 1];
    }
    if (at(border) === at(index)) {
      border++;
    }
    borders[index] = border;
  }
  for (let index = MathMin(text.length - 1, from + size - 1), matched = 0; index >= 0; index--) {
    const code = StringPrototypeCharCodeAt(text, index);
    while (matched > 0 && at(matched) !== code) {
      matched = borders[matched - 1];
    }
    if (at(matched) === code) {
      matched++;
    }
    if (matched === size) {
      return index;
    }
  }
  return -1;
}

// Whether V8's own search for `pattern` is quick enough.
function searchesQuickly(text, pattern) {
  return pattern.length === 0 || text.length * pattern.length <= MAX_NATIVE_SEARCH;
}

function isRegExpLike(value) {
  if (!isObject(value)) {
    return false;
  }
  const flag = value[SymbolMatch];
  return flag === undefined ? core.isRegExp(value) : Boolean(flag);
}

// Both texts of a search, converted once; `undefined` if V8's own search may be used.
function slowSearch(receiver, pattern) {
  if (typeof receiver === "string" && typeof pattern === "string") {
    return searchesQuickly(receiver, pattern) ? undefined : { __proto__: null, text: receiver, pattern };
  }
  if (receiver === null || receiver === undefined) {
    return undefined;
  }
  return { __proto__: null, text: toText(receiver), pattern: toText(pattern) };
}

// Both functions search forwards; they differ in their result.
function searchForwards(original, receiver, pattern, from, say) {
  const slow = slowSearch(receiver, pattern);
  if (slow === undefined) {
    return FunctionPrototypeCall(original, receiver, pattern, from);
  }
  const start = MathMin(toLength(from), slow.text.length);
  return searchesQuickly(slow.text, slow.pattern)
    ? FunctionPrototypeCall(original, slow.text, slow.pattern, start)
    : say(find(slow.text, slow.pattern, start));
}

replace(StringPrototype, "indexOf", (original) => ({
  method(pattern, from) {
    return searchForwards(original, this, pattern, from, (place) => place);
  },
}).method);

replace(StringPrototype, "includes", (original) => ({
  method(pattern, from) {
    return isRegExpLike(pattern)
      ? FunctionPrototypeCall(original, this, pattern, from)
      : searchForwards(original, this, pattern, from, (place) => place !== -1);
  },
}).method);

replace(StringPrototype, "lastIndexOf", (original) => ({
  method(pattern, from) {
    const slow = slowSearch(this, pattern);
    if (slow === undefined) {
      return FunctionPrototypeCall(original, this, pattern, from);
    }
    const number = +from;
    const start = number !== number ? slow.text.length : MathMin(toLength(number), slow.text.length);
    return searchesQuickly(slow.text, slow.pattern)
      ? FunctionPrototypeCall(original, slow.text, slow.pattern, start)
      : findLast(slow.text, slow.pattern, start);
  },
}).method);

// --- replacing, splitting, matching -------------------------------------------------------------

// `original(text, pattern, other)` for a pattern that is text and slow to search for.
const BY_TEXT = {
  __proto__: null,
  replace: (original, text, pattern, replacement) => replaceText(original, text, pattern, replacement, 1),
  replaceAll: (original, text, pattern, replacement) => replaceText(original, text, pattern, replacement, Infinity),
  split(original, text, pattern, limit) {
    const most = limit === undefined ? 2 ** 32 - 1 : limit >>> 0;
    const parts = [];
    let from = 0;
    while (parts.length < most) {
      const place = find(text, pattern, from);
      if (place === -1) {
        ArrayPrototypePush(parts, StringPrototypeSlice(text, from));
        break;
      }
      ArrayPrototypePush(parts, StringPrototypeSlice(text, from, place));
      from = place + pattern.length;
    }
    return parts;
  },
};

function replaceText(original, text, pattern, replacement, most) {
  const functional = typeof replacement === "function";
  const template = functional ? undefined : toText(replacement);
  if (template !== undefined && StringPrototypeIncludes(template, "$")) {
    throw new RangeError(`replace of a pattern of ${pattern.length} characters by a text with \`$\` is too slow here`);
  }
  let result = "";
  let from = 0;
  for (let count = 0; count < most; count++) {
    const place = find(text, pattern, from);
    if (place === -1) {
      break;
    }
    result += StringPrototypeSlice(text, from, place) +
      (functional ? toText(replacement(pattern, place, text)) : template);
    from = place + pattern.length;
  }
  return result + StringPrototypeSlice(text, from);
}

const BY_SYMBOL = {
  __proto__: null,
  match: SymbolMatch,
  matchAll: SymbolMatchAll,
  replace: SymbolReplace,
  replaceAll: SymbolReplace,
  search: SymbolSearch,
  split: SymbolSplit,
};

const TEXT = ["match", "matchAll", "replace", "replaceAll", "search", "split"];
for (let index = 0; index < TEXT.length; index++) {
  const name = TEXT[index];
  const symbol = BY_SYMBOL[name];
  const byText = BY_TEXT[name];
  replace(StringPrototype, name, (original) => ({
    method(...args) {
      if (this === null || this === undefined) {
        return ReflectApply(original, this, args);
      }
      const text = boundedText(name, this);
      let pattern = args[0];
      if (typeof pattern !== "string") {
        // A pattern with its own method processes the text itself.
        if (isObject(pattern) && pattern[symbol] !== undefined && pattern[symbol] !== null) {
          return ReflectApply(original, text, args);
        }
        if (pattern !== undefined || (byText !== undefined && name !== "split")) {
          pattern = toText(pattern);
          args[0] = pattern;
        }
      }
      if (byText === undefined && pattern !== undefined) {
        // The pattern is converted to a regular expression.
        checkText(`the pattern of ${name}`, pattern, MAX_PATTERN);
      }
      if (byText !== undefined && pattern !== undefined && !searchesQuickly(text, pattern)) {
        return byText(original, text, pattern, args[1]);
      }
      return ReflectApply(original, text, args);
    },
  }).method);
}

const originalExec = RegExpPrototype.exec;

const flagsGetter = ObjectGetOwnPropertyDescriptor(RegExpPrototype, "flags").get;
const globalGetter = ObjectGetOwnPropertyDescriptor(RegExpPrototype, "global").get;

// Whether V8's loops over this expression's matches advance and end: the expression has no own properties, and the text
// is not long. If `exec` or the flag `g` is the guest's, V8 can match forever without calling the guest.
function matchesQuickly(expression, text) {
  return text.length <= MAX_NATIVE_CHARACTERS && ObjectGetPrototypeOf(expression) === RegExpPrototype &&
    RegExpPrototype.exec === originalExec && ReflectOwnKeys(expression).length === 1 &&
    ObjectGetOwnPropertyDescriptor(RegExpPrototype, "flags")?.get === flagsGetter &&
    ObjectGetOwnPropertyDescriptor(RegExpPrototype, "global")?.get === globalGetter;
}

// RegExpExec: calls `exec` if the guest has replaced it.
function execute(expression, text) {
  const exec = expression.exec;
  if (typeof exec !== "function" || exec === originalExec) {
    return RegExpPrototypeExec(expression, text);
  }
  const result = ReflectApply(exec, expression, [text]);
  if (result !== null && !isObject(result)) {
    throw new TypeError("exec gave neither an object nor null");
  }
  return result;
}

// The index after `index`: two further for a character of two code units in Unicode mode.
function advance(text, index, unicode) {
  if (!unicode || index + 1 >= text.length) {
    return index + 1;
  }
  const first = StringPrototypeCharCodeAt(text, index);
  const second = StringPrototypeCharCodeAt(text, index + 1);
  const isPair = first >= 0xd800 && first <= 0xdbff && second >= 0xdc00 && second <= 0xdfff;
  return index + (isPair ? 2 : 1);
}

function isUnicode(flags) {
  return StringPrototypeIncludes(flags, "u") || StringPrototypeIncludes(flags, "v");
}

// As RegExp.prototype[Symbol.match] with the flag `g`, step by step.
function matchAllTexts(expression, text, flags) {
  const unicode = isUnicode(flags);
  expression.lastIndex = 0;
  const found = [];
  for (;;) {
    const result = execute(expression, text);
    if (result === null) {
      return found.length === 0 ? null : found;
    }
    const matched = toText(result[0]);
    ArrayPrototypePush(found, matched);
    if (matched === "") {
      expression.lastIndex = advance(text, toLength(expression.lastIndex), unicode);
    }
  }
}

// The replacement text of one match.
function substitution(result, matched, place, text, replacement, functional) {
  const captures = [];
  const count = toLength(result.length);
  for (let index = 1; index < count; index++) {
    const capture = result[index];
    ArrayPrototypePush(captures, capture === undefined ? capture : toText(capture));
  }
  const groups = result.groups;
  if (functional) {
    const args = [matched];
    for (let index = 0; index < captures.length; index++) {
      ArrayPrototypePush(args, captures[index]);
    }
    ArrayPrototypePush(args, place, text);
    if (groups !== undefined) {
      ArrayPrototypePush(args, groups);
    }
    return toText(ReflectApply(replacement, undefined, args));
  }
  if (!StringPrototypeIncludes(replacement, "$")) {
    return replacement;
  }
  return expand(replacement, matched, place, text, captures, groups);
}

// As GetSubstitution.
function expand(template, matched, place, text, captures, groups) {
  let expanded = "";
  let from = 0;
  for (;;) {
    const dollar = StringPrototypeIndexOf(template, "$", from);
    if (dollar === -1 || dollar + 1 >= template.length) {
      return expanded + StringPrototypeSlice(template, from);
    }
    expanded += StringPrototypeSlice(template, from, dollar);
    const next = template[dollar + 1];
    from = dollar + 2;
    const digit = (character) => character >= "0" && character <= "9" ? +character : -1;
    const first = digit(next);
    if (next === "$") {
      expanded += "$";
    } else if (next === "&") {
      expanded += matched;
    } else if (next === "`") {
      expanded += StringPrototypeSlice(text, 0, place);
    } else if (next === "'") {
      expanded += StringPrototypeSlice(text, MathMin(text.length, place + matched.length));
    } else if (first !== -1) {
      const second = from < template.length ? digit(template[from]) : -1;
      const both = second === -1 ? 0 : first * 10 + second;
      if (both >= 1 && both <= captures.length) {
        expanded += captures[both - 1] ?? "";
        from++;
      } else if (first >= 1 && first <= captures.length) {
        expanded += captures[first - 1] ?? "";
      } else {
        expanded += `$${next}`;
      }
    } else if (next === "<" && groups !== undefined) {
      const end = StringPrototypeIndexOf(template, ">", from);
      if (end === -1) {
        expanded += "$<";
      } else {
        const group = groups[StringPrototypeSlice(template, from, end)];
        expanded += group === undefined ? "" : toText(group);
        from = end + 1;
      }
    } else {
      expanded += "$";
      from--;
    }
  }
}

// As RegExp.prototype[Symbol.replace], step by step.
function replaceMatches(expression, text, replacement, flags) {
  const functional = typeof replacement === "function";
  const template = functional ? replacement : toText(replacement);
  const global = StringPrototypeIncludes(flags, "g");
  const unicode = isUnicode(flags);
  if (global) {
    expression.lastIndex = 0;
  }
  const results = [];
  for (;;) {
    const result = execute(expression, text);
    if (result === null) {
      break;
    }
    ArrayPrototypePush(results, result);
    if (!global) {
      break;
    }
    if (toText(result[0]) === "") {
      expression.lastIndex = advance(text, toLength(expression.lastIndex), unicode);
    }
  }
  let replaced = "";
  let from = 0;
  for (let index = 0; index < results.length; index++) {
    const result = results[index];
    const matched = toText(result[0]);
    const place = MathMin(toLength(result.index), text.length);
    const part = substitution(result, matched, place, text, template, functional);
    if (place >= from) {
      replaced += StringPrototypeSlice(text, from, place) + part;
      from = place + matched.length;
    }
  }
  return replaced + StringPrototypeSlice(text, from);
}

// As RegExp.prototype[Symbol.split], step by step.
function splitAtMatches(expression, text, limit, flags) {
  const sticky = StringPrototypeIncludes(flags, "y") ? flags : `${flags}y`;
  let constructor = expression.constructor;
  constructor = constructor === undefined ? RegExp : constructor[SymbolSpecies] ?? RegExp;
  const splitter = ReflectConstruct(constructor, [expression, sticky]);
  const most = limit === undefined ? 2 ** 32 - 1 : limit >>> 0;
  const parts = [];
  if (most === 0) {
    return parts;
  }
  if (text.length === 0) {
    if (execute(splitter, text) === null) {
      ArrayPrototypePush(parts, text);
    }
    return parts;
  }
  const unicode = isUnicode(flags);
  let from = 0;
  let index = 0;
  while (index < text.length) {
    splitter.lastIndex = index;
    const result = execute(splitter, text);
    const end = result === null ? from : MathMin(toLength(splitter.lastIndex), text.length);
    if (end === from) {
      index = advance(text, index, unicode);
      continue;
    }
    ArrayPrototypePush(parts, StringPrototypeSlice(text, from, index));
    from = end;
    const count = toLength(result.length);
    for (let capture = 1; capture < count && parts.length < most; capture++) {
      ArrayPrototypePush(parts, result[capture]);
    }
    if (parts.length >= most) {
      return parts;
    }
    index = from;
  }
  ArrayPrototypePush(parts, StringPrototypeSlice(text, from));
  return parts;
}

function guardExpression(symbol, name, steps) {
  replace(RegExpPrototype, symbol, (original) => ({
    method(...args) {
      if (!isObject(this)) {
        return ReflectApply(original, this, args);
      }
      const text = toText(args[0]);
      args[0] = text;
      checkText(name, text, MAX_CHARACTERS);
      if (steps === undefined || matchesQuickly(this, text)) {
        return ReflectApply(original, this, args);
      }
      return steps(this, text, args[1], toText(this.flags));
    },
  }).method);
}

guardExpression(
  SymbolMatch,
  "match",
  (expression, text, _, flags) =>
    StringPrototypeIncludes(flags, "g") ? matchAllTexts(expression, text, flags) : execute(expression, text),
);
guardExpression(SymbolReplace, "replace", replaceMatches);
guardExpression(SymbolSplit, "split", splitAtMatches);
// Returns one match at a time.
guardExpression(SymbolMatchAll, "matchAll", undefined);

// The arguments of `RegExp`, after checking that V8 may parse the pattern.
function checkPattern(args) {
  const pattern = args[0];
  if (pattern === undefined || core.isRegExp(pattern)) {
    return args;
  }
  if (isRegExpLike(pattern)) {
    args[0] = pattern.source;
    if (args[1] === undefined) {
      args[1] = pattern.flags;
    }
  }
  if (args[0] !== undefined) {
    args[0] = toText(args[0]);
    checkText("a pattern", args[0], MAX_PATTERN);
  }
  return args;
}

replace(RegExp, "escape", (original) => ({
  method(text) {
    if (typeof text === "string") {
      checkText("escape", text, MAX_CHARACTERS);
    }
    return original(text);
  },
}).method);

replace(RegExpPrototype, "compile", (original) => ({
  method(...args) {
    return ReflectApply(original, this, checkPattern(args));
  },
}).method);

const GuardedRegExp = new Proxy(RegExp, {
  __proto__: null,
  apply(target, receiver, args) {
    const pattern = args[0];
    // Called as a function, `RegExp` returns its own instances unchanged.
    if (args[1] === undefined && isRegExpLike(pattern) && pattern.constructor === GuardedRegExp) {
      return pattern;
    }
    return ReflectApply(target, receiver, checkPattern(args));
  },
  construct(target, args, newTarget) {
    return ReflectConstruct(target, checkPattern(args), newTarget === GuardedRegExp ? target : newTarget);
  },
});
setGlobal(globalThis, "RegExp", GuardedRegExp);
setGlobal(RegExpPrototype, "constructor", GuardedRegExp);

// `raw` is an array-like of any length.
replace(String, "raw", (original) => ({
  method(...args) {
    const strings = args[0];
    const raw = strings === null || strings === undefined ? undefined : strings.raw;
    if (isObject(raw) && !isOrdinaryArray(raw)) {
      args[0] = { __proto__: null, raw: steppingProxy(raw, lengthOf("String.raw", raw)) };
    } else if (raw !== null && raw !== undefined) {
      args[0] = { __proto__: null, raw };
    }
    return ReflectApply(original, this, args);
  },
}).method);

// These functions turn one character into up to nine, natively.
const ESCAPES = ["decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "unescape"];
for (let index = 0; index < ESCAPES.length; index++) {
  const name = ESCAPES[index];
  replace(globalThis, name, (original) => ({
    method(value) {
      const text = toText(value);
      checkText(name, text, MAX_ESCAPED_CHARACTERS);
      return original(text);
    },
  }).method);
}

const manyMarks = new RegExp(`\\p{M}{${MAX_MARKS + 1}}`, "u");

export function checkMarks(name, text) {
  if (text.length > MAX_MARKS && RegExpPrototypeTest(manyMarks, text)) {
    throw new RangeError(`${name} of more than ${MAX_MARKS} combining marks in a row`);
  }
}

// These functions copy a text natively. The text may be a compact representation of a long one (`repeat`, `+`), and one
// character can become three.
const COPIES = ["toLocaleLowerCase", "toLocaleUpperCase", "toLowerCase", "toUpperCase", "toWellFormed"];
for (let index = 0; index < COPIES.length; index++) {
  const name = COPIES[index];
  replace(StringPrototype, name, (original) => ({
    method(...args) {
      if (this === null || this === undefined) {
        return ReflectApply(original, this, args);
      }
      const text = boundedText(name, this);
      return ReflectApply(original, text, args);
    },
  }).method);
}

// --- normal forms -------------------------------------------------------------------------------

// Characters that normalization neither moves nor combines with those before them.
const apart = /[\u0000-\u024f\u0370-\u03ff\u0400-\u047f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]/;

replace(StringPrototype, "normalize", (original) => ({
  method(...args) {
    if (this === null || this === undefined) {
      return ReflectApply(original, this, args);
    }
    const text = toText(this);
    if (text.length <= MAX_MARKS) {
      return ReflectApply(original, text, args);
    }
    if (args[0] !== undefined) {
      args[0] = toText(args[0]);
    }
    checkText("normalize", text, MAX_CHARACTERS);
    let normal = "";
    for (let from = 0; from < text.length;) {
      let end = from + MAX_NATIVE_CHARACTERS;
      while (end < text.length && !RegExpPrototypeTest(apart, text[end])) {
        end++;
      }
      const part = StringPrototypeSlice(text, from, end);
      checkMarks("normalize", part);
      normal += FunctionPrototypeCall(original, part, args[0]);
      from = end;
    }
    return normal;
  },
}).method);

// --- keys ---------------------------------------------------------------------------------------

// String objects and typed arrays have a key for each element, which V8 makes natively.
export function checkKeys(name, value) {
  let count = 0;
  if (typeof value === "string") {
    count = value.length;
  } else if (!isObject(value)) {
    return;
  } else if (isGuestProxy(value)) {
    // A proxy without traps returns the keys of its target.
    return checkKeys(name, core.ops.op_cx_details(value)[0]);
  } else if (ArrayBufferIsView(value)) {
    count = TypedArrayPrototypeGetSymbolToStringTag(value) === undefined ? 0 : TypedArrayPrototypeGetLength(value);
  } else if (ObjectHasOwn(value, "length") && core.isStringObject(value)) {
    count = value.length;
  }
  if (count > MAX_IMPLIED_KEYS) {
    throw new RangeError(`${name} of ${count} elements, at most ${MAX_IMPLIED_KEYS} here`);
  }
}

const TAKE_KEYS = [
  [Object, "entries", 0],
  [Object, "freeze", 0],
  [Object, "getOwnPropertyDescriptors", 0],
  [Object, "getOwnPropertyNames", 0],
  [Object, "isFrozen", 0],
  [Object, "isSealed", 0],
  [Object, "keys", 0],
  [Object, "seal", 0],
  [Object, "values", 0],
  [Object, "defineProperties", 1],
  [Object, "create", 1],
  [Reflect, "ownKeys", 0],
];
for (let index = 0; index < TAKE_KEYS.length; index++) {
  const holder = TAKE_KEYS[index][0];
  const name = TAKE_KEYS[index][1];
  const position = TAKE_KEYS[index][2];
  replace(holder, name, (original) => ({
    method(...args) {
      checkKeys(name, args[position]);
      return ReflectApply(original, this, args);
    },
  }).method);
}
replace(Object, "assign", (original) => ({
  method(...args) {
    for (let index = 1; index < args.length; index++) {
      checkKeys("assign", args[index]);
    }
    return ReflectApply(original, this, args);
  },
}).method);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

// The position of the quote that ends the JSON string which begins at `start`, or the end of the text.
function endOfJsonString(text, start) {
  let end = start;
  for (;;) {
    end = StringPrototypeIndexOf(text, '"', end + 1);
    if (end === -1) {
      return text.length;
    }
    let before = end - 1;
    while (StringPrototypeCharCodeAt(text, before) === BACKSLASH) {
      before--;
    }
    if ((end - before) % 2 === 1) {
      return end;
    }
  }
}

function checkBrackets(text) {
  let open = 0;
  const length = text.length;
  for (let index = 0; index < length; index++) {
    switch (StringPrototypeCharCodeAt(text, index)) {
      case QUOTE:
        index = endOfJsonString(text, index);
        break;
      case 0x5b:
      case 0x7b:
        if (++open > MAX_OPEN_BRACKETS) {
          throw new RangeError(`JSON.parse: more than ${MAX_OPEN_BRACKETS} brackets are open at position ${index}`);
        }
        break;
      case 0x5d:
      case 0x7d:
        open--;
        break;
      default:
        break;
    }
  }
}

replace(JSON, "parse", (original) => ({
  method(text, reviver) {
    const source = `${text}`;
    if (source.length > MAX_UNSEARCHED_JSON) {
      checkBrackets(source);
    }
    return original(source, reviver);
  },
}).method);

replace(JSON, "rawJSON", (original) => ({
  method(value) {
    return original(boundedText("rawJSON", value));
  },
}).method);

// V8 reads a list of keys natively, whatever length it claims, and makes a text of each index of a typed array.
replace(JSON, "stringify", (original) => ({
  method(...args) {
    if (ArrayBufferIsView(args[0]) && typeof args[0].toJSON !== "function") {
      checkKeys("stringify", args[0]);
    }
    const list = args[1];
    if (typeof list === "object" && list !== null && ArrayIsArray(list)) {
      const keys = [];
      const length = list.length;
      for (let index = 0; index < length; index++) {
        const key = list[index];
        if (typeof key === "string" || typeof key === "number" || typeof key === "object") {
          ArrayPrototypePush(keys, key);
        }
      }
      args[1] = keys;
    }
    return ReflectApply(original, this, args);
  },
}).method);
