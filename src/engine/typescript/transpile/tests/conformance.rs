//! Self-checking tests of the language, run in a bare V8: as they are, and transpiled.
//!
//! What passes as it is, inside a strict async function as scripts are, must pass transpiled too. A
//! test is a file in the format of test262; one that ends in `.ts` is only run transpiled. The tests
//! in `tests/conformance/short` are those of every run. `make conformance` names a directory with
//! all of test262, and leaves a report in it; `make fixtures` does the same with the TypeScript
//! fixtures of other compilers.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs};

use deno_core::{JsRuntime, RuntimeOptions, v8};

use super::super::transpile;
use crate::engine::typescript::platform;

/// Maximum size of a test, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Maximum time of a test.
const TEST_TIME: Duration = Duration::from_secs(120);

/// Minimum share of the tests that must pass of those that V8 passes, where no list says which fail.
const MIN_SHARE: f64 = 0.995;

/// The list of a directory of the tests that fail: `NAME: REASON` a line. All others must pass.
const EXCEPTIONS: &str = "exceptions.txt";

/// What stands in for a host: `print`, by which an asynchronous test says that it has ended, and
/// `Symbol.metadata` as scripts have it.
const HOST: &str = "globalThis.printed = []; globalThis.print = (text) => { printed.push(String(text)); };\
    Object.defineProperty(Symbol, 'metadata', { value: Symbol('Symbol.metadata') });";

/// A test is left out if one of these is in its list of features: shared and resizable buffers,
/// `Temporal`, which has a suite of its own, and what modules import, of which scripts have servers and files only.
const LEFT_OUT: &[&str] = &[
    "Atomics",
    "SharedArrayBuffer",
    "Temporal",
    "dynamic-import",
    "import-attributes",
    "import-defer",
    "import.meta",
    "resizable-arraybuffer",
    "source-phase-imports",
];

#[derive(Debug)]
struct Test {
    path: PathBuf,
    source: String,
    includes: Vec<String>,
    is_async: bool,
    /// Whether it is only compiled: a flag of cx's own, `parse`.
    is_parsed: bool,
    /// The name of the error with which the test ends.
    negative: Option<String>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Tests that V8 passes.
    known: usize,
    /// Of these, those that pass transpiled.
    passed: usize,
    /// The others, with what happened.
    failures: Vec<(PathBuf, String)>,
}

#[test]
fn language_is_not_changed() {
    let short = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/short");
    #[expect(clippy::disallowed_methods, reason = "the length of a test is no setting of users")]
    let long = env::var_os("CX_CONFORMANCE_DIR").map(PathBuf::from);
    let directory = long.as_deref().unwrap_or(&short).to_owned();
    let mut tests = Vec::new();
    collect(&directory.join("test"), &mut tests);
    assert!(!tests.is_empty(), "no tests in {}", directory.display());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = tests.len().div_ceil(threads);
    let (answer, answers) = mpsc::channel();
    let mut parts = 0;
    while !tests.is_empty() {
        parts += 1;
        let part = tests.split_off(tests.len() - share.min(tests.len()));
        let (answer, directory) = (answer.clone(), directory.clone());
        let task = move || {
            let _ = answer.send(run_all(&directory, &part));
        };
        platform::spawn("conformance".to_owned(), Box::new(task)).unwrap();
    }
    drop(answer);
    let mut all = Counts::default();
    for counts in answers {
        parts -= 1;
        all.known += counts.known;
        all.passed += counts.passed;
        all.failures.extend(counts.failures);
    }
    assert_eq!(parts, 0, "threads that have ended without an answer");
    all.failures.sort();
    let list = fs::read_to_string(directory.join(EXCEPTIONS)).ok();
    let (excepted, passing) = exceptions(list.as_deref().unwrap_or_default(), &directory, &mut all);
    let mut report =
        format!("{} of {} tests that V8 passes, without {excepted} exceptions\n", all.passed, all.known);
    for (path, failure) in &all.failures {
        let _ = writeln!(report, "{}: {failure}", path.strip_prefix(&directory).unwrap_or(path).display());
    }
    if long.is_some() {
        fs::write(directory.join("report.txt"), &report).unwrap();
    }
    let enough = if long.is_some() && list.is_none() { MIN_SHARE } else { 1.0 };
    assert!(all.passed as f64 >= all.known as f64 * enough, "{report}");
    assert!(passing.is_empty(), "{EXCEPTIONS} names tests that pass, or are not there: {passing:?}");
}

