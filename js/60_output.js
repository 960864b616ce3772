// `emit` and `progress`: what a script says in addition to its value.

import { core, primordials } from "ext:core/mod.js";
import { encodeBase64 } from "ext:cx/05_bounds.js";
import { toJson } from "ext:cx/30_json.js";
import { toolError } from "ext:cx/40_errors.js";
import { isFailure } from "ext:cx/46_encoding.js";
import { fileBlock, viewOf } from "ext:cx/56_files.js";

const {
  ArrayIsArray,
  JSONStringify,
  NumberIsFinite,
  ObjectDefineProperty,
  ObjectHasOwn,
  RangeError,
  StringPrototypeSlice,
  String,
  TypeError,
} = primordials;

const BLOCKS = { __proto__: null, text: "text", image: "data", audio: "data", resource: "resource", resource_link: "uri" };

// The content block for an emitted value: MCP blocks unchanged, everything else as text.
function block(value) {
  if (typeof value === "string") {
    return { type: "text", text: value };
  }
  if (value !== null && typeof value === "object" && typeof value.type === "string" && value.type in BLOCKS) {
    const needed = BLOCKS[value.type];
    if (needed === "data") {
      if (typeof value.mimeType !== "string") {
        throw new TypeError(`emit: a block of type ${value.type} needs a mimeType`);
      }
      const raw = viewOf(value.data);
      const data = raw === undefined ? value.data : encodeBase64(raw);
      if (typeof data !== "string") {
        throw new TypeError(`emit: a block of type ${value.type} needs data as base64 text or bytes`);
      }
      return { type: value.type, mimeType: value.mimeType, data };
    }
    if (ObjectHasOwn(value, needed)) {
      return value;
    }
  }
  return { type: "text", text: toJson("emit", value) ?? String(value) };
}

function emit(value) {
  if (ArrayIsArray(value) && value.length > 0 && BLOCKS[value[0]?.type] !== undefined) {
    for (let index = 0; index < value.length; index++) {
      emit(value[index]);
    }
    return;
  }
  const isFile = value !== null && typeof value === "object" && value.type === undefined && typeof value.file === "string";
  let answer = isFile ? fileBlock(value) : toJson("emit", block(value));
  if (!isFailure(answer)) {
    answer = core.ops.op_cx_emit(answer);
  }
  if (isFailure(answer)) {
    throw toolError(answer);
  }
}

// Maximum characters of a message. The host keeps fewer.
const MAX_MESSAGE = 2 ** 12;

function amount(what, value) {
  if (typeof value !== "number") {
    throw new TypeError(`progress: ${what} must be a number: ${typeof value}`);
  }
  if (!NumberIsFinite(value) || value < 0) {
    throw new RangeError(`progress: ${what} must be a number from 0 on: ${value}`);
  }
  return value;
}

function progress(done, total, message) {
  const report = { __proto__: null, kind: "progress", done: amount("done", done) };
  if (total !== undefined && total !== null) {
    report.total = amount("total", total);
  }
  if (message !== undefined && message !== null) {
    report.message = StringPrototypeSlice(String(message), 0, MAX_MESSAGE);
  }
  const answer = core.ops.op_cx_query_blocking(JSONStringify(report));
  if (isFailure(answer)) {
    throw toolError(answer);
  }
}

function define(name, value) {
  ObjectDefineProperty(globalThis, name, {
    __proto__: null,
    value,
    writable: false,
    enumerable: false,
    configurable: false,
  });
}

define("emit", emit);
define("progress", progress);
