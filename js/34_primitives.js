// Texts, numbers, symbols and other primitive values as text, and the prefixes of objects.

import { core, primordials } from "ext:core/mod.js";
import {
  isIdentifier,
  isSpent,
  MAX_LINES,
  nameOf,
  numberText,
  plural,
  quote,
  spaces,
  spend,
  symbolText,
} from "ext:cx/31_text.js";
import { prefixOf } from "ext:cx/32_objects.js";

const {
  BigIntPrototypeToString,
  MathMax,
  MathMin,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  SymbolPrototypeGetDescription,
} = primordials;

const MIN_LINE_LENGTH = 16;

export function plainPrefix(value, constructor, tag) {
  let fallback = "";
  if (constructor === null) {
    fallback = nameOf(core.ops.op_cx_constructor_name(value));
    if (fallback === tag) {
      fallback = "Object";
    }
  }
  return prefixOf(constructor, tag, fallback);
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
  // Not cut, because the quotes would be missing. Escaping adds at most five times the length of the text.
  const quoted = quote(context, text);
  state.characters -= quoted.length;
  return quoted + trailer;
}

function formatSymbol(context, value) {
  const description = SymbolPrototypeGetDescription(value);
  if (description === undefined || isIdentifier(nameOf(description), true)) {
    return symbolText(value);
  }
  return `Symbol(${quote(context, nameOf(description))})`;
}

export function formatPrimitive(context, value) {
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
