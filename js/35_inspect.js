// Values as text, for `console` and for thrown values: what Deno prints, with bounds.
//
// Ours, because the kept libraries cannot be bounded and trust what a script can replace: object-inspect and loupe run
// getters and proxy traps, node-inspect-extracted (Node's own) runs traps and throws for a revoked proxy, all three call
// patched built-ins and print every key of an object, and deno_web's inspector is Rust, which allocates what a script
// asks for and cannot be interrupted. Here everything runs in the guest: its time ends with the run's limit, its memory
// is the heap that the limit counts, and no number of a script's is used before it has been clamped.
//
// The rules of layout are those of Node's lib/internal/util/inspect.js as Deno has changed them; tests/inspect compares.

import { core, primordials } from "ext:core/mod.js";

const {
  AggregateError,
  AggregateErrorPrototype,
  Array,
  ArrayBuffer,
  ArrayBufferPrototype,
  ArrayBufferPrototypeGetByteLength,
  ArrayBufferPrototypeGetDetached,
  ArrayPrototype,
  ArrayPrototypeSort,
  BigIntPrototypeToString,
  BigIntPrototypeValueOf,
  Boolean,
  BooleanPrototype,
  BooleanPrototypeValueOf,
  DataView,
  DataViewPrototype,
  DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset,
  Date,
  DatePrototype,
  DatePrototypeGetTime,
  DatePrototypeToISOString,
  Error,
  ErrorPrototype,
  Function,
  FunctionPrototype,
  FunctionPrototypeToString,
  Map,
  MapIteratorPrototypeNext,
  MapPrototype,
  MapPrototypeEntries,
  MapPrototypeGet,
  MapPrototypeGetSize,
  MapPrototypeSet,
  MathFloor,
  MathMax,
  MathMin,
  MathRound,
  MathSqrt,
  Number,
  NumberIsNaN,
  NumberPrototype,
  NumberPrototypeToString,
  NumberPrototypeValueOf,
  Object,
  ObjectHasOwn,
  ObjectIs,
  ObjectPrototype,
  ObjectPrototypeIsPrototypeOf,
  Promise,
  PromisePrototype,
  RangeError,
  RangeErrorPrototype,
  ReflectApply,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  ReflectHas,
  RegExp,
  RegExpPrototype,
  RegExpPrototypeGetDotAll,
  RegExpPrototypeGetGlobal,
  RegExpPrototypeGetHasIndices,
  RegExpPrototypeGetIgnoreCase,
  RegExpPrototypeGetMultiline,
  RegExpPrototypeGetSource,
  RegExpPrototypeGetSticky,
  RegExpPrototypeGetUnicode,
  RegExpPrototypeGetUnicodeSets,
  SafeMap,
  Set,
  SetIteratorPrototypeNext,
  SetPrototype,
  SetPrototypeGetSize,
  SetPrototypeValues,
  String,
  StringPrototype,
  StringPrototypeCharCodeAt,
  StringPrototypeCodePointAt,
  StringPrototypeEndsWith,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeNormalize,
  StringPrototypePadEnd,
  StringPrototypePadStart,
  StringPrototypeRepeat,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  StringPrototypeToUpperCase,
  StringPrototypeValueOf,
  SymbolFor,
  SymbolPrototypeGetDescription,
  SymbolPrototypeValueOf,
  SymbolToStringTag,
  TypeError,
  TypeErrorPrototype,
  TypedArrayPrototype,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetSymbolToStringTag,
  Uint8Array,
  WeakMap,
  WeakMapPrototype,
  WeakSet,
  WeakSetPrototype,
} = primordials;

// Budgets of one inspection, which all that custom inspectors call is a part of.

// Levels of nesting, whatever `depth` asks for. Each takes a few hundred bytes of V8's stack of a megabyte; nobody reads
// on after a hundred.
const MAX_DEPTH = 100;
// Properties, elements and entries of collections: a tenth of a second of work.
const MAX_ENTRIES = 65_536;
// As much as a run's output may be by default.
export const MAX_CHARACTERS = 2 ** 20;
// Lines of one text (a stack, a string that is broken at its ends of lines, what a custom inspector gives).
const MAX_LINES = 10_000;
// Of a name: a property's, a class's, a tag. Deno prints all of it.
const MAX_NAME = 10_000;
// Prototypes that are looked through for a constructor, a tag or a custom inspector.
const MAX_PROTOTYPES = 1_000;
// Where a name and a message are looked for in a stack: its first line. A search through all of it for a text that a
// script chooses could take minutes, and V8 does not interrupt it.
const HEADER = 256;
// A wider element is never grouped with others, so that its exact width does not matter.
const MAX_GROUPED = 256;
// Indentation is cut here: two for each level, and as much again for custom inspectors.
const MAX_INDENTATION = 4 * MAX_DEPTH;
// Holes that are looked through one by one, in a few hundredths of a second. Beyond them V8 lists the keys, which takes
// as much of the heap as the elements.
const MAX_HOLES = 2 ** 20;
// Above it, normalizing a text to measure it could take seconds, in which V8 looks for no interrupt.
const MAX_NORMALIZED = 1_000;

const MIN_LINE_LENGTH = 16;
const DEFAULT_DEPTH = 4;

// What `op_cx_kind` answers (src/js/ops.rs).
const KIND_PROXY = 1;
const KIND_ARRAY = 2;
const KIND_FUNCTION = 3;
const KIND_ASYNC_FUNCTION = 4;
const KIND_GENERATOR_FUNCTION = 5;
const KIND_ASYNC_GENERATOR_FUNCTION = 6;
const KIND_MAP = 7;
const KIND_SET = 8;
const KIND_TYPED_ARRAY = 9;
const KIND_MAP_ITERATOR = 10;
const KIND_SET_ITERATOR = 11;
const KIND_ARGUMENTS = 12;
const KIND_REGEXP = 13;
const KIND_DATE = 14;
const KIND_ERROR = 15;
const KIND_ARRAY_BUFFER = 16;
const KIND_DATA_VIEW = 17;
const KIND_PROMISE = 18;
const KIND_WEAK_SET = 19;
const KIND_WEAK_MAP = 20;
const KIND_NAMESPACE = 21;
const KIND_NUMBER = 22;
const KIND_STRING = 23;
const KIND_BOOLEAN = 24;
const KIND_BIGINT = 25;
const KIND_SYMBOL = 26;

// Bits of `op_cx_keys`.
const KEYS_ALL = 0;
const KEYS_ENUMERABLE = 1;
const KEYS_WITHOUT_INDICES = 2;

// How an object's entries are laid out.
const AS_OBJECT = 0;
const AS_ELEMENT = 1;
const AS_LIST = 2;

const CUSTOM_INSPECT = SymbolFor("Deno.customInspect");
const PRIVATE_CUSTOM_INSPECT = SymbolFor("Deno.privateCustomInspect");
const NODE_CUSTOM_INSPECT = SymbolFor("nodejs.util.inspect.custom");

