//! A run's result as a JSON object, the same for the command line and the server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::json::{Json, set_present};
use crate::run::finding::Finding;
use crate::run::result::{ExecuteResult, Output, PlannedCall, ScriptError, ToolCallStatus};
use crate::run::sampling::{ContentViolation, ModelCall, SamplingMetrics};
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
    ///   "error": {
    ///     "code": "RUNTIME_ERROR", "message": "…", "line": 1, "column": 7, "stack": "…"
    ///   },
    ///   "executionTimeMs": 12.5,
    ///   "approvalTimeMs": 2000.0,
    ///   "fuelUsed": 5000000,
    ///   "toolCallsMade": 2,
    ///   "toolCallsRefused": 1,
    ///   "toolCallSummary": [
    ///     {
    ///       "tool": "mcp__fs__read", "calls": 2, "failed": 1, "totalMs": 8.1, "resultBytes": 900,
    ///       "returned": "{content: string}"
    ///     }
    ///   ],
    ///   "samplingCalls": [
    ///     {
    ///       "round": 1, "provider": "anthropic", "model": "…", "status": "ok", "tokensUsed": 120,
    ///       "durationMs": 900.0
    ///     }
    ///   ],
    ///   "samplingMetrics": {
    ///     "totalRounds": 1, "totalTokens": 120, "totalDurationMs": 900.0, "averageTokensPerRound": 120,
    ///     "quotaRemaining": { "rounds": 9, "tokens": 9880 }
    ///   },
    ///   "plannedCalls": [{ "tool": "mcp__fs__delete", "arguments": { "path": "a" } }]
    /// }
    /// ```
    ///
    /// `plannedCalls` is present after every dry run and only then; the number of calls that were
    /// dropped is in `plannedCallsDropped`. In addition to `failed`, a summary can have `inFlight`,
    /// `approved`, `notApproved`, `awaitingApproval` and `simulated`. `returned` is the shape of what the
    /// tool returned, if the script failed ([`ExecuteResult::returned`]).
    ///
    /// `value` is present, as `null`, if a successful script returned nothing.
    ///
    /// A value, blocks and planned calls that are too large for a tree ([`Json::value`]) are `null` here;
    /// [`ExecuteResult::to_json_text`] has them in full.
    pub fn to_json(&self) -> Value {
        let tree = |json: &Json| json.value().cloned().unwrap_or_default();
        let mut report = self.without_values();
        let emitted: Vec<Value> = self.emitted().map(tree).collect();
        if !emitted.is_empty() {
            report.insert("emitted".to_owned(), emitted.into());
        }
        if let Some(value) = self.value_json() {
            report.insert("value".to_owned(), tree(value));
        }
        if let Some(planned) = self.planned() {
            report.insert("plannedCalls".to_owned(), planned.iter().map(tree).collect());
        }
        in_order(report)
    }

    /// The same object as JSON text. Unlike a tree, it takes no more memory than the result itself.
    pub fn to_json_text(&self) -> String {
        let mut report = self.without_values();
        let emitted: Vec<&Json> = self.emitted().collect();
        for (field, is_there) in [("value", self.value_json().is_some()), ("emitted", !emitted.is_empty())] {
            if is_there {
                report.insert(field.to_owned(), Value::Null);
            }
        }
        let planned = self.planned().unwrap_or_default();
        let Value::Object(report) = in_order(report) else { return String::new() };
        let fields = report.iter().map(|(name, value)| {
            (
                name.as_str(),
                match name.as_str() {
                    "value" => Field::Json(self.value_json()),
                    "emitted" => Field::Blocks(&emitted),
                    "plannedCalls" => Field::Calls(&planned),
                    _ => Field::Plain(value),
                },
            )
        });
        // Strings and numbers can always be serialized.
        serde_json::to_string(&Fields(fields.collect())).unwrap_or_default()
    }

    /// The content blocks that the script emitted, in order.
    pub(crate) fn emitted(&self) -> impl Iterator<Item = &Json> {
        self.logs.iter().filter_map(|entry| match entry {
            Output::Emit(block) => Some(block),
            Output::Log { .. } => None,
        })
    }

    /// The calls that a dry run would have made, each as `{tool, arguments}`.
    pub(crate) fn planned(&self) -> Option<Vec<Json>> {
        self.planned_calls.as_ref().map(|planned| planned.iter().map(planned_json).collect())
    }

    /// The report without `value`, `emitted` and the content of `plannedCalls`, which can be large.
    pub(crate) fn without_values(&self) -> Map<String, Value> {
        let mut report = Map::new();
        let mut put = |name: &str, value: Value| {
            report.insert(name.to_owned(), value);
        };
        put("success", self.error().is_none().into());
        let output = self.printed();
        if !output.is_empty() {
            put("output", output.into());
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
        if let Some(fuel) = self.usage.fuel {
            put("fuelUsed", fuel.into());
        }
        if self.usage.tool_calls > 0 {
            put("toolCallsMade", self.usage.tool_calls.into());
        }
        if self.usage.tool_calls_refused > 0 {
            put("toolCallsRefused", self.usage.tool_calls_refused.into());
        }
        if !self.tool_calls.is_empty() {
            put("toolCallSummary", self.call_summary());
        }
        if let Some(sampling) = &self.sampling {
            put("samplingCalls", sampling.calls.iter().map(model_call_json).collect());
            put("samplingMetrics", sampling_metrics_json(&sampling.metrics));
        }
        if self.planned_calls.is_some() {
            put("plannedCalls", Value::Array(Vec::new()));
        }
        if self.usage.planned_calls_dropped > 0 {
            put("plannedCallsDropped", self.usage.planned_calls_dropped.into());
        }
        report
    }

    /// The lines that the script printed, separated by newlines.
    pub fn printed(&self) -> String {
        let lines = self.logs.iter().filter_map(|entry| match entry {
            Output::Log { text, .. } => Some(text.as_str()),
            Output::Emit(_) => None,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn call_summary(&self) -> Value {
        let mut tools: BTreeMap<String, Summary<'_>> = BTreeMap::new();
        for call in &self.tool_calls {
            let summary = tools.entry(full_name(&call.server, &call.tool)).or_default();
            summary.calls += 1;
            // The numbers of an untrusted recording are any.
            summary.total = summary.total.saturating_add(call.duration);
            summary.result_bytes = summary.result_bytes.saturating_add(call.result_bytes);
            match call.status {
                ToolCallStatus::Ok => {}
                ToolCallStatus::Failed(_) => summary.failed += 1,
                ToolCallStatus::InFlight => summary.in_flight += 1,
                ToolCallStatus::AwaitingApproval => summary.awaiting_approval += 1,
                ToolCallStatus::NotApproved(_) => summary.not_approved += 1,
                ToolCallStatus::Simulated => summary.simulated += 1,
            }
            summary.approved += u64::from(call.approved);
        }
        for returned in &self.returned {
            let summary = tools.get_mut(&full_name(&returned.server, &returned.tool));
            if let Some(summary) = summary {
                summary.returned = Some(&returned.shape);
            }
        }
        tools.into_iter().map(|(tool, summary)| summary.to_json(&tool)).collect()
    }
}

#[derive(Default)]
struct Summary<'a> {
    calls: u64,
    failed: u64,
    in_flight: u64,
    approved: u64,
    not_approved: u64,
    awaiting_approval: u64,
    simulated: u64,
    total: Duration,
    result_bytes: usize,
    returned: Option<&'a str>,
}

impl Summary<'_> {
    fn to_json(&self, tool: &str) -> Value {
        let mut summary = json!({ "tool": tool, "calls": self.calls });
        let counts = [
            ("failed", self.failed),
            ("inFlight", self.in_flight),
            ("approved", self.approved),
            ("notApproved", self.not_approved),
            ("awaitingApproval", self.awaiting_approval),
            ("simulated", self.simulated),
        ];
        for (name, count) in counts {
            if count > 0 {
                summary[name] = count.into();
            }
        }
        summary["totalMs"] = milliseconds(self.total);
        summary["resultBytes"] = self.result_bytes.into();
        if let Some(shape) = self.returned {
            summary["returned"] = shape.into();
        }
        summary
    }
}

fn planned_json(call: &PlannedCall) -> Json {
    #[derive(Serialize)]
    struct Planned<'a> {
        tool: String,
        arguments: &'a Json,
    }
    let planned = Planned { tool: full_name(&call.server, &call.tool), arguments: &call.arguments };
    // Strings and JSON can always be serialized.
    Json::from_serialize(&planned).unwrap_or_else(|_| Value::Null.into())
}

