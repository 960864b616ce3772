// `fetch`, `FormData`, `Headers`, `Request` and `Response`, as on the web, for hosts that a person has granted. The host decides
// about every request and every redirect; a run without a granted host has none of these globals. This is the body of a
// function with the parameters `parts` and `holder`: see js/53_fetch.js.

const {
  abort,
  abortable,
  append,
  coded,
  core,
  defineBuiltIn,
  encodeBase64,
  isSignal,
  loadedStreams,
  McpToolError,
  primordials,
  query,
  streams,
  textStreams,
} = parts;

const {
  ArrayBufferIsView,
  ArrayBufferPrototypeSlice,
  ArrayIsArray,
  ArrayPrototypeSort,
  DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset,
  JSONParse,
  JSONStringify,
  MathFloor,
  ObjectDefineProperty,
  ObjectKeys,
  ObjectPrototypeIsPrototypeOf,
  PromisePrototypeThen,
  RangeError,
  ReflectApply,
  ReflectGet,
  String,
  StringPrototypeCharCodeAt,
  StringPrototypeToLowerCase,
  StringPrototypeToUpperCase,
  SymbolFor,
  SymbolIterator,
  SymbolToStringTag,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypedArrayPrototypeSet,
  TypeError,
  Uint8Array,
} = primordials;

const { TextDecoder, TextEncoder, URL, URLSearchParams } = globalThis;
const URLPrototype = URL.prototype;
const URLSearchParamsPrototype = URLSearchParams.prototype;
const searchToString = URLSearchParamsPrototype.toString;
const encoder = new TextEncoder();
const { encode } = TextEncoder.prototype;
const strict = new TextDecoder("utf-8", { __proto__: null, fatal: true, ignoreBOM: true });
const { decode } = TextDecoder.prototype;

// --- headers ----------------------------------------------------------------------------------

function isToken(text) {
  for (let index = 0; index < text.length; index++) {
    const code = StringPrototypeCharCodeAt(text, index);
    const isLetter = (code | 32) >= 97 && (code | 32) <= 122;
    const isDigit = code >= 48 && code <= 57;
    // ! # $ % & ' * + - . ^ _ ` | ~
    const isMark = code === 33 || (code >= 35 && code <= 39) || code === 42 || code === 43 || code === 45 ||
      code === 46 || code === 94 || code === 95 || code === 96 || code === 124 || code === 126;
    if (!isLetter && !isDigit && !isMark) {
      return false;
    }
  }
  return text.length > 0;
}

function headerName(name) {
  const text = String(name);
  if (!isToken(text)) {
    throw new TypeError(`expected the name of a header: ${JSONStringify(text)}`);
  }
  return StringPrototypeToLowerCase(text);
}

function isBlank(code) {
  return code === 32 || code === 9 || code === 10 || code === 13;
}

function headerValue(name, value) {
  const text = String(value);
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(StringPrototypeCharCodeAt(text, start))) start++;
  while (end > start && isBlank(StringPrototypeCharCodeAt(text, end - 1))) end--;
  let trimmed = "";
  for (let index = start; index < end; index++) {
    const code = StringPrototypeCharCodeAt(text, index);
    if (code === 0 || code === 10 || code === 13 || code > 255) {
      throw new TypeError(`the value of the header \`${name}\` has a character that no header may have`);
    }
    trimmed += text[index];
  }
  return trimmed;
}

// Pairs of lower-case names and values, in the order in which they were added.
let pairsOf;

class Headers {
  #pairs = [];

  static {
    pairsOf = (headers) => headers.#pairs;
  }