// Names of built-in prototypes, whatever a script makes of their `constructor`.
const wellKnown = new SafeMap();
const WELL_KNOWN = [
  [ArrayPrototype, "Array"],
  [ArrayBufferPrototype, "ArrayBuffer"],
  [FunctionPrototype, "Function"],
  [MapPrototype, "Map"],
  [SetPrototype, "Set"],
  [ObjectPrototype, "Object"],
  [TypedArrayPrototype, "TypedArray"],
  [RegExpPrototype, "RegExp"],
  [DatePrototype, "Date"],
  [DataViewPrototype, "DataView"],
  [ErrorPrototype, "Error"],
  [AggregateErrorPrototype, "AggregateError"],
  [RangeErrorPrototype, "RangeError"],
  [TypeErrorPrototype, "TypeError"],
  [BooleanPrototype, "Boolean"],
  [NumberPrototype, "Number"],
  [StringPrototype, "String"],
  [PromisePrototype, "Promise"],
  [WeakMapPrototype, "WeakMap"],
  [WeakSetPrototype, "WeakSet"],
];
for (let index = 0; index < WELL_KNOWN.length; index++) {
  MapPrototypeSet(wellKnown, WELL_KNOWN[index][0], WELL_KNOWN[index][1]);
}

const kindOf = (value) => core.ops.op_cx_kind(value);

// --- Lists ----------------------------------------------------------------------------------------------------------
// Not arrays: a script can put a setter for index 0 on `Array.prototype`.

function makeList() {
  return { __proto__: null, length: 0 };
}

function push(list, item) {
  list[list.length++] = item;
}

function join(list, separator) {
  let text = "";
  for (let index = 0; index < list.length; index++) {
    text += index === 0 ? list[index] : separator + list[index];
  }
  return text;
}

function remove(list, index) {
  for (let next = index + 1; next < list.length; next++) {
    list[next - 1] = list[next];
  }
  delete list[--list.length];
}

function indexIn(list, item) {
  for (let index = 0; index < list.length; index++) {
    if (list[index] === item) {
      return index;
    }
  }
  return -1;
}

// --- Budgets --------------------------------------------------------------------------------------------------------

function makeState() {
  return {
    __proto__: null,
    characters: MAX_CHARACTERS,
    entries: MAX_ENTRIES,
    holes: MAX_HOLES,
    level: 0,
    // The objects around the present one, and the numbers of those that occur in themselves.
    seen: makeList(),
    circular: undefined,
  };
}

function isSpent(state) {
  return state.characters <= 0 || state.entries <= 0;
}

function isLastEntry(state) {
  if (isSpent(state)) {
    return true;
  }
  state.entries--;
  return false;
}

function plural(count) {
  return count === 1 ? "" : "s";
}

function moreItems(count) {
  return `... ${count} more item${plural(count)}`;
}

// The beginning of a text, and how much is missing.
export function clip(text, most) {
  if (text.length <= most) {
    return text;
  }
  const missing = text.length - most;
  return `${StringPrototypeSlice(text, 0, most)}... ${missing} more character${plural(missing)}`;
}

// A text that becomes a part of the output: counted, and cut where the budget ends.
function spend(state, text) {
  const cut = text.length > state.characters ? clip(text, MathMax(state.characters, 0)) : text;
  state.characters -= cut.length;
  return cut;
}

function nameOf(text) {
  return text.length > MAX_NAME ? `${StringPrototypeSlice(text, 0, MAX_NAME)}...` : text;
}

const spaces = (count) => StringPrototypeRepeat(" ", count);

