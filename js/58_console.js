// `console`: a script's output, formatted by 35_inspect.js. Labels and counters are in the guest's heap, and so are the
// texts until they are printed.

import { core, primordials } from "ext:core/mod.js";
import { readClock } from "ext:cx/06_clock.js";
import { clip, makeList, MAX_CHARACTERS, numberText, push, quote, spaces, widthOf } from "ext:cx/31_text.js";
import {
  hasProxyPrototype,
  isFunctionKind,
  KEYS_ENUMERABLE,
  KIND_ARRAY,
  KIND_MAP,
  KIND_PROXY,
  KIND_SET,
  kindOf,
  read,
} from "ext:cx/32_objects.js";
import { beginInspection, inspectIn, isSpentIn } from "ext:cx/35_inspect.js";
import { toLooseJson } from "ext:cx/30_json.js";

const {
  ErrorCaptureStackTrace,
  MapIteratorPrototypeNext,
  MapPrototypeDelete,
  MapPrototypeEntries,
  MapPrototypeGet,
  MapPrototypeGetSize,
  MapPrototypeHas,
  MapPrototypeSet,
  MathMax,
  MathMin,
  MathRound,
  Number,
  NumberIsInteger,
  NumberParseFloat,
  NumberParseInt,
  NumberPrototypeToFixed,
  ObjectCreate,
  ObjectDefineProperty,
  ObjectHasOwn,
  ObjectKeys,
  ReflectApply,
  ReflectGetOwnPropertyDescriptor,
  SafeMap,
  SetIteratorPrototypeNext,
  SetPrototypeGetSize,
  SetPrototypeValues,
  String,
  StringPrototypeCharCodeAt,
  StringPrototypeIndexOf,
  StringPrototypeRepeat,
  StringPrototypeSlice,
  SymbolIterator,
  SymbolToStringTag,
  TypeError,
  TypedArrayPrototypeGetBuffer,
  Uint32Array,
  Uint8Array,
} = primordials;

// Maximum characters printed by one call: four times the default limit of a run's output. Text beyond it would be
// copied out of the heap only to be discarded.
const MAX_PRINTED = 2 ** 22;
// Maximum number of groups that indent: at two columns each there is no room for text beyond.
const MAX_GROUPS = 64;
// Maximum number of columns; a wider table is not readable.
const MAX_COLUMNS = 100;
// Maximum number of rows: more than fit into a run's output by default.
const MAX_ROWS = 10_000;

const DEBUG = 0;
const INFO = 1;
const WARN = 2;
const ERROR = 3;

let groups = 0;
const counters = new SafeMap();
const timers = new SafeMap();

const clock = new Uint32Array(2);
const clockBytes = new Uint8Array(TypedArrayPrototypeGetBuffer(clock));

// Milliseconds since the run's start.
function now() {
  readClock(clockBytes);
  return clock[0] * 1000 + clock[1] / 1e6;
}

// Appends to a text as far as there is room.
function add(text, more) {
  return text + clip(more, MathMax(MAX_PRINTED - text.length, 0));
}

function indented(text) {
  const indentation = StringPrototypeRepeat("  ", MathMin(groups, MAX_GROUPS));
  let result = indentation;
  let start = 0;
  while (result.length < MAX_PRINTED) {
    const end = StringPrototypeIndexOf(text, "\n", start);
    if (end === -1) {
      return result + StringPrototypeSlice(text, start);
    }
    result += StringPrototypeSlice(text, start, end + 1) + indentation;
    start = end + 1;
  }
  return `${result}... ${text.length - start} more characters`;
}

// The host adds the line break.
function print(level, text) {
  core.ops.op_cx_log(level, groups === 0 ? text : indented(text));
}

// --- Arguments ------------------------------------------------------------------------------------------------------

const isObject = (value) => value !== null && (typeof value === "object" || typeof value === "function");

// `String(value)`, or a description of a value that has no text.
function textOf(context, value) {
  if (typeof value === "number" || typeof value === "string") {
    return `${value}`;
  }
  try {
    // On a proxy, `toString` would call a trap.
    if (!isObject(value) || (kindOf(value) !== KIND_PROXY && !hasProxyPrototype(value))) {
      return String(value);
    }
    return inspectIn(context, value);
  } catch {
    return inspectIn(context, value);
  }
}

