//! Calls that a script does not await.

use std::cell::LazyCell;
use std::collections::HashSet;

use super::ending::has_no_data;
use super::failure::Failure;
use super::source::{assigned, is_part};
use crate::run::check::survey::{Bytes, Survey, Target, ToolUse};
use crate::run::context::ExecutionContext;
use crate::run::result::Outcome;
use crate::run::script::Language;
use crate::tools::names::typescript_name;

pub(super) const AWAIT: &str = "did you forget `await`?";

/// Words of a script that gives up calls on purpose.
pub(super) const GIVES_UP: &[&str] = &["Promise.race", "Promise.any", "signal"];

/// The warning about calls that have no answer at the end of a script.
pub(super) const NOT_AWAITED: &str = "the script ended before all of its calls were answered, and what they would \
                                      return is lost: write `await` before each, or `await Promise.all(list.map(async \
                                      (x) => …))`; `forEach` awaits nothing";

/// The warning about a script without a value that reads something of a call instead of its answer.
pub(super) const FORGOTTEN: &str = "the script's value is empty, and a call is not awaited: write `await` before it, \
                                    as in `(await tools.a.b({})).length`";

/// Functions of TypeScript, besides tools and those of `fs`, that give a promise.
const ASYNCHRONOUS: &[&str] =
    &["callMCPTool", "discoverMCPTools", "fetch", "getToolSchema", "searchTools", "search_tools"];

/// Bytes before a call in which the variable is looked for that is given its value.
const MAX_DECLARATION: usize = 200;

/// The hint for a script in TypeScript that takes a call for its answer: before it is awaited it is a promise. `at` is
/// the line and the column of the error.
pub(super) fn hint(
    failure: &Failure<'_>,
    at: Option<(u32, u32)>,
    context: &ExecutionContext,
    survey: &Survey,
) -> Option<String> {
    let may_be = failure.name == "TypeError" && context.script.language == Language::TypeScript;
    let is_forgotten = || is_forgotten(failure.message, at, failure.source, survey, &is_server(context));
    (may_be && is_forgotten()).then(|| AWAIT.to_owned())
}

/// Whether a script in TypeScript that has returned nothing uses a call of a tool that it does not await, as far as its
/// text says.
pub(crate) fn forgets_call(outcome: &Outcome, context: &ExecutionContext, survey: &Survey) -> bool {
    let is_server = is_server(context);
    let mut forgotten = survey.uses.iter().filter(|one| one.is_forgotten);
    matches!(outcome, Outcome::Returned(value) if has_no_data(value.text()))
        && context.script.language == Language::TypeScript
        && forgotten.any(|one| is_call(one, &is_server) && is_used(&context.script.source, &one.at))
}

/// Whether a variable is a server. The names are read once: a script may have hundreds of calls.
fn is_server(context: &ExecutionContext) -> impl Fn(&str) -> bool {
    let names = LazyCell::new(|| {
        let names = context.server_names();
        names.iter().flat_map(|name| [String::from(&**name), typescript_name(name)]).collect::<HashSet<_>>()
    });
    move |name| names.contains(name)
}

/// Whether it is a call of a tool. A survey also has the calls of all other variables, which `is_server` tells apart.
fn is_call(one: &ToolUse, is_server: &dyn Fn(&str) -> bool) -> bool {
    match &one.target {
        Target::Tool { .. } | Target::Full(_) => true,
        Target::ToolOfGlobal { server, .. } => is_server(server),
        Target::Server(_) | Target::Unknown => false,
    }
}

/// Whether the script does something with the call at these bytes. It may need no answer of one that is a statement.
fn is_used(source: &str, call: &Bytes) -> bool {
    let before = source.get(..call.start).unwrap_or_default().trim_end();
    let after = source.get(call.end..).unwrap_or_default().trim_start();
    before.ends_with(['=', '(', '!', '&', '|']) || after.starts_with(['.', '[', '?'])
}