// Begins each line but the first with `indentation`.
function indentLines(state, text, indentation) {
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

// --- Options --------------------------------------------------------------------------------------------------------

const QUOTES = { __proto__: null, length: 3, 0: '"', 1: "'", 2: "`" };

function makeContext(state) {
  return {
    __proto__: null,
    state,
    breakLength: 80,
    compact: 3,
    currentDepth: 0,
    customInspect: true,
    depth: DEFAULT_DEPTH,
    escapeSequences: true,
    getters: false,
    indentation: 0,
    maxArrayLength: 100,
    maxStringLength: 10_000,
    quotes: QUOTES,
    showHidden: false,
    showProxy: false,
    sorted: false,
    trailingComma: false,
  };
}

// A script's option, read once. Getters and traps are the script's own time.
function option(options, name) {
  try {
    return ObjectHasOwn(options, name) ? options[name] : undefined;
  } catch {
    return undefined;
  }
}

function flag(options, name, otherwise) {
  const value = option(options, name);
  return value === undefined ? otherwise : !!value;
}

// A number between 0 and `most`; null is no limit, which is ours.
function bounded(value, most, otherwise) {
  if (value === null) {
    return most;
  }
  return typeof value === "number" && !NumberIsNaN(value) ? MathMin(MathMax(MathFloor(value), 0), most) : otherwise;
}

function applyOptions(context, options) {
  if (options === null || typeof options !== "object") {
    return context;
  }
  const depth = option(options, "depth");
  if (typeof depth === "number" && !NumberIsNaN(depth)) {
    context.depth = MathMin(depth, MAX_DEPTH);
  } else if (depth === null || (depth === undefined && hasOwn(options, "depth"))) {
    context.depth = MAX_DEPTH;
  }
  context.breakLength = bounded(option(options, "breakLength"), MAX_CHARACTERS, context.breakLength);
  context.indentation = bounded(option(options, "indentationLvl"), MAX_INDENTATION, context.indentation);
  const elements = option(options, "iterableLimit") ?? option(options, "maxArrayLength");
  context.maxArrayLength = bounded(elements, MAX_ENTRIES, context.maxArrayLength);
  const characters = option(options, "strAbbreviateSize") ?? option(options, "maxStringLength");
  context.maxStringLength = bounded(characters, MAX_CHARACTERS, context.maxStringLength);
  if (option(options, "maxArrayLength") === null) {
    context.maxArrayLength = MAX_ENTRIES;
  }
  if (option(options, "maxStringLength") === null) {
    context.maxStringLength = MAX_CHARACTERS;
  }
  const compact = option(options, "compact");
  if (typeof compact === "boolean" || (typeof compact === "number" && !NumberIsNaN(compact))) {
    context.compact = compact === false ? 0 : compact;
  }
  const getters = option(options, "getters");
  if (getters !== undefined) {
    context.getters = getters === "get" || getters === "set" ? getters : !!getters;
  }
  const sorted = option(options, "sorted");
  if (sorted !== undefined) {
    context.sorted = typeof sorted === "function" ? sorted : !!sorted;
  }
  context.customInspect = flag(options, "customInspect", context.customInspect);
  context.escapeSequences = flag(options, "escapeSequences", context.escapeSequences);
  context.showHidden = flag(options, "showHidden", context.showHidden);
  context.showProxy = flag(options, "showProxy", context.showProxy);
  context.trailingComma = flag(options, "trailingComma", context.trailingComma);
  return context;
}

function hasOwn(object, name) {
  try {
    return ObjectHasOwn(object, name);
  } catch {
    return false;
  }
}

// What a custom inspector is given: copies of the settings, nothing of ours.
function optionsFor(context) {
  return {
    breakLength: context.breakLength,
    colors: false,
    compact: context.compact,
    currentDepth: context.currentDepth,
    customInspect: context.customInspect,
    depth: context.depth,
    escapeSequences: context.escapeSequences,
    getters: context.getters,
    indentationLvl: context.indentation,
    maxArrayLength: context.maxArrayLength,
    maxStringLength: context.maxStringLength,
    showHidden: context.showHidden,
    showProxy: context.showProxy,
    sorted: context.sorted,
    stylize: (text) => String(text),
    trailingComma: context.trailingComma,
  };
}

// --- Looking at objects without running their code ------------------------------------------------------------------

// Whether a look-up on `value`, which is no proxy, would meet a proxy.
function hasProxyPrototype(value) {
  let holder = value;
  for (let links = 0; links < MAX_PROTOTYPES; links++) {
    holder = ReflectGetPrototypeOf(holder);
    if (holder === null || holder === ObjectPrototype) {
      return false;
    }
    if (kindOf(holder) === KIND_PROXY) {
      return true;
    }
  }
  return true;
}

// A property of an object that is no proxy or of its prototypes, as far as there is no proxy among them. Runs a getter,
// which is only done for what has to be known (a tag, an error's message), never for what is shown.
function read(value, key) {
  let holder = value;
  for (let links = 0; links < MAX_PROTOTYPES && holder !== null && kindOf(holder) !== KIND_PROXY; links++) {
    try {
      const descriptor = ReflectGetOwnPropertyDescriptor(holder, key);
      if (descriptor !== undefined) {
        if (ObjectHasOwn(descriptor, "value")) {
          return descriptor.value;
        }
        return typeof descriptor.get === "function" ? ReflectApply(descriptor.get, value, []) : undefined;
      }
    } catch {
      // A getter that throws, or an export that is not there yet.
      return undefined;
    }
    holder = ReflectGetPrototypeOf(holder);
  }
  return undefined;
}

// The value of a property that needs no code to be read.
function ownValue(object, key) {
  const descriptor = ReflectGetOwnPropertyDescriptor(object, key);
  return descriptor !== undefined && ObjectHasOwn(descriptor, "value") ? descriptor.value : undefined;
}

function isError(value, kind) {
  return kind === KIND_ERROR || (!hasProxyPrototype(value) && ObjectPrototypeIsPrototypeOf(ErrorPrototype, value));
}

function isFunctionKind(kind) {
  return kind >= KIND_FUNCTION && kind <= KIND_ASYNC_GENERATOR_FUNCTION;
}

// Whether `prototype` is above `value`.
function isAbove(prototype, value) {
  let holder = value;
  for (let links = 0; links < MAX_PROTOTYPES; links++) {
    if (kindOf(holder) === KIND_PROXY) {
      return false;
    }
    holder = ReflectGetPrototypeOf(holder);
    if (holder === prototype) {
      return true;
    }
    if (holder === null) {
      return false;
    }
  }
  return false;
}

// The name of the class that `value` belongs to, or null if it has no prototype.
function constructorName(context, value, recurseTimes) {
  let holder = value;
  let first;
  for (let links = 0; links < MAX_PROTOTYPES && holder !== null; links++) {
    if (links > 0) {
      const name = MapPrototypeGet(wellKnown, holder);
      if (name !== undefined) {
        return name;
      }
      if (kindOf(holder) === KIND_PROXY) {
        break;
      }
    }
    const constructor = ownValue(holder, "constructor");
    if (typeof constructor === "function" && kindOf(constructor) !== KIND_PROXY) {
      const name = ownValue(constructor, "name");
      if (typeof name === "string" && name !== "") {
        const prototype = ownValue(constructor, "prototype");
        if (prototype !== null && typeof prototype === "object" && isAbove(prototype, value)) {
          return nameOf(name);
        }
      }
    }
    holder = ReflectGetPrototypeOf(holder);
    if (first === undefined) {
      first = holder;
    }
  }
  if (first === null) {
    return null;
  }
  const internal = nameOf(core.ops.op_cx_constructor_name(value));
  if (first === undefined || kindOf(first) === KIND_PROXY || recurseTimes > context.depth) {
    return `${internal} <Complex prototype>`;
  }
  const above = constructorName(context, first, recurseTimes + 1);
  if (above !== null) {
    return nameOf(`${internal} <${above}>`);
  }
  const shallow = makeContext(context.state);
  shallow.customInspect = false;
  shallow.depth = -1;
  return nameOf(`${internal} <${formatValue(shallow, first, 0)}>`);
}

function prefixOf(constructor, tag, fallback, size = "") {
  if (constructor === null) {
    return tag !== "" && fallback !== tag
      ? `[${fallback}${size}: null prototype] [${tag}] `
      : `[${fallback}${size}: null prototype] `;
  }
  return tag !== "" && constructor !== tag ? `${constructor}${size} [${tag}] ` : `${constructor}${size} `;
}

function plainPrefix(value, constructor, tag) {
  let fallback = "";
  if (constructor === null) {
    fallback = nameOf(core.ops.op_cx_constructor_name(value));
    if (fallback === tag) {
      fallback = "Object";
    }
  }
  return prefixOf(constructor, tag, fallback);
}

// --- Texts ----------------------------------------------------------------------------------------------------------

function hex(code, digits) {
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

function quote(context, text) {
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
      // It does not survive on its way to the host, where texts are UTF-8.
      replacement = `\\u${StringPrototypeToUpperCase(hex(code, 4))}`;
    } else {
      continue;
    }
    escaped += StringPrototypeSlice(text, start, index) + replacement;
    start = index + 1;
  }
  return `${mark}${escaped}${start === 0 ? text : StringPrototypeSlice(text, start)}${mark}`;
}

