// Regular expressions, step by step, for 21_text_guards.js. It changes nothing itself, and is evaluated before any
// built-in function of regular expressions is guarded.

import { primordials } from "ext:core/mod.js";
import { isObject, replace } from "ext:cx/20_guards.js";
import { checkText, MAX_CHARACTERS, MAX_NATIVE_CHARACTERS, toLength, toText } from "ext:cx/19_text.js";

const {
  ArrayPrototypePush,
  MathMin,
  ObjectGetOwnPropertyDescriptor,
  ObjectGetPrototypeOf,
  ReflectApply,
  ReflectConstruct,
  ReflectOwnKeys,
  RegExp,
  RegExpPrototype,
  RegExpPrototypeExec,
  StringPrototypeCharCodeAt,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  SymbolSpecies,
  TypeError,
} = primordials;

const originalExec = RegExpPrototype.exec;

const flagsGetter = ObjectGetOwnPropertyDescriptor(RegExpPrototype, "flags").get;
const globalGetter = ObjectGetOwnPropertyDescriptor(RegExpPrototype, "global").get;
const speciesGetter = ObjectGetOwnPropertyDescriptor(RegExp, SymbolSpecies).get;

// The `RegExp` that checks its patterns.
let GuardedRegExp;

export function setGuardedRegExp(constructor) {
  GuardedRegExp = constructor;
}

// Whether V8 uses the guarded `RegExp` to make another expression of one without own properties. Where a script has
// removed that, V8 takes its own, with flags that the script may have changed.
function constructsGuarded() {
  return ObjectGetOwnPropertyDescriptor(RegExpPrototype, "constructor")?.value === GuardedRegExp &&
    ObjectGetOwnPropertyDescriptor(RegExp, SymbolSpecies)?.get === speciesGetter;
}

// As SpeciesConstructor.
function speciesOf(expression) {
  const constructor = expression.constructor;
  return constructor === undefined ? GuardedRegExp : constructor[SymbolSpecies] ?? GuardedRegExp;
}

// Whether V8's loops over this expression's matches advance and end: the expression has no own properties, and the text
// is not long. If `exec` or the flag `g` is the guest's, V8 can match forever without calling the guest.
function matchesQuickly(expression, text) {
  return text.length <= MAX_NATIVE_CHARACTERS && ObjectGetPrototypeOf(expression) === RegExpPrototype &&
    RegExpPrototype.exec === originalExec && ReflectOwnKeys(expression).length === 1 &&
    ObjectGetOwnPropertyDescriptor(RegExpPrototype, "flags")?.get === flagsGetter &&
    ObjectGetOwnPropertyDescriptor(RegExpPrototype, "global")?.get === globalGetter;
}

// RegExpExec: calls `exec` if the guest has replaced it.
export function execute(expression, text) {
  const exec = expression.exec;
  if (typeof exec !== "function" || exec === originalExec) {
    return RegExpPrototypeExec(expression, text);
  }
  const result = ReflectApply(exec, expression, [text]);
  if (result !== null && !isObject(result)) {
    throw new TypeError("exec gave neither an object nor null");
  }
  return result;
}

// The index after `index`: two further for a character of two code units in Unicode mode.
function advance(text, index, unicode) {
  if (!unicode || index + 1 >= text.length) {
    return index + 1;
  }
  const first = StringPrototypeCharCodeAt(text, index);
  const second = StringPrototypeCharCodeAt(text, index + 1);
  const isPair = first >= 0xd800 && first <= 0xdbff && second >= 0xdc00 && second <= 0xdfff;
  return index + (isPair ? 2 : 1);
}

function isUnicode(flags) {
  return StringPrototypeIncludes(flags, "u") || StringPrototypeIncludes(flags, "v");
}

// As RegExp.prototype[Symbol.match] with the flag `g`, step by step.
export function matchAllTexts(expression, text, flags) {
  const unicode = isUnicode(flags);
  expression.lastIndex = 0;
  const found = [];
  for (;;) {
    const result = execute(expression, text);
    if (result === null) {
      return found.length === 0 ? null : found;
    }
    const matched = toText(result[0]);
    ArrayPrototypePush(found, matched);
    if (matched === "") {
      expression.lastIndex = advance(text, toLength(expression.lastIndex), unicode);
    }
  }
}

// The replacement text of one match.
function substitution(result, matched, place, text, replacement, functional) {
  const captures = [];
  const count = toLength(result.length);
  for (let index = 1; index < count; index++) {
    const capture = result[index];
    ArrayPrototypePush(captures, capture === undefined ? capture : toText(capture));
  }
  const groups = result.groups;
  if (functional) {
    const args = [matched];
    for (let index = 0; index < captures.length; index++) {
      ArrayPrototypePush(args, captures[index]);
    }
    ArrayPrototypePush(args, place, text);
    if (groups !== undefined) {
      ArrayPrototypePush(args, groups);
    }
    return toText(ReflectApply(replacement, undefined, args));
  }
  if (!StringPrototypeIncludes(replacement, "$")) {
    return replacement;
  }
  return expand(replacement, matched, place, text, captures, groups);
}

