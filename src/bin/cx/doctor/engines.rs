//! Checks the engines: each runs a script.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use cx::{ExecuteResult, Language, Limits, Script, Versions};

use super::context::DoctorContext;
use super::report::Check;
use crate::diagnostic;
use crate::progress::ProgressLine;

const SECTION: &str = "engines";

/// Time for an engine and its script: Python may have to be compiled on this machine.
const MAX_START: Duration = Duration::from_secs(120);

/// The remedy for an engine that lacks resources of the system.
const RAISE: &str = "raise the limit that is named here; docs/limits.md, \"Small machines and containers\", says \
    what each engine needs";

/// Starts each engine and runs a script in it.
pub(super) async fn check(context: &DoctorContext, progress: &ProgressLine) -> Vec<Check> {
    let versions = Versions::of_this_build();
    let mut checks = Vec::new();
    progress.say("starting TypeScript");
    let first = run_first(context, Script::typescript("return 6 * 7")).await;
    let v8 = format!("V8 {}", versions.v8.unwrap_or_default());
    let check = started(Language::TypeScript.title(), &v8, &first);
    checks.push(check.with("v8", versions.v8));
    progress.say("starting Python");
    let first = run_first(context, Script::python("import sys\nsys.version.split()[0]")).await;
    let wasmtime = versions.wasmtime.unwrap_or_default();
    // The version as Python reports it, not the one that the program claims.
    let python = first.result.as_ref().ok().and_then(|result| result.value()?.as_str().map(str::to_owned));
    let python = python.or_else(|| versions.python.map(str::to_owned)).unwrap_or_default();
    let check = started(Language::Python.title(), &format!("CPython {python}, wasmtime {wasmtime}"), &first);
    checks.push(check.with("cpython", python).with("wasmtime", wasmtime));
    let not_kept = context.not_kept.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(reason) = not_kept {
        let message = format!("it is made ready again in each process: {}", problem_of(&reason));
        let hint = "set `cache.directory` in cx's configuration, or XDG_CACHE_HOME, to a directory that only you can \
            write to, with 100 MB of space";
        checks.push(Check::problem(SECTION, "Python's machine code", message, hint));
    }
    checks
}

/// The part of a reason that describes the problem, without the remedy after it.
fn problem_of(reason: &str) -> &str {
    reason.split(": set `cache.directory`").next().unwrap_or(reason)
}

/// The first run of a language.
struct FirstRun {
    result: Result<ExecuteResult, cx::Error>,
    /// Time from the request to the end, including the start of the engine.
    time: Duration,
}

/// Runs the first script of a language.
async fn run_first(context: &DoctorContext, script: Script) -> FirstRun {
    let limits = Limits { wall_time: MAX_START, cpu_time: MAX_START, ..context.executor.limits() };
    let began = Instant::now();
    let result = context.executor.run(script.limits(limits)).await;
    FirstRun { result, time: began.elapsed() }
}

fn started(name: &str, versions: &str, first: &FirstRun) -> Check {
    let failed = |message: String, hint: &str| Check::problem(SECTION, name, message, hint);
    match first.result.as_ref().map(|result| result.error()) {
        Ok(None) => {
            let milliseconds = first.time.as_millis();
            Check::ok(SECTION, name, format!("{versions}; the first script ended after {milliseconds} ms"))
                .with("firstScriptMs", first.time.as_micros() as f64 / 1_000.0)
        }
        Ok(Some(error)) => failed(
            format!(
                "{versions}; a script that only computes failed: {}: {}",
                error.code.as_str(),
                error.message
            ),
            error.hint.as_deref().unwrap_or("see the limits in `cx config show`"),
        ),
        Err(error) => failed(diagnostic::message_of(error), RAISE),
    }
}
