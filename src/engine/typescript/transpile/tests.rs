//! Tests of the transpiler: a source, and the expected code, location or error.

mod bounds;
mod code;
mod conformance;
mod errors;
mod locations;
mod survey;
mod work;

use super::{STACK_BYTES, TranspileError, Transpiled, transpile};

/// Maximum source size in these tests, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Transpiles on a thread with the stack size that callers must provide.
fn run(source: &str) -> Result<Transpiled, TranspileError> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || transpile(source, MAX_BYTES, &|| false).map_err(|failed| failed.error))
            .expect("a thread starts")
            .join()
            .expect("no panic crosses `transpile`")
    })
}

/// The function body of the output, on one line.
fn body(source: &str) -> String {
    let transpiled = run(source).unwrap_or_else(|error| panic!("{source:?} must transpile: {error:?}"));
    let code = transpiled.code.split_whitespace().collect::<Vec<_>>().join(" ");
    let inner = code.strip_prefix("(async () => {\"use strict\";").and_then(|rest| rest.strip_suffix("})"));
    inner.unwrap_or(&code).trim().to_owned()
}
