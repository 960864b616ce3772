// The web API that scripts get, from deno_web. Absent on purpose: files, workers, message ports and storage. Streams are
// loaded when a script that may fetch uses one (network/fetch.js).

import { core, primordials } from "ext:core/mod.js";
import {
  boundedFunction,
  boundedTextDecoder,
  boundedTextDecoderStream,
  boundedURL,
  boundedURLSearchParams,
  boundTextEncoder,
  encodeText,
} from "ext:cx/05_bounds.js";
import { readClock, readTimeOrigin } from "ext:cx/06_clock.js";
import { defineBuiltIn } from "ext:cx/19_guarding.js";
import { loadPart } from "ext:cx/09_parts.js";
import { guardedPrimordials } from "ext:cx/24_lists.js";
import { structuredClone } from "ext:cx/38_clone.js";

const {
  MathMax,
  MathMin,
  MathTrunc,
  NumberIsNaN,
  ObjectFreeze,
  ObjectKeys,
  RangeError,
  ReflectApply,
  SafeSet,
  SafeWeakMap,
  SetPrototypeAdd,
  SetPrototypeDelete,
  SetPrototypeGetSize,
  StringPrototypePadStart,
  StringPrototypeSlice,
  NumberPrototypeToString,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypeError,
  Uint8Array,
  WeakMapPrototypeGet,
  WeakMapPrototypeSet,
} = primordials;

// An error thrown by an event listener cannot be caught, as in a timer. deno_web describes such an error with an op
// that scripts do not have, and dispatches it to the global object, which has no listeners here.
let reportError;
const noDescription = { __proto__: null, exceptionMessage: "", frames: [{ __proto__: null }] };

export function setReportError(report) {
  reportError = report;
}

// deno_web's code for streams. It is large, so it is in no snapshot: the host compiles it at its first use. It gets what
// it needs of the other files, and none of their ops.
const STREAMS = "ext:deno_web/06_streams.js";
let loaded;

// Runs a file that is not in the snapshot, by the host's number for it, and returns what it makes of `parts`.
export function late(file, parts) {
  const holder = { __proto__: null, made: undefined };
  core.ops.op_cx_late(file)(parts, holder);
  return holder.made;
}

export function loadedStreams() {
  return loaded;
}

export function streams() {
  if (loaded === undefined) {
    loaded = late(0, streamsBootstrap);
  }
  return loaded;
}

// deno_web's files receive this `core` when they are loaded; some of its functions and the clocks are replaced.
core.ops.op_set_captured_bootstrap({
  __proto__: null,
  primordials: guardedPrimordials,
  internals: globalThis.__bootstrap.internals,
  core: {
    __proto__: core,
    cancelTimer: (timer) => cancelTimer(timer),
    createSystemTimer: (callback, delay, isRefed) => createSystemTimer(callback, delay, isRefed),
    destructureError: () => noDescription,
    encode: encodeText,
    loadExtScript: (name) => name === STREAMS ? streams() : loadPart(name),
    ops: { __proto__: core.ops, op_now: readClock, op_time_origin: readTimeOrigin },
    refTimer: (handle) => onSystemTimer(handle, clockwork.refTimer),
    reportUnhandledException: (error) => reportError(error),
    unrefTimer: (handle) => onSystemTimer(handle, clockwork.unrefTimer),
  },
});

const url = core.loadExtScript("ext:deno_web/00_url.js");
const encoding = core.loadExtScript("ext:deno_web/08_text_encoding.js");
const event = core.loadExtScript("ext:deno_web/02_event.js");
const abort = core.loadExtScript("ext:deno_web/03_abort_signal.js");
const base64 = core.loadExtScript("ext:deno_web/05_base64.js");
const exception = core.loadExtScript("ext:deno_web/01_dom_exception.js");
const timers = core.loadExtScript("ext:deno_web/02_timers.js");
const performance = core.loadExtScript("ext:deno_web/15_performance.js");
export const { setTimeOrigin } = performance;
export { abort };
export const textStreams = {
  __proto__: null,
  TextDecoderStream: boundedTextDecoderStream(encoding.TextDecoderStream),
  TextEncoderStream: encoding.TextEncoderStream,
};
const streamsBootstrap = {
  __proto__: null,
  primordials: guardedPrimordials,
  internals: { __proto__: null },
  core: {
    __proto__: core,
    ops: { __proto__: null },
    loadExtScript: loadPart,
  },
};

event.saveGlobalThisReference({ __proto__: null, dispatchEvent: () => true });

boundTextEncoder(encoding.TextEncoder);

// Each timer holds its callback and arguments; a loop that starts a million of them is a mistake.
const MAX_TIMERS = 10_000;
// The maximum delay of a timer. A longer one would overflow and fire at once.
const MAX_DELAY = 2 ** 31 - 1;

const liveTimers = new SafeSet();

// What fires timers: deno_core's event loop, or the host's tape (70_tape.js).
let clockwork = {
  __proto__: null,
  setTimeout: timers.setTimeout,
  setInterval: timers.setInterval,
  clearTimeout: timers.clearTimeout,
  cancelTimer: core.cancelTimer,
  createSystemTimer: core.createSystemTimer,
  refTimer: core.refTimer,
  unrefTimer: core.unrefTimer,
};

