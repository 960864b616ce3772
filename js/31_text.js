// Lists, and texts with a bound: shared by the files that format values.

import { primordials } from "ext:core/mod.js";

const {
  MathMax,
  NumberPrototypeToString,
  ObjectIs,
  StringPrototypeCharCodeAt,
  StringPrototypeCodePointAt,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeNormalize,
  StringPrototypePadStart,
  StringPrototypeRepeat,
  StringPrototypeSlice,
  StringPrototypeToUpperCase,
  SymbolPrototypeGetDescription,
} = primordials;

// Budgets of one inspection. Everything that custom inspectors call counts against them.

// Maximum levels of nesting, whatever `depth` requests. Each takes a few hundred bytes of V8's stack of a megabyte.
export const MAX_DEPTH = 100;
// Maximum properties, elements and entries of collections: a tenth of a second of work.
export const MAX_ENTRIES = 65_536;
// Maximum characters: the default limit of a run's output.
export const MAX_CHARACTERS = 2 ** 20;
// Maximum lines of one text (a stack, a string that is split at line breaks, the result of a custom inspector).
export const MAX_LINES = 10_000;
// Maximum characters of a name of a property or class, or of a tag. Deno prints names in full.
export const MAX_NAME = 10_000;
// Maximum number of holes that are tested one by one, in a few hundredths of a second. Beyond it V8 lists the keys,
// which takes as much of the heap as the elements.
const MAX_HOLES = 2 ** 20;
// Maximum characters of a text that is normalized to measure it. A longer one could take seconds, during which V8
// cannot be interrupted.
const MAX_NORMALIZED = 1_000;

// Not an array: a script can define a setter for index 0 on `Array.prototype`.
export function makeList() {
  return { __proto__: null, length: 0 };
}

export function push(list, item) {
  list[list.length++] = item;
}

export function join(list, separator) {
  let text = "";
  for (let index = 0; index < list.length; index++) {
    text += index === 0 ? list[index] : separator + list[index];
  }
  return text;
}

export function indexIn(list, item) {
  for (let index = 0; index < list.length; index++) {
    if (list[index] === item) {
      return index;
    }
  }
  return -1;
}

export function makeState() {
  return {
    __proto__: null,
    characters: MAX_CHARACTERS,
    entries: MAX_ENTRIES,
    holes: MAX_HOLES,
    level: 0,
    // The enclosing objects of the current one, and the numbers of those that contain themselves.
    seen: makeList(),
    circular: undefined,
  };
}

export function isSpent(state) {
  return state.characters <= 0 || state.entries <= 0;
}

export function isLastEntry(state) {
  if (isSpent(state)) {
    return true;
  }
  state.entries--;
  return false;
}

export function plural(count) {
  return count === 1 ? "" : "s";
}

export function moreItems(count) {
  return `... ${count} more item${plural(count)}`;
}

// The start of a text, and how much was cut off.
export function clip(text, most) {
  if (text.length <= most) {
    return text;
  }
  const missing = text.length - most;
  return `${StringPrototypeSlice(text, 0, most)}... ${missing} more character${plural(missing)}`;
}

// A text that becomes part of the output: counted, and cut when the budget is used up.
export function spend(state, text) {
  const cut = text.length > state.characters ? clip(text, MathMax(state.characters, 0)) : text;
  state.characters -= cut.length;
  return cut;
}

export function nameOf(text) {
  return text.length > MAX_NAME ? `${StringPrototypeSlice(text, 0, MAX_NAME)}...` : text;
}

export const spaces = (count) => StringPrototypeRepeat(" ", count);

// Starts each line but the first with `indentation`.
export function indentLines(state, text, indentation) {
  let end = StringPrototypeIndexOf(text, "\n");
  if (end === -1 || indentation === "") {
    return text;
  }
  let result = StringPrototypeSlice(text, 0, end);
  for (let lines = 1; end !== -1; lines++) {
    if (lines > MAX_LINES || state.characters <= 0) {
      return `${result}\n${indentation}... more lines`;
    }
    const start = end + 1;
    end = StringPrototypeIndexOf(text, "\n", start);
    state.characters -= indentation.length;
    result += `\n${indentation}${StringPrototypeSlice(text, start, end === -1 ? text.length : end)}`;
  }
  return result;
}

export function hex(code, digits) {
  return StringPrototypePadStart(NumberPrototypeToString(code, 16), digits, "0");
}

