// `emit`: output that a script produces in addition to its value.

import { core, primordials } from "ext:core/mod.js";
import { toJson } from "ext:cx/30_json.js";
import { toolError } from "ext:cx/40_errors.js";

const {
  ArrayIsArray,
  ArrayBufferIsView,
  ObjectDefineProperty,
  ObjectHasOwn,
  StringPrototypeCharCodeAt,
  String,
  TypeError,
  Uint8Array,
} = primordials;

const { forgivingBase64Encode } = core.loadExtScript("ext:deno_web/00_infra.js");

const BLOCKS = { __proto__: null, text: "text", image: "data", audio: "data", resource: "resource", resource_link: "uri" };

function bytes(data) {
  if (ArrayBufferIsView(data)) {
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  }
  return core.isArrayBuffer(data) ? new Uint8Array(data) : undefined;
}

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
      const raw = bytes(value.data);
      const data = raw === undefined ? value.data : forgivingBase64Encode(raw);
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
  const answer = core.ops.op_cx_emit(toJson("emit", block(value)));
  if (StringPrototypeCharCodeAt(answer, 0) === 33) {
    throw toolError(answer);
  }
}

ObjectDefineProperty(globalThis, "emit", {
  __proto__: null,
  value: emit,
  writable: false,
  enumerable: false,
  configurable: false,
});
