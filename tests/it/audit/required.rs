//! Runs while the trail cannot be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cx::audit::{AuditOptions, AuditReader};
use cx::{ErrorCode, ExecuteResult, Executor, ProviderKind, ToolErrorCode};
use serde_json::Value;

use crate::support::provider::{FakeProvider, Reply};

/// Runs a script that makes one call. Returns its result, how many calls were made, and whether the trail
/// has failed.
fn run(options: AuditOptions) -> (ExecuteResult, u32, bool) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let executor = Executor::builder()
        .audit(options)
        .tool("s.call", Value::Null, move |_: Value| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, String>(1) }
        })
        .build()
        .unwrap();
    let result = executor.run_blocking("return await tools.s.call({})").unwrap();
    futures::executor::block_on(executor.close());
    let has_failed = executor.audit_status().unwrap().failure.is_some();
    (result, calls.load(Ordering::Relaxed), has_failed)
}

/// A directory in which not even root can write.
const UNWRITABLE: &str = "/proc/cx-audit";

#[test]
fn a_trail_that_cannot_be_written_fails_no_run() {
    let (result, calls, has_failed) = run(AuditOptions::new(UNWRITABLE));
    assert_eq!((result.error(), calls, has_failed), (None, 1, true));
}

#[test]
fn a_required_trail_that_cannot_be_written_stops_runs_before_they_begin() {
    let mut options = AuditOptions::new(UNWRITABLE);
    options.required = true;
    let (result, calls, has_failed) = run(options);
    let error = result.error().unwrap();
    assert_eq!((error.code, calls, has_failed), (ErrorCode::EngineUnavailable, 0, true));
    let expected = "nothing was run: the audit trail cannot be written, and `audit.required` is set: ";
    assert!(error.message.starts_with(expected), "{error:?}");
}

/// The trail's directory exists when the run begins, and no longer when it asks a language model.
#[test]
fn a_required_trail_that_can_be_written_no_more_stops_questions_to_models() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("fine".to_owned()));
    let directory = tempfile::tempdir().unwrap();
    let trail = directory.path().join("trail");
    let mut options = AuditOptions::new(&trail);
    options.required = true;
    let executor = Executor::builder()
        .audit(options)
        .llm(provider.options())
        .tool("s.unmount", Value::Null, move |_: Value| {
            std::fs::rename(&trail, trail.with_extension("away")).unwrap();
            std::fs::write(&trail, "no directory").unwrap();
            async { Ok::<_, String>(1) }
        })
        .build()
        .unwrap();
    let source = "await llm.ask('x'); await tools.s.unmount({}); return await llm.ask('y')";
    let result = executor.run_blocking(source).unwrap();
    let error = result.error().unwrap();
    assert_eq!(error.tool_code, Some(ToolErrorCode::ToolDenied), "{error:?}");
    assert!(error.message.contains("nothing was sent: the audit trail cannot be written"), "{error:?}");
    // Only the first question was sent; the others took no tokens.
    assert_eq!(provider.asked().len(), 1);
    assert_eq!(result.sampling.unwrap().calls[1].tokens, 0);
}

/// The trail's directory exists when the run begins, and no longer when it makes its call.
#[test]
fn a_required_trail_that_can_be_written_no_more_stops_calls_before_they_are_sent() {
    let directory = tempfile::tempdir().unwrap();
    let trail = directory.path().join("trail");
    let mut options = AuditOptions::new(&trail);
    options.required = true;
    let calls = Arc::new(AtomicU32::new(0));
    let (counted, moved) = (Arc::clone(&calls), trail.clone());
    let executor = Executor::builder()
        .audit(options)
        .tool("s.unmount", Value::Null, move |_: Value| {
            std::fs::rename(&moved, moved.with_extension("away")).unwrap();
            std::fs::write(&moved, "no directory").unwrap();
            async { Ok::<_, String>(1) }
        })
        .tool("s.call", Value::Null, move |_: Value| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, String>(1) }
        })
        .build()
        .unwrap();
    let result = executor.run_blocking("await tools.s.unmount({}); return await tools.s.call({})").unwrap();
    let error = result.error().unwrap();
    assert_eq!((error.tool_code, calls.load(Ordering::Relaxed)), (Some(ToolErrorCode::ToolDenied), 0));
    assert!(error.message.contains("nothing was sent: the audit trail cannot be written"), "{error:?}");
}

#[test]
fn a_required_trail_has_each_call_before_and_after() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = AuditOptions::new(directory.path().join("trail"));
    options.required = true;
    let (result, calls, has_failed) = run(options.clone());
    assert_eq!((result.error(), calls, has_failed), (None, 1, false));
    let mut reader = AuditReader::new(&options.directory);
    let mut events = Vec::new();
    while let Some(line) = reader.next_line(true).unwrap() {
        assert!(line.text_of("arguments").is_none(), "contents are off: {}", line.text);
        events.push(line.text_of("event").unwrap().to_owned());
    }
    let expected = ["logger.started", "run.started", "call.will", "call.did", "run.ended", "logger.stopped"];
    assert_eq!(events, expected);
}

#[test]
fn each_search_is_in_the_trail() {
    let directory = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(directory.path().join("trail"));
    let builder = Executor::builder().audit(options.clone());
    let executor =
        builder.tool("files.read", Value::Null, |_: Value| async { Ok::<_, String>(1) }).build().unwrap();
    let script =
        "await searchTools('read files'); await discoverMCPTools(); await getToolSchema('mcp__files__read')";
    assert_eq!(executor.run_blocking(script).unwrap().error(), None);
    futures::executor::block_on(executor.close());
    let mut reader = AuditReader::new(&options.directory);
    let mut searches = Vec::new();
    while let Some(line) = reader.next_line(true).unwrap() {
        if line.text_of("event") == Some("discovery") {
            searches.push(line);
        }
    }
    assert!(searches.len() >= 2, "{searches:?}");
    assert_eq!(searches[0].text_of("query"), Some("read files"));
    assert!(searches[0].fields.as_ref().unwrap()["found"].as_u64().unwrap() >= 1, "{searches:?}");
}
