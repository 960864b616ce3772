// The clock of scripts. It is coarse, because with a fine one a script could time what other runs of the process do.

import { core, primordials } from "ext:core/mod.js";

const {
  DateNow,
  MathFloor,
  MathMax,
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

// Writes the time since the isolate's start as 32 bits of seconds and 32 bits of nanoseconds, as deno_web's op does.
export function readClock(bytes) {
  core.ops.op_now(timeBytes);
  time[1] -= time[1] % resolution;
  TypedArrayPrototypeSet(bytes, timeBytes);
}

// Writes the time of the isolate's start since 1970 in the same form. deno_web's op panics if the clock of the machine
// is before 1970; here such a time counts as 1970, as in Python.
export function readTimeOrigin(bytes) {
  core.ops.op_now(timeBytes);
  const origin = MathMax(DateNow() - time[0] * 1_000 - MathFloor(time[1] / 1e6), 0);
  time[0] = MathFloor(origin / 1_000);
  time[1] = (origin % 1_000) * 1e6;
  TypedArrayPrototypeSet(bytes, timeBytes);
}
