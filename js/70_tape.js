// Runs that are recorded or replayed: everything that V8 would take from the machine comes from the host's tape
// (src/run/tape.rs). Nothing here is in place in other runs.

import { core, primordials } from "ext:core/mod.js";
import { useTape, wallClock } from "ext:cx/06_clock.js";
import { setClockwork } from "ext:cx/10_web.js";
import { defineBuiltIn, replace } from "ext:cx/20_guards.js";

const {
  Date,
  DatePrototypeToString,
  MapPrototypeDelete,
  MapPrototypeGet,
  MapPrototypeHas,
  MapPrototypeSet,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  PromisePrototypeThen,
  Proxy,
  ReflectApply,
  ReflectConstruct,
  SafeMap,
  Uint32Array,
  Uint8Array,
  TypedArrayPrototypeGetBuffer,
} = primordials;
const { Math } = globalThis;
const DateTimeFormatPrototype = Intl.DateTimeFormat.prototype;

// --- dates ------------------------------------------------------------------------------------------------------

function replaceDates() {
  const original = globalThis.Date;
  const wrapped = new Proxy(original, {
    __proto__: null,
    apply() {
      return DatePrototypeToString(new Date(wallClock()));
    },
    construct(target, args, newTarget) {
      const given = args.length === 0 ? [wallClock()] : args;
      return ReflectConstruct(target, given, newTarget === wrapped ? target : newTarget);
    },
  });
  replace(original, "now", () => ({ method: () => wallClock() }).method);
  defineBuiltIn(original.prototype, "constructor", wrapped);
  defineBuiltIn(globalThis, "Date", wrapped);
  const orNow = (date) => date === undefined ? wallClock() : date;
  replace(DateTimeFormatPrototype, "formatToParts", (formatToParts) => ({
    method(date) {
      return ReflectApply(formatToParts, this, [orNow(date)]);
    },
  }).method);
  const descriptor = ObjectGetOwnPropertyDescriptor(DateTimeFormatPrototype, "format");
  const getFormat = descriptor.get;
  descriptor.get = function () {
    const format = ReflectApply(getFormat, this, []);
    return (date) => ReflectApply(format, undefined, [orNow(date)]);
  };
  ObjectDefineProperty(descriptor.get, "name", { __proto__: null, value: "get format", configurable: true });
  ObjectDefineProperty(DateTimeFormatPrototype, "format", descriptor);
}

// --- random numbers ---------------------------------------------------------------------------------------------

function replaceRandom() {
  const words = new Uint32Array(256);
  const bytes = new Uint8Array(TypedArrayPrototypeGetBuffer(words));
  let used = 256;
  replace(Math, "random", () => ({
    method() {
      if (used === 256) {
        core.ops.op_cx_random(bytes);
        used = 0;
      }
      // 53 bits, as V8 makes them.
      const high = words[used++] >>> 5;
      const low = words[used++] >>> 6;
      return (high * 67_108_864 + low) / 9_007_199_254_740_992;
    },
  }).method);
}

// --- timers -----------------------------------------------------------------------------------------------------

// The host's answer for each timer that is running, by its number.
const running = new SafeMap();
let lastTimer = 0;
let failRun;

function arm(id, callback, delay, isRepeating, isRefed) {
  const fired = core.ops.op_cx_query(`{"kind":"timer","delay":${delay}}`);
  MapPrototypeSet(running, id, fired);
  if (!isRefed) {
    core.unrefOpPromise(fired);
  }
  PromisePrototypeThen(fired, () => {
    if (MapPrototypeGet(running, id) !== fired) {
      return;
    }
    if (!isRepeating) {
      MapPrototypeDelete(running, id);
    }
    try {
      callback();
    } catch (error) {
      failRun(error);
    }
    if (isRepeating && MapPrototypeHas(running, id)) {
      arm(id, callback, delay, true, isRefed);
    }
  });
  return id;
}

function onRunning(id, act) {
  const fired = MapPrototypeGet(running, id);
  if (fired !== undefined) {
    act(fired);
  }
}

function clear(id) {
  onRunning(id, (fired) => {
    MapPrototypeDelete(running, id);
    // It must not keep a script that waits for nothing else.
    core.unrefOpPromise(fired);
  });
}

const clockwork = {
  __proto__: null,
  setTimeout: (callback, delay) => arm(++lastTimer, callback, delay, false, true),
  setInterval: (callback, delay) => arm(++lastTimer, callback, delay, true, true),
  clearTimeout: clear,
  cancelTimer: clear,
  refTimer: (id) => onRunning(id, core.refOpPromise),
  unrefTimer: (id) => onRunning(id, core.unrefOpPromise),
  createSystemTimer: (callback, delay, isRefed) => arm(++lastTimer, callback, delay, false, isRefed),
};

// Called when a run with a tape starts. `fail` ends the run with an error that no script can catch.
export function startTape(fail) {
  failRun = fail;
  useTape();
  setClockwork(clockwork);
  replaceDates();
  replaceRandom();
}
