//! One call of a tool without a script: `Executor::call`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::{
    Approval, BoxFuture, CallHook, CancellationToken, Error, ErrorCode, Executor, ExecutorBuilder,
    HookedCall, Json, Limits, RuleList, ToolCall, ToolError, ToolErrorCode, ToolResult,
};
use serde_json::{Value, json};

use crate::support::mock::Mock;
use crate::support::silent::Silent;
use crate::support::wait_until;

fn builder(mock: &Mock) -> ExecutorBuilder {
    Executor::builder().dispatcher(mock.clone())
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new("mock", tool).arguments(arguments)
}

async fn result(executor: &Executor, call: ToolCall) -> Result<ToolResult, ToolError> {
    executor.call(call).await.unwrap().result
}

fn code(result: Result<ToolResult, ToolError>) -> ToolErrorCode {
    result.unwrap_err().code
}

#[tokio::test]
async fn the_result_is_the_tools_own() {
    let executor = builder(&Mock::default()).build().unwrap();
    let image = result(&executor, call("image", json!({}))).await.unwrap();
    let expected = ToolResult::content(vec![
        json!({ "type": "text", "text": "a picture" }),
        json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw==" }),
    ]);
    assert_eq!(image, expected);
    // Not unwrapped: the result has both parts.
    let wrapped = result(&executor, call("wrapped", json!({ "value": [1] }))).await.unwrap();
    assert_eq!(wrapped.structured.unwrap().text(), r#"{"result":[1]}"#);
    let both = result(&executor, call("structured", json!({ "value": { "a": 1 } }))).await.unwrap();
    assert!(both.content.is_some() && both.structured.is_some());
    // A failure that the tool reports is a result.
    let answer = executor.call(call("fail", json!({ "message": "no" }))).await.unwrap();
    assert!(answer.result.unwrap().is_error);
    assert_eq!(answer.run.tool_calls.len(), 1);
    assert_eq!(answer.run.tool_calls[0].status.as_str(), "TOOL_ERROR");
    let failed = executor.call(call("unavailable", json!({}))).await.unwrap();
    assert_eq!(failed.run.error().unwrap().tool_code, Some(ToolErrorCode::UpstreamUnavailable));
    assert_eq!(code(result(&executor, call("missing", json!({}))).await), ToolErrorCode::ToolNotFound);
}

#[tokio::test]
async fn direct_calls_obey_the_rules_of_scripts() {
    let mock = Mock::default();
    let executor = builder(&mock).deny(["mock.count"]).ask(["mock.echo"]).build().unwrap();
    assert_eq!(code(result(&executor, call("count", json!({}))).await), ToolErrorCode::ToolDenied);
    assert_eq!(code(result(&executor, call("echo", json!({}))).await), ToolErrorCode::ToolDenied);
    let own = call("text", json!({})).options(|run| run.deny(["mock.t*"]));
    assert_eq!(code(result(&executor, own).await), ToolErrorCode::ToolDenied);
    let text = call("text", json!([1]));
    assert_eq!(code(result(&executor, text).await), ToolErrorCode::InvalidArguments);
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
    // With an approval the call is made, and the prompt says that it does not come from a script.
    let asked = Arc::new(parking_lot::Mutex::new(String::new()));
    let heard = Arc::clone(&asked);
    let approved = call("echo", json!({ "a": 1 })).options(move |run| {
        run.approver(move |request| {
            *heard.lock() = request.script.clone();
            async { Approval::Approve }
        })
    });
    assert!(result(&executor, approved).await.is_ok());
    assert_eq!(&*asked.lock(), "tools/call");
    // A dry run makes no call.
    let dry = executor.call(call("text", json!({ "text": "x" })).options(cx::Script::dry_run)).await.unwrap();
    assert!(dry.result.is_ok());
    assert_eq!(dry.run.planned_calls.unwrap().len(), 1);
    assert_eq!(mock.calls.load(Ordering::SeqCst), 1);
    let wrong = executor.call(call("text", json!({})).options(|run| run.allow(["nothing"]))).await;
    assert!(matches!(wrong, Err(Error::InvalidPattern { list: RuleList::Allow, .. })), "{wrong:?}");
}

#[tokio::test]
async fn limits_and_ends() {
    let mock = Mock::default();
    let executor = builder(&mock).build().unwrap();
    let small = Limits { result_bytes: 1_000, ..Limits::default() };
    let short = Limits { wall_time: Duration::from_secs(2), ..Limits::default() };
    let big = call("big", json!({ "bytes": 2_000 })).options(|run| run.limits(small));
    assert_eq!(code(result(&executor, big).await), ToolErrorCode::ResultTooLarge);
    let late = executor.call(call("hang", json!({})).options(|run| run.limits(short))).await.unwrap();
    assert_eq!(late.result.unwrap_err().code, ToolErrorCode::ToolTimeout);
    wait_until(|| mock.cancelled.load(Ordering::SeqCst) == 1).await;
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let hanging = call("hang", json!({})).options(move |run| run.cancel_with(token));
    let (answer, ()) = tokio::join!(executor.call(hanging), async {
        wait_until(|| mock.calls.load(Ordering::SeqCst) == 3).await;
        cancel.cancel();
    });
    let answer = answer.unwrap();
    assert_eq!(answer.result.unwrap_err().code, ToolErrorCode::Cancelled);
    assert_eq!(answer.run.error().unwrap().code, ErrorCode::Cancelled);
    wait_until(|| mock.cancelled.load(Ordering::SeqCst) == 2).await;
    // The call counts among the runs.
    let one = builder(&mock).max_concurrent_runs(1).max_queued_runs(0).build().unwrap();
    let first = tokio::spawn({
        let one = one.clone();
        async move { one.call(call("hang", json!({}))).await }
    });
    wait_until(|| one.run_stats().running == 1).await;
    assert_eq!(code(result(&one, call("echo", json!({}))).await), ToolErrorCode::QueueFull);
    first.abort();
    let _aborted = first.await;
    assert!(result(&one, call("echo", json!({}))).await.is_ok());
    one.close().await;
    assert!(matches!(one.call(call("echo", json!({}))).await, Err(Error::Closed)));
}

/// A hook that counts the calls, and replaces the word `secret`.
struct Redact(Arc<AtomicUsize>);

impl CallHook for Redact {
    fn before<'a>(&'a self, call: &'a mut HookedCall) -> BoxFuture<'a, Result<(), ToolError>> {
        assert_eq!(call.script, "tools/call");
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(()) })
    }

    fn after<'a>(
        &'a self,
        _call: &'a HookedCall,
        result: &'a mut Result<Json, ToolError>,
    ) -> BoxFuture<'a, ()> {
        if let Ok(value) = result {
            *value = Json::parse(&value.text().replace("secret", "…")).unwrap();
        }
        Box::pin(async {})
    }
}