function jsonOf(context, value) {
  try {
    return toLooseJson("value", value);
  } catch {
    return inspectIn(context, value);
  }
}

// The text of a placeholder, or undefined if the letter is not a placeholder.
function formatPlaceholder(context, letter, value) {
  switch (letter) {
    case 115: // s
      return textOf(context, value);
    case 100: // d
    case 105: // i
      return typeof value === "symbol" ? "NaN" : `${NumberParseInt(clip(textOf(context, value), 1_000))}`;
    case 102: // f
      return typeof value === "symbol" ? "NaN" : `${NumberParseFloat(clip(textOf(context, value), 1_000))}`;
    case 106: // j
      return jsonOf(context, value);
    case 79: // O
    case 111: // o
      return inspectIn(context, value);
    case 99: // c, a style: there are no colors
      return "";
    default:
      return undefined;
  }
}

function isPlaceholder(letter) {
  return letter === 115 || letter === 100 || letter === 105 || letter === 102 || letter === 106 || letter === 79 ||
    letter === 111 || letter === 99;
}

// The arguments as one text: the placeholders of the first one are filled in, the other arguments follow.
function format(args, context = beginInspection()) {
  let text = "";
  let next = 0;
  if (args.length > 1 && typeof args[0] === "string") {
    const pattern = args[0];
    next = 1;
    let start = 0;
    let position = StringPrototypeIndexOf(pattern, "%");
    while (position !== -1 && position + 1 < pattern.length && text.length < MAX_PRINTED) {
      const letter = StringPrototypeCharCodeAt(pattern, position + 1);
      if (letter === 37) {
        text = add(text, StringPrototypeSlice(pattern, start, position + 1));
        start = position + 2;
      } else if (isPlaceholder(letter) && next < args.length) {
        const filled = formatPlaceholder(context, letter, args[next++]);
        if (filled !== undefined) {
          text = add(add(text, StringPrototypeSlice(pattern, start, position)), filled);
          start = position + 2;
        }
      }
      position = StringPrototypeIndexOf(pattern, "%", position + 2);
    }
    text = add(text, StringPrototypeSlice(pattern, start));
  }
  while (next < args.length && text.length < MAX_PRINTED) {
    if (next > 0) {
      text += " ";
    }
    const value = args[next++];
    text = add(text, typeof value === "string" ? value : inspectIn(context, value));
  }
  return text;
}

function printArguments(level, args) {
  // The most common case.
  const text = args.length === 1 && typeof args[0] === "string" ? clip(args[0], MAX_PRINTED) : format(args);
  print(level, text);
}

function label(value) {
  return typeof value === "string" ? value : String(value);
}

// --- Tables ---------------------------------------------------------------------------------------------------------

function cellOf(context, value) {
  if (typeof value === "string") {
    return quote(context, value.length > 10_000 ? `${StringPrototypeSlice(value, 0, 10_000)}...` : value);
  }
  return inspectIn(context, value);
}

// A property of a row, without running its getter.
function cellValue(context, row, key) {
  const descriptor = ReflectGetOwnPropertyDescriptor(row, key);
  if (descriptor === undefined) {
    return cellOf(context, read(row, key));
  }
  return ObjectHasOwn(descriptor, "value") ? cellOf(context, descriptor.value) : "[Getter]";
}

function withoutProxy(value) {
  let target = value;
  while (isObject(target) && kindOf(target) === KIND_PROXY) {
    target = core.ops.op_cx_details(target)[0];
  }
  return target;
}

function namesOf(value) {
  const keys = core.ops.op_cx_keys(value, KEYS_ENUMERABLE);
  const names = makeList();
  for (let index = 0; index < keys.length; index++) {
    if (typeof keys[index] !== "symbol") {
      push(names, `${keys[index]}`);
    }
  }
  return names;
}

