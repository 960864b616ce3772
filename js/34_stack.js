// Formats errors: their stacks, with the name of their class where V8 wrote another one.

import { primordials } from "ext:core/mod.js";
import {
  clip,
  indentLines,
  indexIn,
  isLetter,
  join,
  linesOf,
  makeList,
  MAX_CHARACTERS,
  MAX_DEPTH,
  nameOf,
  push,
  spaces,
  spend,
} from "ext:cx/31_text.js";
import {
  hasProxyPrototype,
  isError,
  KIND_ARRAY,
  KIND_PROXY,
  kindOf,
  prefixOf,
  read,
  readText,
} from "ext:cx/32_objects.js";

const {
  MathMin,
  ReflectHas,
  StringPrototypeCharCodeAt,
  StringPrototypeEndsWith,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
} = primordials;

// Maximum characters of a stack that are searched for the name and the message: the first line. A search of the whole
// stack for a text that a script chooses could take minutes, and V8 cannot interrupt it.
const HEADER = 256;

function errorText(value, name, message) {
  const known = name ?? "Error";
  return message === "" ? known : known === "" ? message : `${known}: ${message}`;
}

// The index of `part` in the first line of `stack`, or -1.
function findInHeader(stack, part) {
  const last = MathMin(HEADER, stack.length - part.length);
  for (let index = 0; index <= last; index++) {
    if (stack[index] === part[0] && StringPrototypeStartsWith(stack, part, index)) {
      return index;
    }
  }
  return -1;
}

function stackText(value, name, message) {
  // V8 makes the text at the first read, from the name and the message. If the prototype chain has a proxy, that would
  // call its traps.
  const stack = hasProxyPrototype(value) ? undefined : read(value, "stack", true);
  const header = clip(errorText(value, name, message), MAX_CHARACTERS);
  return typeof stack === "string" && stack !== "" ? clip(stack, MAX_CHARACTERS) : header;
}

// The start of the stack of an error without a prototype: its class, as V8 printed it.
function classInStack(stack) {
  const most = MathMin(stack.length, HEADER);
  let index = 0;
  while (index < most) {
    const code = StringPrototypeCharCodeAt(stack, index);
    // Letters, digits, and the characters of ` ()-[]`.
    const isPart = isLetter(code) || (code >= 0x30 && code <= 0x39) || code === 0x20 || code === 0x28 ||
      code === 0x29 || code === 0x2d || code === 0x5b || code === 0x5d;
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

// Replaces `Error`, which V8 wrote, by the class's name.
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

// The location in `a` of more than three consecutive lines that are also in `b`, and their number.
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

// The frames of a stack, without those of these files, which called the script.
function framesOf(text) {
  const lines = linesOf(text);
  const frames = makeList();
  for (let index = 0; index < lines.length; index++) {
    if (!StringPrototypeIncludes(lines[index], "(ext:")) {
      push(frames, lines[index]);
    }
  }
  return frames;
}

// The frames of a stack, without those that are also in the stack of its cause.
function formatFrames(value, frames) {
  const lines = framesOf(frames);
  const cause = read(value, "cause");
  if (cause === null || typeof cause !== "object" || !isError(cause, kindOf(cause)) || kindOf(cause) === KIND_PROXY) {
    return join(lines, "\n");
  }
  const stack = clip(readText(cause, "stack") ?? "", MAX_CHARACTERS);
  const start = StringPrototypeIndexOf(stack, "\n    at");
  const common = start === -1 ? undefined : commonLines(lines, framesOf(StringPrototypeSlice(stack, start + 1)));
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

// The stack of an error. `shown` receives those of `keys` that the stack does not contain.
export function formatError(context, value, kind, constructor, tag, keys, shown) {
  const { state } = context;
  const givenName = readText(value, "name");
  const message = clip(readText(value, "message") ?? "", MAX_CHARACTERS);
  const name = nameOf(givenName ?? "Error");
  let stack = stackText(value, givenName === undefined ? undefined : name, message);
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
  const isList = typeof errors === "object" && errors !== null && kindOf(errors) === KIND_ARRAY;
  if (isList && indexIn(shown, "errors") === -1) {
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
