//! The library as an embedder uses it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cx::{
    CancellationToken, Error, ErrorCode, Executor, Limits, MemorySource, OptionName, Output, RuleList,
    Script, ToolCallStatus, ToolErrorCode,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{executor, mock::Mock, wait_until};

#[derive(Deserialize)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Serialize)]
struct Answer {
    sum: i64,
}

fn with_native_tools() -> Executor {
    let schema = json!({ "type": "object", "description": "Adds", "properties": { "a": {}, "b": {} } });
    Executor::builder()
        .tool("math.add", schema, |Sum { a, b }: Sum| async move {
            a.checked_add(b).map(|sum| Answer { sum }).ok_or("the sum is too large")
        })
        .tool("now", Value::Null, |_: Value| async move {
            // Needs a tokio runtime, which the thread that calls the executor does not have.
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok::<_, String>(tokio::spawn(async { "spawned" }).await.unwrap_or("lost"))
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn native_tools() {
    let executor = with_native_tools();
    let check = async |source: &str, expected: Value| {
        let result = executor.run_ts(source).await.unwrap();
        assert_eq!(result.value(), Some(&expected), "{}", result.to_json());
    };
    check("return await tools.math.add({a: 1, b: 2})", json!({ "sum": 3 })).await;
    check("return await tools.native.now()", json!("spawned")).await;
    check("return (await getToolSchema('mcp__math__add')).description", json!("Adds")).await;
    check(
        "try { await math.add({a: 1}) } catch (e) { return [e.code, e.message] }",
        json!(["INVALID_ARGUMENTS", "missing field `b`"]),
    )
    .await;
    check(
        "return call_tool('math', 'add', {a: 9223372036854775807, b: 1})",
        // 2^63 - 1 is not a double; what arrives is the nearest one, which is no i64.
        json!({ "ok": false, "error": {
            "code": "INVALID_ARGUMENTS",
            "message": "invalid value: integer `9223372036854776000`, expected i64",
            "server": "math", "tool": "add",
        } }),
    )
    .await;
}

#[tokio::test]
async fn the_record_of_a_run() {
    let (executor, _) = executor();
    let script = "
        await mock.echo({ a: 1 });
        try { await mock.fail() } catch {}
        mock.hang();
        console.log('printed');
        emit('emitted');
        return 1;
    ";
    let result = executor.run_ts(script).await.unwrap();
    let calls: Vec<_> = result.tool_calls.iter().map(|call| (call.tool.as_str(), call.status)).collect();
    assert_eq!(
        calls,
        [
            ("echo", ToolCallStatus::Ok),
            ("fail", ToolCallStatus::Failed(ToolErrorCode::ToolError)),
            ("hang", ToolCallStatus::InFlight),
        ]
    );
    assert_eq!(result.tool_calls[0].argument_bytes, r#"{"a":1}"#.len());
    assert_eq!(result.tool_calls[0].result_bytes, r#"{"a":1}"#.len());
    assert_eq!(result.usage.tool_calls, 3);
    assert_eq!(result.usage.tool_result_bytes, 7);
    assert!(result.usage.memory_bytes > 100_000, "{:?}", result.usage);
    assert!(result.usage.cpu_time > Duration::ZERO && result.usage.wall_time > Duration::ZERO);
    let [Output::Log { text, .. }, Output::Emit(_), Output::Log { text: warning, .. }] = &result.logs[..]
    else {
        panic!("{:?}", result.logs);
    };
    assert_eq!(text, "printed");
    assert!(warning.starts_with("the script ended before all of its calls were answered"), "{warning}");
}

#[tokio::test]
async fn output_is_passed_on_while_the_script_runs() {
    let (executor, mock) = executor();
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let script = Script::typescript("console.log('before'); await mock.count(); console.log('after')");
    let script = script.on_output({
        let seen = Arc::clone(&seen);
        move |entry| seen.lock().push((entry.clone(), mock.calls.load(Ordering::SeqCst)))
    });
    executor.run(script).await.unwrap();
    let counts: Vec<usize> = seen.lock().iter().map(|(_, calls)| *calls).collect();
    assert_eq!(counts, [0, 1]);
}

#[tokio::test]
async fn a_token_cancels_and_keeps_what_was_done() {
    let (executor, mock) = executor();
    let token = CancellationToken::new();
    let check = |result: cx::ExecuteResult| {
        assert_eq!(result.error().unwrap().code, ErrorCode::Cancelled);
        assert_eq!(result.printed(), "x");
    };
    // Cancelled when the call has arrived: a script that is cancelled earlier makes no call.
    let stop = token.child_token();
    let script = Script::typescript("console.log('x'); await mock.hang()").cancel_with(stop.clone());
    let arrived = async {
        wait_until(|| mock.running.load(Ordering::SeqCst) == 1).await;
        stop.cancel();
    };
    check(futures::future::join(executor.run(script), arrived).await.0.unwrap());
    wait_until(|| mock.cancelled.load(Ordering::SeqCst) == 1).await;
    let stop = token.child_token();
    let script = Script::typescript("console.log('x'); for (;;);").cancel_with(stop.clone());
    check(executor.run(script.on_output(move |_| stop.cancel())).await.unwrap());
    let result = executor.run(Script::typescript("return 1").cancel_with(token.child_token())).await;
    assert_eq!(result.unwrap().value(), Some(&json!(1)));
}

/// A run that was cancelled before its start does nothing.
#[tokio::test]
async fn a_run_that_is_cancelled_already_is_not_started() {
    let (executor, mock) = executor();
    let token = CancellationToken::new();
    token.cancel();
    for _ in 0..20 {
        let script = Script::typescript("console.log('ran'); mock.count()").cancel_with(token.clone());
        let result = executor.run(script).await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Cancelled);
        assert_eq!(result.printed(), "");
    }
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn dropping_the_future_cancels_the_calls() {
    let (executor, mock) = executor();
    {
        let run = executor.run_ts("await mock.hang()");
        tokio::pin!(run);
        tokio::select! {
            _ = &mut run => panic!("it hangs"),
            () = wait_until(|| mock.running.load(Ordering::SeqCst) == 1) => {}
        }
    }
    wait_until(|| mock.cancelled.load(Ordering::SeqCst) == 1).await;
    assert_eq!(executor.run_ts("return 1").await.unwrap().value(), Some(&json!(1)));
}

/// Threat 244: no runtime, inside a runtime, inside `current_thread`, twice.
#[test]
fn any_runtime_and_none() {
    let executor = with_native_tools();
    let source = "return await tools.native.now()";
    let expected = Some(json!("spawned"));
    for _ in 0..2 {
        let result = futures::executor::block_on(executor.run_ts(source)).unwrap();
        assert_eq!(result.value().cloned(), expected);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let result = runtime.block_on(executor.run_ts(source)).unwrap();
        assert_eq!(result.value().cloned(), expected);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let result = runtime.block_on(async {
            // The last clone may be dropped inside a runtime too.
            let executor = with_native_tools();
            executor.run_ts(source).await.unwrap()
        });
        assert_eq!(result.value().cloned(), expected);
    }
}

/// Threat 245.
#[tokio::test]
async fn dropping_the_executor_ends_its_runs() {
    let (executor, mock) = executor();
    let runs: Vec<_> = (0..10)
        .map(|_| {
            let executor = executor.clone();
            tokio::spawn(async move { executor.run_ts("await mock.hang()").await })
        })
        .collect();
    wait_until(|| mock.running.load(Ordering::SeqCst) == 10).await;
    executor.close().await;
    for run in runs {
        assert_eq!(run.await.unwrap().unwrap().error().unwrap().code, ErrorCode::Cancelled);
    }
    // Its runs have ended, so closing waits for nothing.
    drop(executor);
}

#[tokio::test]
async fn many_runs_at_once_share_nothing() {
    let (executor, _) = executor();
    let runs = (0..50).map(|number| {
        let script = Script::typescript(
            "globalThis.x = (globalThis.x ?? 0) + input; Object.prototype.y = input;
             await mock.sleep({ms: 5}); return [x, ({}).y]",
        );
        executor.run(script.input(json!(number)))
    });
    for (number, result) in futures::future::join_all(runs).await.into_iter().enumerate() {
        assert_eq!(result.unwrap().value(), Some(&json!([number, number])));
    }
}

/// Threats 238 and 239.
#[tokio::test]
async fn admission_is_bounded() {
    let mock = Mock::default();
    let executor = Executor::builder()
        .dispatcher(mock.clone())
        .max_concurrent_runs(1)
        .max_queued_runs(1)
        .queue_timeout(Duration::from_millis(100))
        .build()
        .unwrap();
    let hang = tokio::spawn({
        let executor = executor.clone();
        async move { executor.run_ts("await mock.hang()").await }
    });
    wait_until(|| mock.running.load(Ordering::SeqCst) == 1).await;
    let queued = executor.run_ts("return 1");
    let refused = executor.run_ts("return 2");
    let (queued, refused) = futures::future::join(queued, refused).await;
    for result in [queued, refused] {
        let result = result.unwrap();
        let error = result.error().unwrap();
        assert_eq!(error.code, ErrorCode::QueueFull, "{error}");
        assert!(error.retry_after.is_some());
    }
    hang.abort();
    let _ = hang.await;
    wait_until(|| executor.run_stats().running == 0).await;
    assert_eq!(executor.run_ts("return 3").await.unwrap().value(), Some(&json!(3)));
}

#[tokio::test]
async fn memory_of_all_runs_together_is_bounded() {
    let mock = Mock::default();
    let limits = Limits::default();
    let executor = Executor::builder()
        .dispatcher(mock.clone())
        .total_memory_bytes(limits.memory_bytes * 2)
        .queue_timeout(Duration::from_millis(50))
        .build()
        .unwrap();
    let runs = (0..3).map(|_| executor.run_ts("await mock.sleep({ms: 2000})"));
    let results = futures::future::join_all(runs).await;
    let failed = results.iter().filter_map(|result| result.as_ref().unwrap().error());
    let codes: Vec<ErrorCode> = failed.map(|error| error.code).collect();
    assert_eq!(codes, [ErrorCode::QueueFull]);
    let stats = executor.run_stats();
    assert_eq!(
        (stats.max_memory_bytes, stats.memory_source),
        (limits.memory_bytes * 2, MemorySource::Option)
    );
    // A run that needs more than all runs together may use can never start, so it does not wait.
    let script = Script::typescript("1").limits(Limits { memory_bytes: limits.memory_bytes * 3, ..limits });
    let error = executor.run(script).await.unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { option: OptionName::MemoryBytes, .. }), "{error}");
    assert!(
        error.to_string().contains("at most the memory of all runs, 268435456 (from: option)"),
        "{error}"
    );
}

#[test]
fn options_are_checked() {
    let check = |result: Result<Executor, Error>, expected: &str| {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    check(Executor::builder().allow(["fs*"]).build(), "`allow`");
    check(Executor::builder().max_concurrent_runs(0).build(), "`max_concurrent_runs`");
    check(Executor::builder().total_memory_bytes(1).build(), "`total_memory_bytes`");
    check(
        Executor::builder().limits(Limits { cpu_time: Duration::ZERO, ..Limits::default() }).build(),
        "`cpu_time`",
    );
    let executor = Executor::builder().build().unwrap();
    let script = Script::typescript("1").limits(Limits { memory_bytes: 1, ..Limits::default() });
    let error = futures::executor::block_on(executor.run(script)).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { option: OptionName::MemoryBytes, .. }));
    let error = futures::executor::block_on(executor.run(Script::typescript("1").deny(["x"]))).unwrap_err();
    assert!(matches!(error, Error::InvalidPattern { list: RuleList::Deny, .. }));
}

/// Embedders and dispatchers choose any names for servers. A URL parser would change these names.
#[tokio::test]
async fn servers_of_any_name_are_imported() {
    let names = ["öl", "名前", "my server ", "a?b#c", "50%25", "x/y", "a\tb"];
    let mut builder = Executor::builder();
    for name in names {
        let told = move |_: Value| async move { Ok::<_, String>(name) };
        builder = builder.tool(&format!("{name}.say_name"), json!({ "type": "object" }), told);
    }
    let executor = builder.build().unwrap();
    for name in names {
        let module = json!(format!("mcp:{name}"));
        for source in [
            format!("import {{ sayName }} from {module};\nreturn await sayName()"),
            format!("import server from {module};\nreturn await server.say_name()"),
            format!("import * as server from {module};\nreturn await server.sayName()"),
            format!("const {{ default: server }} = await import({module});\nreturn await server.say_name()"),
        ] {
            let result = executor.run_ts(&source).await.unwrap();
            assert_eq!(result.value(), Some(&json!(name)), "{source}: {}", result.to_json());
        }
    }
    // A name is taken as it is written, even if another name is nearly the same.
    for module in ["mcp:%C3%B6l", "mcp:my server", "mcp:my+server+", "mcp:a", "mcp:50%", "mcp:x", "mcp:ab"] {
        let source = format!("await import({}); return 'imported'", json!(module));
        let result = executor.run_ts(&source).await.unwrap();
        let code = result.error().map(|error| error.code);
        assert_eq!(code, Some(ErrorCode::CheckFailed), "{module}: {}", result.to_json());
    }
}

/// Threats 140, 144, 170 and 145: one function in Rust decides about every call, however it is made.
#[tokio::test]
async fn denied_tools_are_denied_by_every_name_and_not_listed() {
    let mock = Mock::default();
    let executor =
        Executor::builder().dispatcher(mock.clone()).allow(["mock.*"]).deny(["mock.count"]).build().unwrap();
    let source = r#"
        const codes = [];
        const attempts = [
            () => mock.count(), () => tools.mock.count(), () => callMCPTool("mcp__mock__count"),
            () => callMCPTool("mock.count"), () => callMCPTool("mcp__other-server__read_file"),
            () => import("mcp:mock").then((module) => module.count()),
            () => mock.echo(), () => mock.image(),
        ];
        for (const attempt of attempts) {
            try { await attempt(); codes.push("called"); } catch (error) { codes.push(error.code ?? error.message); }
        }
        codes.push(call_tool("mock", "count", {}).error.code);
        codes.push((await discoverMCPTools()).map((tool) => tool.server + "." + tool.name).some((name) => name.includes("count")));
        codes.push(await getToolSchema("mcp__mock__count"), Object.keys(mock).includes("count"), Object.keys(tools));
        return codes;
    "#;
    let script = Script::typescript(source).allow(["mock.*", "other-server.*"]).deny(["mock.image"]);
    let result = executor.run(script).await.unwrap();
    assert_eq!(
        result.value(),
        Some(&json!([
            "TOOL_DENIED",
            "TOOL_DENIED",
            "TOOL_DENIED",
            "TOOL_DENIED",
            "TOOL_DENIED",
            "module.count is not a function",
            "called",
            "TOOL_DENIED",
            "TOOL_DENIED",
            false,
            null,
            false,
            ["mock"],
        ])),
        "{}",
        result.to_json()
    );
    assert_eq!(mock.calls.load(Ordering::SeqCst), 1);
}

/// A server that renames its tool between two lists.
struct Renamed {
    tool: &'static str,
    schema: serde_json::Value,
    called: Arc<std::sync::atomic::AtomicUsize>,
}

impl cx::ToolDispatcher for Renamed {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["fs".into()]
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: std::time::Instant,
    ) -> futures::future::BoxFuture<'a, Result<Arc<cx::ToolList>, cx::ToolError>> {
        let mut tool = cx::ToolDefinition::new(self.tool);
        tool.input_schema = self.schema.clone().into();
        Box::pin(async move { Ok(Arc::new(cx::ToolList::new(vec![tool]))) })
    }

    fn identity(&self, _server: &str) -> Option<String> {
        Some("the-same-all-the-time".to_owned())
    }

    fn call(
        &self,
        _request: cx::ToolRequest,
    ) -> futures::future::BoxFuture<'_, Result<cx::ToolResult, cx::ToolError>> {
        self.called.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Box::pin(async { Ok(cx::ToolResult::default()) })
    }
}

