// The time zone of a run. V8's dates have a copy of it, which the host lets them make (`set_time_zone` in
// src/engine/typescript/isolate.rs). `Intl` would ask ICU, whose default is that of the whole process, each time that a
// script names no time zone: so it is always named here.

import { primordials } from "ext:core/mod.js";

const {
  Date,
  DatePrototypeGetTime,
  DatePrototypeGetTimezoneOffset,
  NumberIsNaN,
  Object,
  ObjectGetOwnPropertyDescriptor,
  ReflectApply,
  ReflectGet,
} = primordials;
const DateTimeFormat = Intl.DateTimeFormat;
const getFormat = ObjectGetOwnPropertyDescriptor(DateTimeFormat.prototype, "format").get;

let timeZone = "UTC";

// Called by the host while ICU's default is `name`.
export function setTimeZone(name) {
  timeZone = name;
  // Makes V8 copy the default.
  DatePrototypeGetTimezoneOffset(new Date(0));
}

// The arguments `(locales, options)` with a time zone in the options. V8 reads the script's options as often, and in
// the same order, as it would without that.
export function withTimeZone(args) {
  const options = args[1];
  if (options === null) {
    return args;
  }
  if (options === undefined) {
    return [args[0], { __proto__: null, timeZone }];
  }
  const given = Object(options);
  const named = {
    __proto__: given,
    get timeZone() {
      const own = ReflectGet(given, "timeZone");
      return own === undefined ? timeZone : own;
    },
  };
  return [args[0], named];
}

// `original`, a method of dates that takes `(locales, options)`, in the run's time zone. Without options V8 would keep
// the formatter for the next call, because to make one takes some twenty times as long as to use it: so does this.
// `parts` are the options that the method has by default.
export function inTimeZone(original, parts) {
  let kept;
  return function (locales, options) {
    if (options !== undefined || (locales !== undefined && typeof locales !== "string")) {
      return ReflectApply(original, this, withTimeZone([locales, options]));
    }
    const time = DatePrototypeGetTime(this);
    if (NumberIsNaN(time)) {
      return "Invalid Date";
    }
    if (kept === undefined || kept.locales !== locales || kept.timeZone !== timeZone) {
      const formatter = new DateTimeFormat(locales, { __proto__: null, ...parts, timeZone });
      kept = { __proto__: null, locales, timeZone, format: ReflectApply(getFormat, formatter, []) };
    }
    return ReflectApply(kept.format, undefined, [time]);
  };
}