// The rows of a table: their names, and their values or the entries of a map.
function rowsOf(data) {
  const kind = kindOf(data);
  const rows = {
    __proto__: null,
    index: "(iter idx)",
    names: makeList(),
    values: makeList(),
    isMap: false,
    missing: 0,
  };
  const put = (value) => {
    push(rows.names, `${rows.names.length}`);
    push(rows.values, value);
  };
  if (kind === KIND_MAP) {
    rows.isMap = true;
    const iterator = MapPrototypeEntries(data);
    for (let step = MapIteratorPrototypeNext(iterator); !step.done; step = MapIteratorPrototypeNext(iterator)) {
      if (rows.names.length === MAX_ROWS) {
        rows.missing = MapPrototypeGetSize(data) - MAX_ROWS;
        break;
      }
      put(step.value);
    }
    return rows;
  }
  if (kind === KIND_SET) {
    const iterator = SetPrototypeValues(data);
    for (let step = SetIteratorPrototypeNext(iterator); !step.done; step = SetIteratorPrototypeNext(iterator)) {
      if (rows.names.length === MAX_ROWS) {
        rows.missing = SetPrototypeGetSize(data) - MAX_ROWS;
        break;
      }
      put(step.value);
    }
    return rows;
  }
  const iterate = kind === KIND_ARRAY ? undefined : read(data, SymbolIterator);
  if (typeof iterate === "function") {
    const iterator = ReflectApply(iterate, data, []);
    for (;;) {
      const step = iterator.next();
      if (step.done) {
        return rows;
      }
      if (rows.names.length === MAX_ROWS) {
        rows.missing = 1;
        return rows;
      }
      put(step.value);
    }
  }
  rows.index = "(idx)";
  const names = namesOf(data);
  for (let index = 0; index < names.length; index++) {
    if (index === MAX_ROWS) {
      rows.missing = names.length - MAX_ROWS;
      break;
    }
    const descriptor = ReflectGetOwnPropertyDescriptor(data, names[index]);
    push(rows.names, names[index]);
    push(rows.values, descriptor !== undefined && ObjectHasOwn(descriptor, "value") ? descriptor.value : undefined);
  }
  return rows;
}

// The array index that V8 orders before other names, or -1.
function indexOfName(name) {
  const number = name.length <= 10 ? Number(name) : -1;
  return NumberIsInteger(number) && number >= 0 && `${number}` === name ? number : -1;
}

// The columns in the order of an object's properties, indices first, or in the requested order.
function ordered(columns, isAsked) {
  const list = makeList();
  const named = makeList();
  const iterator = MapPrototypeEntries(columns);
  for (let step = MapIteratorPrototypeNext(iterator); !step.done; step = MapIteratorPrototypeNext(iterator)) {
    const column = step.value[1];
    const index = isAsked ? -1 : indexOfName(column.name);
    if (index === -1) {
      push(named, column);
      continue;
    }
    let position = list.length++;
    while (position > 0 && indexOfName(list[position - 1].name) > index) {
      list[position] = list[position - 1];
      position--;
    }
    list[position] = column;
  }
  for (let index = 0; index < named.length; index++) {
    push(list, named[index]);
  }
  return list;
}

function makeColumn(name) {
  return { __proto__: null, name, cells: { __proto__: null } };
}

function renderTable(columns, rowCount) {
  let rule = "";
  const widths = makeList();
  const toTheRight = makeList();
  for (let index = 0; index < columns.length; index++) {
    const { name, cells } = columns[index];
    let width = widthOf(name);
    let isInteger = true;
    for (let row = 0; row < rowCount; row++) {
      const cell = cells[row] ?? "";
      width = MathMax(width, widthOf(cell));
      isInteger &&= NumberIsInteger(Number(cell));
    }
    push(widths, width);
    push(toTheRight, isInteger);
    rule += (index === 0 ? "" : "\0") + StringPrototypeRepeat("\u2500", width + 2);
  }
  const ruleWith = (left, middle, right) => {
    let line = left;
    let start = 0;
    for (let index = 0; index < columns.length; index++) {
      line += StringPrototypeSlice(rule, start, start + widths[index] + 2);
      line += index === columns.length - 1 ? right : middle;
      start += widths[index] + 3;
    }
    return line;
  };
  const line = (textAt, isHeader) => {
    let text = "\u2502 ";
    for (let index = 0; index < columns.length; index++) {
      const cell = textAt(index);
      const padding = spaces(MathMax(widths[index] - widthOf(cell), 0));
      text += !isHeader && toTheRight[index] ? padding + cell : cell + padding;
      text += index === columns.length - 1 ? " \u2502" : " \u2502 ";
    }
    return text;
  };
  let text = `${ruleWith("\u250c", "\u252c", "\u2510")}\n${line((index) => columns[index].name, true)}\n` +
    `${ruleWith("\u251c", "\u253c", "\u2524")}\n`;
  let row = 0;
  for (; row < rowCount && text.length < MAX_CHARACTERS; row++) {
    text += `${line((index) => columns[index].cells[row] ?? "", false)}\n`;
  }
  text += ruleWith("\u2514", "\u2534", "\u2518");
  return { __proto__: null, text, rows: row };
}

