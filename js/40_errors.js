// The error of a failed tool call, and the description of an uncaught error for the host.

import { core, primordials } from "ext:core/mod.js";
import { fromJson } from "ext:cx/30_json.js";
import { inspect } from "ext:cx/35_inspect.js";

const {
  ArrayIsArray,
  Error,
  JSONStringify,
  ObjectDefineProperty,
  ObjectPrototypeIsPrototypeOf,
  SafeWeakMap,
  String,
  StringPrototypeSlice,
  WeakMapPrototypeGet,
  WeakMapPrototypeHas,
  WeakMapPrototypeSet,
} = primordials;

const ErrorPrototype = Error.prototype;

// Bounds of the description of a thrown value. The host's response passes it to a model.
const MAX_CHARACTERS = 8_192;
const MAX_CAUSES = 4;

// Codes of errors that the host made. An McpToolError that a script constructs is not in this map.
const hostCodes = new SafeWeakMap();

function define(object, name, value) {
  ObjectDefineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

export class McpToolError extends Error {
  constructor(message, fields) {
    super(message);
    const given = fields ?? { __proto__: null };
    define(this, "server", given.server);
    define(this, "tool", given.tool);
    define(this, "code", given.code ?? "TOOL_ERROR");
    define(this, "content", given.content ?? []);
    if (given.retryAfterMs !== undefined) {
      define(this, "retryAfterMs", given.retryAfterMs);
    }
  }
}
ObjectDefineProperty(McpToolError.prototype, "name", {
  __proto__: null,
  value: "McpToolError",
  writable: true,
  enumerable: false,
  configurable: true,
});

// The error for a host response that begins with `!`.
export function toolError(answer) {
  const fields = fromJson(StringPrototypeSlice(answer, 1));
  const error = new McpToolError(fields.message, fields);
  WeakMapPrototypeSet(hostCodes, error, fields.code);
  return error;
}

// The same code for an error of another class.
export function coded(error, code) {
  WeakMapPrototypeSet(hostCodes, error, code);
  return error;
}

function shortened(text) {
  return text.length > MAX_CHARACTERS ? StringPrototypeSlice(text, 0, MAX_CHARACTERS) + "\u2026" : text;
}

// Reads one property as text. The guest may have put anything there, including a getter that throws.
function read(error, name) {
  try {
    const value = error[name];
    return typeof value === "string" ? shortened(value) : undefined;
  } catch {
    return undefined;
  }
}

function isError(value) {
  try {
    return core.isNativeError(value) ||
      (typeof value === "object" && value !== null && ObjectPrototypeIsPrototypeOf(ErrorPrototype, value));
  } catch {
    return false;
  }
}

function text(value) {
  try {
    return shortened(typeof value === "string" ? value : inspect(value, { __proto__: null, depth: 3 }));
  } catch {
    // A revoked proxy, or a property that throws.
  }
  try {
    return shortened(String(value));
  } catch {
    return "a value that cannot be printed";
  }
}

function stackWithCauses(error) {
  let stack = read(error, "stack") ?? "";
  let current = error;
  for (let count = 0; count < MAX_CAUSES; count++) {
    let cause;
    try {
      cause = current.cause;
    } catch {
      break;
    }
    if (cause === undefined || cause === null || cause === error) {
      break;
    }
    stack += `\nCaused by: ${isError(cause) ? read(cause, "stack") ?? text(cause) : text(cause)}`;
    if (!isError(cause)) {
      break;
    }
    current = cause;
  }
  return shortened(stack);
}

// The first few members of an AggregateError, which its message does not contain.
function membersOf(error) {
  let members;
  try {
    members = error.errors;
    if (!ArrayIsArray(members)) {
      return "";
    }
    let list = "";
    for (let index = 0; index < members.length && index < 3; index++) {
      const member = members[index];
      list += `; ${isError(member) ? read(member, "message") ?? "" : text(member)}`;
    }
    return shortened(members.length > 3 ? `${list}; and ${members.length - 3} more` : list);
  } catch {
    return "";
  }
}

// Everything that the host needs to know about a thrown value, as JSON text. Never throws.
export function describe(thrown) {
  const report = { __proto__: null };
  if (isError(thrown)) {
    report.name = read(thrown, "name");
    report.message = (read(thrown, "message") ?? "") + membersOf(thrown);
    report.stack = stackWithCauses(thrown);
    if (WeakMapPrototypeHas(hostCodes, thrown)) {
      report.code = WeakMapPrototypeGet(hostCodes, thrown);
    }
  } else {
    report.thrown = true;
    report.message = text(thrown);
  }
  return JSONStringify(report);
}
