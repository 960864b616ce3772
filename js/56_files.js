// `fs`: files of the scratch directory and of granted directories, named as in Node's `fs/promises`.
//
// The host decides about every path. Bytes cross the boundary as base64 text.

import { core, primordials } from "ext:core/mod.js";
import { contentText, encodeBase64 } from "ext:cx/05_bounds.js";
import { defineBuiltIn } from "ext:cx/20_guards.js";
import { checkKeys } from "ext:cx/21_text_guards.js";
import { toJson } from "ext:cx/30_json.js";
import { query } from "ext:cx/50_tools.js";

const {
  ArrayBufferIsView,
  ArrayPrototypePush,
  DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset,
  Date,
  Error,
  ObjectDefineProperty,
  ObjectFreeze,
  ObjectKeys,
  String,
  StringPrototypeLastIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  StringPrototypeToLowerCase,
  SymbolFor,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypeError,
  Uint8Array,
  decodeURIComponent,
} = primordials;

const { forgivingBase64Decode } = core.loadExtScript("ext:deno_web/00_infra.js");

// Maximum characters of a path. The host takes fewer bytes.
const MAX_PATH = 2 ** 12;

function pathOf(value) {
  // A URL, whatever its class says.
  const text = typeof value === "object" && value !== null ? String(value) : value;
  if (typeof text !== "string") {
    throw new TypeError(`fs: expected a path, a string: ${typeof value}`);
  }
  if (text.length > MAX_PATH) {
    throw failure("path", { __proto__: null, code: "ENAMETOOLONG", message: "name too long", path: "" });
  }
  return StringPrototypeStartsWith(text, "file:///") ? decodeURIComponent(StringPrototypeSlice(text, 7)) : text;
}

