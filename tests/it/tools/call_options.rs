//! What a script gives a call beside its arguments: a signal that ends it, and the time for its answer. Threats 599 to
//! 601, 683. `tests/scripts/call_*` has what scripts see of it, also in worker processes and in replays.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::{
    Approval, ApprovalRequest, ErrorCode, Executor, Language, Limits, Script, ToolCallStatus, ToolErrorCode,
};
use serde_json::json;

use crate::support::mock::Mock;
use crate::support::silent::Silent;
use crate::support::{executor, python, wait_until};

/// Runs a script that ends its first call of `hang` and waits for the second one, until the server has heard of the end
/// of the first one. Nothing else can end that call: its run goes on.
async fn ends_its_first_call(executor: &Executor, mock: &Mock, script: Script) {
    let run = executor.start(script);
    wait_until(|| mock.cancelled.load(Ordering::SeqCst) == 1).await;
    // The second call is in flight.
    wait_until(|| mock.running.load(Ordering::SeqCst) == 1).await;
    drop(run);
    wait_until(|| mock.cancelled.load(Ordering::SeqCst) == 2).await;
}

#[tokio::test]
async fn v_600_a_signal_ends_one_call_at_its_server() {
    for call in [
        "tools.mock.hang({}, options)",
        "tools.mcp__mock__hang({}, options)",
        "callMCPTool('mcp__mock__hang', {}, options)",
    ] {
        let (executor, mock) = executor();
        let source = format!(
            "const controller = new AbortController();
             const options = {{ signal: controller.signal }};
             const first = {call};
             const second = tools.mock.hang({{}});
             await tools.mock.sleep({{ ms: 1, beside: 2 }});
             controller.abort();
             await first.catch(() => {{}});
             await second"
        );
        ends_its_first_call(&executor, &mock, Script::typescript(source)).await;
    }
}

