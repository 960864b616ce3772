//! Hints for slips of TypeScript that have nothing to do with what a tool has returned, or much with what kind of value
//! it was: asynchronous generators, `this`, dates that are texts.

use super::source::{keeps_call, method};
use crate::run::ledger::CallFacts;

pub(super) const FOR_AWAIT: &str =
    "an asynchronous generator is read with `for await (const x of …)` or `await Array.fromAsync(…)`";

pub(super) const FOR_OF: &str =
    "the result of a call is awaited once, and is no stream: `for (const x of await …)`";

pub(super) const THIS: &str =
    "`this` is undefined in a method that is passed on as a function: write `(x) => object.method(x)`";

pub(super) const SETTLED: &str = "an entry of `Promise.allSettled` that was rejected has `reason` and no `value`: look \
    at its `status` first";

pub(super) const FOUND: &str = "a found tool is a description: call it as its `usage` says, or with \
    `await callMCPTool(found[0].name, {…})`";

pub(super) const BIG_INT: &str = "`Number(value)` and `String(value)` make a number and a text of a BigInt; a sum of \
    BigInts begins with `0n`";

pub(super) const NUMBER: &str = "the value is no number: `Number(value)` makes one of a text";

pub(super) const DATE: &str = "the value is no `Date`: JSON has dates as texts, `new Date(value)` reads one";

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

/// How an asynchronous generator begins.
const GENERATORS: &[&str] = &["async function*", "async function *", "async *", "async*"];

/// The hint for a `TypeError` with this message, which the line of the source has raised.
pub(super) fn hint(message: &str, line: &str, source: &str, facts: &CallFacts) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| source.contains(word));
    if message.ends_with(" is not async iterable") {
        return Some(FOR_OF);
    }
    if message.contains(" is not iterable") && has(GENERATORS) {
        return Some(FOR_AWAIT);
    }
    if missing_property(message).is_some_and(|name| line.contains(&format!("this.{name}"))) {
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
    if (CALLS.contains(&method) || method.ends_with(']')) && has(SEARCHES) {
        return Some(FOUND);
    }
    // Of a promise too, which is a call that was not awaited.
    if facts.has_unfinished || keeps_call(source) {
        return None;
    }
    if NUMBER_METHODS.contains(&method) {
        return Some(NUMBER);
    }
    DATE_METHODS.contains(&method).then_some(DATE)
}

/// The property of `Cannot read properties of undefined (reading 'name')`, or of the same for `setting`.
fn missing_property(message: &str) -> Option<&str> {
    let rest = message
        .strip_prefix("Cannot read properties of undefined (reading '")
        .or_else(|| message.strip_prefix("Cannot set properties of undefined (setting '"))?;
    rest.strip_suffix("')")
}
