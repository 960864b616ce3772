// Bounds on what one host call may copy. An op that takes text copies it and makes its result from the copy, before the
// host can check the run's memory again. V8's longest string has half a billion characters and, as a chain of parts (a
// rope), may itself take almost no memory. So every function of deno_web that passes text to an op checks the length
// first. Each argument is converted once, here, so an object that converts differently the second time gains nothing.

import { core, primordials } from "ext:core/mod.js";
import { append, noteOriginal } from "ext:cx/19_guarding.js";

const {
  ArrayBufferPrototypeGetByteLength,
  ArrayIsArray,
  DataViewPrototypeGetByteLength,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectGetOwnPropertySymbols,
  Proxy,
  RangeError,
  ReflectApply,
  ReflectConstruct,
  ReflectOwnKeys,
  String,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypeError,
  Uint32Array,
  Uint8Array,
} = primordials;

// Maximum characters of text, or bytes, that one call converts. Far more than a result may have. With its copies and
// its result it stays below the memory that a run may use beyond its limit.
const MAX_CONVERTED = 2 ** 25;
// Maximum characters of a URL or of a query. Each character can become nine, and each two characters a pair of strings.
const MAX_URL = 2 ** 20;
// Maximum characters of text, or bytes, that are content in one call: of a file, a block, or the body of a request.
// Bytes become base64, which is a third longer, and both become JSON.
const MAX_CONTENT = 2 ** 26;
// Cost of a query pair in addition to its text.
const PAIR_OVERHEAD = 16;

function check(what, length, max) {
  if (length > max) {
    throw new RangeError(`${what} is ${length} long, at most ${max} can be converted at once; do it in parts`);
  }
}

function boundedText(what, value, max) {
  const text = typeof value === "string" ? value : String(value);
  check(what, text.length, max);
  return text;
}

// A replacement must have the same attributes and the same text as the original.
function replaceValue(holder, key, value) {
  const descriptor = ObjectGetOwnPropertyDescriptor(holder, key);
  const original = descriptor.value;
  ObjectDefineProperty(value, "name", { __proto__: null, value: original.name, configurable: true });
  ObjectDefineProperty(value, "length", { __proto__: null, value: original.length, configurable: true });
  noteOriginal(value, original);
  descriptor.value = value;
  ObjectDefineProperty(holder, key, descriptor);
}

// Bounds a function of one text.
export function boundedFunction(original) {
  const holder = {
    method(...args) {
      if (args.length > 0) {
        args[0] = boundedText("the text", args[0], MAX_CONVERTED);
      }
      return ReflectApply(original, undefined, args);
    },
  };
  ObjectDefineProperty(holder.method, "name", { __proto__: null, value: original.name, configurable: true });
  ObjectDefineProperty(holder.method, "length", { __proto__: null, value: original.length, configurable: true });
  noteOriginal(holder.method, original);
  return holder.method;
}

// Bounds a class. `checkArguments` gets the constructor's arguments as an array that it may change.
function boundedClass(Original, checkArguments, checkMade) {
  const Bounded = new Proxy(Original, {
    __proto__: null,
    construct(target, args, newTarget) {
      checkArguments(args);
      const made = ReflectConstruct(target, args, newTarget === Bounded ? target : newTarget);
      checkMade?.(made);
      return made;
    },
  });
  noteOriginal(Bounded, Original);
  ObjectDefineProperty(Original.prototype, "constructor", {
    __proto__: null,
    value: Bounded,
    writable: true,
    enumerable: false,
    configurable: true,
  });
  return Bounded;
}

// What `op_encoding_encode_into_fallback` says of a text; nothing reads it.
const written = new Uint32Array(2);

// The bytes of a text in a buffer of the script's heap. deno_core's `encode` gives V8 a buffer that the host has
// allocated, of any size, and that the meter sees only later. deno_web's files get this in its place.
export function encodeText(text) {
  check("the text", text.length, MAX_CONVERTED);
  const bytes = new Uint8Array(core.ops.op_str_byte_length(text));
  core.ops.op_encoding_encode_into_fallback(text, bytes, written);
  return bytes;
}

// The same text, if it may be content.
export function contentText(text) {
  check("the text", text.length, MAX_CONTENT);
  return text;
}

// The bytes of a `Uint8Array` as base64.
export function encodeBase64(bytes) {
  const length = TypedArrayPrototypeGetByteLength(bytes);
  check("the buffer", length, MAX_CONTENT);
  return core.ops.op_base64_encode_from_buffer(bytes, 0, length);
}

export function boundTextEncoder(TextEncoder) {
  const { encodeInto } = TextEncoder.prototype;
  const webidl = core.loadExtScript("ext:deno_webidl/00_webidl.js");
  const bounded = {
    encode(input = "") {
      webidl.assertBranded(this, TextEncoder.prototype);
      return encodeText(typeof input === "string" ? input : String(input));
    },
    encodeInto(source, destination) {
      return ReflectApply(encodeInto, this, [boundedText("the text", source, MAX_CONVERTED), destination]);
    },
  };
  replaceValue(TextEncoder.prototype, "encode", bounded.encode);
  replaceValue(TextEncoder.prototype, "encodeInto", bounded.encodeInto);
}

