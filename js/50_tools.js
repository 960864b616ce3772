// The functions with which a script finds and calls tools.

import { primordials } from "ext:core/mod.js";
import { defineBuiltIn } from "ext:cx/20_guards.js";
import { checkKeys } from "ext:cx/21_text_guards.js";
import { guardedPrimordials } from "ext:cx/24_lists.js";
import { McpToolError } from "ext:cx/40_errors.js";
import { remember } from "ext:cx/42_answers.js";
import { abortable, isSignal } from "ext:cx/44_signals.js";
import { argumentsOf, boundedName, checkWord, decode, name, ops, question } from "ext:cx/46_encoding.js";
import { append, call_tool, call_tools, shown } from "ext:cx/48_blocking.js";

const {
  ArrayIsArray,
  MapPrototypeGet,
  MapPrototypeSet,
  NumberIsFinite,
  ObjectDefineProperty,
  ObjectFreeze,
  ObjectHasOwn,
  ObjectKeys,
  PromisePrototypeThen,
  Proxy,
  SafeMap,
  SafeWeakMap,
  String,
  StringPrototypeIndexOf,
  StringPrototypeStartsWith,
  SymbolFor,
  SymbolToStringTag,
  TypeError,
  WeakMapPrototypeGet,
  WeakMapPrototypeSet,
} = primordials;
const { ArrayPrototypeJoin } = guardedPrimordials;

// --- options of a call -----------------------------------------------------------------------

const CALL_OPTIONS = { __proto__: null, signal: true, timeoutMs: true };

// The number of the last call that a signal can end. The host forgets a number when its call is over.
let lastCall = 0;

// What a script gives a call beside its arguments; zero for no number and no time.
function callOptions(options) {
  if (typeof options !== "object" || ArrayIsArray(options)) {
    throw new TypeError(
      `expected the options of a call as an object, as in { timeoutMs: 5000 }: ${
        ArrayIsArray(options) ? "an array" : `a ${typeof options}`
      }; a tool takes all its arguments in one object`,
    );
  }
  checkKeys("the options of a call", options);
  const keys = ObjectKeys(options);
  for (let index = 0; index < keys.length; index++) {
    if (!CALL_OPTIONS[keys[index]]) {
      throw new TypeError(
        `a call has no option \`${keys[index]}\`: expected \`signal\` or \`timeoutMs\`; ` +
          "the tool's own arguments go into the first object",
      );
    }
  }
  const signal = options.signal ?? undefined;
  if (signal !== undefined && !isSignal(signal)) {
    throw new TypeError("expected `signal` as an AbortSignal");
  }
  const timeout = options.timeoutMs ?? undefined;
  if (timeout !== undefined && !(typeof timeout === "number" && timeout > 0)) {
    throw new TypeError(`expected \`timeoutMs\` as a number of milliseconds above 0: ${shown(timeout)}`);
  }
  return {
    __proto__: null,
    signal,
    id: signal === undefined ? 0 : ++lastCall,
    timeoutMs: NumberIsFinite(timeout) ? timeout : 0,
  };
}

// The answer to a call that `begin` makes.
async function callWith(options, begin) {
  const { signal, id, timeoutMs } = callOptions(options);
  if (signal?.aborted) {
    throw signal.reason;
  }
  const ended = () => {
    // Its answer says nothing: the call may be over.
    PromisePrototypeThen(query({ __proto__: null, kind: "cancelCall", id }), undefined, () => {});
  };
  return remember(decode(await abortable(signal, begin(id, timeoutMs), ended)));
}

async function callPair(server, tool, args, options) {
  checkWord("the tool's name", tool);
  const text = argumentsOf(server, tool, args);
  if (options === undefined || options === null) {
    return remember(decode(await ops.op_cx_call(server, tool, text, 0, 0)));
  }
  return await callWith(options, (id, timeoutMs) => ops.op_cx_call(server, tool, text, id, timeoutMs));
}

