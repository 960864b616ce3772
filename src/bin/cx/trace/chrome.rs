//! A trace in Chrome's format, which Perfetto and `chrome://tracing` open.

use std::time::Duration;

use cx::RunTrace;
use serde_json::{Value, json};

use super::lanes;

/// Chrome's format has processes and threads. A run becomes a process, its script a thread, and overlapping calls
/// separate threads.
const PROCESS: u32 = 1;
const SCRIPT: usize = 1;
const FIRST_LANE: usize = 2;

/// The trace as JSON text.
pub(crate) fn render(trace: &RunTrace) -> String {
    let usage = &trace.usage;
    let queue = usage.queue_time.min(trace.duration);
    let outcome = trace.error.as_ref().map_or("ok", |error| error.code.as_str());
    let mut events = vec![
        name("process_name", 0, &format!("cx run {}", trace.script)),
        name("thread_name", SCRIPT, "script"),
    ];
    if !queue.is_zero() {
        events.push(span("queue", "wait", SCRIPT, Duration::ZERO, queue, &json!({})));
    }
    let arguments = json!({
        "run": trace.id,
        "language": trace.language.as_str(),
        "outcome": outcome,
        "error": trace.error.as_ref().map(|error| &error.message),
        "line": trace.error.as_ref().and_then(|error| error.line),
        "cpu_ms": milliseconds(usage.cpu_time),
        "approval_ms": milliseconds(usage.approval_time),
        "memory_bytes": usage.memory_bytes,
        "source": trace.source,
    });
    events.push(span("script", "run", SCRIPT, queue, trace.duration, &arguments));
    let (lanes, count) = lanes::assign(&trace.calls);
    for lane in 0..count {
        events.push(name("thread_name", FIRST_LANE + lane, &format!("calls {}", lane + 1)));
    }
    for (call, lane) in trace.calls.iter().zip(lanes) {
        let label = format!("{}.{}", call.server, call.tool);
        let thread = FIRST_LANE + lane;
        let arguments = json!({
            "number": call.number,
            "status": call.status,
            "message": call.message,
            "approval_ms": milliseconds(call.approval),
            "argument_bytes": call.argument_bytes,
            "result_bytes": call.result_bytes,
        });
        let sent = call.sent.unwrap_or(call.ended);
        if sent > call.requested {
            let label = format!("{label} waits");
            events.push(span(&label, "wait", thread, call.requested, sent, &json!({})));
        }
        events.push(span(&label, "call", thread, sent, call.ended, &arguments));
    }
    for entry in &trace.output {
        events.push(json!({
            "ph": "i", "s": "t", "name": entry.text, "cat": "output", "pid": PROCESS, "tid": SCRIPT,
            "ts": microseconds(entry.at),
        }));
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events }).to_string()
}

fn name(kind: &str, thread: usize, name: &str) -> Value {
    json!({ "ph": "M", "name": kind, "pid": PROCESS, "tid": thread, "args": { "name": name } })
}

fn span(name: &str, category: &str, thread: usize, start: Duration, end: Duration, args: &Value) -> Value {
    json!({
        "ph": "X", "name": name, "cat": category, "pid": PROCESS, "tid": thread, "ts": microseconds(start),
        "dur": microseconds(end.saturating_sub(start)), "args": args,
    })
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