function table(data, properties) {
  const isFiltered = properties !== undefined;
  if (isFiltered && kindOf(properties) !== KIND_ARRAY) {
    throw new TypeError(`The 'properties' argument must be of type Array: received type ${typeof properties}`);
  }
  const source = withoutProxy(data);
  if (!isObject(source) || isFunctionKind(kindOf(source))) {
    printArguments(INFO, [data]);
    return;
  }
  const context = beginInspection({ __proto__: null, depth: 1, compact: true, breakLength: null });
  const rows = rowsOf(source);
  const columns = new SafeMap();
  let missingColumns = 0;
  const columnOf = (name) => {
    let column = MapPrototypeGet(columns, name);
    if (column === undefined && MapPrototypeGetSize(columns) < MAX_COLUMNS) {
      column = makeColumn(name);
      MapPrototypeSet(columns, name, column);
    }
    return column;
  };
  const wanted = makeList();
  for (let index = 0; isFiltered && index < properties.length && index < MAX_COLUMNS; index++) {
    const name = clip(label(properties[index]), 10_000);
    if (name !== "") {
      push(wanted, name);
      columnOf(name);
    }
  }
  const indices = makeColumn(rows.index);
  const primitives = makeColumn("Values");
  let hasPrimitives = false;
  let count = 0;
  for (; count < rows.values.length && !isSpentIn(context); count++) {
    indices.cells[count] = rows.names[count];
    const value = withoutProxy(rows.values[count]);
    if (rows.isMap) {
      if (!isFiltered || MapPrototypeHas(columns, "Key")) {
        columnOf("Key").cells[count] = cellOf(context, value[0]);
      }
      if (!isFiltered || MapPrototypeHas(columns, "Values")) {
        columnOf("Values").cells[count] = cellOf(context, value[1]);
      }
    } else if (isObject(value)) {
      const names = isFiltered ? wanted : namesOf(value);
      for (let index = 0; index < names.length && !isSpentIn(context); index++) {
        const isThere = !isFiltered || ObjectHasOwn(value, names[index]) || read(value, names[index]) !== undefined;
        if (!isThere) {
          continue;
        }
        const column = columnOf(names[index]);
        if (column === undefined) {
          missingColumns++;
        } else {
          column.cells[count] = cellValue(context, value, names[index]);
        }
      }
    } else if (!isFiltered) {
      hasPrimitives = true;
      primitives.cells[count] = cellOf(context, value);
    }
  }
  const list = makeList();
  push(list, indices);
  const inOrder = ordered(columns, isFiltered);
  for (let index = 0; index < inOrder.length; index++) {
    push(list, inOrder[index]);
  }
  if (hasPrimitives) {
    push(list, primitives);
  }
  const rendered = renderTable(list, count);
  let { text } = rendered;
  const missingRows = rows.values.length - rendered.rows + rows.missing;
  if (missingRows > 0) {
    text += `\n... ${missingRows} more row${missingRows === 1 ? "" : "s"}`;
  }
  if (missingColumns > 0) {
    text += `\n... more than ${MAX_COLUMNS} columns`;
  }
  print(INFO, clip(text, MAX_PRINTED));
}

// --- The object -----------------------------------------------------------------------------------------------------

function duration(since) {
  const elapsed = now() - since;
  const text = elapsed < 1
    ? NumberPrototypeToFixed(elapsed, 3)
    : elapsed < 10
    ? NumberPrototypeToFixed(elapsed, 2)
    : elapsed < 100
    ? NumberPrototypeToFixed(elapsed, 1)
    : numberText(MathRound(elapsed));
  return `${text}ms`;
}