// A symbol's description between `Symbol(` and `)` where it is a key: control characters, quotes and backslashes escaped.
function escapeKey(text) {
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

function isLetter(code) {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f;
}

// Whether `text` is letters, digits and underscores, and begins with no digit; `dots` allows for those too.
function isIdentifier(text, dots) {
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

// How many columns a text takes on a terminal.
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

function formatString(context, value) {
  const { state } = context;
  let text = value;
  let trailer = "";
  const most = MathMin(context.maxStringLength, MathMax(state.characters, 0));
  if (text.length > most) {
    const missing = text.length - most;
    text = StringPrototypeSlice(text, 0, most);
    trailer = `... ${missing} more character${plural(missing)}`;
  }
  if (
    context.compact !== true && text.length > MIN_LINE_LENGTH &&
    text.length > context.breakLength - context.indentation - 4 && StringPrototypeIncludes(text, "\n")
  ) {
    const separator = ` +\n${spaces(context.indentation + 2)}`;
    let result = "";
    let start = 0;
    for (let lines = 1; start < text.length; lines++) {
      const end = StringPrototypeIndexOf(text, "\n", start);
      const next = end === -1 || lines >= MAX_LINES ? text.length : end + 1;
      if (start > 0) {
        result += separator;
        state.characters -= separator.length;
      }
      result += spend(state, quote(context, StringPrototypeSlice(text, start, next)));
      start = next;
      if (isSpent(state) && start < text.length) {
        return `${result}... ${value.length - start} more characters`;
      }
    }
    return result + trailer;
  }
  // Not cut: the quotes would be missing. What escaping adds is at most five times the text.
  const quoted = quote(context, text);
  state.characters -= quoted.length;
  return quoted + trailer;
}

export function numberText(value) {
  return ObjectIs(value, -0) ? "-0" : `${value}`;
}

function symbolText(symbol) {
  const description = SymbolPrototypeGetDescription(symbol);
  return description === undefined ? "Symbol()" : `Symbol(${nameOf(description)})`;
}

function formatSymbol(context, value) {
  const description = SymbolPrototypeGetDescription(value);
  if (description === undefined || isIdentifier(nameOf(description), true)) {
    return symbolText(value);
  }
  return `Symbol(${quote(context, nameOf(description))})`;
}

function formatPrimitive(context, value) {
  switch (typeof value) {
    case "string":
      return formatString(context, value);
    case "number":
      return spend(context.state, numberText(value));
    case "bigint":
      return spend(context.state, `${BigIntPrototypeToString(value)}n`);
    case "symbol":
      return spend(context.state, formatSymbol(context, value));
    default:
      return spend(context.state, `${value}`);
  }
}

// --- Custom inspectors ----------------------------------------------------------------------------------------------

// The context of the inspection whose custom inspector runs.
let current;

// `inspect` for custom inspectors: a part of the inspection that called them, with its budgets.
function inspectWithin(value, options) {
  if (current === undefined) {
    return inspect(value, options);
  }
  const { state } = current;
  if (state.level >= MAX_DEPTH) {
    return "[Object]";
  }
  const context = makeContext(state);
  context.currentDepth = current.currentDepth;
  applyOptions(context, options);
  const { length } = state.seen;
  state.level++;
  try {
    return formatValue(context, value, 0);
  } finally {
    // Also after an error in between, which the inspector may have caught.
    state.level--;
    while (state.seen.length > length) {
      delete state.seen[--state.seen.length];
    }
  }
}

// What was thrown, or of an error only its message.
function thrownText(error, onlyMessage = false) {
  try {
    if (onlyMessage && error !== null && typeof error === "object") {
      const message = read(error, "message");
      if (typeof message === "string") {
        return clip(message, MAX_NAME);
      }
    }
    return clip(String(error), MAX_NAME);
  } catch {
    return "a value that cannot be printed";
  }
}

// What a custom inspector makes of `value`, or undefined if there is none or it gives `value` back.
function formatCustom(context, value, recurseTimes) {
  const ofDeno = ReflectHas(value, CUSTOM_INSPECT)
    ? CUSTOM_INSPECT
    : ReflectHas(value, PRIVATE_CUSTOM_INSPECT)
    ? PRIVATE_CUSTOM_INSPECT
    : undefined;
  const key = ofDeno ?? (ReflectHas(value, NODE_CUSTOM_INSPECT) ? NODE_CUSTOM_INSPECT : undefined);
  if (key === undefined) {
    return undefined;
  }
  const inspector = read(value, key);
  if (typeof inspector !== "function") {
    return undefined;
  }
  if (ofDeno === undefined) {
    // A class's prototype has the method, and nothing to call it on.
    const constructor = ownValue(value, "constructor");
    if (typeof constructor === "function" && kindOf(constructor) !== KIND_PROXY && ownValue(constructor, "prototype") === value) {
      return undefined;
    }
  }
  const { state } = context;
  const options = optionsFor(context);
  const args = ofDeno === undefined
    ? [context.depth - recurseTimes, options, inspectWithin]
    : [inspectWithin, options];
  const previous = current;
  current = context;
  let result;
  let text;
  try {
    result = ReflectApply(inspector, value, args);
    if (typeof result === "string") {
      text = result;
    } else if (ofDeno !== undefined) {
      text = String(result);
    }
  } catch (error) {
    text = `[Custom inspector threw: ${thrownText(error)}]`;
  } finally {
    current = previous;
  }
  if (text !== undefined) {
    const cut = spend(state, text);
    return ofDeno === undefined ? indentLines(state, cut, spaces(context.indentation)) : cut;
  }
  if (result === value) {
    return undefined;
  }
  if (state.level >= MAX_DEPTH) {
    return "[Object]";
  }
  state.level++;
  const formatted = formatValue(context, result, recurseTimes);
  state.level--;
  return formatted;
}

// --- Objects --------------------------------------------------------------------------------------------------------

function formatValue(context, value, recurseTimes, isInTypedArray = false) {
  if (value === null) {
    return spend(context.state, "null");
  }
  if (typeof value !== "object" && typeof value !== "function") {
    return formatPrimitive(context, value);
  }
  const { state } = context;
  if (isSpent(state)) {
    return "...";
  }
  let object = value;
  let kind = kindOf(object);
  if (kind === KIND_PROXY) {
    const details = core.ops.op_get_proxy_details(object);
    if (details[0] === null) {
      return spend(state, "<Revoked Proxy>");
    }
    if (context.showProxy) {
      return `Proxy ${formatObject(context, [details[0], details[1]], KIND_ARRAY, recurseTimes, false)}`;
    }
    for (let links = 0; kind === KIND_PROXY; links++) {
      object = core.ops.op_get_proxy_details(object)[0];
      if (object === null) {
        return spend(state, "<Revoked Proxy>");
      }
      if (links === MAX_PROTOTYPES) {
        return spend(state, "[Proxy]");
      }
      kind = kindOf(object);
    }
  }
  if (context.customInspect && !hasProxyPrototype(object)) {
    const custom = formatCustom(context, object, recurseTimes);
    if (custom !== undefined) {
      return custom;
    }
  }
  if (indexIn(state.seen, object) !== -1) {
    state.circular ??= new SafeMap();
    let index = MapPrototypeGet(state.circular, object);
    if (index === undefined) {
      index = MapPrototypeGetSize(state.circular) + 1;
      MapPrototypeSet(state.circular, object, index);
    }
    return spend(state, `[Circular *${index}]`);
  }
  return formatObject(context, object, kind, recurseTimes, isInTypedArray);
}

function keysOf(context, value, bits) {
  // Numbers stand for indices. Nothing of the list's prototype is used.
  return core.ops.op_cx_keys(value, context.showHidden ? bits & ~KEYS_ENUMERABLE : bits);
}

// Everything there is to say about an object beside its own properties: `keys` are those that are shown, `entries` fills
// a list and says whether it left something out.
function formatObject(context, value, kind, recurseTimes, isInTypedArray) {
  const { state } = context;
  const constructor = constructorName(context, value, recurseTimes);
  let tag = "";
  if (!hasProxyPrototype(value) && ReflectHas(value, SymbolToStringTag)) {
    const given = read(value, SymbolToStringTag);
    if (typeof given === "string") {
      tag = nameOf(given);
    }
  }

  let base = "";
  let keys;
  let entries;
  let open = "{";
  let close = "}";
  let layout = AS_OBJECT;
  switch (kind) {
    case KIND_ARRAY: {
      keys = keysOf(context, value, KEYS_ENUMERABLE | KEYS_WITHOUT_INDICES);
      open = `${constructor !== "Array" || tag !== "" ? prefixOf(constructor, tag, "Array", `(${value.length})`) : ""}[`;
      close = "]";
      if (value.length === 0 && keys.length === 0) {
        return spend(state, `${open}]`);
      }
      layout = AS_LIST;
      entries = formatArray;
      break;
    }
    case KIND_TYPED_ARRAY: {
      const size = TypedArrayPrototypeGetLength(value);
      keys = keysOf(context, value, KEYS_ENUMERABLE | KEYS_WITHOUT_INDICES);
      open = `${prefixOf(constructor, tag, TypedArrayPrototypeGetSymbolToStringTag(value), `(${size})`)}[`;
      close = "]";
      if (size === 0 && keys.length === 0) {
        return spend(state, `${open}]`);
      }
      layout = AS_LIST;
      entries = formatTypedArray;
      break;
    }
    case KIND_SET:
    case KIND_MAP: {
      const isSet = kind === KIND_SET;
      const size = isSet ? SetPrototypeGetSize(value) : MapPrototypeGetSize(value);
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, isSet ? "Set" : "Map", `(${size})`)}{`;
      if (size === 0 && keys.length === 0) {
        return spend(state, `${open}}`);
      }
      entries = isSet ? formatSet : formatMap;
      break;
    }
    case KIND_MAP_ITERATOR:
    case KIND_SET_ITERATOR: {
      const expected = kind === KIND_MAP_ITERATOR ? "Map Iterator" : "Set Iterator";
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `[${tag === expected || tag === "" ? "" : `${tag}] [`}${expected}] {`;
      entries = formatIterator;
      break;
    }
    case KIND_FUNCTION:
    case KIND_ASYNC_FUNCTION:
    case KIND_GENERATOR_FUNCTION:
    case KIND_ASYNC_GENERATOR_FUNCTION:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      base = functionBase(value, kind, constructor, tag);
      if (keys.length === 0) {
        return spend(state, base);
      }
      break;
    case KIND_REGEXP:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      base = `${prefixUnless("RegExp", constructor, tag)}${regExpText(value)}`;
      if (keys.length === 0 || recurseTimes > context.depth) {
        return spend(state, base);
      }
      break;
    case KIND_DATE:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      base = `${prefixUnless("Date", constructor, tag)}${dateText(value)}`;
      if (keys.length === 0) {
        return spend(state, base);
      }
      break;
    case KIND_ARRAY_BUFFER: {
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, "ArrayBuffer")}{`;
      if (isInTypedArray && keys.length === 0) {
        return spend(state, `${open} byteLength: ${ArrayBufferPrototypeGetByteLength(value)} }`);
      }
      entries = formatArrayBuffer;
      break;
    }
    case KIND_DATA_VIEW:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, "DataView")}{`;
      entries = formatDataView;
      break;
    case KIND_PROMISE:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, "Promise")}{`;
      entries = formatPromise;
      break;
    case KIND_WEAK_SET:
    case KIND_WEAK_MAP:
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      open = `${prefixOf(constructor, tag, kind === KIND_WEAK_SET ? "WeakSet" : "WeakMap")}{`;
      entries = formatWeak;
      break;
    case KIND_NAMESPACE:
      // All exports are enumerable; asking would throw for one that is not there yet.
      keys = core.ops.op_cx_keys(value, KEYS_ALL);
      keys = withoutSymbols(keys);
      open = `${prefixOf(constructor, tag, "Module")}{`;
      break;
    case KIND_NUMBER:
    case KIND_STRING:
    case KIND_BOOLEAN:
    case KIND_BIGINT:
    case KIND_SYMBOL:
      keys = keysOf(context, value, KEYS_ENUMERABLE | KEYS_WITHOUT_INDICES);
      base = boxedBase(context, value, kind, constructor, tag);
      if (keys.length === 0) {
        return base;
      }
      break;
    default: {
      keys = keysOf(context, value, KEYS_ENUMERABLE);
      if (isError(value, kind)) {
        const shown = makeList();
        base = formatError(context, value, kind, constructor, tag, keys, shown);
        keys = shown;
        if (keys.length === 0) {
          return base;
        }
      } else if (kind === KIND_ARGUMENTS && constructor === "Object") {
        open = "[Arguments] {";
      } else if (constructor !== "Object" || tag !== "") {
        open = `${plainPrefix(value, constructor, tag)}{`;
      }
      if (base === "" && keys.length === 0) {
        return spend(state, `${open}}`);
      }
    }
  }

  if (recurseTimes > context.depth || state.level >= MAX_DEPTH) {
    const style = plainPrefix(value, constructor, tag);
    const name = StringPrototypeSlice(style, 0, style.length - 1);
    return spend(state, constructor === null ? name : `[${name}]`);
  }

  const level = recurseTimes + 1;
  state.characters -= open.length + base.length;
  state.level++;
  push(state.seen, value);
  context.currentDepth = level;
  const output = makeList();
  let isCut = false;
  if (entries !== undefined) {
    const answer = entries(context, value, level, output);
    if (answer === MORE) {
      isCut = true;
    } else if (answer === ENTRIES) {
      open = `${StringPrototypeSlice(open, 0, open.length - " Iterator] {".length)} Entries] {`;
    }
  }
  const firstProperty = output.length;
  for (let index = 0; index < keys.length; index++) {
    if (isLastEntry(state)) {
      const missing = keys.length - index;
      push(output, `... ${missing} more propert${missing === 1 ? "y" : "ies"}`);
      break;
    }
    push(output, formatProperty(context, value, level, keys[index], layout));
  }
  delete state.seen[--state.seen.length];
  state.level--;

  if (state.circular !== undefined) {
    const index = MapPrototypeGet(state.circular, value);
    if (index !== undefined) {
      const reference = `<ref *${index}>`;
      if (context.compact === true) {
        open = `${reference} ${open}`;
      } else {
        base = base === "" ? reference : `${reference} ${base}`;
      }
    }
  }
  if (context.sorted !== false) {
    sort(context, output, layout === AS_OBJECT ? 0 : firstProperty);
  }
  return layOut(context, output, base, open, close, layout, level, value, isCut);
}

