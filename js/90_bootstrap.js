// The last file of the snapshot: passes five functions to the host. What a script must not have is removed by the host
// after each restore (src/engine/typescript/isolate/snapshot.rs): V8 and deno_core add some of it again then.

import { core, primordials } from "ext:core/mod.js";
import { setResolution } from "ext:cx/06_clock.js";
import { setReportError, setTimeOrigin } from "ext:cx/10_web.js";
import "ext:cx/12_temporal.js";
import { setTimeZone } from "ext:cx/13_time_zone.js";
import "ext:cx/14_metadata.js";
import { defineBuiltIn, guardRestored } from "ext:cx/20_guards.js";
import "ext:cx/21_text_guards.js";
import "ext:cx/22_buffer_guards.js";
import "ext:cx/22_date_guards.js";
import "ext:cx/22_from_async.js";
import "ext:cx/22_number_guards.js";
import "ext:cx/23_locale_guards.js";
import { fromJson, toJson } from "ext:cx/30_json.js";
import { describe } from "ext:cx/40_errors.js";
import { clearServers, setServers } from "ext:cx/50_tools.js";
import "ext:cx/52_llm.js";
import { startNetwork } from "ext:cx/53_fetch.js";
import "ext:cx/55_state.js";
import "ext:cx/56_files.js";
import "ext:cx/58_console.js";
import "ext:cx/60_output.js";
import { startTape } from "ext:cx/70_tape.js";

const { Promise, PromisePrototypeThen, TypeError } = primordials;

let finish;

// An error in a timer, a microtask, an event listener or a callback of a `FinalizationRegistry` cannot be caught: the
// run fails with it. The host calls this for those that V8 reports (src/engine/typescript/uncaught.rs).
function failRun(error) {
  finish?.("-" + describe(error));
}

core.setReportExceptionCallback(failRun);
// Deferred, because a listener that overflowed the stack is reported when hardly any stack is left.
const settled = new Promise((resolve) => resolve());
setReportError((error) => {
  PromisePrototypeThen(settled, () => failRun(error));
});

// A rejected promise that is not awaited does not fail the run, but it must not be silent.
core.setUnhandledPromiseRejectionHandler((_promise, reason) => {
  try {
    const report = fromJson(describe(reason));
    core.ops.op_cx_log(2, `a promise that was not awaited was rejected: ${report.name ?? "Error"}: ${report.message}`);
  } catch (error) {
    failRun(error);
  }
  return true;
});

// deno_core reads what the functions of its event loop throw (src/engine/typescript/uncaught.rs), and takes these
// functions from here. With accessors on `Array.prototype` a script can make its lists of timers and of callbacks throw
// anything.
globalThis.Deno.core = {
  __proto__: core,
  __processTimers(now) {
    try {
      return +core.__processTimers(now);
    } catch (error) {
      failRun(error);
      return 0;
    }
  },
  __drainNextTickAndMacrotasks() {
    try {
      core.__drainNextTickAndMacrotasks();
    } catch (error) {
      failRun(error);
    }
  },
};

// `textOfError` is the host's.
function restored(textOfError) {
  core.ops.op_set_format_exception_callback(textOfError);
  guardRestored();
}

// Creates the run's own globals. `options` is {servers, clock, tape, network, input} as JSON text; `clock` is the
// resolution of the clock in nanoseconds, `tape` says whether the run is recorded or replayed, `network` whether it may
// reach any host.
function start(options) {
  const { servers, clock, tape, network, input } = fromJson(options);
  setResolution(clock);
  if (tape) {
    startTape(failRun);
  }
  if (network) {
    startNetwork();
  }
  setTimeOrigin();
  const value = input ?? null;
  const names = ["input", "inputs"];
  for (let index = 0; index < names.length; index++) {
    defineBuiltIn(globalThis, names[index], value);
  }
  setServers(servers);
}

function outcome(value) {
  if (typeof value === "function" || typeof value === "symbol") {
    throw new TypeError(`the script's value is a ${typeof value}, which JSON does not have`);
  }
  // The host checks the length before it copies this.
  return "+" + (toJson("value", value, Infinity) ?? "null");
}

// Calls the script and returns a promise of its outcome: `+` and the value, or `-` and the error, as JSON text.
function run(main) {
  let settle;
  const settled = new Promise((resolve) => {
    settle = resolve;
  });
  finish = settle;
  const fail = (error) => settle("-" + describe(error));
  const succeed = (value) => {
    let text;
    try {
      text = outcome(value);
    } catch (error) {
      fail(error);
      return;
    }
    settle(text);
  };
  const ended = main();
  try {
    // The promise that this makes is of a class that the script may have chosen: nothing waits for it.
    PromisePrototypeThen(ended, succeed, fail);
  } catch (error) {
    fail(error);
  }
  return settled;
}

// Warm-up: does what scripts do, once, when the snapshot is made, with a host that answers anything. V8 compiles a
// function at its first call and keeps the code in the snapshot, including that of deno_core's event loop. Without the
// warm-up a run would spend a quarter of a millisecond compiling these files, and as much again at its first call.
async function warmUp() {
  start('{"servers":[["a-b","aB","aB"]],"clock":100000,"input":{}}');
  const { callMCPTool, call_tool, console, searchTools, tools } = globalThis;
  await run(async () => {
    call_tool("a-b", "c", { d: 1 });
    JSON.parse("1");
    await searchTools("c");
    await callMCPTool("mcp__a-b__c");
    console.log("a");
    console.log("a %s", "b", 1, true, null);
    console.log([{ a: "b", c: [1, 2, 3, 4, 5, 6, 7], d: { e: undefined } }], new Map([["a", new Set([1])]]), () => 1);
    console.error(new TypeError("warm-up"), { a: "b".repeat(80) });
    return { e: [await tools.aB.c({ d: 1 })] };
  });
  await run(async () => await tools.aB.fails({ d: "a" }));
  await run(async () => {
    throw new TypeError("warm-up");
  });
  finish = undefined;
  clearServers();
  delete globalThis.input;
  delete globalThis.inputs;
}

// The host takes this and removes it before a script can see it; build.rs removes the warm-up.
globalThis.__cx = { __proto__: null, warmUp, restored, setTimeZone, start, run, failRun };