// The bytes of a buffer or a view as V8 counts them, because a script can define another `byteLength`; 0 for anything
// else, which deno_web refuses.
function byteLengthOf(input) {
  if (TypedArrayPrototypeGetSymbolToStringTag(input) !== undefined) {
    return TypedArrayPrototypeGetByteLength(input);
  }
  if (core.isDataView(input)) {
    return DataViewPrototypeGetByteLength(input);
  }
  return core.isArrayBuffer(input) ? ArrayBufferPrototypeGetByteLength(input) : 0;
}

export function boundedTextDecoder(TextDecoder) {
  const { decode } = TextDecoder.prototype;
  const bounded = {
    decode(...args) {
      check("the buffer", byteLengthOf(args[0]), MAX_CONVERTED);
      return ReflectApply(decode, this, args);
    },
  };
  replaceValue(TextDecoder.prototype, "decode", bounded.decode);
  return boundedClass(TextDecoder, boundLabel);
}

function boundLabel(args) {
  if (args[0] !== undefined) {
    args[0] = boundedText("the label", args[0], MAX_URL);
  }
}

// It makes a decoder of its own, whose `decode` is bounded already.
export function boundedTextDecoderStream(TextDecoderStream) {
  return boundedClass(TextDecoderStream, boundLabel);
}

// Bounds every setter, and every method whose name is a symbol: through one of those methods the parameters change
// their URL.
function boundSetters(prototype) {
  const keys = ReflectOwnKeys(prototype);
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    const descriptor = ObjectGetOwnPropertyDescriptor(prototype, key);
    if (descriptor.set !== undefined) {
      const set = descriptor.set;
      const bounded = {
        set [key](value) {
          ReflectApply(set, this, [boundedText("the URL", value, MAX_URL)]);
        },
      };
      descriptor.set = ObjectGetOwnPropertyDescriptor(bounded, key).set;
      noteOriginal(descriptor.set, set);
      ObjectDefineProperty(prototype, key, descriptor);
    } else if (typeof key === "symbol" && typeof descriptor.value === "function") {
      const original = descriptor.value;
      const bounded = {
        method(...args) {
          if (typeof args[0] === "string") {
            check("the query", args[0].length, MAX_URL);
          }
          return ReflectApply(original, this, args);
        },
      };
      replaceValue(prototype, key, bounded.method);
    }
  }
}

function boundTexts(args) {
  for (let index = 0; index < args.length && index < 2; index++) {
    if (args[index] !== undefined) {
      args[index] = boundedText("the URL", args[index], MAX_URL);
    }
  }
}

export function boundedURL(URL) {
  boundSetters(URL.prototype);
  const names = ["canParse", "parse"];
  for (let index = 0; index < names.length; index++) {
    const original = URL[names[index]];
    const bounded = {
      method(...args) {
        boundTexts(args);
        return ReflectApply(original, URL, args);
      },
    };
    replaceValue(URL, names[index], bounded.method);
  }
  return boundedClass(URL, boundTexts);
}

export function boundedURLSearchParams(URLSearchParams) {
  // The symbol of the list of pairs. A script can find it in the same way and replace the list.
  const symbols = ObjectGetOwnPropertySymbols(new URLSearchParams("a=b"));
  let list;
  for (let index = 0; index < symbols.length; index++) {
    if (ArrayIsArray(new URLSearchParams("a=b")[symbols[index]])) {
      list = symbols[index];
    }
  }
  const webidl = core.loadExtScript("ext:deno_webidl/00_webidl.js");
  // A copy of the pairs that were checked, which cannot change before the op reads it. The op panics if reading an
  // element throws, as a getter of the script's on `Array.prototype` may. So each element is the list's own.
  const checkedPairs = (params) => {
    const pairs = params[list];
    if (!ArrayIsArray(pairs)) {
      throw new TypeError("these URLSearchParams have no list");
    }
    const checked = [];
    let length = 0;
    for (let index = 0; index < pairs.length; index++) {
      const name = pairs[index]?.[0];
      const value = pairs[index]?.[1];
      if (typeof name !== "string" || typeof value !== "string") {
        throw new TypeError("a pair of these URLSearchParams is not two strings");
      }
      // Shared strings count each time, because the op copies each of them.
      length += name.length + value.length + PAIR_OVERHEAD;
      check("the query", length, MAX_URL);
      // An assignment would call a setter on `Array.prototype`.
      append(checked, index, [name, value], false);
    }
    return checked;
  };
  const bounded = {
    toString() {
      webidl.assertBranded(this, URLSearchParams.prototype);
      return core.ops.op_url_stringify_search_params(checkedPairs(this));
    },
  };
  replaceValue(URLSearchParams.prototype, "toString", bounded.toString);
  return boundedClass(URLSearchParams, (args) => {
    if (args[0] !== undefined && typeof args[0] !== "object" && typeof args[0] !== "function") {
      args[0] = boundedText("the query", args[0], MAX_URL);
    }
  });
}