/// A name that stands for a permitted tool in the list on disk and for a denied one in the server's current list.
#[tokio::test]
async fn tl_140_the_policy_holds_for_what_a_name_turns_out_to_mean() {
    let directory = tempfile::tempdir().unwrap();
    let called = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let executor = |tool, schema| {
        Executor::builder()
            .cache_directory(directory.path())
            .deny(["fs.delete_file"])
            .dispatcher(Renamed { tool, schema, called: Arc::clone(&called) })
            .build()
            .unwrap()
    };
    let source = "return tools.fs.deleteFile({ path: 1 }).then(() => 'called', (error) => error.code)";
    let strict = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let first = executor("deleteFile", strict);
    assert_eq!(first.run_ts(source).await.unwrap().value(), Some(&json!("INVALID_ARGUMENTS")));
    first.close().await;
    let second = executor("delete_file", json!({ "type": "object" }));
    assert_eq!(second.run_ts(source).await.unwrap().value(), Some(&json!("TOOL_DENIED")));
    assert_eq!(called.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// The events have each call when it has ended, and none for calls that never began.
#[tokio::test]
async fn a_listener_hears_of_every_call_that_ends() {
    let (executor, mock) = executor();
    let heard = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    let source = "
        await tools.mock.echo({}); await tools.mock.fail({}).catch(() => 0);
        await tools.mock.nosuch({}).catch(() => 0); await tools.mock.hang({});";
    let stop = CancellationToken::new();
    let script = Script::typescript(source)
        .cancel_with(stop.clone())
        .on_call(move |call| keep.lock().push((call.tool.clone(), call.status)));
    let last_call = async {
        wait_until(|| mock.calls.load(Ordering::SeqCst) == 3).await;
        stop.cancel();
    };
    let (result, ()) = futures::future::join(executor.run(script), last_call).await;
    assert_eq!(result.unwrap().error().unwrap().code, ErrorCode::Cancelled, "the last call hangs");
    let failed = ToolCallStatus::Failed(ToolErrorCode::ToolError);
    assert_eq!(*heard.lock(), [("echo".to_owned(), ToolCallStatus::Ok), ("fail".to_owned(), failed)]);
}

#[tokio::test]
async fn runs_are_counted_while_they_are_there() {
    let (executor, mock) = executor();
    let run = tokio::spawn({
        let executor = executor.clone();
        async move { executor.run_ts("await tools.mock.hang({})").await }
    });
    wait_until(|| mock.running.load(Ordering::Relaxed) > 0 || executor.run_stats().running == 1).await;
    let stats = executor.run_stats();
    assert_eq!((stats.running, stats.queued, stats.max_running, stats.max_queued), (1, 0, 100, 200));
    run.abort();
    wait_until(|| executor.run_stats().running == 0).await;
}

#[tokio::test]
async fn what_a_run_left_out_is_kept_on_request() {
    assert!(executor().0.history().is_none());
    let executor = Executor::builder().keep_runs(cx::HistoryLimits::default()).build().unwrap();
    let result = executor.run_ts("console.log('a'); emit('b'); return [1]").await.unwrap();
    let history = executor.history().unwrap();
    assert!(history.list("me").is_empty(), "the caller of the run decides");
    let id = history.keep("me", &result).unwrap();
    let run = history.get("me", &id).unwrap();
    assert_eq!((run.output.as_str(), run.value.as_deref(), run.calls.as_str()), ("a\nb", Some("[1]"), "[]"));
}