function withoutSymbols(keys) {
  const list = makeList();
  for (let index = 0; index < keys.length; index++) {
    if (typeof keys[index] !== "symbol") {
      push(list, keys[index]);
    }
  }
  return list;
}

function prefixUnless(expected, constructor, tag) {
  const prefix = prefixOf(constructor, tag, expected);
  return prefix === `${expected} ` ? "" : prefix;
}

// Sorts the entries from `start` on.
function sort(context, output, start) {
  const part = makeList();
  for (let index = start; index < output.length; index++) {
    push(part, output[index]);
  }
  try {
    ArrayPrototypeSort(part, typeof context.sorted === "function" ? context.sorted : undefined);
  } catch {
    return;
  }
  for (let index = 0; index < part.length; index++) {
    output[start + index] = `${part[index]}`;
  }
}

function formatProperty(context, value, recurseTimes, key, layout) {
  const { state } = context;
  let descriptor;
  let isMissing = false;
  try {
    descriptor = ReflectGetOwnPropertyDescriptor(value, key);
  } catch {
    // An export of a module that has not run yet.
    isMissing = true;
  }
  let text;
  let gap = " ";
  let isEnumerable = true;
  if (descriptor === undefined) {
    // Of an error, `cause` and `errors` may be its class's.
    text = isMissing ? spend(state, "<uninitialized>") : formatNested(context, read(value, key), recurseTimes);
  } else {
    isEnumerable = descriptor.enumerable;
    if (ObjectHasOwn(descriptor, "value")) {
      const step = context.compact === true && layout === AS_OBJECT ? 3 : 2;
      context.indentation += step;
      text = formatValue(context, descriptor.value, recurseTimes);
      if (step === 3 && context.breakLength < widthOf(text)) {
        gap = `\n${spaces(context.indentation)}`;
      }
      context.indentation -= step;
    } else {
      text = formatAccessor(context, value, descriptor, recurseTimes);
    }
  }
  state.characters -= context.indentation + 3;
  if (layout === AS_ELEMENT) {
    return text;
  }
  let name;
  if (typeof key === "symbol") {
    name = escapeKey(symbolText(key));
  } else {
    const whole = nameOf(`${key}`);
    if (whole === "__proto__") {
      name = "['__proto__']";
    } else {
      name = isIdentifier(whole, false) ? whole : quote(context, whole);
    }
  }
  state.characters -= name.length;
  return `${isEnumerable ? name : `[${name}]`}:${gap}${text}`;
}

function formatNested(context, value, recurseTimes, isInTypedArray = false) {
  context.indentation += 2;
  const text = formatValue(context, value, recurseTimes, isInTypedArray);
  context.indentation -= 2;
  return text;
}