#[tokio::test]
async fn v_600_a_call_ends_at_its_server_when_its_time_is_over() {
    let (executor, mock) = executor();
    let source = "const second = tools.mock.hang({});
                  await tools.mock.hang({}, { timeoutMs: 500 }).catch(() => {});
                  await second";
    ends_its_first_call(&executor, &mock, Script::typescript(source)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v_600_a_cancelled_task_ends_its_call_at_the_server() {
    for call in ["mock.hang()", "call_mcp_tool('mcp__mock__hang')", "tools.mcp__mock__hang()"] {
        let (executor, mock) = python().await;
        let source = format!(
            "import asyncio
await mock.echo()
second = asyncio.create_task(mock.hang())
try:
    await asyncio.wait_for({call}, timeout=0.5)
except TimeoutError:
    pass
await second"
        );
        ends_its_first_call(&executor, &mock, Script::python(source)).await;
    }
}

/// Python gives a call its time after it has begun, and then waits for it: blocking calls too end at their server.
#[tokio::test(flavor = "multi_thread")]
async fn v_683_a_call_of_python_ends_at_its_server_when_its_time_is_over() {
    for call in [
        "await mock.hang({}, {'timeout': 0.5})",
        "await tools.mcp__mock__hang(None, {'timeoutMs': 500}, a=1)",
        "await call_mcp_tool('mcp__mock__hang', {}, {'timeout': 0.5})",
        "call_mcp_tool_sync('mcp__mock__hang', None, {'timeout_ms': 500})",
        "call_tool('mock', 'hang', {}, {'timeout': 0.5})",
        "call_tools([{'server': 'mock', 'tool': 'hang'}], timeout=0.5)",
    ] {
        let (executor, mock) = python().await;
        let source = format!(
            "import asyncio
await mock.echo()
second = asyncio.create_task(mock.hang())
await asyncio.sleep(0)
try:
    {call}
except McpToolError as error:
    assert error.code == 'TOOL_TIMEOUT', error.code
await second"
        );
        ends_its_first_call(&executor, &mock, Script::python(source)).await;
    }
}

/// What is no call of a tool takes a time too: in the blocking form, which no `asyncio.timeout` could end, and in the
/// other.
#[tokio::test(flavor = "multi_thread")]
async fn questions_of_python_take_a_time() {
    // Its interpreter is compiled.
    python().await;
    let executor = Executor::builder().dispatcher(Silent).languages([Language::Python]).build().unwrap();
    let source = "
codes = []
try: search_tools_sync('words', timeout=0.02)
except McpToolError as error: codes.append([error.code, error.message])
try: await search_tools('words', timeout=0.02)
except McpToolError as error: codes.append([error.code, error.message])
return codes";
    let result = executor.run_py(source).await.unwrap();
    let late = json!(["TOOL_TIMEOUT", "no answer within the 20 ms that the script gave the call"]);
    assert_eq!(result.value(), Some(&json!([late, late])), "{}", result.to_json());
}

/// The record of a call that its script has ended is not one of a call in flight.
#[tokio::test]
async fn v_600_the_record_of_an_ended_call_says_so() {
    let (executor, _mock) = executor();
    let source = "const controller = new AbortController();
                  const call = tools.mock.hang({}, { signal: controller.signal });
                  await tools.mock.sleep({ ms: 1, beside: 1 });
                  controller.abort();
                  return await call.catch((error) => error.name)";
    let result = executor.run_ts(source).await.unwrap();
    assert_eq!(result.value(), Some(&json!("AbortError")));
    let statuses: Vec<ToolCallStatus> = result.tool_calls.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [ToolCallStatus::Failed(ToolErrorCode::Cancelled), ToolCallStatus::Ok]);
}

/// A signal that takes no listeners can end no call later, so its call ends at once: as cancelled, or before it began.
#[tokio::test]
async fn v_600_a_frozen_signal_leaves_no_call() {
    let (executor, _mock) = executor();
    let source = "const signal = Object.freeze(new AbortController().signal);
                  const caught = await tools.mock.hang({}, { signal }).catch((error) => error.name);
                  await tools.mock.sleep({ ms: 50 });
                  return caught";
    let result = executor.run_ts(source).await.unwrap();
    assert_eq!(result.value(), Some(&json!("TypeError")), "{}", result.to_json());
    // The other call was made after it, and has its answer.
    let ended = [ToolCallStatus::Failed(ToolErrorCode::Cancelled), ToolCallStatus::Ok];
    assert!(result.tool_calls.iter().all(|record| ended.contains(&record.status)), "{}", result.to_json());
}

#[tokio::test]
async fn an_uncaught_end_of_a_calls_time_is_the_runs_error() {
    let (executor, _mock) = python().await;
    for script in [
        Script::typescript("await tools.mock.hang({}, { timeoutMs: 20 })"),
        Script::python("await tools.mock.hang({}, {'timeout': 0.02})"),
        Script::python("call_mcp_tool_sync('mock.hang', {}, {'timeout': 0.02})"),
    ] {
        let result = executor.run(script).await.unwrap();
        let error = result.error().unwrap();
        assert_eq!(
            (error.code, error.tool_code),
            (ErrorCode::RuntimeError, Some(ToolErrorCode::ToolTimeout))
        );
        assert_eq!(result.tool_calls[0].status, ToolCallStatus::Failed(ToolErrorCode::ToolTimeout));
    }
}

/// An open prompt, until it is withdrawn.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An executor whose calls of `tool` wait for an answer that nobody gives, and the number of open prompts.
fn asking(tool: &str) -> (Executor, Mock, Arc<AtomicUsize>) {
    let (mock, open) = (Mock::default(), Arc::<AtomicUsize>::default());
    let asked = Arc::clone(&open);
    let approver = move |_: ApprovalRequest| {
        asked.fetch_add(1, Ordering::SeqCst);
        let prompt = Open(Arc::clone(&asked));
        async move {
            let _prompt = prompt;
            std::future::pending::<Approval>().await
        }
    };
    let executor =
        Executor::builder().dispatcher(mock.clone()).ask([tool]).approver(approver).build().unwrap();
    (executor, mock, open)
}

/// A call that its script has ended while a person was asked about it is not made, and nobody is asked any more.
#[tokio::test]
async fn v_601_the_end_of_a_call_withdraws_its_prompt() {
    let (executor, mock, open) = asking("mock.hang");
    let source = "const error = await tools.mock.hang({}, { timeoutMs: 50 }).catch((error) => error);
                  return [error.code, error.server, error.tool]";
    let result = executor.run_ts(source).await.unwrap();
    assert_eq!(result.value(), Some(&json!(["TOOL_TIMEOUT", "mock", "hang"])), "{}", result.to_json());
    assert_eq!(result.tool_calls[0].status, ToolCallStatus::Failed(ToolErrorCode::ToolTimeout));
    wait_until(|| open.load(Ordering::SeqCst) == 0).await;
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
}

/// Nobody is asked any more while the run goes on, whose end would withdraw its prompts, too.
#[tokio::test]
async fn v_601_the_prompt_of_an_ended_call_does_not_wait_for_the_end_of_its_run() {
    let (executor, mock, open) = asking("mock.echo");
    // The second call begins when the first one has ended.
    let source = "await tools.mock.echo({}, { timeoutMs: 50 }).catch(() => {});
                  await tools.mock.hang({})";
    let long = Duration::from_secs(600);
    let limits = Limits { wall_time: long, answer_time: long, ..Limits::default() };
    let run = executor.start(Script::typescript(source).limits(limits));
    let goes_on = || mock.running.load(Ordering::SeqCst) == 1;
    wait_until(|| goes_on() && open.load(Ordering::SeqCst) == 0).await;
    assert_eq!(mock.calls.load(Ordering::SeqCst), 1);
    drop(run);
}
