//! The integration tests: one binary, a module for each subject.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic and start processes")]

/// What is kept from one process to the next, and what is left when processes are killed.
mod cache;
/// A server that breaks one rule beside one that breaks none: the stage of the modules below.
mod chaos;
/// Calls that go wrong.
mod chaos_calls;
/// What stands before a server: circuit breaker, queue, rate, idle stop.
mod chaos_gate;
/// Servers behind an address that go wrong.
mod chaos_http;
/// Lists of tools that go wrong.
mod chaos_lists;
/// Servers that do not start.
mod chaos_start;
/// The command, as a process.
mod cli;
/// Clients that we did not write.
mod clients;
/// Configuration files as the command finds, trusts and shows them.
mod config;
/// A person's word on calls, and runs that make none.
mod consent;
/// Attacks of THREATS groups JC, JM, JE and BV, by number.
mod embedding;
mod escape;
/// The demo.
mod examples;
/// Built-in functions that V8 does not interrupt, by number.
mod guards;
/// The guide that agents read.
mod guide;
/// Values that are printed: how they look, and attacks on the code that prints them.
mod inspect;
/// Servers that we did not write.
mod interop;
/// The same behind an address, with and without a token.
mod interop_http;
/// The same in Python: one SDK of before, one of now.
mod interop_python;
/// Attacks by number: JSON that takes far more memory when it is parsed.
mod json_memory;
/// The library as an embedder uses it.
mod layers;
mod library;
/// Limits in pairs: obeyed and violated.
mod limits;
/// Memory that no engine's meter sees, by number.
mod memory_threats;
/// A server of these tests: every shape of a result, and every way not to give one.
mod mock;
/// Attacks of THREATS group PX: out of the interpreter, and through the host functions.
mod python_escape;
/// Executors that run Python, and a process that may die.
mod python_executor;
/// The first Python run of a machine.
mod python_first_run;
/// Attacks of THREATS groups PC and PM, and limits in pairs: obeyed and violated.
mod python_limits;
/// The Python component and its papers.
mod python_modules;
/// Many runs of Python: nothing is left of them.
mod python_runs;
/// Attacks of THREATS group BV on Python: boundary values.
mod python_values;
/// What servers have besides tools.
mod resources;
/// Attacks of THREATS group SA, by number: servers that ask for what nobody gives.
mod sampling_threats;
/// Behaviour of scripts: a file each, and a snapshot of the whole outcome.
mod scripts;
/// Judged queries over the tools of real servers: see `tests/search`.
mod search;
/// The server that agents use, as a process.
mod serve;
mod serve_consent;
/// The same over HTTP: its clients, what they see, and how it ends.
mod serve_http;
/// The same over HTTP, with clients that break rules.
mod serve_http_threats;
/// Attacks of THREATS group LD, by number: many runs at once.
mod serve_load;
/// What scripts keep between runs, and what they read of earlier ones, through the server and the command.
mod serve_state;
/// Attacks of THREATS group MP, by number.
mod serve_threats;
/// How clients are told about the server.
mod setup;
/// One sign-in, used by several processes at once.
mod sign_in;
/// Attacks of THREATS group LD, by number: load, for long.
mod soak;
/// Attackers and honest clients share one server.
mod soak_attackers;
/// What scripts keep between runs, as an embedder sees it.
mod state;
/// The rules of the tree: which room names what.
mod tidy;
/// Servers over stdio: well, slow, dying, garbled.
mod upstream;
/// A walker over every function that a script can reach, with hostile receivers and arguments.
mod walk;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use cx::{ErrorCode, ExecuteResult, Executor, Language, Script};
use serde_json::Value;
use tokio::sync::OnceCell;

/// An executor with the mock server.
pub fn executor() -> (Executor, mock::Mock) {
    let mock = mock::Mock::default();
    let executor = Executor::builder().dispatcher(mock.clone()).build().expect("an executor");
    (executor, mock)
}

/// As [`executor`], where Python starts at once: the compiled interpreter, which all executors of a process share, is
/// kept for the next process, so that only the first test ever compiles.
pub async fn python() -> (Executor, mock::Mock) {
    static COMPILED: OnceCell<()> = OnceCell::const_new();
    COMPILED
        .get_or_init(|| async {
            let compiling = Executor::builder().cache_directory(python_cache()).build().expect("an executor");
            compiling.warm(Language::Python).await.expect("Python starts");
        })
        .await;
    executor()
}

/// Where tests keep compiled interpreters.
pub fn python_cache() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    // Nobody else may write where code comes from.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .expect("a directory for the cache");
    directory
}

/// Runs one script on an executor of its own.
pub async fn run(script: impl Into<Script>) -> ExecuteResult {
    executor().0.run(script).await.expect("the executor works")
}

/// Runs one script and returns its value.
pub async fn value(source: &str) -> Value {
    let result = run(source).await;
    result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
}

/// Runs one script and returns the code and the message of its failure.
pub async fn failure(source: &str) -> (ErrorCode, String) {
    let result = run(source).await;
    let error = result.error().unwrap_or_else(|| panic!("{source}: {}", result.to_json()));
    (error.code, error.message.clone())
}

/// Waits for something that another thread brings about.
pub async fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it never happened");
}
