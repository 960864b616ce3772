//! Hints for what Python programs do elsewhere and scripts cannot, whatever their tools return: reading the environment
//! or the arguments of a command, a home directory, JSON of what `json` does not know.

use super::source::has_word;

pub(super) const ENVIRONMENT: &str = "scripts get no variables of the machine's environment: data comes in as \
    `inputs`, and what a server needs belongs to its configuration";

pub(super) const ARGUMENTS: &str = "a script has no arguments: data comes in as `inputs`";

pub(super) const HOME: &str = "a script has no home directory: it can use /tmp, which ends with the run, and \
    directories that a person grants (--allow-read, --allow-write)";

pub(super) const SERIALIZABLE: &str = "return the value as it is, for dates, sets, decimals, enums and dataclasses \
    become JSON; or `json.dumps(value, default=str)`";

pub(super) const LITERAL: &str =
    "the text is no JSON; if Python has written it, as `{'a': None}`, use `ast.literal_eval(text)`";

pub(super) const STATE: &str =
    "`await state.set(key, value)` stores a value, and `await state.get(key)` reads it";

pub(super) const TOOL_ERROR: &str =
    "an McpToolError has `message`, `code`, `server`, `tool`, `content` and `retry_after_ms`";

pub(super) const SERVER: &str = "a server has its tools as attributes: `await tools.<server>.<tool>(…)`";

pub(super) const RESPONSE: &str = "a response of `fetch` has `status`, `ok`, `url` and `headers`, and its body by \
    `await response.json()`, `.text()` or `.bytes()`";

pub(super) const FETCH: &str =
    "`fetch` takes `method`, `headers`, `params`, `body`, `json`, `timeout` in seconds and `redirect`";

pub(super) const ENTRY: &str = "`main` and `run` are called with the run's input as the only argument; with others \
    call the function in the last line, as in `main(inputs[\"a\"], inputs[\"b\"])`";

/// The hint for an error of this name and message, which the line has raised.
pub(super) fn hint(name: &str, message: &str, line: &str) -> Option<&'static str> {
    match name {
        "KeyError" if line.contains("os.environ[") => Some(ENVIRONMENT),
        "IndexError" if line.contains("sys.argv[") => Some(ARGUMENTS),
        "RuntimeError" if message.starts_with("Could not determine home directory") => Some(HOME),
        "JSONDecodeError" if message.starts_with("Expecting property name enclosed in double quotes") => {
            Some(LITERAL)
        }
        "TypeError" if message.ends_with(" is not JSON serializable") => Some(SERIALIZABLE),
        "TypeError" | "AttributeError"
            if message.starts_with("'State' object ") && has_word(line, "state") =>
        {
            Some(STATE)
        }
        "AttributeError" if message.starts_with("'McpToolError' object has no attribute ") => {
            Some(TOOL_ERROR)
        }
        "TypeError"
            if ["'Server' object is not callable", "'Tools' object is not callable"].contains(&message) =>
        {
            Some(SERVER)
        }
        "AttributeError" if message.starts_with("'Response' object has no attribute ") => Some(RESPONSE),
        "TypeError" if message.starts_with("fetch() got an unexpected keyword argument") => Some(FETCH),
        // cx has called it, so that no line of the script has.
        "TypeError" if line.is_empty() && is_entry(message) => Some(ENTRY),
        _ => None,
    }
}

/// Whether the message is of a call of `main` or `run` with too few arguments.
fn is_entry(message: &str) -> bool {
    ["main() missing ", "run() missing "].iter().any(|start| message.starts_with(start))
}
