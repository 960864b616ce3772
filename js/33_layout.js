// Formats the entries of an object: on one line, on one line each, or in columns.

import { primordials } from "ext:core/mod.js";
import { join, makeList, push, spaces, widthOf } from "ext:cx/31_text.js";
import { ownValue } from "ext:cx/32_objects.js";

const {
  MathFloor,
  MathMax,
  MathMin,
  MathRound,
  MathSqrt,
  StringPrototypeIncludes,
  StringPrototypePadEnd,
  StringPrototypePadStart,
} = primordials;

// Wider elements are never grouped, so their exact width does not matter.
const MAX_GROUPED = 256;

// Layouts of an object's entries.
export const AS_OBJECT = 0;
export const AS_ELEMENT = 1;
export const AS_LIST = 2;

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

// The entries as one text, on one line if they fit.
export function layOut(context, entries, base, open, close, layout, recurseTimes, value, isCut = false) {
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

// Arranges the elements of a list in columns if they are short and similar in length.
function group(context, output, value, isCut) {
  // The last entry of an array that was cut says how many elements are missing.
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
    // A block about two and a half times as wide as high, in characters, looks square.
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
      // Wide characters take two columns but are one code unit.
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