// As GetSubstitution.
function expand(template, matched, place, text, captures, groups) {
  let expanded = "";
  let from = 0;
  for (;;) {
    const dollar = StringPrototypeIndexOf(template, "$", from);
    if (dollar === -1 || dollar + 1 >= template.length) {
      return expanded + StringPrototypeSlice(template, from);
    }
    expanded += StringPrototypeSlice(template, from, dollar);
    const next = template[dollar + 1];
    from = dollar + 2;
    const digit = (character) => character >= "0" && character <= "9" ? +character : -1;
    const first = digit(next);
    if (next === "$") {
      expanded += "$";
    } else if (next === "&") {
      expanded += matched;
    } else if (next === "`") {
      expanded += StringPrototypeSlice(text, 0, place);
    } else if (next === "'") {
      expanded += StringPrototypeSlice(text, MathMin(text.length, place + matched.length));
    } else if (first !== -1) {
      const second = from < template.length ? digit(template[from]) : -1;
      const both = second === -1 ? 0 : first * 10 + second;
      if (both >= 1 && both <= captures.length) {
        expanded += captures[both - 1] ?? "";
        from++;
      } else if (first >= 1 && first <= captures.length) {
        expanded += captures[first - 1] ?? "";
      } else {
        expanded += `$${next}`;
      }
    } else if (next === "<" && groups !== undefined) {
      const end = StringPrototypeIndexOf(template, ">", from);
      if (end === -1) {
        expanded += "$<";
      } else {
        const group = groups[StringPrototypeSlice(template, from, end)];
        expanded += group === undefined ? "" : toText(group);
        from = end + 1;
      }
    } else {
      expanded += "$";
      from--;
    }
  }
}

// As RegExp.prototype[Symbol.replace], step by step.
export function replaceMatches(expression, text, replacement, flags) {
  const functional = typeof replacement === "function";
  const template = functional ? replacement : toText(replacement);
  const global = StringPrototypeIncludes(flags, "g");
  const unicode = isUnicode(flags);
  if (global) {
    expression.lastIndex = 0;
  }
  const results = [];
  for (;;) {
    const result = execute(expression, text);
    if (result === null) {
      break;
    }
    ArrayPrototypePush(results, result);
    if (!global) {
      break;
    }
    if (toText(result[0]) === "") {
      expression.lastIndex = advance(text, toLength(expression.lastIndex), unicode);
    }
  }
  let replaced = "";
  let from = 0;
  for (let index = 0; index < results.length; index++) {
    const result = results[index];
    const matched = toText(result[0]);
    const place = MathMin(toLength(result.index), text.length);
    const part = substitution(result, matched, place, text, template, functional);
    if (place >= from) {
      replaced += StringPrototypeSlice(text, from, place) + part;
      from = place + matched.length;
    }
  }
  return replaced + StringPrototypeSlice(text, from);
}

// As RegExp.prototype[Symbol.split], step by step.
export function splitAtMatches(expression, text, limit, flags) {
  const sticky = StringPrototypeIncludes(flags, "y") ? flags : `${flags}y`;
  const splitter = ReflectConstruct(speciesOf(expression), [expression, sticky]);
  const most = limit === undefined ? 2 ** 32 - 1 : limit >>> 0;
  const parts = [];
  if (most === 0) {
    return parts;
  }
  if (text.length === 0) {
    if (execute(splitter, text) === null) {
      ArrayPrototypePush(parts, text);
    }
    return parts;
  }
  const unicode = isUnicode(flags);
  let from = 0;
  let index = 0;
  while (index < text.length) {
    splitter.lastIndex = index;
    const result = execute(splitter, text);
    const end = result === null ? from : MathMin(toLength(splitter.lastIndex), text.length);
    if (end === from) {
      index = advance(text, index, unicode);
      continue;
    }
    ArrayPrototypePush(parts, StringPrototypeSlice(text, from, index));
    from = end;
    const count = toLength(result.length);
    for (let capture = 1; capture < count && parts.length < most; capture++) {
      ArrayPrototypePush(parts, result[capture]);
    }
    if (parts.length >= most) {
      return parts;
    }
    index = from;
  }
  ArrayPrototypePush(parts, StringPrototypeSlice(text, from));
  return parts;
}

// As RegExp.prototype[Symbol.matchAll], whose iterator gives one match at a time. V8 gets the expression that it would
// make.
export function matchOneByOne(expression, text, _, flags, original) {
  const matcher = ReflectConstruct(speciesOf(expression), [expression, flags]);
  const constructor = {
    __proto__: null,
    [SymbolSpecies]: function () {
      return matcher;
    },
  };
  const standIn = { __proto__: null, constructor, flags, lastIndex: expression.lastIndex };
  return ReflectApply(original, standIn, [text]);
}

export function guardExpression(symbol, name, steps, constructs = false) {
  replace(RegExpPrototype, symbol, (original) => ({
    method(...args) {
      if (!isObject(this)) {
        return ReflectApply(original, this, args);
      }
      const text = toText(args[0]);
      args[0] = text;
      checkText(name, text, MAX_CHARACTERS);
      if (matchesQuickly(this, text) && (!constructs || constructsGuarded())) {
        return ReflectApply(original, this, args);
      }
      return steps(this, text, args[1], toText(this.flags), original);
    },
  }).method);
}
