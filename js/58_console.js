// `console`: a script's output, formatted by 35_inspect.js. Labels and counters are in the guest's heap, and so are the
// texts until they are printed.

import { core, primordials } from "ext:core/mod.js";
import { readClock } from "ext:cx/06_clock.js";
import { defineBuiltIn } from "ext:cx/20_guards.js";
import { clip, makeList, numberText, push } from "ext:cx/31_text.js";
import { hasProxyPrototype, isFunctionKind, KIND_ARRAY, KIND_PROXY, kindOf, read } from "ext:cx/32_objects.js";
import { beginInspection, inspectIn, isSpentIn } from "ext:cx/35_inspect.js";
import { toLooseJson } from "ext:cx/30_json.js";
import {
  cellOf,
  cellValue,
  isObject,
  makeColumn,
  namesOf,
  ordered,
  renderTable,
  rowsOf,
  withoutProxy,
} from "ext:cx/57_tables.js";

const {
  ErrorCaptureStackTrace,
  MapPrototypeDelete,
  MapPrototypeGet,
  MapPrototypeGetSize,
  MapPrototypeHas,
  MapPrototypeSet,
  MathMax,
  MathMin,
  MathRound,
  NumberParseFloat,
  NumberParseInt,
  NumberPrototypeToFixed,
  ObjectCreate,
  ObjectHasOwn,
  ObjectKeys,
  SafeMap,
  String,
  StringPrototypeCharCodeAt,
  StringPrototypeIndexOf,
  StringPrototypeRepeat,
  StringPrototypeSlice,
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

defineBuiltIn(globalThis, "console", console);