async function callMCPTool(fullName, args, options) {
  const tool = boundedName("the tool's name", fullName);
  const text = argumentsOf(undefined, tool, args);
  if (options === undefined || options === null) {
    return remember(decode(await ops.op_cx_call_full(tool, text, 0, 0)));
  }
  return await callWith(options, (id, timeoutMs) => ops.op_cx_call_full(tool, text, id, timeoutMs));
}

// --- tools.<server>.<tool> -------------------------------------------------------------------

// The options of a call. `list.map(tools.server.tool)` passes an index in their place.
function withoutIndex(options) {
  return typeof options === "number" ? undefined : options;
}

// Whether a property of `tools` is the full name of a tool, as searches give it: `mcp__server__tool`.
function isFullName(word) {
  return StringPrototypeStartsWith(word, "mcp__") && StringPrototypeIndexOf(word, "__", 5) > 0;
}

// The function that calls the tool of a full name.
function makeFullName(fullName) {
  const call = (args, options = undefined) => callMCPTool(fullName, args, withoutIndex(options));
  ObjectDefineProperty(call, "name", { __proto__: null, value: fullName, configurable: true });
  WeakMapPrototypeSet(helpNames, call, fullName);
  return call;
}

// `await tools.fs` and `return tools.fs` must not call a tool, but promises look up `then`, and JSON `toJSON`. Tools of
// these names can be called by their full names.
const NEVER_A_TOOL = { __proto__: null, then: true, toJSON: true };

const readOnly = {
  __proto__: null,
  set() {
    return false;
  },
  deleteProperty() {
    return false;
  },
  defineProperty() {
    return false;
  },
  preventExtensions() {
    return false;
  },
  setPrototypeOf() {
    return false;
  },
};

function present(value) {
  return { __proto__: null, value, writable: false, enumerable: true, configurable: true };
}

function toolNames(server) {
  return decode(ops.op_cx_query_blocking(question({ __proto__: null, kind: "names", server })));
}

// Maximum servers that are printed of `tools`.
const MAX_PRINTED = 50;

// The target of a proxy, which `console` prints as this text, as Python does. The proxies' traps do not show it to a
// script. Without a text it is that of `tools`.
function printed(text) {
  const target = { __proto__: null };
  ObjectDefineProperty(target, SymbolFor("nodejs.util.inspect.custom"), {
    __proto__: null,
    value: () => text ?? toolsAsText(),
    writable: true,
    enumerable: false,
    configurable: true,
  });
  return target;
}

function toolsAsText() {
  let names = "";
  for (let index = 0; index < serverNames.length && index < MAX_PRINTED; index++) {
    names += index === 0 ? serverNames[index] : `, ${serverNames[index]}`;
  }
  const more = serverNames.length - MAX_PRINTED;
  return `<tools of ${names}${more > 0 ? ` and ${more} more` : ""}>`;
}

// The names that `help` uses for a server or tool object passed to it.
const helpNames = new SafeWeakMap();

function makeServer(server) {
  const functions = new SafeMap();
  const get = (tool) => {
    let call = MapPrototypeGet(functions, tool);
    if (call === undefined) {
      call = (args, options = undefined) => callPair(server, tool, args, withoutIndex(options));
      ObjectDefineProperty(call, "name", { __proto__: null, value: tool, configurable: true });
      MapPrototypeSet(functions, tool, call);
      WeakMapPrototypeSet(helpNames, call, `mcp__${server}__${tool}`);
    }
    return call;
  };
  const has = (tool) => {
    const names = toolNames(server);
    for (let index = 0; index < names.length; index++) {
      if (names[index] === tool) {
        return true;
      }
    }
    return false;
  };
  const object = new Proxy(printed(`<server ${server}: Object.keys() names its tools>`), {
    ...readOnly,
    get(_target, tool) {
      if (typeof tool === "symbol") {
        return tool === SymbolToStringTag ? server : undefined;
      }
      return NEVER_A_TOOL[tool] ? undefined : get(tool);
    },
    has(_target, tool) {
      return typeof tool === "string" && !NEVER_A_TOOL[tool] && has(tool);
    },
    ownKeys() {
      return toolNames(server);
    },
    getOwnPropertyDescriptor(_target, tool) {
      return typeof tool === "string" && has(tool) ? present(get(tool)) : undefined;
    },
  });
  WeakMapPrototypeSet(helpNames, object, server);
  return object;
}

