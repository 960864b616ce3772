//! What the observers of runs hear.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::error::Error;
use crate::executor::{Executor, ExecutorBuilder};
use crate::run::limits::Limits;
use crate::run::observer::{BeforeEffect, ObservedRun, RunEvent, RunObserver, at_once};
use crate::run::result::ErrorCode;
use crate::run::script::Script;
use crate::run::tool_call::ToolCall;
use crate::tools::{Approval, ToolError, ToolErrorCode};

/// Writes down what it hears.
#[derive(Default)]
struct Recorder {
    heard: Mutex<Vec<String>>,
    refuses: AtomicBool,
}

impl RunObserver for Recorder {
    fn observe(&self, run: &Arc<ObservedRun>, event: &RunEvent<'_>) {
        assert_eq!(run.id.len(), 16);
        let line = match event {
            RunEvent::Started { source, limits, input_bytes, .. } => {
                assert!(!limits.wall_time.is_zero());
                format!("started {} {} {input_bytes}", run.script, source.len())
            }
            RunEvent::Ended { result, code, duration } => {
                assert!(!duration.is_zero());
                let calls = result.map(|result| result.usage.tool_calls);
                format!("ended {code:?} {calls:?}")
            }
            RunEvent::Sending(sending) => format!(
                "sending {} {}.{} {} {} {:?}",
                sending.call,
                sending.server,
                sending.tool,
                sending.arguments.text(),
                sending.rule,
                sending.approver
            ),
            RunEvent::Answered(answered) => {
                let result = answered.result.map(|value| value.text().to_owned());
                format!("answered {} {result:?}", answered.call)
            }
            RunEvent::Simulated { call, tool, .. } => format!("simulated {call} {tool}"),
            RunEvent::Discovered(found) => {
                format!("discovered {} {:?} {:?} {:?}", found.kind, found.query, found.server, found.found)
            }
            RunEvent::Refused(refused) => {
                format!("refused {:?} {:?} {} {:?}", refused.call, refused.tool, refused.code, refused.rule)
            }
            RunEvent::ApprovalAsked { call, reason, arguments, .. } => {
                format!("asked {call} {} {reason}", arguments.text())
            }
            RunEvent::ApprovalAnswered(answer) => {
                format!("approval {} {} {:?}", answer.call, answer.approver.as_str(), answer.refusal)
            }
            RunEvent::ModelSending(_) | RunEvent::ModelAnswered(_) => "model".to_owned(),
            RunEvent::Printed { level, text } => format!("printed {level:?} {text}"),
        };
        self.heard.lock().push(line);
    }

    fn before_effect<'a>(&'a self, _run: &'a Arc<ObservedRun>, event: &'a RunEvent<'a>) -> BeforeEffect<'a> {
        let error = ToolError::new(ToolErrorCode::ToolDenied, "the observer refuses");
        let refuses = self.refuses.load(Ordering::Relaxed) && !matches!(event, RunEvent::Started { .. });
        at_once(if refuses { Err(error) } else { Ok(None) })
    }
}

impl Recorder {
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock())
    }
}

fn builder(recorder: &Arc<Recorder>, calls: &Arc<Mutex<Vec<Value>>>) -> ExecutorBuilder {
    let tool = |calls: &Arc<Mutex<Vec<Value>>>| {
        let calls = Arc::clone(calls);
        move |arguments: Value| {
            calls.lock().push(arguments);
            async { Ok::<_, String>(7) }
        }
    };
    Executor::builder()
        .tool("s.plain", Value::Null, tool(calls))
        .tool("s.asked", Value::Null, tool(calls))
        .tool("s.denied", Value::Null, tool(calls))
        .tool("s.fails", Value::Null, |_: Value| async { Err::<u32, _>("no") })
        .tool("s.hangs", Value::Null, |_: Value| futures::future::pending::<Result<u32, String>>())
        .allow(["s.*"])
        .deny(["s.den*"])
        .ask(["s.asked"])
        .observer(Arc::clone(recorder) as Arc<dyn RunObserver>)
}

/// Each decision about a call is heard in its order, with the rule that made it.
#[cfg(feature = "typescript")]
#[tokio::test]
async fn observers_hear_each_decision_about_a_call_in_order() {
    let (recorder, calls) = (Arc::<Recorder>::default(), Arc::default());
    let executor = builder(&recorder, &calls).approver(|_| async { Approval::Approve }).build().unwrap();
    let source = "
        await tools.s.plain({ a: 1 });
        await tools.s.denied({}).catch(() => {});
        await tools.s.asked({ b: 2 });
        await tools.s.fails({}).catch(() => {});
        return (await searchTools('plain', 1)).length;";
    let script = Script::typescript(source).named("order.ts").input(json!("i"));
    executor.run(script).await.unwrap();
    let expected = [
        &*format!("started order.ts {} 3", source.len()),
        r#"sending 1 s.plain {"a":1} allow: s.* None"#,
        r#"answered 1 Ok("7")"#,
        r#"refused Some(2) Some("denied") TOOL_DENIED Some("deny: s.den*")"#,
        r#"asked 3 {"b":2} `ask` names it: `s.asked`"#,
        "approval 3 executor None",
        r#"sending 3 s.asked {"b":2} allow: s.* Some(Executor)"#,
        r#"answered 3 Ok("7")"#,
        "sending 4 s.fails {} allow: s.* None",
        "answered 4 Err(ToolError)",
        r#"discovered search Some("plain") None Ok(1)"#,
        "ended None Some(3)",
    ];
    assert_eq!(recorder.heard(), expected);
}

