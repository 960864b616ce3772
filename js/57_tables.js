// Tables of `console.table`: rows, columns and their text.

import { core, primordials } from "ext:core/mod.js";
import { makeList, MAX_CHARACTERS, push, quote, spaces, widthOf } from "ext:cx/31_text.js";
import { KEYS_ENUMERABLE, KIND_ARRAY, KIND_MAP, KIND_PROXY, KIND_SET, kindOf, read } from "ext:cx/32_objects.js";
import { inspectIn } from "ext:cx/35_inspect.js";

const {
  MapIteratorPrototypeNext,
  MapPrototypeEntries,
  MapPrototypeGetSize,
  MathMax,
  Number,
  NumberIsInteger,
  ObjectHasOwn,
  ReflectApply,
  ReflectGetOwnPropertyDescriptor,
  SetIteratorPrototypeNext,
  SetPrototypeGetSize,
  SetPrototypeValues,
  StringPrototypeRepeat,
  StringPrototypeSlice,
  SymbolIterator,
} = primordials;

// Maximum number of rows: more than fit into a run's output by default.
const MAX_ROWS = 10_000;

export const isObject = (value) => value !== null && (typeof value === "object" || typeof value === "function");

export function cellOf(context, value) {
  if (typeof value === "string") {
    return quote(context, value.length > 10_000 ? `${StringPrototypeSlice(value, 0, 10_000)}...` : value);
  }
  return inspectIn(context, value);
}

// A property of a row, without running its getter.
export function cellValue(context, row, key) {
  const descriptor = ReflectGetOwnPropertyDescriptor(row, key);
  if (descriptor === undefined) {
    return cellOf(context, read(row, key));
  }
  return ObjectHasOwn(descriptor, "value") ? cellOf(context, descriptor.value) : "[Getter]";
}

export function withoutProxy(value) {
  let target = value;
  while (isObject(target) && kindOf(target) === KIND_PROXY) {
    target = core.ops.op_cx_details(target)[0];
  }
  return target;
}

export function namesOf(value) {
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
export function rowsOf(data) {
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
export function ordered(columns, isAsked) {
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

export function makeColumn(name) {
  return { __proto__: null, name, cells: { __proto__: null } };
}

export function renderTable(columns, rowCount) {
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