function formatAccessor(context, value, descriptor, recurseTimes) {
  const { get, set } = descriptor;
  if (get === undefined) {
    return spend(context.state, set === undefined ? "undefined" : "[Setter]");
  }
  const label = set === undefined ? "Getter" : "Getter/Setter";
  const isAsked = context.getters === true || (context.getters === "get" && set === undefined) ||
    (context.getters === "set" && set !== undefined);
  if (!isAsked) {
    return spend(context.state, `[${label}]`);
  }
  let result;
  try {
    result = ReflectApply(get, value, []);
  } catch (error) {
    return spend(context.state, `[${label}: <Inspection threw (${thrownText(error, true)})>]`);
  }
  if (result !== null && (typeof result === "object" || typeof result === "function")) {
    return `[${label}] ${formatNested(context, result, recurseTimes)}`;
  }
  return `[${label}: ${formatNested(context, result, recurseTimes)}]`;
}

// --- What objects of a kind have beside properties ------------------------------------------------------------------

const MORE = 1;
const ENTRIES = 2;

function formatArray(context, value, recurseTimes, output) {
  const { state } = context;
  const { length } = value;
  const most = MathMin(context.maxArrayLength, length);
  const far = { __proto__: null, keys: undefined, position: 0 };
  let index = 0;
  while (output.length < most && index < length) {
    if (!ObjectHasOwn(value, index)) {
      const end = endOfHole(state, value, index, far);
      const count = end - index;
      push(output, spend(state, `<${count} empty item${plural(count)}>`));
      index = end;
      continue;
    }
    if (isLastEntry(state)) {
      break;
    }
    push(output, formatProperty(context, value, recurseTimes, index, AS_ELEMENT));
    index++;
  }
  if (index < length) {
    push(output, moreItems(length - index));
    return MORE;
  }
  return undefined;
}

// The first index after `start` that has an element, or the array's length. `far` keeps the list of keys.
function endOfHole(state, value, start, far) {
  const { length } = value;
  let index = start + 1;
  while (far.keys === undefined && state.holes > 0) {
    if (index === length || ObjectHasOwn(value, index)) {
      return index;
    }
    index++;
    state.holes--;
  }
  far.keys ??= core.ops.op_cx_keys(value, KEYS_ENUMERABLE);
  while (far.position < far.keys.length) {
    const key = far.keys[far.position];
    if (typeof key !== "number") {
      break;
    }
    if (key > start) {
      return key;
    }
    far.position++;
  }
  return length;
}

function formatTypedArray(context, value, recurseTimes, output) {
  const { state } = context;
  const length = TypedArrayPrototypeGetLength(value);
  const most = MathMin(context.maxArrayLength, length);
  let index = 0;
  while (index < most && !isLastEntry(state)) {
    const element = value[index++];
    push(output, spend(state, typeof element === "bigint" ? `${element}n` : numberText(element)));
  }
  if (context.showHidden) {
    push(output, `[length]: ${length}`);
  }
  if (index < length) {
    push(output, moreItems(length - index));
    return MORE;
  }
  return undefined;
}

function formatSet(context, value, recurseTimes, output) {
  const { state } = context;
  const size = SetPrototypeGetSize(value);
  const most = MathMin(context.maxArrayLength, size);
  const iterator = SetPrototypeValues(value);
  let count = 0;
  while (count < most && !isLastEntry(state)) {
    const { done, value: item } = SetIteratorPrototypeNext(iterator);
    if (done) {
      break;
    }
    push(output, formatNested(context, item, recurseTimes));
    state.characters -= context.indentation + 2;
    count++;
  }
  if (count < size) {
    push(output, moreItems(size - count));
  }
}

function formatMap(context, value, recurseTimes, output) {
  const { state } = context;
  const size = MapPrototypeGetSize(value);
  const most = MathMin(context.maxArrayLength, size);
  const iterator = MapPrototypeEntries(value);
  let count = 0;
  while (count < most && !isLastEntry(state)) {
    const { done, value: entry } = MapIteratorPrototypeNext(iterator);
    if (done) {
      break;
    }
    const key = formatNested(context, entry[0], recurseTimes);
    push(output, `${key} => ${formatNested(context, entry[1], recurseTimes)}`);
    state.characters -= context.indentation + 6;
    count++;
  }
  if (count < size) {
    push(output, moreItems(size - count));
  }
}

// What is left of an iterator of a map or a set, without taking it. V8 copies all of it: at most the 2^24 entries that
// one collection can have, in the guest's heap, in less time than it took to fill.
function formatIterator(context, value, recurseTimes, output) {
  const { state } = context;
  const preview = core.ops.op_preview_entries(value, true);
  if (preview === undefined) {
    return undefined;
  }
  const entries = preview[0];
  const isKeyed = preview[1];
  const size = isKeyed ? entries.length / 2 : entries.length;
  const most = MathMin(context.maxArrayLength, size);
  let count = 0;
  context.indentation += 2;
  while (count < most && !isLastEntry(state)) {
    if (isKeyed) {
      const pair = makeList();
      push(pair, formatValue(context, entries[2 * count], recurseTimes));
      push(pair, formatValue(context, entries[2 * count + 1], recurseTimes));
      push(output, layOut(context, pair, "", "[", "]", AS_LIST, recurseTimes));
    } else {
      push(output, formatValue(context, entries[count], recurseTimes));
    }
    state.characters -= context.indentation + 2;
    count++;
  }
  context.indentation -= 2;
  if (count < size) {
    push(output, moreItems(size - count));
  }
  return isKeyed ? ENTRIES : undefined;
}

function formatPromise(context, value, recurseTimes, output) {
  const details = core.ops.op_get_promise_details(value);
  if (details[0] === 0) {
    push(output, spend(context.state, "<pending>"));
    return;
  }
  const text = formatNested(context, details[1], recurseTimes);
  push(output, details[0] === 2 ? `<rejected> ${text}` : text);
}

// V8 could list them, all at once.
function formatWeak(context, _value, _recurseTimes, output) {
  push(output, spend(context.state, "<items unknown>"));
}

function formatArrayBuffer(context, value, _recurseTimes, output) {
  const { state } = context;
  const length = ArrayBufferPrototypeGetByteLength(value);
  if (ArrayBufferPrototypeGetDetached(value)) {
    push(output, spend(state, "(detached)"));
  } else {
    const most = MathMin(context.maxArrayLength, length, MathMax(MathFloor(state.characters / 3), 0));
    const bytes = new Uint8Array(value, 0, most);
    let text = "";
    for (let index = 0; index < most; index++) {
      text += index === 0 ? hex(bytes[index], 2) : ` ${hex(bytes[index], 2)}`;
    }
    if (most < length) {
      text += ` ... ${length - most} more byte${plural(length - most)}`;
    }
    push(output, spend(state, `[Uint8Contents]: <${text}>`));
  }
  push(output, `byteLength: ${length}`);
}

function formatDataView(context, value, recurseTimes, output) {
  let buffer;
  try {
    buffer = DataViewPrototypeGetBuffer(value);
    push(output, `byteLength: ${DataViewPrototypeGetByteLength(value)}`);
    push(output, `byteOffset: ${DataViewPrototypeGetByteOffset(value)}`);
  } catch {
    push(output, "(detached)");
  }
  push(output, `buffer: ${formatNested(context, buffer, recurseTimes)}`);
}

function regExpText(value) {
  return `/${clip(RegExpPrototypeGetSource(value), MAX_NAME)}/` + (RegExpPrototypeGetHasIndices(value) ? "d" : "") +
    (RegExpPrototypeGetGlobal(value) ? "g" : "") + (RegExpPrototypeGetIgnoreCase(value) ? "i" : "") +
    (RegExpPrototypeGetMultiline(value) ? "m" : "") + (RegExpPrototypeGetDotAll(value) ? "s" : "") +
    (RegExpPrototypeGetUnicode(value) ? "u" : "") + (RegExpPrototypeGetUnicodeSets(value) ? "v" : "") +
    (RegExpPrototypeGetSticky(value) ? "y" : "");
}

