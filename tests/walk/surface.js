// Finds every function and accessor that a script can reach: from `globalThis` and from what only syntax makes, through
// properties, prototypes and the results of calling what is found. Returns, for each, an expression that reaches it again
// in another run (with `corpus.js` before it), an expression for a natural receiver, and the number of its parameters.

const functions = [];
const seen = new Set();
const queue = [];
// Prototype objects to expressions for an instance.
const instances = new Map();
const text = JSON.stringify;
const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

const wellKnown = new Map();
for (const name of Object.getOwnPropertyNames(Symbol)) {
  if (typeof Symbol[name] === "symbol") wellKnown.set(Symbol[name], `Symbol.${name}`);
}

function visit(expression, value, receiver, holder) {
  if (!isObject(value) || seen.has(value)) return;
  seen.add(value);
  queue.push({ expression, value });
  if (typeof value === "function") {
    let length = 0;
    try { length = Math.min(+value.length || 0, 8) } catch {}
    functions.push({ expression, receiver, holder, length, value });
  }
}

function walk() {
  while (queue.length > 0) {
    const { expression, value } = queue.shift();
    visit(`prototypeOf(${expression})`, prototypeOf(value), "undefined", undefined);
    let keys = [];
    try { keys = Reflect.ownKeys(value) } catch { continue }
    for (const key of keys) {
      let name;
      if (typeof key === "symbol") {
        name = wellKnown.get(key) ?? `symbol(${expression}, ${symbolsOf(value).indexOf(key)})`;
      } else {
        // The elements of lists are not the surface.
        if (/^\d+$/.test(key) && +key > 3) continue;
        name = text(key);
      }
      let descriptor;
      try { descriptor = descriptorOf(value, key) } catch { continue }
      if (descriptor === undefined) continue;
      visit(`at(${expression}, ${name})`, descriptor.value, expression, value);
      visit(`getter(${expression}, ${name})`, descriptor.get, expression, value);
      visit(`setter(${expression}, ${name})`, descriptor.set, expression, value);
    }
  }
}

// Functions that wait, or call back too late.
const uncalled = new Set([call_tool, call_tools, setInterval, setTimeout, queueMicrotask]);
const benign = [
  ["", () => []], ["1", () => [1]], ['"a"', () => ["a"]], ["() => 1", () => [() => 1]], ["[1]", () => [[1]]],
  ["{}", () => [{}]], ['"a", "a"', () => ["a", "a"]], ["{}, {}", () => [{}, {}]], ["new Map()", () => [new Map()]],
  ['[["a", 1]]', () => [[["a", 1]]]], ["[].values()", () => [[].values()]],
];

// Getters whose functions are found: `compare` of a collator, which is another one for each.
const answered = new Set();

// Calls what was found with ordinary arguments, and walks what comes out if there was none such before.
function experiment(attempt, expressionOf, getter) {
  for (const [argumentsText, makeArguments] of benign) {
    let result;
    try { result = attempt(makeArguments()) } catch { continue }
    if (result instanceof Promise) { result.catch(() => {}); continue }
    if (!isObject(result)) continue;
    const expression = expressionOf(argumentsText);
    if (getter !== undefined && typeof result === "function" && !seen.has(result) && !answered.has(getter)) {
      answered.add(getter);
      visit(expression, result, "undefined", undefined);
      continue;
    }
    const prototype = prototypeOf(result);
    if (prototype === null) continue;
    if (!instances.has(prototype)) {
      instances.set(prototype, { expression, make: () => attempt(makeArguments()) });
    }
    if (!seen.has(prototype)) visit(expression, result, "undefined", undefined);
  }
}

// An ordinary receiver for a function of a holder: an instance, if the holder is a prototype that has one.
function natural(receiver, holder) {
  for (const [prototype, instance] of instances) {
    for (let at = prototype; at !== null && at !== Object.prototype; at = prototypeOf(at)) {
      if (at === holder) return instance;
    }
  }
  return { expression: receiver, make: () => holder };
}

const roots = { globalThis, syntax, "tools.mock": tools.mock, "tools.mock.count": tools.mock.count };
for (const name of Object.keys(roots)) visit(name, roots[name], "undefined", undefined);
for (const name of Object.keys(syntax)) visit(`syntax.${name}`, syntax[name], "undefined", undefined);
walk();
let done = 0;
while (done < functions.length) {
  const until = functions.length;
  for (let index = done; index < until; index++) {
    const { expression, value } = functions[index];
    if (!uncalled.has(value) && !expression.startsWith("syntax.")) {
      experiment((args) => make(value, args), (args) => `make(${expression}, [${args}])`);
    }
  }
  for (let index = done; index < until; index++) {
    const { expression, receiver, holder, value } = functions[index];
    if (uncalled.has(value) || expression.startsWith("syntax.")) continue;
    const { expression: instance, make: makeReceiver } = natural(receiver, holder);
    experiment(
      (args) => call(value, makeReceiver(), args),
      (args) => `call(${expression}, ${instance}, [${args}])`,
      expression.startsWith("getter(") ? value : undefined,
    );
  }
  done = until;
  walk();
}

return functions.map(({ expression, receiver, holder, length }) => [
  expression,
  natural(receiver, holder).expression,
  length,
]);