/// Takes the failures that `list` names out of the counts. Returns how many there were, and the names without one.
fn exceptions(list: &str, directory: &Path, counts: &mut Counts) -> (usize, BTreeSet<String>) {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let names: BTreeSet<&str> =
        lines.filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
    let mut passing: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let before = counts.failures.len();
    counts.failures.retain(|(path, _)| {
        let name = path.strip_prefix(directory.join("test")).unwrap_or(path).to_string_lossy();
        passing.remove(name.as_ref());
        !names.contains(name.as_ref())
    });
    let excepted = before - counts.failures.len();
    counts.known -= excepted;
    (excepted, passing)
}

fn collect(directory: &Path, tests: &mut Vec<Test>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, tests);
        } else if path.extension().is_some_and(|ending| ending == "js" || ending == "ts")
            && !path.to_string_lossy().contains("_FIXTURE")
        {
            tests.extend(read(path));
        }
    }
}

/// Reads a test. Returns `None` for one that cannot run in strict code or is left out.
fn read(path: PathBuf) -> Option<Test> {
    let source = fs::read_to_string(&path).ok()?;
    let head = source
        .split_once("/*---")
        .and_then(|(_, rest)| rest.split_once("---*/"))
        .map_or("", |(head, _)| head);
    let flags = list(head, "flags:");
    if flags.iter().any(|flag| matches!(flag.as_str(), "raw" | "noStrict"))
        || (flags.iter().any(|flag| flag == "module") && is_linked(&source))
        || list(head, "features:").iter().any(|feature| LEFT_OUT.contains(&feature.as_str()))
    {
        return None;
    }
    let negative = head.split_once("negative:").and_then(|(_, rest)| rest.split_once("type:"));
    let negative = negative.and_then(|(_, rest)| rest.split_whitespace().next()).map(str::to_owned);
    let has = |wanted: &str| flags.iter().any(|flag| flag == wanted);
    let (is_async, is_parsed) = (has("async"), has("parse"));
    Some(Test { includes: list(head, "includes:"), is_async, is_parsed, negative, path, source })
}

/// Whether a module has a line that begins with `import` or `export`. A script is the body of a function, so what links
/// modules has no meaning for it. The other code of modules has: it is strict, and may `await` at its top.
fn is_linked(source: &str) -> bool {
    source.lines().any(|line| ["import", "export"].iter().any(|word| line.trim_start().starts_with(word)))
}

/// A list in the head of a test: `key: [a, b]`, or a line for each.
fn list(head: &str, key: &str) -> Vec<String> {
    let Some((_, rest)) = head.split_once(key) else {
        return Vec::new();
    };
    let rest = rest.trim_start_matches(' ');
    let items: Vec<&str> = match rest.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default().split(',').collect(),
        None => rest.lines().skip(1).map_while(|line| line.trim().strip_prefix("- ")).collect(),
    };
    items.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

fn run_all(directory: &Path, tests: &[Test]) -> Counts {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = tokio.enter();
    let mut runtime = JsRuntime::new(RuntimeOptions::default());
    // deno_core's own callback wants a realm of deno_core's.
    runtime.v8_isolate().set_promise_reject_callback(ignore);
    let mut harness = HashMap::new();
    let mut counts = Counts::default();
    for test in tests {
        let mut names = vec!["assert.js".to_owned(), "sta.js".to_owned()];
        names.extend(test.is_async.then(|| "doneprintHandle.js".to_owned()));
        names.extend(test.includes.iter().cloned());
        let mut setup = vec![HOST.to_owned()];
        for name in names {
            let read = || fs::read_to_string(directory.join("harness").join(&name)).unwrap_or_default();
            setup.push(harness.entry(name.clone()).or_insert_with(read).clone());
        }
        if test.path.extension().is_some_and(|ending| ending == "js") {
            let as_it_is = format!("(async () => {{\"use strict\";\n{}\n}})", test.source);
            if outcome(&mut runtime, test, &setup, Ok(as_it_is)).is_err() {
                continue;
            }
        }
        counts.known += 1;
        let code = transpile(&test.source, MAX_BYTES, &|| false);
        let code =
            code.map(|transpiled| transpiled.code).map_err(|failed| format!("SyntaxError: {}", failed.error));
        match outcome(&mut runtime, test, &setup, code) {
            Ok(()) => counts.passed += 1,
            Err(failure) => counts.failures.push((test.path.clone(), failure)),
        }
    }
    counts
}

