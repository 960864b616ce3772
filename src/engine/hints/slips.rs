//! Hints for mistakes in TypeScript that are not about the form of a tool's result: asynchronous generators, `this`,
//! dates that are texts.

use super::source::{MAX_NAME, is_part, method, reads_call};
use crate::run::ledger::CallFacts;

pub(super) const FOR_AWAIT: &str =
    "an asynchronous generator is read with `for await (const x of …)` or `await Array.fromAsync(…)`";

pub(super) const FOR_OF: &str =
    "the result of a call is awaited once, and is not a stream: `for (const x of await …)`";

pub(super) const THIS: &str =
    "`this` is undefined in a method that is passed on as a function: write `(x) => object.method(x)`";

pub(super) const SETTLED: &str = "an entry of `Promise.allSettled` that was rejected has `reason` and no `value`: look \
    at its `status` first";

pub(super) const FOUND: &str = "a found tool is a description: call it as its `usage` says, or with \
    `await callMCPTool(found[0].name, {…})`";

pub(super) const BIG_INT: &str =
    "convert a BigInt with `Number(value)` or `String(value)`; a sum of BigInts begins with `0n`";

pub(super) const NUMBER: &str = "the value is not a number: `Number(value)` converts a text";

pub(super) const DATE: &str =
    "the value is not a `Date`: dates in JSON are texts, which `new Date(value)` parses";

/// Methods of numbers and of dates that no other value has.
const NUMBER_METHODS: &[&str] = &["toExponential", "toFixed", "toPrecision"];
const DATE_METHODS: &[&str] = &[
    "getDate",
    "getDay",
    "getFullYear",
    "getHours",
    "getMinutes",
    "getMonth",
    "getTime",
    "getUTCDate",
    "getUTCDay",
    "getUTCFullYear",
    "getUTCMonth",
    "toDateString",
    "toISOString",
    "toLocaleDateString",
    "toLocaleTimeString",
];

/// What scripts take for the function of a found tool.
const CALLS: &[&str] = &["call", "callTool", "execute", "invoke", "run"];

/// Functions that find tools.
const SEARCHES: &[&str] = &["searchTools(", "search_tools(", "discoverMCPTools("];

/// How an asynchronous generator begins, before its name.
const GENERATORS: &[&str] = &["async function*", "async function *", "async *", "async*"];

/// Maximum number of asynchronous generators of a script that are looked at.
const MAX_GENERATORS: usize = 10;

/// The hint for a `TypeError` with this message, which the line of the source has raised.
pub(super) fn hint(message: &str, line: &str, source: &str, facts: &CallFacts) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| source.contains(word));
    let is_of_call = message.starts_with("tools.") || facts.has_returned && !has(GENERATORS);
    if message.ends_with(" is not async iterable") && is_of_call {
        return Some(FOR_OF);
    }
    if message.contains(" is not iterable") && reads_generator(message, line, source) {
        return Some(FOR_AWAIT);
    }
    if missing_property(message).is_some_and(|name| takes_only_of_this(line, name)) {
        return Some(THIS);
    }
    let is_undefined = message.starts_with("Cannot read properties of undefined");
    if is_undefined && has(&["allSettled("]) && facts.has_failed && line.contains(".value") {
        return Some(SETTLED);
    }
    if message.starts_with("Cannot mix BigInt") || message.ends_with("serialize a BigInt") {
        return Some(BIG_INT);
    }
    let method = method(message)?;
    if (CALLS.contains(&method) || is_element(method)) && has(SEARCHES) {
        return Some(FOUND);
    }
    // Of a promise too, which is a call that was not awaited.
    if facts.has_unfinished || reads_call(line, source) {
        return None;
    }
    if NUMBER_METHODS.contains(&method) {
        return Some(NUMBER);
    }
    DATE_METHODS.contains(&method).then_some(DATE)
}

/// Whether what is not iterable is what an asynchronous generator of the script returns. Such a script may iterate over
/// other values too, such as a field that is not there.
fn reads_generator(message: &str, line: &str, source: &str) -> bool {
    let subject = message.split(" is not ").next().unwrap_or_default().trim_end_matches("(...)");
    if subject.len() > MAX_NAME {
        return false;
    }
    let called = subject.rsplit(['.', ' ']).next().unwrap_or_default();
    // V8 names neither.
    let is_unnamed = matches!(subject, "object" | "(intermediate value)");
    generators(source).take(MAX_GENERATORS).any(|name| {
        let call = format!("{name}(");
        called == name
            || is_unnamed && line.contains(&call)
            || source.contains(&format!("{subject} = {call}"))
    })
}

/// The names of the asynchronous generators that a source declares.
fn generators(source: &str) -> impl Iterator<Item = &str> {
    let begins = GENERATORS.iter().copied().flat_map(move |begin| source.match_indices(begin));
    begins.filter_map(move |(start, begin)| {
        let declared = source[start + begin.len()..].trim_start();
        let rest = declared.trim_start_matches(is_part);
        let name = &declared[..declared.len() - rest.len()];
        (!name.is_empty() && name.len() <= MAX_NAME && rest.trim_start().starts_with('(')).then_some(name)
    })
}

/// Whether a line takes a property of this name of `this`, and of nothing else: `item.id === this.id` may have failed
/// for `item`.
fn takes_only_of_this(line: &str, name: &str) -> bool {
    let of_this = line.matches(&format!("this.{name}")).count();
    of_this > 0 && of_this == line.matches(&format!(".{name}")).count()
}

/// Whether what is called is an element of a list: `found[0]`.
fn is_element(called: &str) -> bool {
    let index = called.strip_suffix(']').and_then(|rest| rest.rsplit('[').next());
    index.is_some_and(|index| !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The property of `Cannot read properties of undefined (reading 'name')`, or of the same for `setting`.
fn missing_property(message: &str) -> Option<&str> {
    let rest = message
        .strip_prefix("Cannot read properties of undefined (reading '")
        .or_else(|| message.strip_prefix("Cannot set properties of undefined (setting '"))?;
    rest.strip_suffix("')")
}
