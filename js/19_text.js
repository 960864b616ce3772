// Text within bounds, and searching it step by step, for 21_text_guards.js. It changes nothing itself.

import { core, primordials } from "ext:core/mod.js";
import { isObject } from "ext:cx/20_guards.js";

const {
  FunctionPrototypeCall,
  Int32Array,
  MathMin,
  RangeError,
  StringPrototypeCharCodeAt,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  SymbolMatch,
} = primordials;

// V8's own loops over this many characters take less than a fifth of a second.
export const MAX_NATIVE_CHARACTERS = 2 ** 22;
// Maximum characters that are replaced, split or matched: the result has at most one part per character.
export const MAX_CHARACTERS = 2 ** 25;
// Maximum number of brackets that may be open at once in a text for `JSON.parse`, and the length up to which a text is
// not searched for them. For each of them V8 keeps some 70 bytes that are not counted as the run's.
const MAX_OPEN_BRACKETS = 2 ** 17;
export const MAX_UNSEARCHED_JSON = 2 ** 20;
// Maximum characters of a pattern. V8 takes up to 250 bytes for each while it parses the pattern, and compiles none
// that is this long.
export const MAX_PATTERN = 2 ** 19;
// V8 makes a list of characters of each class in a pattern, in memory that is not counted as the run's, and adds them
// to those before it. So a pattern with the flag `u` or `v` has at most this many of `\p{...}`, and of `\w` and the
// like, and one with the flag `v`, where classes have classes in them, at most this many characters, and this many
// properties that are thousands of texts. The name of each group is compared with those before it. Where case is
// ignored, which a part of a pattern can ask for, V8 computes the other case of all characters of a class, for up to 36
// microseconds. src/engine/typescript/transpile/patterns.rs has the same bounds for literals.
const MAX_PROPERTIES = 200;
const MAX_CLASSES = 1_000;
const MAX_SETS_PATTERN = 2 ** 12;
const MAX_TEXT_PROPERTIES = 30;
const MAX_NAMED_GROUPS = 4_000;
const MAX_BRACKETS = 10_000;
const PROPERTIES = ["\\p", "\\P"];
// Maximum length of a list, as the language says.
const MAX_LENGTH = 2 ** 53 - 1;
const CLASSES = ["\\w", "\\W", "\\d", "\\D", "\\s", "\\S"];
const TEXT_PROPERTIES = ["\\p{RGI_", "\\p{Basic_Emoji"];
const NAMED_GROUPS = ["(?<"];
const BRACKETS = ["["];
// Maximum characters that are escaped or unescaped.
export const MAX_ESCAPED_CHARACTERS = 2 ** 24;
// Maximum product of text and pattern length for which V8's search is used, which can take that many steps.
const MAX_NATIVE_SEARCH = 2 ** 28;
// More combining marks on one letter than any language has (Unicode's stream-safe text has 30). V8 sorts them in
// quadratic time.
export const MAX_MARKS = 64;
// Maximum number of keys of an object that does not store its keys: strings and typed arrays.
export const MAX_IMPLIED_KEYS = 2 ** 20;

export function checkText(name, text, most) {
  if (text.length > most) {
    throw new RangeError(`${name} on ${text.length} characters, at most ${most} here`);
  }
}

function refuseMany(pattern, parts, most) {
  let count = 0;
  for (let index = 0; index < parts.length; index++) {
    let at = StringPrototypeIndexOf(pattern, parts[index]);
    while (at !== -1) {
      if (++count > most) {
        throw new RangeError(`a pattern with more than ${most} of ${parts[0]} and the like; make several of it`);
      }
      at = StringPrototypeIndexOf(pattern, parts[index], at + parts[index].length);
    }
  }
}

// Refuses a pattern for which V8 computes for long, or takes much memory, before it looks whether it is too large.
export function checkPatternWork(pattern, flags) {
  // Shorter ones have fewer of all.
  if (pattern.length <= 2 * MAX_PROPERTIES) {
    return;
  }
  refuseMany(pattern, NAMED_GROUPS, MAX_NAMED_GROUPS);
  refuseMany(pattern, BRACKETS, MAX_BRACKETS);
  const hasSets = StringPrototypeIncludes(flags, "v");
  if (hasSets) {
    checkText("a pattern with the flag v", pattern, MAX_SETS_PATTERN);
    refuseMany(pattern, TEXT_PROPERTIES, MAX_TEXT_PROPERTIES);
  }
  if (hasSets || StringPrototypeIncludes(flags, "u")) {
    refuseMany(pattern, PROPERTIES, MAX_PROPERTIES);
    refuseMany(pattern, CLASSES, MAX_CLASSES);
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
  return number > 0 ? MathMin(number - number % 1 || number, MAX_LENGTH) : 0;
}

// --- searching for text -------------------------------------------------------------------------

// The index of `pattern` in `text` at or after `from`, in linear time (Knuth, Morris, Pratt). V8's own search is faster
// for ordinary patterns, and takes the product of both lengths for others.
export function find(text, pattern, from) {
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
export function findLast(text, pattern, from) {
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
export function searchesQuickly(text, pattern) {
  return pattern.length === 0 || text.length * pattern.length <= MAX_NATIVE_SEARCH;
}

export function isRegExpLike(value) {
  if (!isObject(value)) {
    return false;
  }
  const flag = value[SymbolMatch];
  return flag === undefined ? core.isRegExp(value) : !!flag;
}

// Both texts of a search, converted once; `undefined` if V8's own search may be used.
export function slowSearch(receiver, pattern) {
  if (typeof receiver === "string" && typeof pattern === "string") {
    return searchesQuickly(receiver, pattern) ? undefined : { __proto__: null, text: receiver, pattern };
  }
  if (receiver === null || receiver === undefined) {
    return undefined;
  }
  return { __proto__: null, text: toText(receiver), pattern: toText(pattern) };
}

// Both functions search forwards; they differ in their result.
export function searchForwards(original, receiver, pattern, from, say) {
  const slow = slowSearch(receiver, pattern);
  if (slow === undefined) {
    return FunctionPrototypeCall(original, receiver, pattern, from);
  }
  const start = MathMin(toLength(from), slow.text.length);
  return searchesQuickly(slow.text, slow.pattern)
    ? FunctionPrototypeCall(original, slow.text, slow.pattern, start)
    : say(find(slow.text, slow.pattern, start));
}

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

export function checkBrackets(text) {
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