// Server objects by each of their names, and the exact names in order.
const servers = { __proto__: null };
let serverNames = [];

// Names that the language and printing look up on objects, and that are never meant as a server.
const NOT_A_SERVER = { __proto__: null, then: true, toJSON: true, constructor: true, toString: true, valueOf: true };

const tools = new Proxy(printed(undefined), {
  ...readOnly,
  get(_target, server) {
    if (typeof server === "symbol") {
      return server === SymbolToStringTag ? "tools" : undefined;
    }
    const found = servers[server];
    if (found !== undefined || NOT_A_SERVER[server]) {
      return found;
    }
    if (isFullName(server)) {
      return makeFullName(server);
    }
    // An unknown name fails here, with suggestions, and not later as a property of undefined. The host also knows the
    // forms that Python has.
    return servers[decode(ops.op_cx_query_blocking(question({ __proto__: null, kind: "server", server })))];
  },
  has(_target, server) {
    return typeof server === "string" && servers[server] !== undefined;
  },
  ownKeys() {
    return serverNames;
  },
  getOwnPropertyDescriptor(_target, server) {
    const found = typeof server === "string" ? servers[server] : undefined;
    return found === undefined ? undefined : present(found);
  },
});

WeakMapPrototypeSet(helpNames, tools, "");

// Makes the objects of the run's servers. `list` is [[exact name, camelCase name, the same as a variable]].
export function setServers(list) {
  for (let index = 0; index < list.length; index++) {
    const exact = list[index][0];
    servers[exact] = makeServer(exact);
    append(serverNames, exact);
  }
  for (let index = 0; index < list.length; index++) {
    const exact = list[index][0];
    const camel = list[index][1];
    servers[camel] ??= servers[exact];
    for (let which = 0; which < 3; which++) {
      const global = list[index][which];
      // The name must be free: a server named `URL` does not replace the class. Files can be imported as well.
      if (!(global in globalThis) || global === "fs") {
        defineBuiltIn(globalThis, global, which === 2 ? servers[camel] : servers[global]);
      }
    }
  }
}

// Removes the servers again, after the warm-up that ends the creation of the snapshot.
export function clearServers() {
  const names = ObjectKeys(servers);
  for (let index = 0; index < names.length; index++) {
    delete servers[names[index]];
    delete globalThis[names[index]];
  }
  serverNames = [];
}

// --- discovery --------------------------------------------------------------------------------

export async function query(request) {
  // Of what has parts, such as a state call, the host bounds the whole.
  return decode(await ops.op_cx_query(question(request)));
}

// `inputSchema` is MCP's name for `parameters`. It is not enumerable: what a script prints or returns has the schema
// once.
function nameAsInMcp(tool) {
  if (tool !== null && typeof tool === "object" && ObjectHasOwn(tool, "parameters")) {
    ObjectDefineProperty(tool, "inputSchema", {
      __proto__: null,
      value: tool.parameters,
      writable: true,
      enumerable: false,
      configurable: true,
    });
  }
  return tool;
}

// The tools that a search found. Of each a script prints or returns one line that says how to call it. The other
// fields are not enumerable, so that schemas cost nothing unless a script reads them.
async function search(request) {
  const found = await query(request);
  for (let index = 0; index < found.length; index++) {
    const tool = nameAsInMcp(found[index]);
    const keys = request.detail === "usage" ? ObjectKeys(tool) : [];
    for (let position = 0; position < keys.length; position++) {
      if (keys[position] !== "usage") {
        ObjectDefineProperty(tool, keys[position], { __proto__: null, enumerable: false });
      }
    }
  }
  return found;
}

