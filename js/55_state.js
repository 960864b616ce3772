// The state that a script keeps between runs.

import { primordials } from "ext:core/mod.js";
import { defineBuiltIn } from "ext:cx/20_guards.js";
import { fromJson, toJson } from "ext:cx/30_json.js";
import { McpToolError } from "ext:cx/40_errors.js";
import { boundedName, orInvalid } from "ext:cx/46_encoding.js";
import { query } from "ext:cx/50_tools.js";

const {
  MapPrototypeDelete,
  MapPrototypeGet,
  MapPrototypeSet,
  ObjectFreeze,
  Promise,
  SafeMap,
  TypeError,
} = primordials;

// Maximum number of attempts of `update`. An attempt fails only if another writer succeeded, so all writers together
// make progress.
const MAX_TRIES = 1_000;

// Maximum characters of a value as JSON text. The host keeps fewer, and copies it before checking it.
const MAX_VALUE = 2 ** 24;

// An entry is [value], with its tag [value, tag], or [] if it does not exist.
function ask(call) {
  return query({ __proto__: null, kind: "state", call });
}

function keyOf(key) {
  return boundedName("the key", key);
}

function textOf(value) {
  const text = orInvalid(undefined, undefined, () => toJson("value", value, MAX_VALUE));
  if (text === undefined) {
    const kind = value === undefined ? "undefined" : `a ${typeof value}`;
    throw new McpToolError(`value is ${kind}, which JSON does not have; use null, or state.delete(key)`, {
      __proto__: null,
      code: "INVALID_ARGUMENTS",
    });
  }
  return text;
}

// When the last `update` of a key in this run is done. Updates of one key wait for each other, because concurrent
// attempts would only make each other fail.
const turns = new SafeMap();

async function change(key, make, fallback) {
  let entry = await ask({ __proto__: null, get: { __proto__: null, key, tagged: true } });
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    // A new value each time, because `make` may change it.
    const old = entry.length > 0 ? entry[0] : fallback === undefined ? undefined : fromJson(fallback);
    const value = await make(old);
    const expected = entry.length > 0 ? entry[1] : "";
    const set = { __proto__: null, key, value: textOf(value), expected };
    const written = await ask({ __proto__: null, set });
    if (written === true) {
      return value;
    }
    entry = written;
  }
  throw new McpToolError(`others write \`${key}\` all the time; try again later`, {
    __proto__: null,
    code: "STATE_UNAVAILABLE",
  });
}

const state = ObjectFreeze({
  __proto__: null,
  async get(key, fallback) {
    const entry = await ask({ __proto__: null, get: { __proto__: null, key: keyOf(key), tagged: false } });
    return entry.length > 0 ? entry[0] : fallback;
  },
  async set(key, value) {
    await ask({ __proto__: null, set: { __proto__: null, key: keyOf(key), value: textOf(value) } });
  },
  async delete(key) {
    return await ask({ __proto__: null, delete: { __proto__: null, key: keyOf(key) } });
  },
  async keys(prefix) {
    const wanted = prefix === undefined || prefix === null ? "" : boundedName("the prefix", prefix);
    return await ask({ __proto__: null, keys: { __proto__: null, prefix: wanted } });
  },
  async update(key, make, fallback) {
    keyOf(key);
    if (typeof make !== "function") {
      throw new TypeError("state.update takes a function: state.update(key, (value) => value + 1, 0)");
    }
    const fallbackText = fallback === undefined ? undefined : textOf(fallback);
    const before = MapPrototypeGet(turns, key);
    let end;
    const turn = new Promise((resolve) => {
      end = resolve;
    });
    MapPrototypeSet(turns, key, turn);
    try {
      await before;
      return await change(key, make, fallbackText);
    } finally {
      if (MapPrototypeGet(turns, key) === turn) {
        MapPrototypeDelete(turns, key);
      }
      end();
    }
  },
});

// A common word: a script may use it as a variable name.
defineBuiltIn(globalThis, "state", state);
