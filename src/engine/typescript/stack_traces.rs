//! Gives stack traces the author's locations, wherever a script meets them: `error.stack`, the
//! console, and the report of an uncaught error.
//!
//! V8 formats a trace when a script first reads it, with the locations of the generated code.

use std::rc::Rc;

use deno_core::v8;

use super::call_sites;
use super::transpile::{Location, Positions};

/// Maximum bytes of a trace that is changed. Frames are a few kilobytes; the rest is a message that
/// the script has made.
const MAX_BYTES: usize = 4 << 20;

/// The script whose locations are mapped, in a slot of its isolate.
pub(crate) struct StackTraces {
    script: String,
    positions: Rc<Positions>,
}

impl StackTraces {
    /// From now on traces of `isolate` have locations of the script named `script`.
    pub(crate) fn install(isolate: &mut v8::Isolate, script: &str, positions: Rc<Positions>) {
        isolate.set_slot(Self { script: script.to_owned(), positions });
        isolate.set_prepare_stack_trace_callback(prepare);
    }

    /// The trace with the author's locations and without internal frames.
    fn map(&self, trace: &str) -> String {
        let mut mapped = String::with_capacity(trace.len());
        for line in trace.split_inclusive('\n') {
            if !line.trim_start().starts_with("at ") {
                mapped.push_str(line);
            } else if let Some(frame) = self.map_frame(line) {
                mapped.push_str(&frame);
            }
        }
        mapped.truncate(mapped.trim_end_matches('\n').len());
        mapped
    }

    /// A frame with the author's location, or `None` for an internal one.
    fn map_frame(&self, line: &str) -> Option<String> {
        if line.contains("ext:") {
            return None;
        }
        let Some((head, line_number, column, rest)) = split_frame(line, &self.script) else {
            return Some(line.to_owned());
        };
        let location = self.positions.original(line_number, column)?;
        Some(format!("{head}{}:{}:{}{rest}", self.script, location.line, location.column))
    }
}

/// The location in the first frame of a mapped trace that has one.
pub(crate) fn first_location(trace: &str, script: &str) -> Option<Location> {
    let mut frames = trace.lines().filter(|line| line.trim_start().starts_with("at "));
    frames.find_map(|line| split_frame(line, script)).map(|(_, line, column, _)| Location { line, column })
}

/// Splits `    at f (script.ts:1:2)` into what is before the script's name, line, column, and the
/// rest.
fn split_frame<'a>(line: &'a str, script: &str) -> Option<(&'a str, u32, u32, &'a str)> {
    let at = line.rfind(&format!("{script}:"))?;
    let position = &line[at + script.len() + 1..];
    let is_end = |character: char| !character.is_ascii_digit() && character != ':';
    let (numbers, rest) = position.split_at(position.find(is_end).unwrap_or(position.len()));
    let (line_number, column) = numbers.split_once(':')?;
    Some((&line[..at], line_number.parse().ok()?, column.parse().ok()?, rest))
}

/// V8's callback, which it calls in place of a script's own `Error.prepareStackTrace`. What that returns is not changed
/// unless it is text.
fn prepare<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    error: v8::Local<'s, v8::Value>,
    sites: v8::Local<'s, v8::Array>,
) -> v8::Local<'s, v8::Value> {
    let trace = match function_of_script(scope) {
        Some((constructor, function)) => {
            let sites = call_sites::copies(scope, sites);
            function.call(scope, constructor.into(), &[error, sites.into()])
        }
        None => {
            let trace = call_sites::trace(scope, error, sites);
            v8::String::new(scope, &trace).map(Into::into)
        }
    };
    let trace = trace.unwrap_or_else(|| v8::undefined(scope).into());
    map_text(scope, trace).unwrap_or(trace)
}

/// `Error.prepareStackTrace`, if a script has set it, and its receiver. To read it may run the script's code.
fn function_of_script<'s>(
    scope: &mut v8::PinScope<'s, '_>,
) -> Option<(v8::Local<'s, v8::Object>, v8::Local<'s, v8::Function>)> {
    v8::tc_scope!(let scope, scope);
    let global = scope.get_current_context().global(scope);
    let key = v8::String::new(scope, "Error")?;
    let constructor = global.get(scope, key.into())?.try_cast::<v8::Object>().ok()?;
    let key = v8::String::new(scope, "prepareStackTrace")?;
    let function = constructor.get(scope, key.into())?.try_cast::<v8::Function>().ok()?;
    Some((constructor, function))
}

/// `None` if there is nothing to change.
fn map_text<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    trace: v8::Local<'s, v8::Value>,
) -> Option<v8::Local<'s, v8::Value>> {
    let text = trace.try_cast::<v8::String>().ok()?;
    // The first question does not make one text of its parts.
    if text.length() > MAX_BYTES || text.utf8_length(scope) > MAX_BYTES {
        return None;
    }
    let text = text.to_rust_string_lossy(scope);
    let mapped = scope.get_slot::<StackTraces>()?.map(&text);
    Some(v8::String::new(scope, &mapped)?.into())
}
