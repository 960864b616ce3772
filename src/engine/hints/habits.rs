//! Hints for what Python programs do elsewhere and scripts cannot, whatever their tools return: reading the environment
//! or the arguments of a command, a home directory, JSON of what `json` does not know. Also hints for mistakes that
//! models make in any Python program.

use super::source::has_word;

pub(super) const ENVIRONMENT: &str = "scripts get no variables of the machine's environment: data comes in as \
    `inputs`, and what a server needs belongs to its configuration";

pub(super) const ARGUMENTS: &str = "a script has no arguments: data comes in as `inputs`";

pub(super) const HOME: &str = "a script has no home directory: it can use /tmp, which ends with the run, and \
    directories that a person grants (--allow-read, --allow-write)";

pub(super) const SERIALIZABLE: &str = "return the value as it is, for dates, sets, decimals, enums and dataclasses \
    become JSON; or `json.dumps(value, default=str)`";

pub(super) const LITERAL: &str =
    "the text is not JSON; if Python has written it, as `{'a': None}`, use `ast.literal_eval(text)`";

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

pub(super) const ASYNC_FOR: &str =
    "an asynchronous generator is read with `async for`, as in `[x async for x in …]`";

pub(super) const ZONES: &str = "one of the two has no time zone: write `datetime(2026, 1, 31, tzinfo=timezone.utc)` \
    or `datetime.now(timezone.utc)`";

pub(super) const BRACES: &str = "`{` begins an expression in an f-string and in `format`: write `{{` and `}}` for \
    braces of JSON, or use `json.dumps(…)`";

pub(super) const LINES: &str = "`csv.reader` and `csv.DictReader` take lines: give them `text.splitlines()`";

pub(super) const FAILED_CALL: &str = "a call that has failed is among the results as an error \
    (`return_exceptions=True`): skip results for which `isinstance(result, Exception)` is true";

pub(super) const FOUND: &str = "a found tool is a description: call it as its `usage` says, or with \
    `await call_mcp_tool(found[0][\"name\"], {…})`";

pub(super) const FOUND_FIELD: &str = "a found tool is a dict: write `found[0][\"name\"]`";

pub(super) const SCOPE: &str = "a function that sets a variable from outside has to declare it: `global name` for one \
    of the script, `nonlocal name` for one of an enclosing function";

pub(super) const MEMORY: &str = "the memory of a run is limited: keep only what is needed of each result";

/// Fields of a found tool.
const FOUND_FIELDS: &[&str] = &["description", "name", "outputSchema", "parameters", "server", "usage"];

/// The hint for an error of this name and message, which the line of the source has raised.
pub(super) fn hint(name: &str, message: &str, line: &str, source: &str) -> Option<&'static str> {
    programs(name, message, line).or_else(|| slips(name, message, line, source))
}

fn slips(name: &str, message: &str, line: &str, source: &str) -> Option<&'static str> {
    match name {
        "TypeError" if message.contains("'async_generator'") => Some(ASYNC_FOR),
        "TypeError" if message.ends_with("offset-naive and offset-aware datetimes") => Some(ZONES),
        "TypeError" if message.starts_with("'McpToolError' object is not ") => Some(FAILED_CALL),
        "TypeError" if message == "'_FoundTool' object is not callable" => Some(FOUND),
        "TypeError"
            if message.starts_with("'cx_guest.tools.Server' object does not support the ")
                && message.contains("context manager protocol") =>
        {
            Some(SERVER)
        }
        "MemoryError" => Some(MEMORY),
        "AttributeError" => {
            let rest = message.strip_prefix("'_FoundTool' object has no attribute '")?;
            let is_field = FOUND_FIELDS.contains(&rest.split('\'').next()?);
            Some(if is_field { FOUND_FIELD } else { FOUND })
        }
        "ValueError"
            if ["Invalid format specifier", "Unknown format code"]
                .iter()
                .any(|start| message.starts_with(start))
                && begins_object_in_f_string(line) =>
        {
            Some(BRACES)
        }
        // The name that `format` looks for has quotes: `'"name"'`.
        "KeyError" if line.contains(".format(") && message.contains('"') && message.contains('\'') => {
            Some(BRACES)
        }
        "UnboundLocalError"
            if ["+=", "-=", "*=", "/=", "|="].iter().any(|sign| line.contains(sign))
                && is_set_outside(message, line, source) =>
        {
            Some(SCOPE)
        }
        "IndexError" if message == "list index out of range" && reads_characters(source) => Some(LINES),
        // The guest names the keys of a row that has several.
        "KeyError" if !message.contains("; the keys are ") && reads_characters(source) => Some(LINES),
        "ValueError" if message.starts_with("not enough values to unpack") && reads_characters(source) => {
            Some(LINES)
        }
        _ => None,
    }
}

/// Whether an f-string of a line has the beginning of a JSON object in it: `f'{"name": …`. A dict that has an f-string
/// as a value, as `{"total": f"{total:d}"}`, is none.
fn begins_object_in_f_string(line: &str) -> bool {
    ['"', '\''].into_iter().any(|quote| {
        let (begin, object) = (format!("f{quote}"), if quote == '"' { "{'" } else { "{\"" });
        line.match_indices(begin.as_str()).any(|(start, _)| {
            // Not the end of another text, as in `{"self": {'a': 1}}`.
            let before = line[..start].trim_end_matches(['r', 'R']).chars().next_back();
            if before.is_some_and(|last| last == '_' || last == '"' || last == '\'' || last.is_alphanumeric())
            {
                return false;
            }
            let rest = &line[start + begin.len()..];
            let triple = format!("{quote}{quote}");
            match rest.strip_prefix(triple.as_str()) {
                Some(rest) => rest
                    .split(format!("{quote}{triple}").as_str())
                    .next()
                    .is_some_and(|text| text.contains("{\"") || text.contains("{'")),
                None => rest.split(quote).next().is_some_and(|text| text.contains(object)),
            }
        })
    })
}

/// Whether a variable that a line changes before it has a value in its function is set outside: in a line that is
/// indented less. One that is set nowhere needs its first value, and no declaration.
fn is_set_outside(message: &str, line: &str, source: &str) -> bool {
    let Some(name) = message.split('\'').nth(1).filter(|name| !name.is_empty()) else { return false };
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let changed = source.lines().find(|other| other.trim() == line.trim()).map(indentation);
    let sets = |other: &str| {
        let rest = other.trim_start().strip_prefix(name).map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with(':') || rest.starts_with('=') && !rest.starts_with("=="))
    };
    changed.is_some_and(|inner| source.lines().any(|other| indentation(other) < inner && sets(other)))
}

/// Whether a script gives a reader of CSV a text, of which it takes each character for a line.
fn reads_characters(source: &str) -> bool {
    let reads = ["csv.reader(", "DictReader("].iter().any(|reader| source.contains(reader));
    reads && !["StringIO", "lines", ".split(", "open("].iter().any(|lines| source.contains(lines))
}

fn programs(name: &str, message: &str, line: &str) -> Option<&'static str> {
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