#[tokio::test]
async fn hooks_see_and_change_it() {
    let seen = Arc::<AtomicUsize>::default();
    let executor = builder(&Mock::default()).hook(Redact(Arc::clone(&seen))).build().unwrap();
    // A result that was not changed is still the tool's own.
    let image = result(&executor, call("image", json!({}))).await.unwrap();
    assert!(image.content.unwrap().text().contains("image/png"));
    let structured = call("structured", json!({ "value": { "key": "secret" } }));
    let changed = result(&executor, structured).await.unwrap();
    assert_eq!(changed.structured.unwrap().text(), r#"{"key":"…"}"#);
    assert!(!changed.content.unwrap().text().contains("not this"));
    let wrapped = result(&executor, call("wrapped", json!({ "value": "secret" }))).await.unwrap();
    assert_eq!(wrapped.structured.unwrap().text(), r#"{"result":"…"}"#);
    let text = result(&executor, call("text", json!({ "text": "a secret" }))).await.unwrap();
    assert_eq!(text, ToolResult::content(vec![json!({ "type": "text", "text": "a …" })]));
    assert_eq!(seen.load(Ordering::SeqCst), 4);
}

/// The name of a call would stay in memory while the call waits for a server's list, and in records and traces.
#[tokio::test]
async fn v_589_a_name_that_no_tool_can_have_is_not_kept() {
    let executor = builder(&Mock::default()).build().unwrap();
    let long = "x".repeat(5_000);
    for call in [ToolCall::new("mock", &long), ToolCall::new(&long, "echo")] {
        let error = result(&executor, call).await.unwrap_err();
        assert_eq!((error.code, error.server, error.tool), (ToolErrorCode::ToolNotFound, None, None));
        assert!(error.message.len() < 200, "{}", error.message);
    }
    // The same with one long text.
    let full = "try { await callMCPTool('mcp__mock__' + 'x'.repeat(5000), {}); } catch (error) { return error.message; }";
    let found = executor.run(cx::Script::typescript(full)).await.unwrap();
    let message = found.value_json().unwrap().text().to_owned();
    assert!(message.contains("no tool has a name of 5011 bytes"), "{message}");
}

/// A trace has thousands of calls, and the script chooses the names of those that are refused.
#[tokio::test]
async fn v_591_a_trace_keeps_little_of_a_name() {
    let (sender, traces) = std::sync::mpsc::channel();
    let listener = move |trace: cx::RunTrace| {
        let _closed = sender.send(trace);
    };
    let executor = builder(&Mock::default()).on_trace(listener).build().unwrap();
    let source = "await tools.mock['x'.repeat(3000)]({}).catch(() => {}); return 1";
    executor.run(cx::Script::typescript(source)).await.unwrap();
    let trace = traces.recv_timeout(Duration::from_secs(60)).unwrap();
    let lengths: Vec<usize> = trace.calls.iter().map(|call| call.tool.len()).collect();
    assert_eq!(lengths, [256 + '…'.len_utf8()]);
}

/// A script prints and returns megabytes, and a program may keep many traces.
#[tokio::test]
async fn a_trace_keeps_little_of_what_a_script_says() {
    let (sender, traces) = std::sync::mpsc::channel();
    let listener = move |trace: cx::RunTrace| {
        let _closed = sender.send(trace);
    };
    let executor = builder(&Mock::default()).on_trace(listener).build().unwrap();
    let limits = Limits { output_bytes: 8 << 20, ..Limits::default() };
    let traced = async |source: &str| {
        executor.run(cx::Script::typescript(source).limits(limits)).await.unwrap();
        traces.recv_timeout(Duration::from_secs(60)).unwrap()
    };
    let many = traced("for (let i = 0; i < 10_003; i++) console.log(i)").await;
    assert_eq!((many.output.len(), many.output_dropped), (10_000, 3));
    let long = traced("for (let i = 0; i < 5; i++) console.log('x'.repeat(300_000))").await;
    assert_eq!((long.output.len(), long.output_dropped), (3, 2));
    let cut = traced("emit('x'.repeat(5_000)); return 'x'.repeat(100_000)").await;
    let most = |bytes: usize| bytes + '…'.len_utf8();
    assert_eq!((cut.output[0].text.len(), cut.value.unwrap().len()), (most(2_000), most(64 << 10)));
}

/// A call that waits for a server's list has its text in memory that does not count as the script's.
#[tokio::test]
async fn v_595_queries_of_a_script_are_bounded_together() {
    let executor = Executor::builder().dispatcher(Silent).build().unwrap();
    let source = "const codes = new Set(), long = 'x'.repeat(60_000);
        const search = () => searchTools(long).catch((error) => codes.add(error.code));
        await Promise.race(Array.from({ length: 1_000 }, search));
        return [...codes]";
    let limits = Limits { wall_time: Duration::from_secs(120), ..Limits::default() };
    let found = executor.run(cx::Script::typescript(source).limits(limits)).await.unwrap();
    assert_eq!(found.value_json().map(Json::text), Some("[\"QUEUE_FULL\"]"), "{:?}", found.outcome);
}