function dateText(value) {
  return NumberIsNaN(DatePrototypeGetTime(value)) ? "Invalid Date" : DatePrototypeToISOString(value);
}

const BOXED = {
  __proto__: null,
  [KIND_NUMBER]: ["Number", NumberPrototypeValueOf],
  [KIND_STRING]: ["String", StringPrototypeValueOf],
  [KIND_BOOLEAN]: ["Boolean", BooleanPrototypeValueOf],
  [KIND_BIGINT]: ["BigInt", BigIntPrototypeValueOf],
  [KIND_SYMBOL]: ["Symbol", SymbolPrototypeValueOf],
};

function boxedBase(context, value, kind, constructor, tag) {
  const name = BOXED[kind][0];
  const valueOf = BOXED[kind][1];
  let base = `[${name}`;
  if (name !== constructor) {
    base += constructor === null ? " (null prototype)" : ` (${constructor})`;
  }
  base += `: ${formatPrimitive(context, valueOf(value))}]`;
  return tag !== "" && tag !== constructor ? `${base} [${tag}]` : base;
}

const FUNCTIONS = {
  __proto__: null,
  [KIND_FUNCTION]: "Function",
  [KIND_ASYNC_FUNCTION]: "AsyncFunction",
  [KIND_GENERATOR_FUNCTION]: "GeneratorFunction",
  [KIND_ASYNC_GENERATOR_FUNCTION]: "AsyncGeneratorFunction",
};

function isWhiteSpace(code) {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0xa0 || code === 0x2028 || code === 0x2029;
}

// Whether a function's source is a class: `class` with no parenthesis behind it, which a method of that name has.
function isClassSource(source) {
  if (!StringPrototypeStartsWith(source, "class")) {
    return false;
  }
  let index = 5;
  while (index < source.length) {
    if (isWhiteSpace(StringPrototypeCharCodeAt(source, index))) {
      index++;
    } else if (StringPrototypeStartsWith(source, "//", index)) {
      index = StringPrototypeIndexOf(source, "\n", index);
    } else if (StringPrototypeStartsWith(source, "/*", index)) {
      index = StringPrototypeIndexOf(source, "*/", index + 2) + 2;
    } else {
      break;
    }
  }
  return source[index] !== "(";
}

function functionBase(value, kind, constructor, tag) {
  const name = read(value, "name");
  const own = typeof name === "string" ? nameOf(name) : "";
  const tagged = tag !== "" && tag !== constructor ? ` [${tag}]` : "";
  if (kind === KIND_FUNCTION && isClassSource(FunctionPrototypeToString(value))) {
    let base = `class ${ObjectHasOwn(value, "name") && own !== "" ? own : "(anonymous)"}`;
    if (constructor !== null && constructor !== "Function") {
      base += ` [${constructor}]`;
    }
    base += tagged;
    if (constructor === null) {
      return `[${base} extends [null prototype]]`;
    }
    const parent = ReflectGetPrototypeOf(value);
    const parentName = parent === null ? undefined : read(parent, "name");
    return typeof parentName === "string" && parentName !== ""
      ? `[${base} extends ${nameOf(parentName)}]`
      : `[${base}]`;
  }
  const type = FUNCTIONS[kind];
  let base = `[${type}${constructor === null ? " (null prototype)" : ""}${own === "" ? " (anonymous)" : `: ${own}`}]`;
  if (constructor !== null && constructor !== type && constructor !== "Function") {
    base += ` ${constructor}`;
  }
  return base + tagged;
}

// --- Errors ---------------------------------------------------------------------------------------------------------

function errorText(value, name, message) {
  const known = name ?? "Error";
  return message === "" ? known : known === "" ? message : `${known}: ${message}`;
}

function readText(value, key) {
  const text = read(value, key);
  return typeof text === "string" ? text : undefined;
}

// Where `part` begins in the first line of `stack`, or -1.
function findInHeader(stack, part) {
  const last = MathMin(HEADER, stack.length - part.length);
  for (let index = 0; index <= last; index++) {
    if (stack[index] === part[0] && StringPrototypeStartsWith(stack, part, index)) {
      return index;
    }
  }
  return -1;
}

function stackText(context, value, name, message) {
  const stack = read(value, "stack");
  const header = clip(errorText(value, name, message), MAX_CHARACTERS);
  if (typeof stack === "string") {
    return stack === "" ? header : clip(stack, MAX_CHARACTERS);
  }
  if (stack === undefined || stack === null || stack === false || stack === 0) {
    return header;
  }
  const { state } = context;
  push(state.seen, value);
  state.level++;
  context.indentation += 4;
  const text = state.level >= MAX_DEPTH ? "[Object]" : formatValue(context, stack, context.depth);
  context.indentation -= 4;
  state.level--;
  delete state.seen[--state.seen.length];
  return `${header}\n    ${text}`;
}

// What a stack of an error without a prototype begins with: its class, as V8 printed it.
function classInStack(stack) {
  const most = MathMin(stack.length, HEADER);
  let index = 0;
  while (index < most) {
    const code = StringPrototypeCharCodeAt(stack, index);
    const isPart = isLetter(code) || (code >= 0x30 && code <= 0x39) || code === 0x20 || code === 0x28 || code === 0x29 ||
      code === 0x2d || code === 0x5b || code === 0x5d;
    if (!isPart) {
      break;
    }
    index++;
  }
  if (index >= 2 && (stack[index] === ":" || StringPrototypeStartsWith(stack, "\n    at", index))) {
    return StringPrototypeSlice(stack, 0, index);
  }
  return index === stack.length && StringPrototypeEndsWith(stack, "Error") ? stack : "";
}

// Puts the class's name where V8 wrote `Error`.
function improveStack(stack, constructor, name, tag) {
  let { length } = name;
  const after = stack[length];
  const isNamed = StringPrototypeEndsWith(name, "Error") && StringPrototypeStartsWith(stack, name) &&
    (after === undefined || after === ":" || after === "\n");
  if (constructor !== null && !isNamed) {
    return stack;
  }
  let fallback = "Error";
  if (constructor === null) {
    fallback = classInStack(stack);
    ({ length } = fallback);
    if (fallback === "") {
      fallback = "Error";
    }
  }
  const padded = prefixOf(constructor, tag, fallback);
  const prefix = StringPrototypeSlice(padded, 0, padded.length - 1);
  if (name === prefix) {
    return stack;
  }
  if (!StringPrototypeIncludes(prefix, name)) {
    return `${prefix} [${name}]${StringPrototypeSlice(stack, length)}`;
  }
  return length === 0 ? `${prefix}: ${stack}` : `${prefix}${StringPrototypeSlice(stack, length)}`;
}

