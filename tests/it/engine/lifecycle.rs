//! The life of an executor and of its runs: what is dropped, closed and used again, from where, and by which threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::server::{Server, ServerOptions};
use cx::{
    CallResult, CancellationToken, Error, ErrorCode, ExecuteResult, Executor, ExecutorBuilder, History, Json,
    Language, Limits, McpServer, Recording, Run, RunEvent, RunEvents, Script, StateStore, ToolCall,
    ToolError, ToolRequest, ToolRules,
};
use serde_json::{Value, json};

use crate::support::serve_http::wait_for;
use crate::support::{executor, python_cache, wait_until};

fn code(result: &Result<ExecuteResult, Error>) -> Option<ErrorCode> {
    result.as_ref().unwrap().error().map(|error| error.code)
}

#[tokio::test]
async fn an_executor_is_closed_once_and_says_so() {
    let (executor, mock) = executor();
    let run = executor.start("await tools.mock.hang({})");
    wait_until(|| mock.running.load(Ordering::SeqCst) == 1).await;
    let clone = executor.clone();
    for _ in 0..2 {
        clone.close().await;
    }
    assert_eq!(code(&run.await), Some(ErrorCode::Cancelled));
    for result in [executor.run_ts("mock.count()").await, executor.start("mock.count()").await] {
        assert_eq!(code(&result), Some(ErrorCode::Cancelled));
    }
    assert!(matches!(executor.call(ToolCall::new("mock", "count")).await, Err(Error::Closed)));
    let added = executor.add_tool("late.tool", Value::Null, |_: Value| async { Ok::<_, String>(1) });
    assert!(matches!(added, Err(Error::Closed)));
    assert_eq!(mock.calls.load(Ordering::SeqCst), 1, "only the first run has called");
    // What it knows can be read.
    assert_eq!(executor.server_names(), ["mock", "other-server"]);
    assert_eq!(executor.run_stats().running, 0);
}

/// A run counts as a clone. The executor then ends on one of its own threads, and the run has its result.
#[test]
fn a_started_run_keeps_its_executor() {
    let (executor, _mock) = executor();
    let run = executor.start("await tools.mock.sleep({ ms: 50 }); return 1");
    drop(executor);
    let result = futures::executor::block_on(run).unwrap();
    assert_eq!(result.value(), Some(&json!(1)));
}

/// Starts a run that waits for a tool, and drops the executor and the run, which ends the call.
fn drops() {
    let (executor, mock) = executor();
    let run = executor.start("await tools.mock.hang({})");
    wait_for(|| (mock.running.load(Ordering::SeqCst) == 1).then_some(()));
    drop(executor);
    assert_eq!(mock.cancelled.load(Ordering::SeqCst), 0, "the run keeps its executor");
    drop(run);
    wait_for(|| (mock.cancelled.load(Ordering::SeqCst) == 1).then_some(()));
}

#[test]
fn runs_and_executors_are_dropped_anywhere() {
    drops();
    let one_thread = tokio::runtime::Builder::new_current_thread().build().unwrap();
    one_thread.block_on(async { drops() });
    let several = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    several.block_on(async { tokio::spawn(async { drops() }).await.unwrap() });
    several.block_on(async { drops() });
}

/// It starts engines and connections on the executor's runtime.
#[test]
fn a_server_is_warmed_from_a_thread_without_a_runtime() {
    let executor = Executor::builder().languages([]).cache_directory(python_cache()).build().unwrap();
    assert_eq!(executor.pool_stats(Language::TypeScript).ready, 0);
    Server::new(executor.clone(), ServerOptions::default()).warm();
    wait_for(|| (executor.pool_stats(Language::TypeScript).ready > 0).then_some(()));
}

/// On a thread that other tasks need, which it should not be called on: the run does not wait for those.
#[tokio::test]
async fn a_blocking_run_needs_nothing_of_the_runtime_that_it_blocks() {
    let (executor, _mock) = executor();
    let result = executor.run_blocking("await tools.mock.sleep({ ms: 5 }); return 1").unwrap();
    assert_eq!(result.value(), Some(&json!(1)));
}

