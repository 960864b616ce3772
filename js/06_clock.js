// The clock of scripts. It is coarse, because with a fine one a script could time what other runs of the process do.

import { core, primordials } from "ext:core/mod.js";

const {
  DateNow,
  MathFloor,
  MathMax,
  MathRound,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeSet,
  Uint32Array,
  Uint8Array,
} = primordials;

// Seconds and nanoseconds.
const time = new Uint32Array(2);
const timeBytes = new Uint8Array(TypedArrayPrototypeGetBuffer(time));

// In nanoseconds, from 1 to a second. Set for each run.
let resolution = 100_000;

export function setResolution(nanoseconds) {
  resolution = nanoseconds;
}

// Whether the run is recorded or replayed: then the host's tape has the clocks (70_tape.js).
let hasTape = false;

export function useTape() {
  hasTape = true;
}

// Milliseconds since 1970, as `Date.now` returns them.
export function wallClock() {
  return hasTape ? MathRound(core.ops.op_cx_clock(true) / 1e6) : DateNow();
}

function readMonotonic() {
  if (hasTape) {
    const nanoseconds = core.ops.op_cx_clock(false);
    time[0] = MathFloor(nanoseconds / 1e9);
    time[1] = nanoseconds % 1e9;
  } else {
    core.ops.op_now(timeBytes);
  }
}

// Writes the time since the isolate's start as 32 bits of seconds and 32 bits of nanoseconds, as deno_web's op does.
export function readClock(bytes) {
  readMonotonic();
  time[1] -= time[1] % resolution;
  TypedArrayPrototypeSet(bytes, timeBytes);
}

// Writes the time of the isolate's start since 1970 in the same form. deno_web's op panics if the clock of the machine
// is before 1970; here such a time counts as 1970, as in Python.
export function readTimeOrigin(bytes) {
  readMonotonic();
  const origin = MathMax(wallClock() - time[0] * 1_000 - MathFloor(time[1] / 1e6), 0);
  time[0] = MathFloor(origin / 1_000);
  time[1] = (origin % 1_000) * 1e6;
  TypedArrayPrototypeSet(bytes, timeBytes);
}