export function setClockwork(other) {
  clockwork = other;
}

function checkTimer(name, callback) {
  if (typeof callback !== "function") {
    throw new TypeError(`${name} takes a function: ${typeof callback}`);
  }
  if (SetPrototypeGetSize(liveTimers) >= MAX_TIMERS) {
    throw new RangeError(`a script may have ${MAX_TIMERS} timers at once`);
  }
}

function milliseconds(delay) {
  const number = +delay;
  return NumberIsNaN(number) ? 0 : MathTrunc(MathMin(MathMax(number, 0), MAX_DELAY));
}

// The timers of signals by what the signals have of them. A script can find that under a symbol; what is on a timer is
// read by deno_core's event loop, where no code of a script may run.
const systemTimers = new SafeWeakMap();

function onSystemTimer(handle, act) {
  const timer = WeakMapPrototypeGet(systemTimers, handle);
  if (timer !== undefined) {
    act(timer);
  }
}

// deno_web's timers call this, too, with a timer of their own.
function cancelTimer(timer) {
  const systemTimer = WeakMapPrototypeGet(systemTimers, timer);
  if (systemTimer === undefined) {
    core.cancelTimer(timer);
  } else {
    clockwork.cancelTimer(systemTimer);
  }
}

// `AbortSignal.timeout` makes its timers here. Scripts cannot clear them.
function createSystemTimer(callback, delay, isRefed) {
  checkTimer("AbortSignal.timeout", callback);
  const timer = ReflectApply(clockwork.createSystemTimer, core, [() => {
    SetPrototypeDelete(liveTimers, timer);
    callback();
  }, milliseconds(delay), isRefed]);
  SetPrototypeAdd(liveTimers, timer);
  const handle = ObjectFreeze({ __proto__: null });
  WeakMapPrototypeSet(systemTimers, handle, timer);
  return handle;
}

function setTimeout(callback, delay = 0, ...args) {
  checkTimer("setTimeout", callback);
  const id = ReflectApply(clockwork.setTimeout, undefined, [() => {
    SetPrototypeDelete(liveTimers, id);
    ReflectApply(callback, undefined, args);
  }, milliseconds(delay)]);
  SetPrototypeAdd(liveTimers, id);
  return id;
}

function setInterval(callback, delay = 0, ...args) {
  checkTimer("setInterval", callback);
  const id = ReflectApply(clockwork.setInterval, undefined, [
    () => ReflectApply(callback, undefined, args),
    milliseconds(delay),
  ]);
  SetPrototypeAdd(liveTimers, id);
  return id;
}

function clearTimeout(id) {
  SetPrototypeDelete(liveTimers, id);
  ReflectApply(clockwork.clearTimeout, undefined, [id]);
}

function clearInterval(id) {
  clearTimeout(id);
}

// The two functions of `crypto` that scripts use. deno_crypto has all of WebCrypto, at the cost given in
// docs/web-api.md.
const MAX_RANDOM_BYTES = 65_536;

const crypto = {
  getRandomValues(array) {
    const kind = TypedArrayPrototypeGetSymbolToStringTag(array);
    if (kind === undefined || kind === "Float32Array" || kind === "Float64Array" || kind === "Float16Array") {
      throw new TypeError("getRandomValues takes an integer typed array");
    }
    const length = TypedArrayPrototypeGetByteLength(array);
    if (length > MAX_RANDOM_BYTES) {
      throw new exception.DOMException(
        `at most ${MAX_RANDOM_BYTES} bytes at once: ${length}`,
        "QuotaExceededError",
      );
    }
    core.ops.op_cx_random(
      new Uint8Array(TypedArrayPrototypeGetBuffer(array), TypedArrayPrototypeGetByteOffset(array), length),
    );
    return array;
  },

  randomUUID() {
    const bytes = new Uint8Array(16);
    core.ops.op_cx_random(bytes);
    // RFC 9562, section 5.4: version 4, variant 10.
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = "";
    for (let index = 0; index < 16; index++) {
      text += StringPrototypePadStart(NumberPrototypeToString(bytes[index], 16), 2, "0");
    }
    const part = (from, to) => StringPrototypeSlice(text, from, to);
    return `${part(0, 8)}-${part(8, 12)}-${part(12, 16)}-${part(16, 20)}-${part(20)}`;
  },
};

const globals = {
  AbortController: abort.AbortController,
  AbortSignal: abort.AbortSignal,
  CustomEvent: event.CustomEvent,
  DOMException: exception.DOMException,
  Event: event.Event,
  EventTarget: event.EventTarget,
  TextDecoder: boundedTextDecoder(encoding.TextDecoder),
  TextEncoder: encoding.TextEncoder,
  URL: boundedURL(url.URL),
  URLSearchParams: boundedURLSearchParams(url.URLSearchParams),
  atob: boundedFunction(base64.atob),
  btoa: boundedFunction(base64.btoa),
  clearInterval,
  clearTimeout,
  crypto,
  performance: performance.performance,
  setInterval,
  setTimeout,
  structuredClone,
};

const names = ObjectKeys(globals);
for (let index = 0; index < names.length; index++) {
  defineBuiltIn(globalThis, names[index], globals[names[index]]);
}

