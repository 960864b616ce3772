// The clock of scripts. It is coarse, because with a fine one a script could time what other runs of the process do.

import { core, primordials } from "ext:core/mod.js";

const { TypedArrayPrototypeGetBuffer, TypedArrayPrototypeSet, Uint32Array, Uint8Array } = primordials;

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
