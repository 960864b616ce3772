//! What a worker that a script has taken over sends to its executor: calls, lines, and an outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

use super::{Stage, code, printed, short, text};
use crate::json::Json;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, Outcome};
use crate::run::script::Language;
use crate::tools::policy::Policy;
use crate::tools::{ToolDefinition, ToolError, ToolRules};

/// A worker that has been taken over sends what calls it likes. The executor decides about each as about a script's.
async fn only_what_the_run_may_call(language: Language) {
    let cache = tempfile::tempdir().unwrap();
    let stage = Stage::of_language(language, 1, 1, vec![cache.path().to_owned()]);
    let (stage, free) = stage.with_tool("mock.free");
    let (mut stage, denied) = stage.with_tool("mock.denied");
    stage.policy = Policy::new(&ToolRules::new().deny(["mock.denied"])).unwrap();
    let mark = if stage.is_python { "#" } else { "//" };
    // Long enough for a worker without a cache of Python's code.
    let long = Duration::from_secs(100);
    let limits = Limits { wall_time: long, cpu_time: long, tool_calls: 3, ..short() };
    for (attack, expected) in [
        // By each form of its name, and a server that is not there.
        ("denied", "TOOL_DENIED TOOL_DENIED TOOL_NOT_FOUND"),
        ("budget", "ok ok ok MAX_TOOL_CALLS_EXCEEDED MAX_TOOL_CALLS_EXCEEDED MAX_TOOL_CALLS_EXCEEDED"),
    ] {
        let result = stage.run_for(None, &format!("{mark} hostile: {attack}\nreturn 1"), limits).await;
        assert_eq!(printed(&result), expected, "{attack}: {result:?}");
    }
    assert_eq!((free.load(Ordering::SeqCst), denied.load(Ordering::SeqCst)), (3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_was_taken_over_calls_what_its_typescript_may() {
    only_what_the_run_may_call(Language::TypeScript).await;
}

#[cfg(feature = "python")]
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_was_taken_over_calls_what_its_python_may() {
    only_what_the_run_may_call(Language::Python).await;
}

/// Calls of a worker that floods its executor are bounded, and its run ends by the rules of every run.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_ends_with_its_run() {
    let stage = Stage::new(1, 1);
    // Whether it computes or waits for its executor to read is up to the two: the time that passes
    // ends both.
    let limits = Limits { wall_time: Duration::from_secs(4), cpu_time: Duration::from_secs(60), ..short() };
    let result = stage.run_for(None, "// hostile: flood\nreturn 1", limits).await;
    assert_eq!(code(&result), Some(ErrorCode::Timeout), "{result:?}");
    assert_eq!(text(&stage.run("return 1 + 1").await), "2");
}

/// Unanswered calls do not add up: some are in flight, many wait, and the rest is refused.
#[tokio::test(flavor = "multi_thread")]
async fn v_555_calls_that_are_not_answered_are_bounded() {
    let mut stage = Stage::new(1, 1);
    let calls = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&calls);
    let function = move |_arguments: Value| -> BoxFuture<'static, Result<Json, ToolError>> {
        counted.fetch_add(1, Ordering::SeqCst);
        futures::future::pending().boxed()
    };
    stage.tools.add("mock.waits", ToolDefinition::new(""), Arc::new(function));
    let limits = Limits { wall_time: Duration::from_secs(100), tool_calls: 0, ..short() };
    let result = stage.run_for(None, "// hostile: unanswered\nreturn 1", limits).await;
    // The next line warns of the calls that are left.
    let printed = printed(&result);
    assert_eq!((text(&result).as_str(), printed.lines().next()), ("1", Some("QUEUE_FULL")));
    assert_eq!(calls.load(Ordering::SeqCst), limits.calls_in_flight as usize);
}

/// Unread answers do not add up: while some are queued for the worker, no more calls are made.
#[tokio::test(flavor = "multi_thread")]
async fn v_555_answers_that_are_not_read_are_bounded() {
    let mut stage = Stage::new(1, 1);
    let calls = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&calls);
    let function = move |_arguments: Value| -> BoxFuture<'static, Result<Json, ToolError>> {
        counted.fetch_add(1, Ordering::SeqCst);
        futures::future::ready(Ok(Value::from("x".repeat(1 << 20)).into())).boxed()
    };
    stage.tools.add("mock.large", ToolDefinition::new(""), Arc::new(function));
    let limits = Limits { wall_time: Duration::from_secs(10), tool_calls: 0, ..short() };
    let result = stage.run_for(None, "// hostile: unread\nreturn 1", limits).await;
    assert_eq!(code(&result), Some(ErrorCode::Timeout), "{result:?}");
    // 16 MiB in its queue, and the answers of the calls in flight.
    let made = calls.load(Ordering::SeqCst);
    assert!((1..200).contains(&made), "{made} calls");
}

/// It can name itself what it likes, and claim what it likes of a run: the executor gives the codes.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_outcome_is_not_trusted() {
    let stage = Stage::new(1, 1);
    let result = stage.run("// hostile: forge\nreturn 1").await;
    assert_eq!(code(&result), Some(ErrorCode::RuntimeError), "{result:?}");
    let Outcome::Failed(error) = &result.outcome else { unreachable!() };
    assert_eq!(error.tool_code, None);
}

/// Memory that a worker takes beside its engine is bounded too.
#[tokio::test(flavor = "multi_thread")]
async fn memory_beside_the_engine_ends_the_run() {
    let stage = Stage::new(1, 1);
    let limits = Limits { memory_bytes: 32 << 20, ..short() };
    let result = stage.run_for(None, "// hostile: memory-bomb\nreturn 1", limits).await;
    assert_eq!(code(&result), Some(ErrorCode::MemoryLimit), "{result:?}");
}
