//! Hints for scripts that were written for another program: where such scripts fail, they mostly
//! take a tool's answer for text or for an envelope around it, forget to await a call, or compare
//! error codes that do not exist.
//!
//! The host finds a hint after the script has failed, from the error that the guest reports, the
//! source, and what the host itself knows of the run's calls. A hint is a sentence of this file
//! with names that were checked: a script can cause one, but it can neither change what it says nor
//! stop it from being given to other errors. Guests give hints too, for what only they know.

mod absent;
mod awaits;
mod codes;
mod ending;
mod failure;
mod fields;
mod files;
mod habits;
mod input;
mod reach;
mod slips;
mod source;
mod stalled;
mod strict;

pub(crate) use self::awaits::forgets_call;
use self::awaits::{AWAIT, FORGOTTEN, GIVES_UP, NOT_AWAITED};
use self::ending::has_no_data;
use self::failure::Failure;
use self::source::{
    attribute, gathers_one, has_word, method, reads_call, takes_block, takes_field, takes_member_of,
};
use crate::json::Json;
use crate::run::check::survey::Survey;
use crate::run::context::ExecutionContext;
use crate::run::result::{ErrorCode, LogLevel, Outcome};
use crate::run::script::Language;
use crate::tools::ToolErrorCode;
use crate::tools::names::is_identifier;

/// The answer of a tool is not what the script takes it for.
const ANSWER: &str =
    "a tool's answer is its content already, parsed; what each tool returned is shown with the calls";

/// Servers are not connected to.
const CONNECTED: &str = "servers are connected already: `await tools.<server>.<tool>({…})`";

/// `fs` has no functions that block.
const FILES: &str = "the functions of `fs` are asynchronous: `await fs.readFile(\"/tmp/name\", \"utf8\")`; \
                     the files of a server are read with its tools";

const HASHES: &str = "TypeScript has no hashes here; Python has `hashlib` and `hmac`";

/// `asyncio.gather` got a list.
const GATHER: &str = "`asyncio.gather` takes the calls one by one: `await asyncio.gather(*calls)`";

/// The beginning of the message of a call that the rules deny, and what can be done.
const MAY_NOT_CALL: &str = "this run may not call ";
const DENIED: &str = "`allowedTools` of the run or the rules of the operator leave it out; \
                      to repeat the call is no use";

/// How a server is called.
const TYPESCRIPT: &str = "`await tools.<server>.<tool>({…})`";
const PYTHON: &str = "`await tools.<server>.<tool>(…)`, or `from mcp_tools import <server>`";

/// What `call_tool` returns is neither the answer nor an error that is raised.
const OUTCOME: &str = "`call_tool` and `call_tools` return `{\"ok\": True, \"result\": …}`, or \
                       `{\"ok\": False, \"error\": …}` of a call that failed";

const INPUTS: &str = "in Python the run's input is `inputs`";

/// Fields of the envelopes in which other programs hand over an answer.
const ENVELOPE: &[&str] = &["content", "structuredContent", "structured_content", "isError", "is_error"];

/// Fields of envelopes that are common in answers too. They count only in the line that failed.
const COMMON: &[&str] = &["body", "data", "json", "output", "response", "result", "text", "value"];

/// Methods of texts and lists in both languages, which an object does not have.
const METHODS: &[&str] = &[
    "append",
    "charAt",
    "concat",
    "endsWith",
    "endswith",
    "every",
    "filter",
    "find",
    "findIndex",
    "flatMap",
    "forEach",
    "includes",
    "indexOf",
    "join",
    "json",
    "lower",
    "lstrip",
    "map",
    "match",
    "matchAll",
    "pop",
    "push",
    "reduce",
    "replace",
    "replaceAll",
    "rstrip",
    "slice",
    "some",
    "sort",
    "split",
    "splitlines",
    "startsWith",
    "startswith",
    "strip",
    "substring",
    "text",
    "toLowerCase",
    "toUpperCase",
    "trim",
    "upper",
];

