// The contents of objects other than properties: elements, entries, bytes, the result of a promise.

import { core, primordials } from "ext:core/mod.js";
import { hex, isLastEntry, makeList, moreItems, numberText, plural, push, spend } from "ext:cx/31_text.js";
import { KEYS_ENUMERABLE } from "ext:cx/32_objects.js";
import { AS_ELEMENT, AS_LIST, layOut } from "ext:cx/33_layout.js";
import { formatValue } from "ext:cx/35_inspect.js";
import { formatNested, formatProperty } from "ext:cx/35_properties.js";

const {
  ArrayBufferPrototypeGetByteLength,
  ArrayBufferPrototypeGetDetached,
  DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset,
  MapIteratorPrototypeNext,
  MapPrototypeEntries,
  MapPrototypeGetSize,
  MathFloor,
  MathMax,
  MathMin,
  ObjectHasOwn,
  SetIteratorPrototypeNext,
  SetPrototypeGetSize,
  SetPrototypeValues,
  TypedArrayPrototypeGetLength,
  Uint8Array,
} = primordials;

export const MORE = 1;
export const ENTRIES = 2;

export function formatArray(context, value, recurseTimes, output) {
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

// The index of the first element after `start`, or the array's length. `far` caches the list of keys.
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

export function formatTypedArray(context, value, recurseTimes, output) {
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

export function formatSet(context, value, recurseTimes, output) {
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

export function formatMap(context, value, recurseTimes, output) {
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

// The remaining entries of a map or set iterator, without consuming it. V8 copies all of them: at most the 2^24 entries
// that one collection can have, in the guest's heap, in less time than it took to add them.
export function formatIterator(context, value, recurseTimes, output) {
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

export function formatPromise(context, value, recurseTimes, output) {
  const details = core.ops.op_cx_details(value);
  if (details[0] === 0) {
    push(output, spend(context.state, "<pending>"));
    return;
  }
  const text = formatNested(context, details[1], recurseTimes);
  push(output, details[0] === 2 ? `<rejected> ${text}` : text);
}

// V8 could list the items, but only all at once.
export function formatWeak(context, _value, _recurseTimes, output) {
  push(output, spend(context.state, "<items unknown>"));
}

export function formatArrayBuffer(context, value, _recurseTimes, output) {
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

export function formatDataView(context, value, recurseTimes, output) {
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
