//! The lines of a recording's file.

pub(super) mod read;
pub(super) mod write;

use serde::{Deserialize, Serialize};

/// A line of the file. Scripts, arguments, answers and values are strings, so that they are read back unchanged to the
/// byte.
#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum Line {
    Start(Box<StartLine>),
    Call(Box<CallLine>),
    Timers { delays: Vec<f64> },
    Turn(TurnLine),
    End(Box<EndLine>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StartLine {
    recording: u32,
    cx: String,
    language: String,
    name: String,
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    limits: LimitsLine,
    time_zone: String,
    clock_resolution_ns: u64,
    servers: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    network: bool,
    seed: String,
    #[serde(default, skip_serializing_if = "is_false")]
    dry_run: bool,
    started_ms: u64,
    masked: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LimitsLine {
    wall_time_ms: u64,
    cpu_time_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fuel: Option<u64>,
    memory_bytes: usize,
    tool_calls: u32,
    calls_in_flight: u32,
    source_bytes: usize,
    argument_bytes: usize,
    result_bytes: usize,
    output_bytes: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CallLine {
    number: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ToolErrorLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_out_bytes: Option<usize>,
    #[serde(default, skip_serializing_if = "is_false")]
    at_once: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    masked: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lines: Vec<LogLine>,
    made_ns: u64,
    took_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ToolErrorLine {
    code: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ns: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LogLine {
    level: String,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TurnLine {
    /// The number of the call whose answer was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timer: Option<usize>,
    #[serde(default, skip_serializing_if = "is_zero")]
    waits: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    wall: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    monotonic: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EndLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ScriptErrorLine>,
    output: Vec<OutputLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    closing: Vec<LogLine>,
    calls: Vec<RecordLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    returned: Vec<ReturnedLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    planned: Option<Vec<PlannedLine>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sampling: Option<SamplingLine>,
    calls_made: u64,
    calls_refused: u64,
    result_bytes: u64,
    planned_dropped: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    unrecorded_files: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScriptErrorLine {
    code: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stack: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_line: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    problems: Vec<FindingLine>,
}

/// A finding of the check before the run.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FindingLine {
    code: String,
    severity: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The first line and column, and the last.
    location: [Option<u32>; 4],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_line: Option<String>,
}

/// A printed line, or a content block, which has no level.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OutputLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordLine {
    server: String,
    tool: String,
    status: String,
    #[serde(default, skip_serializing_if = "is_false")]
    approved: bool,
    duration_ns: u64,
    argument_bytes: usize,
    result_bytes: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReturnedLine {
    server: String,
    tool: String,
    shape: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlannedLine {
    server: String,
    tool: String,
    arguments: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SamplingLine {
    calls: Vec<ModelCallLine>,
    rounds: u32,
    tokens: u64,
    duration_ns: u64,
    rounds_left: u32,
    tokens_left: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ModelCallLine {
    round: u32,
    provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    status: String,
    tokens: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    estimated: bool,
    duration_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// What the status of a call that was not approved begins with, in recordings. The name of its refusal follows.
const NOT_APPROVED: &str = "not approved: ";
