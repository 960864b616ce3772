// `Temporal`, where V8 was built without it. A script that does not use it pays nothing: the polyfill is compiled and run
// at the first use (js/temporal/README.md).

import { core, primordials } from "ext:core/mod.js";
import { defineBuiltIn } from "ext:cx/19_guarding.js";

const {
  Date,
  ObjectDefineProperty,
  ObjectHasOwn,
  ReflectApply,
  ReflectDeleteProperty,
  ReflectGet,
  SymbolFor,
} = primordials;

// As `console.log` asks objects of Node for their text: the parts of these are not properties.
const CUSTOM_INSPECT = SymbolFor("nodejs.util.inspect.custom");
const CLASSES = [
  "Duration",
  "Instant",
  "PlainDate",
  "PlainDateTime",
  "PlainMonthDay",
  "PlainTime",
  "PlainYearMonth",
  "ZonedDateTime",
];

function printAsText(name, prototype) {
  const { toString } = prototype;
  defineBuiltIn(prototype, CUSTOM_INSPECT, function () {
    return `Temporal.${name} ${ReflectApply(toString, this, [])}`;
  });
}

if (!ObjectHasOwn(globalThis, "Temporal")) {
  const DatePrototype = Date.prototype;

  // The polyfill leaves a `Temporal` alone that is there, so the names that stand for it are removed first.
  const load = () => {
    ReflectDeleteProperty(globalThis, "Temporal");
    ReflectDeleteProperty(DatePrototype, "toTemporalInstant");
    core.ops.op_cx_temporal();
    const temporal = ReflectGet(globalThis, "Temporal");
    for (let index = 0; index < CLASSES.length; index++) {
      printAsText(CLASSES[index], temporal[CLASSES[index]].prototype);
    }
  };

  ObjectDefineProperty(globalThis, "Temporal", {
    __proto__: null,
    get() {
      load();
      return ReflectGet(globalThis, "Temporal");
    },
    set(value) {
      defineBuiltIn(globalThis, "Temporal", value);
    },
    enumerable: false,
    configurable: true,
  });

  const { toTemporalInstant } = {
    toTemporalInstant() {
      load();
      return ReflectApply(ReflectGet(DatePrototype, "toTemporalInstant"), this, []);
    },
  };
  defineBuiltIn(DatePrototype, "toTemporalInstant", toTemporalInstant);
}