/// Methods of a dict in Python, which a text or a list does not have.
const DICT_METHODS: &[&str] = &["get", "items", "keys", "setdefault", "update", "values"];

/// Words with which a function begins that is called with the input.
const ENTRIES: &[&str] = &["main", "run", "default"];

/// Adds a hint to the error of a script that has failed, if one fits and there is none yet.
///
/// Call it before the instance is dropped: a call that is unfinished then is one that the script
/// did not await.
pub(crate) fn add(outcome: &mut Outcome, context: &ExecutionContext, survey: &Survey) {
    let Outcome::Failed(error) = outcome else { return };
    error.hint = stalled::hint(error, &context.script.source).or(error.hint.take());
    if error.hint.is_some() || error.code != ErrorCode::RuntimeError {
        return;
    }
    error.hint = files::failed_write(&error.message, context);
    if error.hint.is_some() {
        return;
    }
    let facts = context.call_facts();
    let source = &context.script.source;
    if let Some(code) = error.tool_code.or(facts.last_failure) {
        error.hint = codes::hint(code, source);
        if error.tool_code.is_some() {
            let is_denied = code == ToolErrorCode::ToolDenied && error.message.starts_with(MAY_NOT_CALL);
            // A call that reached a server, which chose the message, is on record.
            let is_of_host = code == ToolErrorCode::ToolNotFound
                && facts.last_failure != Some(ToolErrorCode::ToolNotFound);
            let missing = is_of_host.then(|| reach::missing_server(&error.message)).flatten();
            let of_tool = missing.and_then(|name| reach::member(name, context));
            error.hint = error.hint.take().or(of_tool).or_else(|| is_denied.then(|| DENIED.to_owned()));
            return;
        }
    }
    let failure = Failure {
        name: error.name.as_deref().unwrap_or_default(),
        message: &error.message,
        line: error.source_line.as_deref().unwrap_or_default(),
        source,
        facts,
        has_input: context.script.input.as_ref().is_some_and(|input| !input.is_null()),
        has_text: context.script.input.as_ref().is_some_and(input::is_text_of_json),
    };
    let of_tool = || failure.called_name().and_then(|name| reach::tool(name, context));
    let of_language = match context.script.language {
        Language::TypeScript => reach::called_server(&error.message, context)
            .or_else(|| failure.typescript())
            .or_else(of_tool)
            .or_else(|| failure.takes_name_for_server().then(|| reach::servers(context, TYPESCRIPT))),
        Language::Python => failure
            .python(&|name| context.has_returned_field(name))
            .or_else(of_tool)
            .or_else(|| failure.looks_for_server().then(|| reach::servers(context, PYTHON))),
    };
    let is_answer = of_language.as_deref() == Some(ANSWER);
    let of_call = awaits::hint(&failure, error.line.zip(error.column), context, survey);
    let of_call = of_call.filter(|_| is_answer || of_language.is_none());
    let of_field = || is_answer.then(|| fields::only_field(failure.name, context)).flatten();
    let of_language = of_call.or_else(of_field).or(of_language);
    let of_files = files::granted(failure.name, failure.message, context);
    error.hint = error.hint.take().or(of_language).or(of_files);
}

/// Warns, in the output, of what a script that has succeeded did in vain. Call it before the instance is dropped.
///
/// - Its value is null or empty because it took an answer for an envelope: `return r.structuredContent` is no error,
///   nor is `return r.content[0].text` where `content` is a text. A script that prints has its result in the output.
/// - It reads a field by another form of its name than the one that a tool has returned, or of an input that is a text.
/// - Its value is null because the only answer of its run does not have the field that it returns.
/// - Calls have no answer, because nothing awaits them: `list.forEach(async (x) => await tools.a.b(x))` is no error,
///   `return tools.a.b().length` is none. A script that catches the error of `Promise.all` leaves others on purpose. In
///   Python tasks are awaited or cancelled, and the guest reports a coroutine that is not awaited.
pub(crate) fn warn(outcome: &Outcome, context: &ExecutionContext, forgets_call: bool) {
    let lines = match outcome {
        Outcome::Returned(value) => warnings(value, context, forgets_call),
        Outcome::Failed(_) => Vec::new(),
    };
    let lines = match context.tape() {
        Some(tape) => tape.closing_lines(lines),
        None => lines,
    };
    for (level, line) in lines {
        context.log(level, line);
    }
}