const ESCAPES = { __proto__: null, 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r" };

function isLoneSurrogate(text, index, code) {
  if (code >= 0xdc00) {
    const before = index > 0 ? StringPrototypeCharCodeAt(text, index - 1) : 0;
    return before < 0xd800 || before > 0xdbff;
  }
  const after = index + 1 < text.length ? StringPrototypeCharCodeAt(text, index + 1) : 0;
  return after < 0xdc00 || after > 0xdfff;
}

export function quote(context, text) {
  let mark = context.quotes[0];
  for (let index = 0; index < context.quotes.length; index++) {
    if (!StringPrototypeIncludes(text, context.quotes[index])) {
      mark = context.quotes[index];
      break;
    }
  }
  const markCode = StringPrototypeCharCodeAt(mark, 0);
  let escaped = "";
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const code = StringPrototypeCharCodeAt(text, index);
    let replacement;
    if (code === markCode || code === 0x5c) {
      replacement = `\\${text[index]}`;
    } else if (code >= 0x20 && code < 0x7f) {
      continue;
    } else if (code < 0x20 || code <= 0x9f) {
      if (!context.escapeSequences) {
        continue;
      }
      replacement = ESCAPES[code] ?? `\\x${hex(code, 2)}`;
    } else if (code >= 0xd800 && code <= 0xdfff && isLoneSurrogate(text, index, code)) {
      // A lone surrogate would be lost on the way to the host, where texts are UTF-8.
      replacement = `\\u${StringPrototypeToUpperCase(hex(code, 4))}`;
    } else {
      continue;
    }
    escaped += StringPrototypeSlice(text, start, index) + replacement;
    start = index + 1;
  }
  return `${mark}${escaped}${start === 0 ? text : StringPrototypeSlice(text, start)}${mark}`;
}

// A symbol as a key, with control characters, quotes and backslashes escaped.
export function escapeKey(text) {
  let escaped = "";
  for (let index = 0; index < text.length; index++) {
    const code = StringPrototypeCharCodeAt(text, index);
    if (code === 0x27 || code === 0x5c) {
      escaped += `\\${text[index]}`;
    } else if (code === 0x0b) {
      escaped += "\\x0B";
    } else if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) {
      escaped += ESCAPES[code] ?? `\\x${StringPrototypeToUpperCase(hex(code, 2))}`;
    } else {
      escaped += text[index];
    }
  }
  return escaped;
}

export function isLetter(code) {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f;
}

// Whether `text` consists of letters, digits and underscores and does not begin with a digit; with `dots`, dots are
// allowed too.
export function isIdentifier(text, dots) {
  if (text === "" || !isLetter(StringPrototypeCharCodeAt(text, 0))) {
    return false;
  }
  for (let index = 1; index < text.length; index++) {
    const code = StringPrototypeCharCodeAt(text, index);
    if (!isLetter(code) && !(code >= 0x30 && code <= 0x39) && !(dots && code === 0x2e)) {
      return false;
    }
  }
  return true;
}

function isFullWidth(code) {
  return code >= 0x1100 &&
    (code <= 0x115f || code === 0x2329 || code === 0x232a || (code >= 0x2e80 && code <= 0x3247 && code !== 0x303f) ||
      (code >= 0x3250 && code <= 0x4dbf) || (code >= 0x4e00 && code <= 0xa4c6) || (code >= 0xa960 && code <= 0xa97c) ||
      (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe10 && code <= 0xfe19) ||
      (code >= 0xfe30 && code <= 0xfe6b) || (code >= 0xff01 && code <= 0xff60) || (code >= 0xffe0 && code <= 0xffe6) ||
      (code >= 0x1b000 && code <= 0x1b001) || (code >= 0x1f200 && code <= 0x1f251) ||
      (code >= 0x1f300 && code <= 0x1f64f) || (code >= 0x20000 && code <= 0x3fffd));
}

function isZeroWidth(code) {
  return code <= 0x1f || (code >= 0x7f && code <= 0x9f) || (code >= 0x300 && code <= 0x36f) ||
    (code >= 0x200b && code <= 0x200f) || (code >= 0x20d0 && code <= 0x20ff) || (code >= 0xfe00 && code <= 0xfe0f) ||
    (code >= 0xfe20 && code <= 0xfe2f) || (code >= 0xe0100 && code <= 0xe01ef);
}

// The number of terminal columns of a text.
export function widthOf(text) {
  let index = 0;
  while (index < text.length) {
    const code = StringPrototypeCharCodeAt(text, index);
    if (code < 0x20 || code >= 0x7f) {
      break;
    }
    index++;
  }
  if (index === text.length) {
    return index;
  }
  const normal = text.length > MAX_NORMALIZED ? text : StringPrototypeNormalize(text, "NFC");
  let width = 0;
  for (index = 0; index < normal.length; index++) {
    const code = StringPrototypeCodePointAt(normal, index);
    if (code > 0xffff) {
      index++;
    }
    width += isFullWidth(code) ? 2 : isZeroWidth(code) ? 0 : 1;
  }
  return width;
}

export function numberText(value) {
  return ObjectIs(value, -0) ? "-0" : `${value}`;
}

export function symbolText(symbol) {
  const description = SymbolPrototypeGetDescription(symbol);
  return description === undefined ? "Symbol()" : `Symbol(${nameOf(description)})`;
}

export function isWhiteSpace(code) {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0xa0 || code === 0x2028 || code === 0x2029;
}

export function linesOf(text) {
  const lines = makeList();
  let start = 0;
  while (lines.length < MAX_LINES) {
    const end = StringPrototypeIndexOf(text, "\n", start);
    push(lines, StringPrototypeSlice(text, start, end === -1 ? text.length : end));
    if (end === -1) {
      return lines;
    }
    start = end + 1;
  }
  push(lines, "... more lines");
  return lines;
}