function discoverMCPTools(options) {
  // As in Python, where the words come without a name.
  const isTerms = typeof options === "string" || ArrayIsArray(options);
  const given = isTerms ? { __proto__: null, search: options } : options ?? { __proto__: null };
  const terms = given.search;
  const words = ArrayIsArray(terms) ? ArrayPrototypeJoin(terms, " ") : terms;
  return search({
    __proto__: null,
    kind: "search",
    query: words === undefined || words === null ? "" : String(words),
    server: given.server === undefined || given.server === null ? undefined : String(given.server),
    detail: "usage",
  });
}

function searchTools(words, limit = 10) {
  const most = +limit;
  return search({
    __proto__: null,
    kind: "search",
    query: words === undefined || words === null ? "" : String(words),
    limit: NumberIsFinite(most) && most > 0 ? most : 10,
    detail: "usage",
  });
}

// All tools that match: more than any catalogue has.
const UNLIMITED = 2 ** 32;

function search_tools(words, detail = "usage") {
  return search({
    __proto__: null,
    kind: "search",
    query: words === undefined || words === null ? "" : String(words),
    limit: UNLIMITED,
    detail: String(detail),
  });
}

async function getToolSchema(fullName) {
  const tool = await query({ __proto__: null, kind: "schema", name: name("the tool's name", fullName) });
  if (tool !== null && ObjectHasOwn(tool, "typescript")) {
    // The same types again, for scripts that read them.
    ObjectDefineProperty(tool, "typescript", { __proto__: null, enumerable: false });
  }
  return nameAsInMcp(tool);
}

// --- what servers have besides tools ------------------------------------------------------------

const mcp = ObjectFreeze({
  __proto__: null,
  servers() {
    return query({ __proto__: null, kind: "servers" });
  },
  async listResources(server) {
    return await query({ __proto__: null, kind: "listResources", server: name("the server's name", server) });
  },
  async readResource(server, uri) {
    return await query({
      __proto__: null,
      kind: "readResource",
      server: name("the server's name", server),
      uri: name("the resource's URI", uri),
    });
  },
  async listPrompts(server) {
    return await query({ __proto__: null, kind: "listPrompts", server: name("the server's name", server) });
  },
  async getPrompt(server, prompt, args) {
    return await query({
      __proto__: null,
      kind: "getPrompt",
      server: name("the server's name", server),
      name: name("the prompt's name", prompt),
      arguments: args ?? undefined,
    });
  },
  async run(id) {
    return await query({ __proto__: null, kind: "run", id: name("the run's id", id) });
  },
});

// --- help -----------------------------------------------------------------------------------------

// The guide, or its part about a word, a server or a tool. Returned and not printed, so that it is shown both as the
// value of a script that ends with it and by console.log.
function help(topic) {
  const isObject = (typeof topic === "object" && topic !== null) || typeof topic === "function";
  const about = isObject ? WeakMapPrototypeGet(helpNames, topic) : topic ?? undefined;
  if (isObject ? about === undefined : about !== undefined && typeof about !== "string") {
    throw new TypeError('help takes a word, a tool or a server, as in help("state"), help(tools.files.read)');
  }
  return decode(ops.op_cx_query_blocking(question({ __proto__: null, kind: "help", topic: about })));
}

// A common word: a script may use it as a variable name.
defineBuiltIn(globalThis, "help", help);

// These are read-only: a script that replaces one by accident gets an error at that line and not somewhere else.
const fixed = {
  __proto__: null,
  McpToolError,
  callMCPTool,
  call_tool,
  call_tools,
  discoverMCPTools,
  getToolSchema,
  mcp,
  searchTools,
  search_tools,
  tools,
};
const fixedNames = ObjectKeys(fixed);
for (let index = 0; index < fixedNames.length; index++) {
  ObjectDefineProperty(globalThis, fixedNames[index], {
    __proto__: null,
    value: fixed[fixedNames[index]],
    writable: false,
    enumerable: false,
    configurable: false,
  });
}