/// The warnings about a script that has returned `value`.
fn warnings(value: &Json, context: &ExecutionContext, forgets_call: bool) -> Vec<(LogLevel, String)> {
    let (script, facts) = (&context.script, context.call_facts());
    let has_result = context.has_output() || !has_no_data(value.text());
    let mut warnings = Vec::new();
    if script.language == Language::TypeScript
        && facts.has_unfinished
        && !(facts.has_failed && script.source.contains("Promise.all"))
        && !GIVES_UP.iter().any(|word| script.source.contains(word))
    {
        warnings.push(NOT_AWAITED.to_owned());
    } else if forgets_call && !has_result {
        warnings.push(FORGOTTEN.to_owned());
    }
    if !has_result
        && facts.has_returned
        && let Some(field) = envelope_field(&script.source, &|name| context.has_returned_field(name))
    {
        let what = if value.is_null() { "null" } else { "empty" };
        warnings.push(format!(
            "the script's value is {what}, and it looks for `{field}`: a tool's answer is its content already, parsed"
        ));
    }
    if facts.has_returned {
        warnings.extend(fields::warning(context));
    }
    if !has_result {
        warnings.extend(input::unread(context));
    }
    if !has_result && value.is_null() && ending::is_lost(&script.source) {
        warnings.push(ending::LOST.to_owned());
    }
    if !has_result && value.is_null() && facts.has_returned && warnings.is_empty() {
        warnings.extend(absent::warning(context));
    }
    warnings.into_iter().map(|warning| (LogLevel::Warn, warning)).collect()
}

/// The field of an envelope that a script looks for, and that no tool has returned.
fn envelope_field(source: &str, is_field: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    let missing = ENVELOPE.iter().copied().find(|field| takes_field(source, field) && !is_field(field));
    // A tool may well have returned a text named `content`.
    missing.or_else(|| takes_block(source).then_some("content[0].text"))
}