// An error as Node has it.
function failure(syscall, failed) {
  const places = failed.dest ? `'${failed.path}' -> '${failed.dest}'` : `'${failed.path}'`;
  const isRelative = failed.code === "ENOENT" && failed.path !== "" && !StringPrototypeStartsWith(failed.path, "/");
  const why = failed.hint ?? (isRelative ? "a relative path starts in /tmp, which is empty when a script starts" : "");
  const hint = why ? ` (${why})` : "";
  const error = new Error(`${failed.code}: ${failed.message}, ${syscall} ${places}${hint}`);
  const fields = { __proto__: null, code: failed.code, syscall, path: failed.path };
  if (failed.dest) {
    fields.dest = failed.dest;
  }
  for (const name in fields) {
    ObjectDefineProperty(error, name, {
      __proto__: null,
      value: fields[name],
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return error;
}

async function ask(syscall, call) {
  const answer = await query({ __proto__: null, kind: "file", call: { __proto__: null, ...call } });
  if (answer !== null && typeof answer === "object" && answer.failed !== undefined) {
    throw failure(syscall, answer.failed);
  }
  return answer;
}

function options(value) {
  if (value === undefined || value === null) {
    return { __proto__: null };
  }
  return typeof value === "string" ? { __proto__: null, encoding: value } : value;
}

function isText(encoding) {
  if (encoding === undefined || encoding === null || encoding === "buffer") {
    return false;
  }
  const name = StringPrototypeToLowerCase(String(encoding));
  if (name !== "utf8" && name !== "utf-8") {
    throw new TypeError(`fs: expected the encoding utf8, or none for bytes: ${name}`);
  }
  return true;
}

// The bytes of a file. As in Node, `toString()` gives them as text.
function makeBytes(text) {
  const bytes = forgivingBase64Decode(text);
  defineBuiltIn(bytes, "toString", () => core.decode(bytes));
  return bytes;
}

// The bytes of a buffer or of a view, which are not copied; undefined for anything else. The properties are V8's: a
// script can give a view others, and of an array-like of any length V8 would make bytes in a loop that nothing stops.
export function viewOf(data) {
  if (!ArrayBufferIsView(data)) {
    return core.isArrayBuffer(data) ? new Uint8Array(data) : undefined;
  }
  return TypedArrayPrototypeGetSymbolToStringTag(data) === undefined
    ? new Uint8Array(
      DataViewPrototypeGetBuffer(data),
      DataViewPrototypeGetByteOffset(data),
      DataViewPrototypeGetByteLength(data),
    )
    : new Uint8Array(
      TypedArrayPrototypeGetBuffer(data),
      TypedArrayPrototypeGetByteOffset(data),
      TypedArrayPrototypeGetByteLength(data),
    );
}

function contentOf(data) {
  if (typeof data === "string") {
    return { __proto__: null, data: contentText(data), base64: false };
  }
  const bytes = viewOf(data);
  if (bytes === undefined) {
    const kind = data === null ? "null" : typeof data;
    throw new TypeError(`fs: expected text or bytes to write: ${kind}; JSON.stringify(value) makes text of a value`);
  }
  return { __proto__: null, data: encodeBase64(bytes), base64: true };
}

async function write(path, data, flag) {
  if (typeof flag !== "string") {
    throw new TypeError(`fs: expected the flag as a text such as "a", found ${typeof flag}`);
  }
  await ask("open", { op: "writeFile", path: pathOf(path), ...contentOf(data), flag });
}

function kinds(target, kind) {
  const define = (name, wanted) =>
    ObjectDefineProperty(target, name, { __proto__: null, value: () => kind === wanted, enumerable: false });
  define("isFile", "file");
  define("isDirectory", "directory");
  define("isSymbolicLink", "link");
  return target;
}

async function stat(syscall, path, follow) {
  const found = await ask(syscall, { op: "stat", path: pathOf(path), follow });
  const { kind, size, mtimeMs, ino } = found;
  const times = { atimeMs: mtimeMs, mtimeMs, ctimeMs: mtimeMs, birthtimeMs: mtimeMs };
  const time = new Date(mtimeMs);
  return kinds({ size, ino, ...times, atime: time, mtime: time, ctime: time, birthtime: time }, kind);
}

async function readdir(path, wanted) {
  const { recursive, withFileTypes } = options(wanted);
  const directory = pathOf(path);
  const entries = await ask("scandir", { op: "readDirectory", path: directory, recursive: recursive === true });
  const list = [];
  for (let index = 0; index < entries.length; index++) {
    const name = entries[index][0];
    if (withFileTypes !== true) {
      ArrayPrototypePush(list, name);
      continue;
    }
    const slash = StringPrototypeLastIndexOf(name, "/");
    const parentPath = slash < 0 ? directory : `${directory}/${StringPrototypeSlice(name, 0, slash)}`;
    ArrayPrototypePush(list, kinds({ name: StringPrototypeSlice(name, slash + 1), parentPath }, entries[index][1]));
  }
  return list;
}

const constants = ObjectFreeze({ __proto__: null, F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4, COPYFILE_EXCL: 1 });

const functions = {
  __proto__: null,
  constants,
  async readFile(path, wanted) {
    const text = isText(options(wanted).encoding);
    const content = await ask("open", { op: "readFile", path: pathOf(path), text });
    return text ? content : makeBytes(content);
  },
  async writeFile(path, data, wanted) {
    await write(path, data, options(wanted).flag ?? "w");
  },
  async appendFile(path, data, wanted) {
    await write(path, data, options(wanted).flag ?? "a");
  },
  readdir,
  async mkdir(path, wanted) {
    const recursive = options(wanted).recursive === true;
    const first = await ask("mkdir", { op: "makeDirectory", path: pathOf(path), recursive });
    return first ?? undefined;
  },
  async mkdtemp(prefix) {
    return await ask("mkdtemp", { op: "makeTemporary", prefix: pathOf(prefix) });
  },
  async rm(path, wanted) {
    const { recursive, force } = options(wanted);
    await ask("rm", { op: "remove", path: pathOf(path), recursive: recursive === true, force: force === true });
  },
  async unlink(path) {
    await ask("unlink", { op: "removeFile", path: pathOf(path) });
  },
  async rmdir(path) {
    await ask("rmdir", { op: "removeDirectory", path: pathOf(path) });
  },
  async stat(path) {
    return await stat("stat", path, true);
  },
  async lstat(path) {
    return await stat("lstat", path, false);
  },
  async rename(from, to) {
    await ask("rename", { op: "rename", path: pathOf(from), to: pathOf(to) });
  },
  async copyFile(from, to, mode) {
    await ask("copyfile", { op: "copy", path: pathOf(from), to: pathOf(to), exclusive: mode === 1 });
  },
  async access(path, mode) {
    await ask("access", { op: "access", path: pathOf(path), write: typeof mode === "number" && (mode & 2) !== 0 });
  },
  async truncate(path, size) {
    const length = size ?? 0;
    if (typeof length !== "number") {
      throw new TypeError(`fs.truncate: expected the length in bytes as a number, found ${typeof length}`);
    }
    await ask("truncate", { op: "truncate", path: pathOf(path), size: length });
  },
};

const fs = functions;
fs.promises = fs;
ObjectFreeze(fs);

// A server of this name has the global instead. Imports take it from the symbol (loader.rs).
defineBuiltIn(globalThis, "fs", fs);
ObjectDefineProperty(globalThis, SymbolFor("cx.fs"), {
  __proto__: null,
  value: fs,
  writable: false,
  enumerable: false,
  configurable: false,
});

// The content block of a file, as JSON text.
export function fileBlock(value) {
  checkKeys("emit", value);
  const keys = ObjectKeys(value);
  for (let index = 0; index < keys.length; index++) {
    if (keys[index] !== "file" && keys[index] !== "mimeType") {
      throw new TypeError(`emit: a file has \`file\` and \`mimeType\`, not \`${keys[index]}\``);
    }
  }
  const file = { __proto__: null, path: pathOf(value.file), mimeType: value.mimeType ?? null };
  const request = toJson("emit", { __proto__: null, kind: "fileBlock", file });
  return core.ops.op_cx_query_blocking(request);
}
