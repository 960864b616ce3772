//! A run's result as the one JSON object that the command and the server both give.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::execution::{ExecuteResult, Output, PlannedCall, ScriptError, ToolCallStatus};
use crate::tools::names::full_name;

impl ExecuteResult {
    /// The whole result as a JSON object, empty fields left out:
    ///
    /// ```json
    /// {
    ///   "success": true,
    ///   "value": 3,
    ///   "output": "printed lines",
    ///   "emitted": [{ "type": "text", "text": "…" }],
    ///   "error": { "code": "RUNTIME_ERROR", "message": "…", "line": 1, "column": 7, "stack": "…" },
    ///   "executionTimeMs": 12.5,
    ///   "approvalTimeMs": 2000.0,
    ///   "toolCallsMade": 2,
    ///   "toolCallSummary": [{ "tool": "mcp__fs__read", "calls": 2, "failed": 1, "totalMs": 8.1, "resultBytes": 900 }],
    ///   "plannedCalls": [{ "tool": "mcp__fs__delete", "arguments": { "path": "a" } }]
    /// }
    /// ```
    ///
    /// `plannedCalls` is there after every dry run and after nothing else; calls that did not fit are in
    /// `plannedCallsDropped`. Beside `failed` a summary can have `inFlight`, `approved`, `notApproved`,
    /// `awaitingApproval` and `stubbed`.
    ///
    /// `value` is there, as `null`, when a script that succeeded returned nothing.
    pub fn to_json(&self) -> Value {
        let mut report = Map::new();
        let mut put = |name: &str, value: Value| {
            report.insert(name.to_owned(), value);
        };
        put("success", self.error().is_none().into());
        if let Some(value) = self.value() {
            put("value", value.clone());
        }
        let output = self.printed();
        if !output.is_empty() {
            put("output", output.into());
        }
        let emitted: Vec<Value> = self.logs.iter().filter_map(emitted).collect();
        if !emitted.is_empty() {
            put("emitted", emitted.into());
        }
        if self.usage.output_bytes_dropped > 0 {
            put("outputBytesDropped", self.usage.output_bytes_dropped.into());
        }
        if let Some(error) = self.error() {
            put("error", error_json(error));
        }
        put("executionTimeMs", milliseconds(self.usage.wall_time));
        if !self.usage.approval_time.is_zero() {
            put("approvalTimeMs", milliseconds(self.usage.approval_time));
        }
        if self.usage.tool_calls > 0 {
            put("toolCallsMade", self.usage.tool_calls.into());
            put("toolCallSummary", self.call_summary());
        }
        if let Some(planned) = &self.planned_calls {
            put("plannedCalls", planned.iter().map(planned_json).collect());
        }
        if self.usage.planned_calls_dropped > 0 {
            put("plannedCallsDropped", self.usage.planned_calls_dropped.into());
        }
        Value::Object(report)
    }

    /// What the script printed, a line after the other.
    pub fn printed(&self) -> String {
        let lines = self.logs.iter().filter_map(|entry| match entry {
            Output::Log { text, .. } => Some(text.as_str()),
            Output::Emit(_) => None,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn call_summary(&self) -> Value {
        let mut tools: BTreeMap<String, Summary> = BTreeMap::new();
        for call in &self.tool_calls {
            let summary = tools.entry(full_name(&call.server, &call.tool)).or_default();
            summary.calls += 1;
            summary.total += call.duration;
            summary.result_bytes += call.result_bytes;
            match call.status {
                ToolCallStatus::Ok => {}
                ToolCallStatus::Failed(_) => summary.failed += 1,
                ToolCallStatus::InFlight => summary.in_flight += 1,
                ToolCallStatus::AwaitingApproval => summary.awaiting_approval += 1,
                ToolCallStatus::NotApproved(_) => summary.not_approved += 1,
                ToolCallStatus::Stubbed => summary.stubbed += 1,
            }
            summary.approved += u64::from(call.approved);
        }
        tools.into_iter().map(|(tool, summary)| summary.to_json(&tool)).collect()
    }
}

#[derive(Default)]
struct Summary {
    calls: u64,
    failed: u64,
    in_flight: u64,
    approved: u64,
    not_approved: u64,
    awaiting_approval: u64,
    stubbed: u64,
    total: std::time::Duration,
    result_bytes: usize,
}

impl Summary {
    fn to_json(&self, tool: &str) -> Value {
        let mut summary = json!({ "tool": tool, "calls": self.calls });
        let counts = [
            ("failed", self.failed),
            ("inFlight", self.in_flight),
            ("approved", self.approved),
            ("notApproved", self.not_approved),
            ("awaitingApproval", self.awaiting_approval),
            ("stubbed", self.stubbed),
        ];
        for (name, count) in counts {
            if count > 0 {
                summary[name] = count.into();
            }
        }
        summary["totalMs"] = milliseconds(self.total);
        summary["resultBytes"] = self.result_bytes.into();
        summary
    }
}

fn planned_json(call: &PlannedCall) -> Value {
    json!({ "tool": full_name(&call.server, &call.tool), "arguments": call.arguments })
}

fn emitted(entry: &Output) -> Option<Value> {
    match entry {
        Output::Emit(block) => Some(block.clone()),
        Output::Log { .. } => None,
    }
}

/// Why a run failed.
pub(crate) fn error_json(error: &ScriptError) -> Value {
    let mut report = json!({ "code": error.code.as_str(), "message": error.message });
    let optional = [
        ("name", error.name.clone().map(Value::from)),
        ("toolCode", error.tool_code.map(|code| code.as_str().into())),
        ("line", error.line.map(Value::from)),
        ("column", error.column.map(Value::from)),
        ("sourceLine", error.source_line.clone().map(Value::from)),
        ("hint", error.hint.clone().map(Value::from)),
        ("stack", error.stack.clone().map(Value::from)),
        ("retryAfterMs", error.retry_after.map(milliseconds)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            report[name] = value;
        }
    }
    report
}

/// Milliseconds with microsecond resolution.
pub(crate) fn milliseconds(duration: std::time::Duration) -> Value {
    let microseconds = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
    (f64::from(microseconds) / 1000.0).into()
}
