(() => {
  "use strict";

  const callable = (value, what) => {
    if (typeof value !== "function") throw new TypeError(`${what} must be a function`);
    return value;
  };

  const returned = (value, what) => {
    if (typeof value === "function") return value;
    throw new TypeError(`${what} decorators must return a function or undefined`);
  };

  // A property key as the language makes it of any value.
  const keyOf = (value) => Reflect.ownKeys({ [value]: 0 })[0];

  // The name of a function that is the value of this key.
  const nameOf = (key) => {
    if (typeof key !== "symbol") return key;
    return key.description === undefined ? "" : `[${key.description}]`;
  };

  const runAll = (initializers, self) => {
    for (let i = 0; i < initializers.length; i++) initializers[i].call(self);
  };

  // Calls decorators, the innermost first. `value` gives what each one decorates, `accept` takes what it returns.
  const decorate = (decorators, details, initializers, value, accept) => {
    for (let i = decorators.length - 1; i >= 0; i--) {
      const [receiver, decorator] = decorators[i];
      let finished = false;
      const context = {
        ...details,
        addInitializer(initializer) {
          if (finished) throw new TypeError("attempted to call addInitializer after decoration was finished");
          initializers.push(callable(initializer, "an initializer"));
        },
      };
      const result = decorator.call(receiver, value(), context);
      finished = true;
      if (result !== undefined) accept(result);
    }
  };

  const ROLES = { method: "value", getter: "get", setter: "set" };

  // Of a public element, what `context.access` does, by the element's key.
  const accessTo = (key, kind) => {
    const has = (object) => key in object;
    const get = (object) => object[key];
    const set = (object, value) => { object[key] = value; };
    if (kind === "method" || kind === "getter") return { has, get };
    return kind === "setter" ? { has, set } : { has, get, set };
  };

  // The state of one evaluation of a class. `decorators` are those of the class: pairs of receiver and function, and
  // `classKey` what gives it its name.
  const make = (decorators, classKey) => {
    const elements = [];
    // Initializers that methods have added: for instances before their fields, and for the class before its static ones.
    const ofInstances = [];
    const ofClass = [];
    // Those that decorators of the class have added.
    const afterwards = [];
    // cx defines it (js/14_metadata.js), so `context.metadata` is always an object, as in Deno.
    const symbol = Symbol.metadata;
    const seen = { static: new Map(), instance: new Map() };
    let source;
    let metadata;

    for (let i = 0; i < decorators.length; i++) callable(decorators[i][1], "a decorator");

    const home = (element) => element.isStatic ? source : source.prototype;

    const publish = (target) =>
      Object.defineProperty(target, symbol, { value: metadata, writable: true, enumerable: true, configurable: true });

    const refuseSecond = ({ isStatic, kind, key }) => {
      const kinds = isStatic ? seen.static : seen.instance;
      const before = kinds.get(key);
      const pair = (before === "getter" && kind === "setter") || (before === "setter" && kind === "getter");
      if (before !== undefined && !pair) {
        const name = typeof key === "symbol" ? `[${key.description}]` : key;
        const prefix = kind === "getter" ? "get " : kind === "setter" ? "set " : "";
        throw new Error(`Decorating two elements with the same name (${prefix}${name}) is not supported yet`);
      }
      kinds.set(key, before === undefined ? kind : "accessor");
    };

    const apply = (element) => {
      const { kind, isStatic, hidden, key } = element;
      if (kind !== "field" && hidden === undefined) refuseSecond(element);
      const isPrivate = element.access !== undefined;
      const access = element.access ?? accessTo(key, kind);
      const details = { kind, name: key, static: isStatic, private: isPrivate, access, metadata };
      if (kind === "field") {
        const accept = (result) => { element.starters.unshift(returned(result, "field")); };
        decorate(element.decorators, details, element.initializers, () => undefined, accept);
        return;
      }
      const found = hidden === undefined ? Object.getOwnPropertyDescriptor(home(element), key) : element.found;
      if (kind === "accessor") {
        const accept = (result) => {
          if (result === null || typeof result !== "object") {
            throw new TypeError(
              "accessor decorators must return an object with get, set, or init properties or undefined",
            );
          }
          const { get, set, init } = result;
          if (get !== undefined) found.get = callable(get, "accessor.get");
          if (set !== undefined) found.set = callable(set, "accessor.set");
          if (init !== undefined) element.starters.unshift(callable(init, "accessor.init"));
        };
        const value = () => ({ get: found.get, set: found.set });
        decorate(element.decorators, details, element.initializers, value, accept);
        if (hidden === undefined) Object.defineProperty(home(element), key, { get: found.get, set: found.set });
        else state.values[element.index] = { get: found.get, set: found.set };
        return;
      }
      const role = ROLES[kind];
      const accept = (result) => { found[role] = returned(result, "method"); };
      decorate(element.decorators, details, isStatic ? ofClass : ofInstances, () => found[role], accept);
      if (hidden === undefined) Object.defineProperty(home(element), key, { [role]: found[role] });
      else state.values[element.index] = found[role];
    };

    const state = {
      // The class as its own code sees it: what the decorators of the class have made of it.
      target: undefined,
      // By index of element: its key, the key under which it stands until it is taken, and what decorators made of it.
      keys: [],
      hidden: [],
      values: [],
      // Initializes the static elements of a decorated class.
      statics: undefined,
      // Gives instances of a class derived from it their private elements, whatever object they are.
      Instance: function (object) { return object; },
      wrapper: undefined,

      // Called where an element's decorators and its key are evaluated. Returns the key under which the element is
      // defined: a private one cannot be reached from here, so it is defined under a symbol and taken away again.
      add(index, kind, isStatic, isHidden, decorators, key, access) {
        for (let i = 0; i < decorators.length; i++) callable(decorators[i][1], "a decorator");
        key = access === undefined ? keyOf(key) : key;
        const hidden = isHidden ? Symbol() : undefined;
        const found = undefined;
        elements.push({
          index, kind, isStatic, decorators, key, hidden, access, found, starters: [], initializers: [],
        });
        state.keys[index] = key;
        state.hidden[index] = hidden;
        return hidden ?? key;
      },

      // Called first of all that is static, when all elements are defined.
      apply(target) {
        state.target = source = target;
        metadata = Object.create(Object.getPrototypeOf(source)?.[symbol] ?? null);
        for (const element of elements) {
          if (element.hidden === undefined) continue;
          const from = home(element);
          element.found = Object.getOwnPropertyDescriptor(from, element.hidden);
          delete from[element.hidden];
          if (element.access === undefined || element.kind === "field") continue;
          for (const [role, prefix] of [["value", ""], ["get", "get "], ["set", "set "]]) {
            const part = element.found[role];
            if (part === undefined) continue;
            Object.defineProperty(part, "name", { value: prefix + element.key, configurable: true });
          }
        }
        for (const [fields, statics] of [[false, true], [false, false], [true, true], [true, false]]) {
          for (const element of elements) {
            if ((element.kind === "field") === fields && element.isStatic === statics) apply(element);
          }
        }
        if (decorators.length > 0) return;
        // A class can be here for an `accessor` field or a key alone.
        if (elements.some((element) => element.decorators.length > 0)) publish(source);
        runAll(ofClass, source);
      },

      // Applies the decorators of the class. Returns what they make of it.
      decorated() {
        const details = { kind: "class", name: nameOf(classKey), metadata };
        const accept = (result) => { state.target = returned(result, "class"); };
        decorate(decorators, details, afterwards, () => state.target, accept);
        publish(state.target);
        if (state.wrapper !== undefined) new state.wrapper(state.target);
        return state.target;
      },

      // Initializes what is static, once the class's own name is bound.
      begin() {
        // These belong to the methods, which stay where they are.
        runAll(ofClass, source);
        state.statics?.();
        runAll(afterwards, state.target);
        return state.target;
      },

      // Called where an instance's first field is initialized.
      start(self) {
        runAll(ofInstances, self);
      },

      // The first value of a field or an accessor.
      init(index, self, value) {
        const { starters } = elements[index];
        for (let i = 0; i < starters.length; i++) value = starters[i].call(self, value);
        return value;
      },

      // Called after a field or an accessor is initialized.
      extra(index, self) {
        runAll(elements[index].initializers, self);
      },

      // Defines a static field of a decorated class.
      field(index, value) {
        value = state.init(index, state.target, value);
        const key = state.keys[index];
        Object.defineProperty(state.target, key, { value, writable: true, enumerable: true, configurable: true });
        state.extra(index, state.target);
      },

      install(wrapper) {
        state.wrapper = wrapper;
      },
    };
    return state;
  };

  // Evaluates a key that gives an anonymous class its name. The class is evaluated next, and reads `lastKey` first.
  make.key = (value) => make.lastKey = keyOf(value);

  return make;
})()