/// An observer that refuses stops a call before it is sent, and the refusal is heard.
#[cfg(feature = "typescript")]
#[tokio::test]
async fn an_observer_can_stop_a_call_before_it_is_sent() {
    let (recorder, calls) = (Arc::<Recorder>::default(), Arc::default());
    let executor = builder(&recorder, &calls).build().unwrap();
    recorder.refuses.store(true, Ordering::Relaxed);
    let result = executor.run_ts("return await tools.s.plain({ a: 1 })").await.unwrap();
    assert_eq!(result.error().unwrap().tool_code, Some(ToolErrorCode::ToolDenied));
    assert!(calls.lock().is_empty(), "it was sent");
    let heard = recorder.heard();
    assert_eq!(
        heard[2..4],
        ["answered 1 Err(ToolDenied)", r#"refused Some(1) Some("plain") TOOL_DENIED None"#]
    );
    // Without an approver, the refusal is an answer to the prompt too.
    let result = executor.run_ts("return await tools.s.asked({})").await.unwrap();
    assert!(result.error().is_some());
    let heard = recorder.heard();
    assert_eq!(heard[2], "approval 1 none Some(NoApprover)", "{heard:?}");
}

/// A call in flight at the end of its run has an end, and a run that is dropped has one.
#[cfg(feature = "typescript")]
#[tokio::test]
async fn each_start_that_observers_hear_has_an_end() {
    let (recorder, calls) = (Arc::<Recorder>::default(), Arc::default());
    let executor = builder(&recorder, &calls).build().unwrap();
    // Long enough for the call to begin, also on a busy machine.
    let limits = Limits { wall_time: std::time::Duration::from_secs(6), ..Limits::default() };
    let script = Script::typescript("await tools.s.hangs({})").limits(limits);
    let result = executor.run(script).await.unwrap();
    assert_eq!(result.error().unwrap().code, ErrorCode::Timeout);
    let is_cut = |heard: &[String]| heard.iter().any(|line| line == "answered 1 Err(Cancelled)");
    let mut heard = recorder.heard();
    for _ in 0..3_000 {
        if is_cut(&heard) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        heard.extend(recorder.heard());
    }
    assert!(is_cut(&heard), "{heard:?}");
    assert!(heard.iter().any(|line| line.starts_with("ended Some(Timeout)")), "{heard:?}");
    drop(executor.run(Script::typescript("await tools.s.hangs({})")).now_or_never());
    let heard = recorder.heard();
    assert!(heard[0].starts_with("started"), "{heard:?}");
    assert_eq!(heard.last().unwrap(), "ended Some(Cancelled) None");
}

/// A run whose options are invalid is none: its caller has an error, and nothing was asked of the executor.
#[tokio::test]
async fn observers_hear_nothing_of_a_run_whose_options_are_invalid() {
    let (recorder, calls) = (Arc::<Recorder>::default(), Arc::default());
    let executor = builder(&recorder, &calls).build().unwrap();
    let limits = Limits { source_bytes: 0, ..Limits::default() };
    let invalid = executor.run(Script::typescript("1").limits(limits)).await;
    assert!(matches!(invalid, Err(Error::InvalidOptions { .. })), "{invalid:?}");
    let invalid = executor.run(Script::typescript("1").allow(["s*"])).await;
    assert!(matches!(invalid, Err(Error::InvalidPattern { .. })), "{invalid:?}");
    assert_eq!(recorder.heard(), [""; 0]);
}

/// A run for which there is no slot was requested all the same: who refused it, and why, is for the trail.
#[cfg(feature = "typescript")]
#[tokio::test]
async fn observers_hear_of_a_run_that_is_not_admitted() {
    let (recorder, calls) = (Arc::<Recorder>::default(), Arc::default());
    let began = Arc::new(tokio::sync::Notify::new());
    let begins = Arc::clone(&began);
    let holds = move |_: Value| {
        begins.notify_one();
        futures::future::pending::<Result<u32, String>>()
    };
    let executor = builder(&recorder, &calls)
        .tool("s.holds", Value::Null, holds)
        .max_concurrent_runs(1)
        .max_queued_runs(0)
        .build()
        .unwrap();
    let _held = executor.start(Script::typescript("await tools.s.holds({})"));
    began.notified().await;
    recorder.heard();
    let refused = executor.run(Script::typescript("return 1").named("second.ts")).await.unwrap();
    assert_eq!(refused.error().unwrap().code, ErrorCode::QueueFull);
    assert_eq!(recorder.heard(), ["started second.ts 8 0", "ended Some(QueueFull) Some(0)"]);
}

/// Its caller has an error, so the trail and the traces have no success.
#[tokio::test]
async fn v_636_observers_hear_that_a_call_without_a_script_was_lost() {
    let (recorder, calls) = (Arc::<Recorder>::default(), Arc::default());
    let executor = builder(&recorder, &calls).build().unwrap();
    let call = ToolCall::new("s", "plain").options(|run| run.on_call(|_call| panic!("in a test")));
    assert!(matches!(executor.call(call).await, Err(Error::WorkerLost { .. })));
    assert_eq!(recorder.heard().last().unwrap(), "ended Some(EngineUnavailable) None");
}
