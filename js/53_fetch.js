// Gives a script that may reach a host its `fetch`. The code is in js/network/fetch.js and not in the snapshot, because it
// would make each isolate slower, and most runs have no network: the host compiles it when such a run starts.

import { core } from "ext:core/mod.js";
import { encodeBase64 } from "ext:cx/05_bounds.js";
import { abort, late, loadedStreams, streams, textStreams } from "ext:cx/10_web.js";
import { defineBuiltIn } from "ext:cx/20_guards.js";
import { guardedPrimordials } from "ext:cx/24_lists.js";
import { coded, McpToolError } from "ext:cx/40_errors.js";
import { abortable, isSignal } from "ext:cx/44_signals.js";
import { append } from "ext:cx/48_blocking.js";
import { query } from "ext:cx/50_tools.js";

// The number that the host has for the file.
const FETCH = 1;

const parts = {
  __proto__: null,
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
  primordials: guardedPrimordials,
  query,
  streams,
  textStreams,
};

export function startNetwork() {
  late(FETCH, parts)();
}