  constructor(init = undefined) {
    if (init === undefined || init === null) {
      return;
    }
    if (typeof init !== "object") {
      throw new TypeError(`expected headers as an object, as in { accept: "text/plain" }: a ${typeof init}`);
    }
    if (#pairs in init) {
      const pairs = init.#pairs;
      for (let index = 0; index < pairs.length; index++) {
        append(this.#pairs, { __proto__: null, name: pairs[index].name, value: pairs[index].value });
      }
    } else if (typeof init[SymbolIterator] === "function") {
      for (const pair of init) {
        if (pair?.length !== 2) {
          throw new TypeError("expected each header as a pair of a name and a value");
        }
        this.append(pair[0], pair[1]);
      }
    } else {
      const names = ObjectKeys(init);
      for (let index = 0; index < names.length; index++) {
        this.append(names[index], init[names[index]]);
      }
    }
  }

  append(name, value) {
    const lower = headerName(name);
    append(this.#pairs, { __proto__: null, name: lower, value: headerValue(lower, value) });
  }

  set(name, value) {
    const lower = headerName(name);
    const text = headerValue(lower, value);
    this.delete(lower);
    append(this.#pairs, { __proto__: null, name: lower, value: text });
  }

  delete(name) {
    const lower = headerName(name);
    const kept = [];
    for (let index = 0; index < this.#pairs.length; index++) {
      if (this.#pairs[index].name !== lower) {
        append(kept, this.#pairs[index]);
      }
    }
    this.#pairs = kept;
  }

  get(name) {
    const lower = headerName(name);
    let found = null;
    for (let index = 0; index < this.#pairs.length; index++) {
      if (this.#pairs[index].name === lower) {
        found = found === null ? this.#pairs[index].value : `${found}, ${this.#pairs[index].value}`;
      }
    }
    return found;
  }

  getSetCookie() {
    const found = [];
    for (let index = 0; index < this.#pairs.length; index++) {
      if (this.#pairs[index].name === "set-cookie") {
        append(found, this.#pairs[index].value);
      }
    }
    return found;
  }

  has(name) {
    return this.get(name) !== null;
  }

  // Sorted, with the values of one name together; each `Set-Cookie` is a separate header.
  #entries() {
    const names = [];
    const seen = { __proto__: null };
    for (let index = 0; index < this.#pairs.length; index++) {
      const name = this.#pairs[index].name;
      if (!seen[name]) {
        seen[name] = true;
        append(names, name);
      }
    }
    ArrayPrototypeSort(names);
    const entries = [];
    for (let index = 0; index < names.length; index++) {
      if (names[index] === "set-cookie") {
        const cookies = this.getSetCookie();
        for (let which = 0; which < cookies.length; which++) {
          append(entries, [names[index], cookies[which]]);
        }
      } else {
        append(entries, [names[index], this.get(names[index])]);
      }
    }
    return entries;
  }

  forEach(callback, receiver = undefined) {
    const entries = this.#entries();
    for (let index = 0; index < entries.length; index++) {
      ReflectApply(callback, receiver, [entries[index][1], entries[index][0], this]);
    }
  }

  *entries() {
    const entries = this.#entries();
    for (let index = 0; index < entries.length; index++) {
      yield entries[index];
    }
  }

  *keys() {
    const entries = this.#entries();
    for (let index = 0; index < entries.length; index++) {
      yield entries[index][0];
    }
  }

  *values() {
    const entries = this.#entries();
    for (let index = 0; index < entries.length; index++) {
      yield entries[index][1];
    }
  }

  // A script that returns or prints headers gets them as an object.
  toJSON() {
    const object = { __proto__: null };
    const entries = this.#entries();
    for (let index = 0; index < entries.length; index++) {
      const name = entries[index][0];
      const value = name in object ? `${object[name]}, ${entries[index][1]}` : entries[index][1];
      ObjectDefineProperty(object, name, {
        __proto__: null,
        value,
        writable: true,
        enumerable: true,
        configurable: true,
      });
    }
    return object;
  }
}

// --- bodies -----------------------------------------------------------------------------------

function isEmpty(bytes) {
  return TypedArrayPrototypeGetByteLength(bytes) === 0;
}

function fromBase64(text) {
  const { length } = text;
  let most = MathFloor(length / 4) * 3;
  if (length > 0 && text[length - 1] === "=") {
    most -= text[length - 2] === "=" ? 2 : 1;
  }
  const bytes = new Uint8Array(most);
  if (most > 0) {
    core.ops.op_base64_decode_into(text, bytes, 0);
  }
  return bytes;
}

// Bytes of a body as the host writes them: what is text is text.
function fromHost({ text, base64 }) {
  return text === undefined ? fromBase64(base64) : ReflectApply(encode, encoder, [text]);
}

function toHost(bytes) {
  try {
    return { __proto__: null, text: ReflectApply(decode, strict, [bytes]) };
  } catch {
    return { __proto__: null, base64: encodeBase64(bytes) };
  }
}

// A copy of the bytes of a buffer or a view; undefined for anything else.
function bytesOf(value) {
  if (ArrayBufferIsView(value)) {
    const isView = TypedArrayPrototypeGetSymbolToStringTag(value) === undefined;
    const buffer = isView ? DataViewPrototypeGetBuffer(value) : TypedArrayPrototypeGetBuffer(value);
    const offset = isView ? DataViewPrototypeGetByteOffset(value) : TypedArrayPrototypeGetByteOffset(value);
    const length = isView ? DataViewPrototypeGetByteLength(value) : TypedArrayPrototypeGetByteLength(value);
    return new Uint8Array(ArrayBufferPrototypeSlice(buffer, offset, offset + length));
  }
  return core.isAnyArrayBuffer(value) ? new Uint8Array(ArrayBufferPrototypeSlice(value, 0)) : undefined;
}

function joined(parts, length) {
  if (parts.length === 1) {
    return parts[0];
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (let index = 0; index < parts.length; index++) {
    TypedArrayPrototypeSet(bytes, parts[index], offset);
    offset += TypedArrayPrototypeGetByteLength(parts[index]);
  }
  return bytes;
}

// --- forms ------------------------------------------------------------------------------------

// The entries of a form; undefined for anything else.
let fieldsOf;

// A text may have any newline, and is sent with those of the standard.
function withNewlines(text) {
  let converted = "";
  for (let index = 0; index < text.length; index++) {
    const code = StringPrototypeCharCodeAt(text, index);
    if (code === 13 && index + 1 < text.length && StringPrototypeCharCodeAt(text, index + 1) === 10) {
      continue;
    }
    converted += code === 10 || code === 13 ? "\r\n" : text[index];
  }
  return converted;
}

// A name between quotation marks in the head of a part.
function quoted(text) {
  let escaped = "";
  for (let index = 0; index < text.length; index++) {
    const code = StringPrototypeCharCodeAt(text, index);
    escaped += code === 34 ? "%22" : code === 10 ? "%0A" : code === 13 ? "%0D" : text[index];
  }
  return escaped;
}

// Files are bytes with a name, because scripts have no blobs.
function field(name, value, fileName) {
  const bytes = typeof value === "object" && value !== null ? bytesOf(value) : undefined;
  if (bytes === undefined && fileName !== undefined) {
    throw new TypeError("expected the bytes of a file as Uint8Array: with a file name the value is not text");
  }
  return {
    __proto__: null,
    name: String(name),
    value: bytes ?? String(value),
    fileName: bytes === undefined ? undefined : fileName === undefined ? "blob" : String(fileName),
  };
}

class FormData {
  #fields = [];

  static {
    fieldsOf = (value) => #fields in value ? value.#fields : undefined;
  }

  constructor(form = undefined) {
    if (form !== undefined) {
      throw new TypeError("expected no argument: scripts have no forms of a page");
    }
  }

  append(name, value, fileName = undefined) {
    append(this.#fields, field(name, value, fileName));
  }

  set(name, value, fileName = undefined) {
    const added = field(name, value, fileName);
    const kept = [];
    let isSet = false;
    for (let index = 0; index < this.#fields.length; index++) {
      if (this.#fields[index].name !== added.name) {
        append(kept, this.#fields[index]);
      } else if (!isSet) {
        isSet = true;
        append(kept, added);
      }
    }
    if (!isSet) {
      append(kept, added);
    }
    this.#fields = kept;
  }

  delete(name) {
    const text = String(name);
    const kept = [];
    for (let index = 0; index < this.#fields.length; index++) {
      if (this.#fields[index].name !== text) {
        append(kept, this.#fields[index]);
      }
    }
    this.#fields = kept;
  }

  getAll(name) {
    const text = String(name);
    const found = [];
    for (let index = 0; index < this.#fields.length; index++) {
      if (this.#fields[index].name === text) {
        append(found, this.#fields[index].value);
      }
    }
    return found;
  }

  get(name) {
    const found = this.getAll(name);
    return found.length > 0 ? found[0] : null;
  }

  has(name) {
    return this.getAll(name).length > 0;
  }

  forEach(callback, receiver = undefined) {
    for (let index = 0; index < this.#fields.length; index++) {
      ReflectApply(callback, receiver, [this.#fields[index].value, this.#fields[index].name, this]);
    }
  }

  *entries() {
    for (let index = 0; index < this.#fields.length; index++) {
      yield [this.#fields[index].name, this.#fields[index].value];
    }
  }

  *keys() {
    for (let index = 0; index < this.#fields.length; index++) {
      yield this.#fields[index].name;
    }
  }

  *values() {
    for (let index = 0; index < this.#fields.length; index++) {
      yield this.#fields[index].value;
    }
  }

  // A script that returns or prints a form gets its fields in order.
  toJSON() {
    const fields = [];
    for (let index = 0; index < this.#fields.length; index++) {
      const { name, value, fileName } = this.#fields[index];
      append(fields, [name, fileName === undefined ? value : `${fileName} (${value.length} bytes)`]);
    }
    return fields;
  }
}

function hasText(bytes, text) {
  const last = TypedArrayPrototypeGetByteLength(bytes) - text.length;
  for (let start = 0; start <= last; start++) {
    let length = 0;
    while (length < text.length && bytes[start + length] === StringPrototypeCharCodeAt(text, length)) {
      length++;
    }
    if (length === text.length) {
      return true;
    }
  }
  return false;
}

// The body of a form, and its boundary: the first one that no field has in it. It is not random, so that a replay sends
// what was recorded.
function multipart(fields) {
  const contents = [];
  for (let index = 0; index < fields.length; index++) {
    const { value, fileName } = fields[index];
    append(contents, fileName === undefined ? ReflectApply(encode, encoder, [withNewlines(value)]) : value);
  }
  let boundary;
  for (let number = 0, isFree = false; !isFree; number++) {
    boundary = `cx-form-${number}`;
    isFree = true;
    for (let index = 0; isFree && index < contents.length; index++) {
      isFree = !hasText(contents[index], `--${boundary}`);
    }
  }
  const parts = [];
  let length = 0;
  const add = (bytes) => {
    append(parts, bytes);
    length += TypedArrayPrototypeGetByteLength(bytes);
  };
  for (let index = 0; index < fields.length; index++) {
    const { name, fileName } = fields[index];
    const file = fileName === undefined
      ? ""
      : `; filename="${quoted(fileName)}"\r\nContent-Type: application/octet-stream`;
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(withNewlines(name))}"${file}\r\n\r\n`;
    add(ReflectApply(encode, encoder, [head]));
    add(contents[index]);
    add(ReflectApply(encode, encoder, ["\r\n"]));
  }
  add(ReflectApply(encode, encoder, [`--${boundary}--\r\n`]));
  return { __proto__: null, bytes: joined(parts, length), boundary };
}

// The error that a script gets in place of the host's: as on the web a TypeError, whose cause has the code.
function failure(error) {
  if (!ObjectPrototypeIsPrototypeOf(McpToolError.prototype, error)) {
    return error;
  }
  return coded(new TypeError(`fetch failed: ${error.message}`, { __proto__: null, cause: error }), error.code);
}

async function call(fields) {
  try {
    return await query({ __proto__: null, kind: "fetch", call: fields });
  } catch (error) {
    throw failure(error);
  }
}

// What a body is made of. A part is undefined at the end, and never empty: a stream of bytes takes no empty part.
class Bytes {
  #bytes;
  constructor(bytes) {
    this.#bytes = bytes;
  }
  async part() {
    const bytes = this.#bytes;
    this.#bytes = undefined;
    return bytes === undefined || isEmpty(bytes) ? undefined : bytes;
  }
  copy() {
    return new Bytes(this.#bytes === undefined ? undefined : bytesOf(this.#bytes));
  }
  close() {
    this.#bytes = undefined;
  }
}

// The body of a response that the host still receives. It asks for a part when the script does, and never before.
class Remote {
  #first;
  #number;
  #signal;
  #isOver = false;
  constructor(first, number, signal) {
    this.#first = first;
    this.#number = number;
    this.#signal = signal;
  }
  async part() {
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined && !isEmpty(first)) {
      return first;
    }
    for (;;) {
      if (this.#isOver) {
        return undefined;
      }
      const work = call({ __proto__: null, read: this.#number });
      const { body, done } = await abortable(this.#signal, work, () => this.close());
      this.#isOver ||= done;
      const bytes = fromHost(body);
      if (!isEmpty(bytes)) {
        return bytes;
      }
    }
  }
  close() {
    if (!this.#isOver) {
      this.#isOver = true;
      PromisePrototypeThen(call({ __proto__: null, close: this.#number }), undefined, () => {});
    }
  }
}

let bodyOf;
let copyBody;
let setBody;

class Body {
  // Undefined for none.
  #source = undefined;
  #stream = undefined;
  #isUsed = false;

  static {
    setBody = (object, source, stream) => {
      object.#source = source;
      object.#stream = stream;
    };
    // Two bodies for one.
    copyBody = (from, to) => {
      if (from.bodyUsed || from.#stream?.locked) {
        throw new TypeError("a body that was read cannot be cloned");
      }
      if (from.#stream === undefined && from.#source instanceof Bytes) {
        to.#source = from.#source.copy();
      } else if (from.body !== null) {
        const both = streams().readableStreamTee(from.#stream, true);
        from.#stream = both[0];
        to.#source = from.#source;
        to.#stream = both[1];
      }
    };
    // The bytes of a request's body, for sending; undefined if there is none.
    bodyOf = async (object) =>
      object.#source === undefined && object.#stream === undefined ? undefined : await object.#consume();
  }

  get body() {
    if (this.#stream === undefined && this.#source !== undefined) {
      const source = this.#source;
      const { ReadableStream } = streams();
      const isUsed = this.#isUsed;
      // No part is requested before the script reads: the host does not receive what the script does not take.
      this.#stream = new ReadableStream({
        __proto__: null,
        type: "bytes",
        async pull(controller) {
          const part = isUsed ? undefined : await source.part();
          if (part === undefined) {
            controller.close();
            controller.byobRequest?.respond(0);
          } else {
            controller.enqueue(part);
          }
        },
        cancel() {
          source.close();
        },
      }, { __proto__: null, highWaterMark: 0 });
    }
    return this.#stream ?? null;
  }

  get bodyUsed() {
    return this.#isUsed || (this.#stream !== undefined && streams().isReadableStreamDisturbed(this.#stream));
  }

  async #consume() {
    if (this.bodyUsed || this.#stream?.locked) {
      throw new TypeError("the body was read already, or is being read: read it once and keep what it gives");
    }
    this.#isUsed = true;
    let next = () => this.#source.part();
    if (this.#stream !== undefined) {
      const reader = streams().acquireReadableStreamDefaultReader(this.#stream);
      next = async () => {
        const { value, done } = await reader.read();
        if (done) {
          return undefined;
        }
        const bytes = typeof value === "string" ? undefined : bytesOf(value);
        if (bytes === undefined) {
          throw new TypeError("a stream that is a body must give Uint8Array");
        }
        return bytes;
      };
    }
    if (this.#source === undefined && this.#stream === undefined) {
      return new Uint8Array(0);
    }
    const parts = [];
    let length = 0;
    for (;;) {
      const part = await next();
      if (part === undefined) {
        return joined(parts, length);
      }
      append(parts, part);
      length += TypedArrayPrototypeGetByteLength(part);
    }
  }

  async bytes() {
    return await this.#consume();
  }

  async arrayBuffer() {
    return TypedArrayPrototypeGetBuffer(await this.#consume());
  }

  async text() {
    const bytes = await this.#consume();
    return core.decode(bytes);
  }

  async json() {
    const bytes = await this.#consume();
    return JSONParse(core.decode(bytes));
  }

  // deno-lint-ignore require-await
  async blob() {
    throw new TypeError("scripts have no blobs: use `await response.bytes()`");
  }

  // deno-lint-ignore require-await
  async formData() {
    throw new TypeError("bodies are not read as forms: use `new URLSearchParams(await response.text())`");
  }
}

// There is no stream as long as the code for them was not loaded.
function isStream(value) {
  return loadedStreams()?.isReadableStream(value) ?? false;
}

// Sets the body of a request or a response, and returns the type of its content.
function extract(object, body) {
  if (body === undefined || body === null) {
    return undefined;
  }
  if (isStream(body)) {
    if (body.locked || streams().isReadableStreamDisturbed(body)) {
      throw new TypeError("the stream is locked or was read already");
    }
    setBody(object, undefined, body);
    return undefined;
  }
  if (typeof body === "object") {
    const bytes = bytesOf(body);
    if (bytes !== undefined) {
      setBody(object, new Bytes(bytes), undefined);
      return undefined;
    }
    if (ObjectPrototypeIsPrototypeOf(URLSearchParamsPrototype, body)) {
      const text = ReflectApply(searchToString, body, []);
      setBody(object, new Bytes(ReflectApply(encode, encoder, [text])), undefined);
      return "application/x-www-form-urlencoded;charset=UTF-8";
    }
    const fields = fieldsOf(body);
    if (fields !== undefined) {
      const { bytes, boundary } = multipart(fields);
      setBody(object, new Bytes(bytes), undefined);
      return `multipart/form-data; boundary=${boundary}`;
    }
    if (typeof body.toString !== "function" || `${body}` === "[object Object]" || ArrayIsArray(body)) {
      throw new TypeError("the body is an object: write `body: JSON.stringify(value)` and set `content-type`");
    }
  }
  setBody(object, new Bytes(ReflectApply(encode, encoder, [`${body}`])), undefined);
  return "text/plain;charset=UTF-8";
}

// --- requests ---------------------------------------------------------------------------------

const REDIRECTS = { __proto__: null, follow: true, error: true, manual: true };
const USUAL_METHODS = {
  __proto__: null,
  GET: true,
  HEAD: true,
  POST: true,
  PUT: true,
  DELETE: true,
  OPTIONS: true,
  PATCH: true,
};

// Options of other libraries, and what to write here. As on the web, any other option that is not known is ignored.
const FOREIGN_OPTIONS = {
  __proto__: null,
  data: "write `body`",
  json: "write `body: JSON.stringify(value)` and set `content-type`",
  params: "write them into the address: `${url}?${new URLSearchParams(params)}`",
  timeout: "write `signal: AbortSignal.timeout(milliseconds)`",
  timeoutMs: "write `signal: AbortSignal.timeout(milliseconds)`",
};

function refuseForeign(options) {
  const names = ObjectKeys(options);
  for (let index = 0; index < names.length; index++) {
    const instead = FOREIGN_OPTIONS[names[index]];
    if (instead !== undefined) {
      throw new TypeError(`fetch has no option \`${names[index]}\`: ${instead}`);
    }
  }
}

// What is sent of a request, which a script cannot change by changing the class.
let requestParts;

function methodOf(value) {
  const text = String(value);
  if (!isToken(text)) {
    throw new TypeError(`expected a method such as "GET": ${JSONStringify(text)}`);
  }
  const upper = StringPrototypeToUpperCase(text);
  return USUAL_METHODS[upper] ? upper : text;
}

class Request extends Body {
  #url;
  #method = "GET";
  #headers;
  #redirect = "follow";
  #signal;

  constructor(input, init = undefined) {
    super();
    const options = init ?? { __proto__: null };
    if (typeof options !== "object") {
      throw new TypeError(`expected the options as an object, as in { method: "POST" }: a ${typeof options}`);
    }
    refuseForeign(options);
    const from = typeof input === "object" && input !== null && #url in input ? input : undefined;
    if (from !== undefined) {
      this.#url = from.#url;
      this.#method = from.#method;
      this.#redirect = from.#redirect;
      this.#signal = from.#signal;
    } else {
      const text = typeof input === "string" ? input : String(input);
      if (!URL.canParse(text)) {
        throw new TypeError(`expected an address such as "https://example.com/a": ${JSONStringify(text)}`);
      }
      const url = new URL(text);
      if (url.username !== "" || url.password !== "") {
        throw new TypeError("an address with a user name or a password is refused: send the header `authorization`");
      }
      this.#url = url.href;
    }
    if (options.method !== undefined) {
      this.#method = methodOf(options.method);
    }
    if (options.redirect !== undefined) {
      if (!REDIRECTS[options.redirect]) {
        throw new TypeError('expected `redirect` as "follow", "error" or "manual"');
      }
      this.#redirect = options.redirect;
    }
    if (options.signal !== undefined) {
      if (options.signal !== null && !isSignal(options.signal)) {
        throw new TypeError("expected `signal` as an AbortSignal");
      }
      this.#signal = options.signal ?? undefined;
    }
    this.#headers = new Headers(options.headers ?? from?.#headers);
    const hasBody = options.body !== undefined && options.body !== null;
    if (hasBody && (this.#method === "GET" || this.#method === "HEAD")) {
      throw new TypeError(`a request with the method ${this.#method} has no body`);
    }
    if (hasBody) {
      const type = extract(this, options.body);
      if (type !== undefined && !this.#headers.has("content-type")) {
        this.#headers.append("content-type", type);
      }
    } else if (from !== undefined) {
      copyBody(from, this);
    }
  }

  get url() {
    return this.#url;
  }
  get method() {
    return this.#method;
  }
  get headers() {
    return this.#headers;
  }
  get redirect() {
    return this.#redirect;
  }
  get signal() {
    return this.#signal ??= abort.newSignal();
  }

  clone() {
    return new Request(this);
  }

  toJSON() {
    return { method: this.#method, url: this.#url, headers: this.#headers };
  }

  static {
    requestParts = (request) => ({
      __proto__: null,
      url: request.#url,
      method: request.#method,
      headers: pairsOf(request.#headers),
      redirect: request.#redirect,
      signal: request.#signal,
    });
  }
}

// --- responses --------------------------------------------------------------------------------

// The response of an answer of the host.
let responseOf;

const NULL_BODY = { __proto__: null, 101: true, 103: true, 204: true, 205: true, 304: true };
const REDIRECT_STATUS = { __proto__: null, 301: true, 302: true, 303: true, 307: true, 308: true };

class Response extends Body {
  #status = 200;
  #statusText = "";
  #headers;
  #url = "";
  #isRedirected = false;
  #type = "default";

  constructor(body = null, init = undefined) {
    super();
    const options = init ?? { __proto__: null };
    if (options.status !== undefined) {
      const status = +options.status;
      if (!(status >= 200 && status <= 599 && MathFloor(status) === status)) {
        throw new RangeError(`expected a status from 200 to 599: ${status}`);
      }
      this.#status = status;
    }
    this.#statusText = options.statusText === undefined ? "" : String(options.statusText);
    this.#headers = new Headers(options.headers);
    if (body !== null && body !== undefined) {
      if (NULL_BODY[this.#status]) {
        throw new TypeError(`a response with the status ${this.#status} has no body`);
      }
      const type = extract(this, body);
      if (type !== undefined && !this.#headers.has("content-type")) {
        this.#headers.append("content-type", type);
      }
    }
  }

  static json(data, init = undefined) {
    const text = JSONStringify(data);
    if (text === undefined) {
      throw new TypeError("JSON does not have this value");
    }
    const response = new Response(text, init);
    if (new Headers(init?.headers).get("content-type") === null) {
      response.#headers.set("content-type", "application/json");
    }
    return response;
  }

  static error() {
    const response = new Response();
    response.#status = 0;
    response.#type = "error";
    return response;
  }

  static redirect(url, status = 302) {
    const target = new URL(String(url)).href;
    if (!REDIRECT_STATUS[status]) {
      throw new RangeError(`expected the status of a redirect: ${status}`);
    }
    return new Response(null, { __proto__: null, status, headers: { __proto__: null, location: target } });
  }

  get status() {
    return this.#status;
  }
  get ok() {
    return this.#status >= 200 && this.#status <= 299;
  }
  get statusText() {
    return this.#statusText;
  }
  get headers() {
    return this.#headers;
  }
  get url() {
    return this.#url;
  }
  get redirected() {
    return this.#isRedirected;
  }
  get type() {
    return this.#type;
  }

  clone() {
    const response = new Response();
    response.#status = this.#status;
    response.#statusText = this.#statusText;
    response.#headers = new Headers(this.#headers);
    response.#url = this.#url;
    response.#isRedirected = this.#isRedirected;
    response.#type = this.#type;
    copyBody(this, response);
    return response;
  }

  // A script that returns or prints a response, and not what is in it, gets its head.
  toJSON() {
    return { status: this.#status, ok: this.ok, url: this.#url, headers: this.#headers };
  }

  static {
    responseOf = (head, number, method, signal) => {
      const response = new Response();
      response.#status = head.status;
      response.#statusText = head.statusText;
      response.#url = head.url;
      response.#isRedirected = head.redirected;
      response.#type = "basic";
      const pairs = pairsOf(response.#headers);
      for (let index = 0; index < head.headers.length; index++) {
        append(pairs, { __proto__: null, name: head.headers[index][0], value: head.headers[index][1] });
      }
      if (!NULL_BODY[head.status] && method !== "HEAD") {
        const first = fromHost(head.body);
        setBody(response, head.done ? new Bytes(first) : new Remote(first, number, signal), undefined);
      }
      return response;
    };
  }
}

// --- fetch ------------------------------------------------------------------------------------

let lastNumber = 0;

async function fetch(input, init = undefined) {
  const request = new Request(input, init);
  const { url, method, headers: pairs, redirect, signal } = requestParts(request);
  if (signal?.aborted) {
    throw signal.reason;
  }
  const headers = [];
  for (let index = 0; index < pairs.length; index++) {
    append(headers, [pairs[index].name, pairs[index].value]);
  }
  // A stream may give the body later, or never. Nothing was sent that would have to be stopped.
  const bytes = await abortable(signal, bodyOf(request), () => {});
  const body = bytes === undefined ? undefined : toHost(bytes);
  const number = ++lastNumber;
  const open = { __proto__: null, id: number, url, method, headers, body, redirect };
  const stop = () => {
    PromisePrototypeThen(call({ __proto__: null, close: number }), undefined, () => {});
  };
  const head = await abortable(signal, call({ __proto__: null, open }), stop);
  return responseOf(head, number, method, signal);
}

// --- globals ----------------------------------------------------------------------------------

const INSPECT = SymbolFor("Deno.customInspect");

function finishClass(Class, name) {
  const { prototype } = Class;
  ObjectDefineProperty(prototype, SymbolToStringTag, { __proto__: null, value: name, configurable: true });
  const { toJSON } = prototype;
  defineBuiltIn(prototype, INSPECT, function (inspect, options) {
    return `${name} ${inspect(ReflectApply(toJSON, this, []), options)}`;
  });
}

defineBuiltIn(Headers.prototype, SymbolIterator, Headers.prototype.entries);
defineBuiltIn(FormData.prototype, SymbolIterator, FormData.prototype.entries);
finishClass(FormData, "FormData");
finishClass(Headers, "Headers");
finishClass(Request, "Request");
finishClass(Response, "Response");

const globals = { __proto__: null, FormData, Headers, Request, Response, fetch };

// They are large, and most scripts that fetch need none of them: loaded at the first use.
const STREAMS = [
  "ByteLengthQueuingStrategy",
  "CountQueuingStrategy",
  "ReadableStream",
  "TransformStream",
  "WritableStream",
];
const TEXT_STREAMS = ["TextDecoderStream", "TextEncoderStream"];

function defineLater(name, load) {
  ObjectDefineProperty(globalThis, name, {
    __proto__: null,
    get() {
      defineBuiltIn(globalThis, name, load());
      return ReflectGet(globalThis, name);
    },
    set(value) {
      defineBuiltIn(globalThis, name, value);
    },
    enumerable: false,
    configurable: true,
  });
}

// Gives the script its network. Without a granted host the names stay undefined.
holder.made = () => {
  const names = ObjectKeys(globals);
  for (let index = 0; index < names.length; index++) {
    defineBuiltIn(globalThis, names[index], globals[names[index]]);
  }
  for (let index = 0; index < STREAMS.length; index++) {
    defineLater(STREAMS[index], () => streams()[STREAMS[index]]);
  }
  for (let index = 0; index < TEXT_STREAMS.length; index++) {
    defineLater(TEXT_STREAMS[index], () => textStreams[TEXT_STREAMS[index]]);
  }
};