function linesOf(text) {
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

// Where more than three lines of `a` are also in `b`, and how many.
function commonLines(a, b) {
  for (let index = 0; index + 3 < a.length && index < MAX_DEPTH; index++) {
    const position = indexIn(b, a[index]);
    if (position === -1 || b.length - position <= 3) {
      continue;
    }
    let count = 1;
    while (index + count < a.length && position + count < b.length && a[index + count] === b[position + count]) {
      count++;
    }
    if (count > 3) {
      return { __proto__: null, index, count };
    }
  }
  return undefined;
}

// A stack's frames, without those that its cause's stack has as well.
function formatFrames(value, frames) {
  const lines = linesOf(frames);
  const cause = read(value, "cause");
  if (cause === null || typeof cause !== "object" || !isError(cause, kindOf(cause)) || kindOf(cause) === KIND_PROXY) {
    return join(lines, "\n");
  }
  const stack = clip(readText(cause, "stack") ?? "", MAX_CHARACTERS);
  const start = StringPrototypeIndexOf(stack, "\n    at");
  const common = start === -1 ? undefined : commonLines(lines, linesOf(StringPrototypeSlice(stack, start + 1)));
  if (common === undefined) {
    return join(lines, "\n");
  }
  const kept = makeList();
  const skipped = common.count - 2;
  for (let index = 0; index < lines.length; index++) {
    if (index === common.index + 1) {
      push(kept, `    ... ${skipped} lines matching cause stack trace ...`);
      index += skipped - 1;
    } else {
      push(kept, lines[index]);
    }
  }
  return join(kept, "\n");
}

// The stack of an error. `shown` is filled with those of `keys` that the stack does not say.
function formatError(context, value, kind, constructor, tag, keys, shown) {
  const { state } = context;
  const givenName = readText(value, "name");
  const message = clip(readText(value, "message") ?? "", MAX_CHARACTERS);
  const name = nameOf(givenName ?? "Error");
  let stack = stackText(context, value, givenName === undefined ? undefined : name, message);
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    const isSaid = key === "cause" || (!context.showHidden &&
      (key === "stack" || (key === "message" && (message === "" || findInHeader(stack, message) !== -1)) ||
        (key === "name" && (givenName === undefined || findInHeader(stack, name) !== -1))));
    if (!isSaid) {
      push(shown, key);
    }
  }
  if (!hasProxyPrototype(value) && ReflectHas(value, "cause")) {
    push(shown, "cause");
  }
  const errors = read(value, "errors");
  if (typeof errors === "object" && errors !== null && kindOf(errors) === KIND_ARRAY && indexIn(shown, "errors") === -1) {
    push(shown, "errors");
  }

  stack = improveStack(stack, constructor, name, tag);
  const position = message === "" ? -1 : findInHeader(stack, message);
  const start = StringPrototypeIndexOf(stack, "\n    at", position === -1 ? 0 : position + message.length);
  stack = start === -1
    ? `[${stack}]`
    : `${StringPrototypeSlice(stack, 0, start)}\n${formatFrames(value, StringPrototypeSlice(stack, start + 1))}`;
  return indentLines(state, spend(state, stack), spaces(context.indentation));
}

// --- Layout ---------------------------------------------------------------------------------------------------------

function fitsOnLine(context, output, start, base) {
  let length = output.length + start;
  if (length + output.length > context.breakLength) {
    return false;
  }
  for (let index = 0; index < output.length; index++) {
    length += output[index].length;
    if (length > context.breakLength) {
      return false;
    }
  }
  return base === "" || !StringPrototypeIncludes(base, "\n");
}

// The entries as one text, on one line if they fit there.
function layOut(context, entries, base, open, close, layout, recurseTimes, value, isCut = false) {
  const before = base === "" ? "" : `${base} `;
  if (context.compact === true) {
    if (fitsOnLine(context, entries, 0, base)) {
      return `${open}${base === "" ? "" : ` ${base}`} ${join(entries, ", ")} ${close}`;
    }
    const indentation = spaces(context.indentation);
    const line = base === "" && open.length === 1 ? " " : `${base === "" ? "" : ` ${base}`}\n${indentation}  `;
    return `${open}${line}${join(entries, `,\n${indentation}  `)} ${close}`;
  }
  let output = entries;
  if (context.compact >= 1) {
    const count = entries.length;
    if (layout === AS_LIST && count > 6) {
      output = group(context, entries, value, isCut);
    }
    if (context.currentDepth - recurseTimes < context.compact && count === output.length) {
      const start = output.length + context.indentation + open.length + base.length + 10;
      if (fitsOnLine(context, output, start, base)) {
        const joined = join(output, ", ");
        if (!StringPrototypeIncludes(joined, "\n")) {
          return `${before}${open} ${joined} ${close}`;
        }
      }
    }
  }
  const line = `\n${spaces(context.indentation)}`;
  const end = context.trailingComma ? "," : "";
  return `${before}${open}${line}  ${join(output, `,${line}  `)}${end}${line}${close}`;
}

function isNumeric(value, index) {
  const element = ownValue(value, index);
  return typeof element === "number" || typeof element === "bigint";
}

// Lines up the elements of a list in columns if they are short and alike.
function group(context, output, value, isCut) {
  // The last one, of an array that was cut, says how many are missing.
  const length = isCut ? output.length - 1 : output.length;
  const separator = 2;
  const widths = makeList();
  let total = 0;
  let widest = 0;
  for (let index = 0; index < length; index++) {
    const width = output[index].length > MAX_GROUPED ? output[index].length : widthOf(output[index]);
    push(widths, width);
    total += width + separator;
    widest = MathMax(widest, width);
  }
  const column = widest + separator;
  if (column * 3 + context.indentation >= context.breakLength || !(total / column > 5 || widest <= 6)) {
    return output;
  }
  const bias = MathSqrt(column - total / output.length);
  const biased = MathMax(column - 3 - bias, 1);
  const columns = MathMin(
    // About two and a half times as wide as high looks like a square.
    MathRound(MathSqrt(2.5 * biased * length) / biased),
    MathFloor((context.breakLength - context.indentation) / column),
    context.compact * 4,
    15,
  );
  if (columns <= 1) {
    return output;
  }
  const lineWidths = makeList();
  for (let start = 0; start < columns; start++) {
    let width = 0;
    for (let index = start; index < length; index += columns) {
      width = MathMax(width, widths[index]);
    }
    push(lineWidths, width + separator);
  }
  let toTheRight = true;
  if (value !== undefined) {
    for (let index = 0; index < output.length && toTheRight; index++) {
      toTheRight = isNumeric(value, index);
    }
  }
  const pad = toTheRight ? StringPrototypePadStart : StringPrototypePadEnd;
  const lines = makeList();
  for (let start = 0; start < length; start += columns) {
    const end = MathMin(start + columns, length);
    let line = "";
    let index = start;
    for (; index < end - 1; index++) {
      // Wide characters take two columns and are one unit.
      const width = lineWidths[index - start] + output[index].length - widths[index];
      line += pad(`${output[index]}, `, width, " ");
    }
    if (toTheRight) {
      const width = lineWidths[index - start] + output[index].length - widths[index] - separator;
      line += StringPrototypePadStart(output[index], width, " ");
    } else {
      line += output[index];
    }
    push(lines, line);
  }
  if (isCut) {
    push(lines, output[length]);
  }
  return lines;
}

// --- What others use ------------------------------------------------------------------------------------------------

// One inspection: several values with the same budgets.
export function beginInspection(options) {
  return applyOptions(makeContext(makeState()), options);
}

export function inspectIn(context, value) {
  return formatValue(context, value, 0);
}

export function isSpentIn(context) {
  return isSpent(context.state);
}

// A value as text. Throws nothing but what V8 throws when its stack is used up.
export function inspect(value, options) {
  return inspectIn(beginInspection(options), value);
}

export { isFunctionKind, KIND_ARRAY, KIND_MAP, KIND_PROXY, KIND_SET, kindOf, makeList, push, quote, read, spaces };
