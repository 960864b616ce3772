// Guards for built-in functions on text, regular expressions and keys that V8 cannot interrupt: see 20_guards.js.

import { core, primordials } from "ext:core/mod.js";
import {
  defineBuiltIn,
  isGuestProxy,
  isObject,
  isOrdinaryArray,
  lengthOf,
  noteOriginal,
  replace,
  steppingProxy,
} from "ext:cx/20_guards.js";
import {
  boundedText,
  checkBrackets,
  checkPatternWork,
  checkText,
  find,
  findLast,
  isRegExpLike,
  MAX_CHARACTERS,
  MAX_ESCAPED_CHARACTERS,
  MAX_IMPLIED_KEYS,
  MAX_MARKS,
  MAX_NATIVE_CHARACTERS,
  MAX_PATTERN,
  MAX_UNSEARCHED_JSON,
  searchesQuickly,
  searchForwards,
  slowSearch,
  toLength,
  toText,
} from "ext:cx/19_text.js";
import {
  execute,
  guardExpression,
  matchAllTexts,
  matchOneByOne,
  replaceMatches,
  setGuardedRegExp,
  splitAtMatches,
} from "ext:cx/19_expressions.js";

export { boundedText, checkText, MAX_MARKS, toLength, toText } from "ext:cx/19_text.js";

const {
  ArrayBufferIsView,
  ArrayIsArray,
  ArrayPrototypePush,
  FunctionPrototypeCall,
  MathMin,
  Object,
  ObjectHasOwn,
  Proxy,
  RangeError,
  ReflectApply,
  ReflectConstruct,
  RegExpPrototype,
  RegExpPrototypeExec,
  RegExpPrototypeGetSource,
  String,
  StringPrototype,
  StringPrototypeIncludes,
  StringPrototypeSlice,
  SymbolMatch,
  SymbolMatchAll,
  SymbolReplace,
  SymbolSearch,
  SymbolSplit,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetSymbolToStringTag,
} = primordials;

replace(StringPrototype, "indexOf", (original) => ({
  method(pattern, from) {
    return searchForwards(original, this, pattern, from, (place) => place);
  },
}).method);

// What V8 refuses in place of a script's object, which could differ at the second look: a regular expression without
// the flag `g`. V8 checks that it has the methods, and calls none.
const REGEXP_LIKE = {
  __proto__: null,
  [SymbolMatch]: true,
  [SymbolMatchAll]: toText,
  [SymbolReplace]: toText,
  flags: "",
};

replace(StringPrototype, "includes", (original) => ({
  method(pattern, from) {
    return isRegExpLike(pattern)
      ? FunctionPrototypeCall(original, this, REGEXP_LIKE, from)
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

// The functions of `String.prototype` for a pattern that is text and slow to search for.
const BY_TEXT = {
  __proto__: null,
  replace: (text, pattern, replacement) => replaceText(text, pattern, replacement, 1),
  replaceAll: (text, pattern, replacement) => replaceText(text, pattern, replacement, Infinity),
  split(text, pattern, limit) {
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

function replaceText(text, pattern, replacement, most) {
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
  const takesAll = name === "matchAll" || name === "replaceAll";
  replace(StringPrototype, name, (original) => ({
    method(...args) {
      if (this === null || this === undefined) {
        return ReflectApply(original, this, args);
      }
      const text = boundedText(name, this);
      let pattern = args[0];
      if (typeof pattern !== "string") {
        if (isObject(pattern)) {
          if (takesAll && isRegExpLike(pattern) && !StringPrototypeIncludes(toText(pattern.flags), "g")) {
            return ReflectApply(original, text, [REGEXP_LIKE]);
          }
          // A pattern with its own method processes the text itself. V8 would look again, and could find none.
          const method = pattern[symbol];
          if (method !== undefined && method !== null) {
            return ReflectApply(method, pattern, byText === undefined ? [text] : [text, args[1]]);
          }
        }
        if (pattern !== undefined || (byText !== undefined && name !== "split")) {
          pattern = toText(pattern);
          args[0] = pattern;
        }
      }
      if (byText === undefined && pattern !== undefined) {
        // The pattern is converted to a regular expression.
        checkText(`the pattern of ${name}`, pattern, MAX_PATTERN);
        checkPatternWork(pattern, "");
      }
      if (byText !== undefined && pattern !== undefined && !searchesQuickly(text, pattern)) {
        return byText(text, pattern, args[1]);
      }
      return ReflectApply(original, text, args);
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
guardExpression(SymbolSplit, "split", splitAtMatches, true);
guardExpression(SymbolMatchAll, "matchAll", matchOneByOne, true);

// The arguments of `RegExp`, after checking that V8 may parse the pattern.
function checkPattern(args) {
  const pattern = args[0];
  const isRegExp = core.isRegExp(pattern);
  // An expression with its own flags was checked when it was made.
  if (pattern === undefined || (isRegExp && args[1] === undefined)) {
    return args;
  }
  if (!isRegExp && isRegExpLike(pattern)) {
    args[0] = pattern.source;
    if (args[1] === undefined) {
      args[1] = pattern.flags;
    }
  }
  if (args[0] === undefined) {
    return args;
  }
  if (!isRegExp) {
    args[0] = toText(args[0]);
    checkText("a pattern", args[0], MAX_PATTERN);
  }
  if (args[1] !== undefined) {
    args[1] = toText(args[1]);
  }
  if (isRegExp) {
    // As text, because the script can change the expression before V8 reads it.
    args[0] = RegExpPrototypeGetSource(pattern);
  }
  checkPatternWork(args[0], args[1] ?? "");
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
    // V8 takes no flags beside an expression.
    return ReflectApply(original, this, core.isRegExp(args[0]) ? args : checkPattern(args));
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
noteOriginal(GuardedRegExp, RegExp);
defineBuiltIn(globalThis, "RegExp", GuardedRegExp);
defineBuiltIn(RegExpPrototype, "constructor", GuardedRegExp);
setGuardedRegExp(GuardedRegExp);

// `raw` is an array-like of any length.
replace(String, "raw", (original) => ({
  method(...args) {
    const strings = args[0];
    if (strings !== null && strings !== undefined) {
      const raw = strings.raw;
      const isQuick = raw === null || raw === undefined || isOrdinaryArray(raw);
      args[0] = {
        __proto__: null,
        raw: isQuick ? raw : steppingProxy(Object(raw), lengthOf("String.raw", raw)),
      };
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

// `test` would call the `exec` of a script.
function matches(expression, text) {
  return RegExpPrototypeExec(expression, text) !== null;
}

const manyMarks = new RegExp(`\\p{M}{${MAX_MARKS + 1}}`, "u");

export function checkMarks(name, text) {
  if (text.length > MAX_MARKS && matches(manyMarks, text)) {
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
      while (end < text.length && !matches(apart, text[end])) {
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

// V8 keeps each text for good, as one piece.
replace(Symbol, "for", (original) => ({
  method(key) {
    return original(key);
  },
}).method);

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