/// Whether an error of this message, at this line and column, is about a call that is not awaited: V8 names the call,
/// or the error is where the script reads something of it, or of the variable that has it as its value.
pub(super) fn is_forgotten(
    message: &str,
    at: Option<(u32, u32)>,
    source: &str,
    survey: &Survey,
    is_server: &dyn Fn(&str) -> bool,
) -> bool {
    let subject = subject(message);
    let iterated = message.strip_suffix(" is not a function or its return value is not iterable");
    let called = iterated.or_else(|| subject.strip_suffix("(...)"));
    let is_asynchronous = |called: &str| {
        ["tools.", "fs."].iter().any(|object| called.starts_with(object)) || ASYNCHRONOUS.contains(&called)
    };
    if called.is_some_and(is_asynchronous) {
        return true;
    }
    let failed = at.and_then(|at| byte_at(source, at));
    let read = failed.and_then(|failed| read_variable(source, failed));
    survey.uses.iter().any(|one| {
        let call = source.get(one.at.clone()).unwrap_or_default();
        let arguments = called.and_then(|name| call.strip_prefix(name));
        let is_named = arguments.is_some_and(|arguments| !arguments.starts_with(is_part));
        let is_read = || failed.is_some_and(|failed| is_of_call(source, &one.at, failed));
        let is_value =
            || variable(source, one.at.start).is_some_and(|name| name == subject || Some(name) == read);
        (is_named || one.is_forgotten && (is_read() || is_value())) && is_call(one, is_server)
    })
}

/// `r` of `r.map is not a function` and of `r is not iterable`.
fn subject(message: &str) -> &str {
    match message.strip_suffix(" is not a function") {
        Some(function) => function.rsplit_once('.').map_or("", |(object, _)| object),
        None => message.strip_suffix(" is not iterable").unwrap_or_default(),
    }
}

/// The byte at a line and a column, which count from 1. Columns are UTF-16 units, as V8 counts.
fn byte_at(source: &str, (line, column): (u32, u32)) -> Option<usize> {
    let before = usize::try_from(line).ok()?.checked_sub(1)?;
    let start: usize = source.split_inclusive('\n').take(before).map(str::len).sum();
    let mut units = usize::try_from(column).ok()?.checked_sub(1)?;
    for (offset, letter) in source.get(start..)?.char_indices() {
        if units == 0 {
            return Some(start + offset);
        }
        units = units.checked_sub(letter.len_utf16())?;
    }
    None
}

/// Whether an error at byte `failed` is that something of a call is undefined: `tools.files.list()[0].name`, where the
/// error is at `.name`, and `const { owner: { name } } = tools.files.get()`, where it is at `name`.
fn is_of_call(source: &str, call: &Bytes, failed: usize) -> bool {
    if let Some(pattern) = source.get(failed..call.start) {
        let target = pattern.trim_end().strip_suffix('=').unwrap_or_default().trim_end();
        return target.ends_with('}') && !target.contains(';');
    }
    let is_around = |letter: char| letter.is_whitespace() || matches!(letter, ')' | '!');
    let Some(read) = source.get(call.end..failed).map(|text| text.trim_start_matches(is_around)) else {
        return false;
    };
    let member = read.strip_prefix("?.").or_else(|| read.strip_prefix('.'));
    let rest = match member {
        Some(member) => Some(member.trim_start_matches(is_part)),
        None => read.strip_prefix('[').and_then(|index| index.split_once(']')).map(|(_, rest)| rest),
    };
    rest.is_some_and(|rest| rest.chars().all(|letter| is_around(letter) || matches!(letter, '.' | '?' | '[')))
}

/// The variable of which a field is undefined, if the error is at byte `failed`: `r` of `r.rows[0]`, at `[0]`.
fn read_variable(source: &str, failed: usize) -> Option<&str> {
    let read = source.get(..failed)?;
    let object = match read.strip_suffix(']') {
        Some(indexed) => indexed.rsplit_once('[')?.0,
        None => read.trim_end_matches(is_part).strip_suffix('.')?,
    };
    let object = object.trim_end_matches(['.', '?', '!']);
    let (outer, name) = object.split_at(object.trim_end_matches(is_part).len());
    (!name.is_empty() && !outer.ends_with('.')).then_some(name)
}

/// The variable that is given the value of the expression at this byte: `r` of `const r = tools.files.list()`.
fn variable(source: &str, at: usize) -> Option<&str> {
    let before = source.get(source.floor_char_boundary(at.saturating_sub(MAX_DECLARATION))..at)?;
    assigned(before.trim_end().strip_suffix('=')?)
}