/// Adds tools that run scripts of the same executor: awaited, blocking, and started.
fn add_own_tools(executor: &Executor) {
    let add = |name: &str, run: fn(Executor) -> cx::BoxFuture<'static, Result<ExecuteResult, Error>>| {
        let own = executor.clone();
        let tool = move |_: Value| {
            let result = run(own.clone());
            async move {
                let result = result.await.map_err(|error| error.to_string())?;
                let code = result.error().map(|error| error.code.as_str());
                Ok::<_, String>(code.map(Value::from).or(result.value().cloned()))
            }
        };
        executor.add_tool(name, Value::Null, tool).unwrap();
    };
    add("own.awaited", |own| Box::pin(async move { own.run_ts("return 1").await }));
    add("own.blocking", |own| Box::pin(async move { own.run_blocking("return 2") }));
    add("own.started", |own| Box::pin(async move { own.start("return 3").await }));
}

#[tokio::test]
async fn a_tool_can_run_scripts() {
    let executor = Executor::builder().build().unwrap();
    add_own_tools(&executor);
    let source = "
        const names = ['awaited', 'blocking', 'started'];
        const awaited = await Promise.all(names.map((name) => tools.own[name]({})));
        return [awaited, names.map((name) => call_tool('own', name, {}).result)]";
    let result = executor.run_ts(source).await.unwrap();
    assert_eq!(result.value(), Some(&json!([[1, 2, 3], [1, 2, 3]])), "{}", result.to_json());
    // Without this they would keep their executor for ever.
    assert!(executor.remove_server("own").await);
}

/// The run of its caller has the only slot.
#[tokio::test]
async fn a_run_in_a_tool_waits_no_longer_than_others_for_a_slot() {
    let builder = Executor::builder().max_concurrent_runs(1).queue_timeout(Duration::from_millis(50));
    let executor = builder.build().unwrap();
    add_own_tools(&executor);
    let source =
        "return [await tools.own.awaited({}), await tools.own.blocking({}), await tools.own.started({})]";
    let result = executor.run_ts(source).await.unwrap();
    assert_eq!(result.value(), Some(&json!(vec!["QUEUE_FULL"; 3])), "{}", result.to_json());
    assert!(executor.remove_server("own").await);
}

/// A tool that keeps a clone of its executor keeps it alive: one of a run does so until the run has ended.
#[tokio::test]
async fn a_tool_of_one_run_lets_its_executor_end() {
    struct Held(Arc<AtomicUsize>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let executor = Executor::builder().build().unwrap();
    let held = Arc::new(Held(Arc::clone(&dropped)));
    let tool = {
        let (own, held) = (executor.clone(), Arc::clone(&held));
        move |_: Value| {
            let (_own, _held) = (own.clone(), Arc::clone(&held));
            async { Ok::<_, String>(1) }
        }
    };
    drop(held);
    let script = Script::typescript("return await tools.own.run({})").tool("own.run", Value::Null, tool);
    assert_eq!(executor.run(script).await.unwrap().value(), Some(&json!(1)));
    wait_until(|| dropped.load(Ordering::SeqCst) == 1).await;
}

#[test]
fn what_programs_keep_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync + 'static>() {}
    fn is_an_error<T: std::error::Error + Send + Sync + 'static>() {}
    is_shared::<Executor>();
    is_shared::<ExecutorBuilder>();
    is_shared::<Script>();
    is_shared::<ToolCall>();
    is_shared::<Run>();
    is_shared::<RunEvents>();
    is_shared::<RunEvent>();
    is_shared::<ExecuteResult>();
    is_shared::<CallResult>();
    is_shared::<Json>();
    is_shared::<History>();
    is_shared::<Recording>();
    is_shared::<StateStore>();
    is_shared::<McpServer>();
    is_shared::<ToolRules>();
    is_shared::<ToolRequest>();
    is_shared::<Limits>();
    is_shared::<Server>();
    is_an_error::<Error>();
    is_an_error::<ToolError>();
    is_an_error::<cx::ModelError>();
    is_an_error::<cx::RecordingError>();
    is_an_error::<cx::ConfigError>();
}

/// So they can be spawned.
#[test]
fn futures_can_be_sent_between_threads() {
    fn is_sent<T: Send>(_: &T) {}
    let (executor, _mock) = executor();
    let token = CancellationToken::new();
    is_sent(&executor.run(Script::typescript("1").cancel_with(token)));
    is_sent(&executor.check("1"));
    is_sent(&executor.call(ToolCall::new("mock", "count")));
    is_sent(&executor.record("1"));
    is_sent(&executor.refresh_tools());
    is_sent(&executor.remove_server("mock"));
    is_sent(&executor.close());
}
