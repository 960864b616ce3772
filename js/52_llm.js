// `llm`: a script's questions to a language model.

import { primordials } from "ext:core/mod.js";
import { defineBuiltIn } from "ext:cx/20_guards.js";
import { checkKeys } from "ext:cx/21_text_guards.js";
import { toJson } from "ext:cx/30_json.js";
import { name, orInvalid } from "ext:cx/46_encoding.js";
import { query } from "ext:cx/50_tools.js";

const { ArrayIsArray, ObjectFreeze, TypeError } = primordials;

function call(fields) {
  return query({ __proto__: null, kind: "llm", call: fields });
}

// The question as JSON text. `extra` is what the function's own parameters say; a null-prototype object, so that no
// setter of the guest runs.
function textOf(options, extra) {
  const fields = { __proto__: null, ...options, ...extra };
  delete fields.stream;
  return orInvalid(undefined, undefined, () => toJson("options", fields));
}

function checkOptions(options, example = "{ maxTokens: 200 }") {
  const isArray = ArrayIsArray(options);
  if (isArray || (options !== undefined && options !== null && typeof options !== "object")) {
    const type = isArray ? "an array" : `a ${typeof options}`;
    throw new TypeError(`the options must be an object, as in ${example}: ${type}`);
  }
  checkKeys("the options", options);
  return options ?? { __proto__: null };
}

// An answer piece by piece. It is asked for when the first piece is.
async function* pieces(text) {
  const number = await call({ __proto__: null, open: text });
  let isOver = false;
  try {
    for (;;) {
      let piece;
      try {
        piece = await call({ __proto__: null, next: number });
      } catch (error) {
        isOver = true;
        throw error;
      }
      if (piece === null) {
        isOver = true;
        return;
      }
      yield piece;
    }
  } finally {
    // `break` ends the call at the model.
    if (!isOver) {
      await call({ __proto__: null, close: number });
    }
  }
}

function ask(options, extra) {
  const text = textOf(options, extra);
  return options.stream ? pieces(text) : call({ __proto__: null, ask: text });
}

const llm = ObjectFreeze({
  __proto__: null,
  ask(prompt, options) {
    const checked = checkOptions(options);
    return ask(checked, { __proto__: null, prompt: name("the prompt", prompt) });
  },
  think(options) {
    const checked = checkOptions(options, '{ messages: [{ role: "user", content: "x" }] }');
    return ask(checked, { __proto__: null });
  },
  extract(value, schema, options) {
    const checked = checkOptions(options);
    if (checked.stream) {
      throw new TypeError("llm.extract takes no `stream`: its value is complete at the end only");
    }
    const fields = { __proto__: null, value: value ?? null, schema };
    return call({ __proto__: null, extract: textOf(checked, fields) });
  },
});

// A common word: a script may use it as a variable name.
defineBuiltIn(globalThis, "llm", llm);