/// Moves `success`, `value`, `output` and `emitted` to the front.
pub(crate) fn in_order(mut report: Map<String, Value>) -> Value {
    let first = ["success", "value", "output", "emitted"];
    let mut ordered: Map<String, Value> =
        first.iter().filter_map(|&name| Some((name.to_owned(), report.shift_remove(name)?))).collect();
    ordered.extend(report);
    Value::Object(ordered)
}

/// One field of a report.
#[derive(Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Json(Option<&'a Json>),
    Blocks(&'a [&'a Json]),
    Calls(&'a [Json]),
    Plain(&'a Value),
}

struct Fields<'a>(Vec<(&'a str, Field<'a>)>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, field)| (name, field)))
    }
}

fn model_call_json(call: &ModelCall) -> Value {
    let mut report = json!({
        "round": call.round,
        "provider": call.provider,
        "status": call.status.as_str(),
        "tokensUsed": call.tokens,
        "durationMs": milliseconds(call.duration),
    });
    let optional = [
        ("model", call.model.clone().map(Value::from)),
        ("tokensEstimated", call.is_estimated.then_some(Value::Bool(true))),
        ("stopReason", call.stop_reason.clone().map(Value::from)),
        (
            "contentViolations",
            (!call.violations.is_empty()).then(|| {
                let violation = |violation: &ContentViolation| {
                    json!({ "pattern": violation.pattern, "count": violation.count })
                };
                call.violations.iter().map(violation).collect()
            }),
        ),
    ];
    set_present(&mut report, optional);
    report
}

fn sampling_metrics_json(metrics: &SamplingMetrics) -> Value {
    json!({
        "totalRounds": metrics.total_rounds,
        "totalTokens": metrics.total_tokens,
        "totalDurationMs": milliseconds(metrics.total_duration),
        "averageTokensPerRound": metrics.total_tokens / u64::from(metrics.total_rounds.max(1)),
        "quotaRemaining": { "rounds": metrics.rounds_left, "tokens": metrics.tokens_left },
    })
}

/// The error of a failed run as a JSON object.
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
        (
            "problems",
            (!error.problems.is_empty()).then(|| error.problems.iter().map(Finding::to_json).collect()),
        ),
    ];
    set_present(&mut report, optional);
    report
}

/// Milliseconds with microsecond resolution.
pub(crate) fn milliseconds(duration: Duration) -> Value {
    // Exact for centuries. The sum of many calls is more than an integer of 32 bits can count.
    (duration.as_micros() as f64 / 1000.0).into()
}

#[cfg(test)]
mod tests;