impl Failure<'_> {
    fn typescript(&self) -> Option<String> {
        let message = self.message;
        if message.contains("[object Promise]") {
            return Some(AWAIT.to_owned());
        }
        let absent = self.absent_member().map(str::to_owned);
        if let Some(hint) = absent.or_else(|| strict::hint(self.name, message, self.line)) {
            return Some(hint);
        }
        if self.name == "TypeError"
            && let Some(listed) = message.strip_suffix(" is not iterable").filter(|name| is_server(name))
        {
            return Some(format!("`Object.keys({listed})` has the names"));
        }
        if self.name == "TypeError"
            && let Some(hint) = slips::hint(message, self.line, self.source, &self.facts)
        {
            return Some(hint.to_owned());
        }
        let is_null = message.starts_with("Cannot read properties of null")
            || message.starts_with("Cannot destructure property") && message.ends_with("it is null.");
        // What V8 says of a parameter, here of the function that is called with the input.
        let is_parameter = message.contains("of 'object null'")
            && !self.has_input
            && ENTRIES.iter().any(|name| has_word(self.line, name));
        if self.name == "TypeError" && is_null && (is_parameter || self.lacks_input("input")) {
            return Some(input::none("input"));
        }
        if let Some(hint) = input::of_text(self, "input", "JSON.parse(input)") {
            return Some(hint);
        }
        let is_undefined = ["Cannot read properties of undefined", "Cannot destructure property"]
            .iter()
            .any(|words| message.starts_with(words));
        let method = method(message);
        let is_other_type = method.is_some() || message.contains(" is not iterable");
        let is_type_error = self.name == "TypeError" && (is_undefined || is_other_type);
        if !self.facts.has_returned {
            // The input is no call. If a call is in the same line, its place shows whether it failed.
            let may_be_call = self.facts.has_unfinished && !has_word(self.line, "input");
            return (is_type_error && may_be_call).then(|| AWAIT.to_owned());
        }
        let is_answer = match self.name {
            "TypeError" if is_undefined => self.takes_envelope(),
            "TypeError" => is_other_type && method.is_none_or(|method| METHODS.contains(&method)),
            // What `JSON.parse` throws for what is no text, or no JSON.
            "SyntaxError" => message.contains(" valid JSON") || message.contains(" JSON "),
            _ => false,
        };
        if is_answer {
            return Some(ANSWER.to_owned());
        }
        // A tool of the host's own may have answered already.
        (is_type_error && reads_call(self.line, self.source)).then(|| AWAIT.to_owned())
    }

    /// The hint for a function that is not there of an object that is.
    fn absent_member(&self) -> Option<&'static str> {
        if self.name != "TypeError" {
            return None;
        }
        if self.message.ends_with("(reading 'digest')") && self.line.contains("crypto.subtle") {
            return Some(HASHES);
        }
        let function = self.message.strip_suffix(" is not a function")?;
        match function.split_once('.')? {
            ("fs", name) if name.ends_with("Sync") => Some(FILES),
            ("crypto", "createHash" | "createHmac") => Some(HASHES),
            ("mcp", "callTool" | "call" | "call_tool") => Some(CONNECTED),
            _ => None,
        }
    }

    /// Whether the line that failed reads the run's input, which was not given.
    fn lacks_input(&self, name: &str) -> bool {
        let is_read = has_word(self.line, name) || self.source.contains("JSON.parse(input)");
        !self.has_input && is_read
    }

    fn python(&self, is_field: &dyn Fn(&str) -> bool) -> Option<String> {
        let message = self.message;
        let is_type = matches!(self.name, "TypeError" | "AttributeError");
        if is_type && COROUTINE.iter().any(|words| message.contains(words)) {
            return Some(AWAIT.to_owned());
        }
        if is_type && message.starts_with("'NoneType' object") && self.lacks_input("inputs") {
            return Some(input::none("inputs"));
        }
        if let Some(hint) = input::of_text(self, "inputs", "json.loads(inputs)") {
            return Some(hint);
        }
        if is_type && message.starts_with("'function' object") && has_word(self.line, "input") {
            return Some(INPUTS.to_owned());
        }
        let is_list = message.starts_with("cannot use 'list' as a dict key")
            || message.starts_with("An asyncio.Future, a coroutine or an awaitable is required");
        if is_type && is_list && gathers_one(self.line) {
            return Some(GATHER.to_owned());
        }
        if let Some(hint) = habits::hint(self.name, message, self.line, self.source) {
            return Some(hint.to_owned());
        }
        if self.takes_outcome_for_answer() {
            return Some(OUTCOME.to_owned());
        }
        if !self.facts.has_returned {
            return None;
        }
        // `r.items` of a dict with the field `items` is the method.
        let is_method = is_type && message.contains("'builtin_function_or_method'");
        let is_meant = |field: &&str| takes_field(self.line, field) && is_field(field);
        if let Some(field) = DICT_METHODS.iter().copied().find(|field| is_method && is_meant(field)) {
            return Some(of_dict(field));
        }
        let is_answer = match self.name {
            "AttributeError" => {
                let (kind, attribute) = attribute(message)?;
                if kind == "dict" && is_identifier(attribute) && is_field(attribute) {
                    return Some(of_dict(attribute));
                }
                let is_envelope = ENVELOPE.contains(&attribute) || COMMON.contains(&attribute);
                match kind {
                    "dict" => true,
                    "list" | "str" => {
                        is_envelope || METHODS.contains(&attribute) || DICT_METHODS.contains(&attribute)
                    }
                    _ => false,
                }
            }
            "KeyError" => {
                // The guest says after the key which keys there are.
                let key = message.split("; the ").next().unwrap_or_default().trim_matches('\'');
                ENVELOPE.contains(&key) || COMMON.contains(&key) || key == "0"
            }
            "TypeError" => {
                message.starts_with("the JSON object must be str, bytes or bytearray")
                    || message.starts_with("string indices must be integers")
                    || message.starts_with("list indices must be integers")
            }
            "JSONDecodeError" => true,
            _ => false,
        };
        is_answer.then(|| ANSWER.to_owned())
    }

    /// Whether a Python script looks in what `call_tool` returns for what is in its `result`.
    fn takes_outcome_for_answer(&self) -> bool {
        let is_field = match self.name {
            "KeyError" => self.message.starts_with('\''),
            "AttributeError" => attribute(self.message).is_some_and(|(kind, _)| kind == "dict"),
            _ => false,
        };
        let calls = ["call_tool", "call_tools"].iter().any(|name| has_word(self.source, name));
        // The guest says after the key which keys there are.
        let is_result = self.message.split("; the ").next() == Some("'result'");
        is_field && calls && (is_result || !takes_field(self.source, "result"))
    }

    /// The name that is not there.
    fn unknown_name(&self) -> Option<&str> {
        match self.name {
            "ReferenceError" => self.message.strip_suffix(" is not defined"),
            "NameError" => self.message.strip_prefix("name '")?.split('\'').next(),
            _ => None,
        }
    }

    /// The name that is not there and that the failed line calls: of a tool that the script takes for a function.
    fn called_name(&self) -> Option<&str> {
        self.unknown_name().filter(|name| self.line.contains(&format!("{name}(")))
    }

    /// Whether TypeScript takes something for a server: a name that is not there, or a field of `mcp`. Its functions
    /// are none: `(await mcp.readResource(…)).contents`.
    fn takes_name_for_server(&self) -> bool {
        let is_undefined =
            self.name == "TypeError" && self.message.starts_with("Cannot read properties of undefined");
        self.calls_unknown_name() || is_undefined && takes_member_of(self.line, "await mcp.")
    }

    /// Whether the script awaits a method of a name that is not there: of a server that it takes to be one.
    fn calls_unknown_name(&self) -> bool {
        self.unknown_name().is_some_and(|name| self.line.contains(&format!("await {name}.")))
    }

    /// Whether a Python script imports a server as from a library of another program, or connects
    /// to it.
    fn looks_for_server(&self) -> bool {
        if self.name == "NameError" {
            return self.calls_unknown_name()
                || reach::CLIENTS
                    .iter()
                    .any(|name| self.message.starts_with(&format!("name '{name}' is not defined")));
        }
        let is_missing = |module: &str| {
            self.message.starts_with(&format!("No module named '{module}'"))
                || self.message.starts_with(&format!("No module named '{module}."))
        };
        if self.name == "AttributeError" {
            return self.message.starts_with("module 'mcp' has no attribute ");
        }
        let is_import = matches!(self.name, "ImportError" | "ModuleNotFoundError");
        let is_name = self.message.contains(" from 'mcp'") || self.message.contains(" from 'mcp.");
        is_import && (is_name || ["mcp", "servers", "fastmcp", "tools"].into_iter().any(is_missing))
    }

    /// Whether the script takes something for an envelope: in the line that failed, or, if the
    /// field's name is that of an envelope only, anywhere.
    fn takes_envelope(&self) -> bool {
        let in_line = || ENVELOPE.iter().chain(COMMON).any(|field| takes_field(self.line, field));
        in_line() || ENVELOPE.iter().any(|field| takes_field(self.source, field))
    }
}

/// Words with which Python says that something is a coroutine.
const COROUTINE: &[&str] = &["'coroutine'", "\"coroutine\"", "not coroutine", "type coroutine"];

/// Whether an expression is `tools` or `tools.<server>`.
fn is_server(expression: &str) -> bool {
    expression == "tools" || expression.strip_prefix("tools.").is_some_and(is_identifier)
}

/// The hint for a script that takes a field of an answer as an attribute.
fn of_dict(field: &str) -> String {
    format!("{ANSWER}; of a dict write `[\"{field}\"]`")
}

#[cfg(test)]
mod tests;