extern "C" fn ignore(_: v8::PromiseRejectMessage<'_>) {}

/// Runs a test whose code is an async function, or an error that its author would see.
fn outcome(
    runtime: &mut JsRuntime,
    test: &Test,
    setup: &[String],
    code: Result<String, String>,
) -> Result<(), String> {
    let ended = code.and_then(|code| {
        let handle = runtime.v8_isolate().thread_safe_handle();
        let (finished, running) = mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if running.recv_timeout(TEST_TIME) == Err(mpsc::RecvTimeoutError::Timeout) {
                handle.terminate_execution();
            }
        });
        let code = if test.is_parsed { format!("{code}, Promise.resolve()") } else { format!("{code}()") };
        let ended = evaluate(runtime, setup, &code, test.is_async);
        drop(finished);
        watch.join().unwrap();
        runtime.v8_isolate().cancel_terminate_execution();
        ended
    });
    match (&test.negative, ended) {
        (None, ended) => ended,
        (Some(wanted), Err(error)) if error.starts_with(wanted.as_str()) => Ok(()),
        (Some(wanted), Err(error)) => Err(format!("{wanted} expected: {error}")),
        (Some(wanted), Ok(())) => Err(format!("{wanted} expected")),
    }
}

/// Evaluates code in a realm of its own. The error is the text of what was thrown.
fn evaluate(runtime: &mut JsRuntime, setup: &[String], code: &str, is_async: bool) -> Result<(), String> {
    deno_core::scope!(scope, runtime);
    let context = v8::Context::new(scope, v8::ContextOptions::default());
    let scope = &mut v8::ContextScope::new(scope, context);
    v8::tc_scope!(let scope, scope);
    let mut last = None;
    for source in setup.iter().map(String::as_str).chain([code]) {
        let source = v8::String::new(scope, source).ok_or("no memory")?;
        last = v8::Script::compile(scope, source, None).and_then(|script| script.run(scope));
        if last.is_none() {
            let text = scope.exception().map(|error| error.to_rust_string_lossy(scope));
            return Err(text.unwrap_or_else(|| "terminated".to_owned()));
        }
    }
    scope.perform_microtask_checkpoint();
    let promise = last.and_then(|last| v8::Local::<v8::Promise>::try_from(last).ok()).ok_or("no promise")?;
    match promise.state() {
        v8::PromiseState::Rejected => return Err(promise.result(scope).to_rust_string_lossy(scope)),
        v8::PromiseState::Pending => return Err("it does not end".to_owned()),
        v8::PromiseState::Fulfilled => {}
    }
    if !is_async {
        return Ok(());
    }
    let printed = v8::String::new(scope, "printed.join('; ')").ok_or("no memory")?;
    let printed = v8::Script::compile(scope, printed, None).and_then(|script| script.run(scope));
    let printed = printed.map(|printed| printed.to_rust_string_lossy(scope)).unwrap_or_default();
    if printed == "Test262:AsyncTestComplete" { Ok(()) } else { Err(format!("it printed: {printed}")) }
}

#[test]
fn modules_are_read_unless_they_are_linked() {
    let directory = tempfile::tempdir().unwrap();
    for (text, is_read) in [
        ("/*---\nflags: [module]\n---*/\nawait 1;", true),
        ("/*---\nflags: [module]\nfeatures: [dynamic-import]\n---*/\nawait 1;", false),
        (
            "/*---\nflags: [module, async]\n---*/\nif (1) {\n  var important = 1;\n}\n  export { important };",
            false,
        ),
        ("/*---\nflags: [module]\n---*/\nimport * as self from './self.js';", false),
        ("/*---\nflags: [noStrict]\n---*/\nwith (1) {}", false),
    ] {
        let path = directory.path().join("test.js");
        fs::write(&path, text).unwrap();
        assert_eq!(read(path).is_some(), is_read, "{text}");
    }
}

#[test]
fn exceptions_fail_and_are_named() {
    let failure = |name: &str| (Path::new("/suite/test").join(name), "Error".to_owned());
    let failures = vec![failure("a/one.ts"), failure("a/two.ts")];
    let mut counts = Counts { known: 5, passed: 3, failures };
    let list = "# What follows is known.\na/one.ts: a reason\na/three.ts: passes by now\n";
    let (excepted, passing) = exceptions(list, Path::new("/suite"), &mut counts);
    assert_eq!((excepted, counts.known, counts.passed), (1, 4, 3));
    assert_eq!(counts.failures, [failure("a/two.ts")]);
    assert_eq!(passing, BTreeSet::from(["a/three.ts".to_owned()]));
}