function group(...args) {
  if (args.length > 0) {
    printArguments(INFO, args);
  }
  groups++;
}

const methods = {
  log(...args) {
    printArguments(INFO, args);
  },
  debug(...args) {
    printArguments(DEBUG, args);
  },
  info(...args) {
    printArguments(INFO, args);
  },
  dir(value = undefined, options = undefined) {
    print(INFO, format([value], beginInspection(options)));
  },
  dirxml(...args) {
    printArguments(INFO, args);
  },
  warn(...args) {
    printArguments(WARN, args);
  },
  error(...args) {
    printArguments(ERROR, args);
  },
  assert(condition = false, ...args) {
    if (condition) {
      return;
    }
    if (args.length === 0) {
      print(ERROR, "Assertion failed");
    } else if (typeof args[0] === "string") {
      args[0] = `Assertion failed: ${clip(args[0], MAX_PRINTED)}`;
      print(ERROR, format(args));
    } else {
      print(ERROR, `Assertion failed: ${format(args)}`);
    }
  },
  count(name = "default") {
    const text = label(name);
    const count = (MapPrototypeGet(counters, text) ?? 0) + 1;
    MapPrototypeSet(counters, text, count);
    print(INFO, `${clip(text, MAX_PRINTED)}: ${count}`);
  },
  countReset(name = "default") {
    const text = label(name);
    if (MapPrototypeHas(counters, text)) {
      MapPrototypeSet(counters, text, 0);
    } else {
      print(WARN, `Count for '${clip(text, MAX_PRINTED)}' does not exist`);
    }
  },
  table(data = undefined, properties = undefined) {
    table(data, properties);
  },
  time(name = "default") {
    const text = label(name);
    if (MapPrototypeHas(timers, text)) {
      print(WARN, `Timer '${clip(text, MAX_PRINTED)}' already exists`);
    } else {
      MapPrototypeSet(timers, text, now());
    }
  },
  timeLog(name = "default", ...args) {
    const text = label(name);
    const start = MapPrototypeGet(timers, text);
    if (start === undefined) {
      print(WARN, `Timer '${clip(text, MAX_PRINTED)}' does not exist`);
      return;
    }
    const line = `${clip(text, MAX_PRINTED)}: ${duration(start)}`;
    print(INFO, args.length === 0 ? line : add(`${line} `, format(args)));
  },
  timeEnd(name = "default") {
    const text = label(name);
    const start = MapPrototypeGet(timers, text);
    if (start === undefined) {
      print(WARN, `Timer '${clip(text, MAX_PRINTED)}' does not exist`);
      return;
    }
    MapPrototypeDelete(timers, text);
    print(INFO, `${clip(text, MAX_PRINTED)}: ${duration(start)}`);
  },
  group,
  groupCollapsed: group,
  groupEnd() {
    groups = MathMax(groups - 1, 0);
  },
  // Does nothing: it would print a terminal control sequence.
  clear() {},
  trace(...args) {
    const message = format(args);
    const holder = { name: "Trace", message: "" };
    ErrorCaptureStackTrace(holder, methods.trace);
    // A script's `Error.prepareStackTrace` may have replaced it by any value.
    const stack = read(holder, "stack", true);
    const frames = typeof stack === "string" ? StringPrototypeIndexOf(stack, "\n    at ") : -1;
    const header = message === "" ? "Trace" : `Trace: ${message}`;
    print(ERROR, frames === -1 ? header : add(header, StringPrototypeSlice(stack, frames)));
  },
  // Do nothing: there is no profiler.
  profile() {},
  profileEnd() {},
  timeStamp() {},
};

// By the standard, its prototype is a separate empty object.
const console = ObjectCreate({}, {
  [SymbolToStringTag]: { __proto__: null, value: "console", writable: false, enumerable: false, configurable: true },
});
const names = ObjectKeys(methods);
for (let index = 0; index < names.length; index++) {
  console[names[index]] = methods[names[index]];
}

ObjectDefineProperty(globalThis, "console", {
  __proto__: null,
  value: console,
  writable: true,
  enumerable: false,
  configurable: true,
});
