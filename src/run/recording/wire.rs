//! The lines of a recording's file, and the recording that they make.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::VERSION;
use super::{
    Delivered, Header, MAX_CALLS, MAX_TURNS, Readings, RecordedAnswer, RecordedCall, RecordedEnd, Recording,
    Request, Turn,
};
use crate::json::Json;
use crate::run::check::finding::{Finding, FindingCode, Severity};
use crate::run::limits::Limits;
use crate::run::result::{
    ErrorCode, LogLevel, Outcome, Output, PlannedCall, Refusal, ReturnedShape, ScriptError, ToolCallRecord,
    ToolCallStatus, Usage,
};
use crate::run::sampling::{ModelCall, ModelCallStatus, SamplingMetrics, SamplingReport};
use crate::run::script::Language;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum number of clock steps that are read. Recorded ones are far fewer.
const MAX_STEPS: usize = 2_000_000;

/// A line. Scripts, arguments, answers and values are strings: they come back to the byte.
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
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
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

/// What the check before a run found.
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

/// A printed line, or without a level a content block.
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

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The lines of a recording.
pub(super) fn lines(recording: &Recording) -> impl Iterator<Item = Line> + '_ {
    let start = std::iter::once_with(|| Line::Start(Box::new(start_line(&recording.header))));
    let calls = recording.calls.iter().enumerate();
    let calls = calls.map(|(position, call)| Line::Call(Box::new(call_line(position, call))));
    let timers = (!recording.timers.is_empty()).then(|| Line::Timers { delays: recording.timers.clone() });
    let (mut wall, mut monotonic) = (0, 0);
    let turns = recording.turns.iter().map(move |turn| {
        Line::Turn(TurnLine {
            call: match turn.delivered {
                Delivered::Call(position) => Some(position + 1),
                Delivered::Timer(_) | Delivered::End => None,
            },
            timer: match turn.delivered {
                Delivered::Timer(position) => Some(position + 1),
                Delivered::Call(_) | Delivered::End => None,
            },
            waits: turn.waits,
            wall: turn.wall.to_text(&mut wall),
            monotonic: turn.monotonic.to_text(&mut monotonic),
        })
    });
    let end = std::iter::once_with(|| Line::End(Box::new(end_line(&recording.end))));
    start.chain(calls).chain(timers).chain(turns).chain(end)
}

fn start_line(header: &Header) -> StartLine {
    let limits = header.limits;
    StartLine {
        recording: VERSION,
        cx: header.version.clone(),
        language: match header.language {
            Language::TypeScript => "typescript",
            Language::Python => "python",
        }
        .to_owned(),
        name: header.name.clone(),
        source: header.source.clone(),
        input: header.input.as_ref().map(|input| input.text().to_owned()),
        limits: LimitsLine {
            wall_time_ms: milliseconds(limits.wall_time),
            cpu_time_ms: milliseconds(limits.cpu_time),
            fuel: limits.fuel,
            memory_bytes: limits.memory_bytes,
            tool_calls: limits.tool_calls,
            calls_in_flight: limits.calls_in_flight,
            source_bytes: limits.source_bytes,
            argument_bytes: limits.argument_bytes,
            result_bytes: limits.result_bytes,
            output_bytes: limits.output_bytes,
        },
        time_zone: header.time_zone.clone(),
        clock_resolution_ns: u64::try_from(header.clock_resolution.as_nanos()).unwrap_or(u64::MAX),
        servers: header.servers.iter().map(|name| name.to_string()).collect(),
        network: header.has_network,
        seed: hex::encode(header.seed),
        dry_run: header.is_dry_run,
        started_ms: milliseconds(header.started),
        masked: header.masked,
    }
}

fn call_line(position: usize, call: &RecordedCall) -> CallLine {
    let (server, tool, arguments, query) = match &call.request {
        Request::Tool { server, tool, arguments } => {
            (Some(server.clone()), Some(tool.clone()), Some(arguments.clone()), None)
        }
        Request::FullName { name, arguments } => (None, Some(name.clone()), Some(arguments.clone()), None),
        Request::Query { text } => (None, None, None, Some(text.clone())),
    };
    let (answer, error, left_out_bytes) = match &call.answer {
        RecordedAnswer::Given(Ok(text)) => (Some(text.clone()), None, None),
        RecordedAnswer::Given(Err(error)) => (None, Some(tool_error_line(error)), None),
        RecordedAnswer::LeftOut(bytes) => (None, None, Some(*bytes)),
        RecordedAnswer::None => (None, None, None),
    };
    CallLine {
        number: position + 1,
        server,
        tool,
        arguments,
        query,
        answer,
        error,
        left_out_bytes,
        at_once: call.is_immediate,
        masked: call.is_masked,
        lines: log_lines(&call.lines),
        made_ns: nanoseconds(call.made),
        took_ns: nanoseconds(call.took),
    }
}

fn tool_error_line(error: &ToolError) -> ToolErrorLine {
    ToolErrorLine {
        code: error.code.as_str().to_owned(),
        message: error.message.clone(),
        server: error.server.clone(),
        tool: error.tool.clone(),
        content: error.content.as_ref().map(|content| content.text().to_owned()),
        retry_after_ns: error.retry_after.map(nanoseconds),
    }
}

fn log_lines(lines: &[(LogLevel, String)]) -> Vec<LogLine> {
    lines.iter().map(|(level, text)| LogLine { level: level_name(*level), text: text.clone() }).collect()
}

fn level_name(level: LogLevel) -> String {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
    .to_owned()
}

fn end_line(end: &RecordedEnd) -> EndLine {
    let (value, error) = match &end.outcome {
        Outcome::Returned(value) => (Some(value.text().to_owned()), None),
        Outcome::Failed(error) => (None, Some(script_error_line(error))),
    };
    let output = |entry: &Output| match entry {
        Output::Log { level, text } => OutputLine { level: Some(level_name(*level)), text: text.clone() },
        Output::Emit(block) => OutputLine { level: None, text: block.text().to_owned() },
    };
    let planned = |call: &PlannedCall| PlannedLine {
        server: call.server.clone(),
        tool: call.tool.clone(),
        arguments: call.arguments.text().to_owned(),
    };
    EndLine {
        value,
        error,
        output: end.logs.iter().map(output).collect(),
        closing: log_lines(&end.closing),
        calls: end.tool_calls.iter().map(record_line).collect(),
        returned: end
            .returned
            .iter()
            .map(|returned| ReturnedLine {
                server: returned.server.clone(),
                tool: returned.tool.clone(),
                shape: returned.shape.clone(),
            })
            .collect(),
        planned: end.planned_calls.as_ref().map(|calls| calls.iter().map(planned).collect()),
        sampling: end.sampling.as_ref().map(sampling_line),
        calls_made: end.usage.tool_calls,
        calls_refused: end.usage.tool_calls_refused,
        result_bytes: end.usage.tool_result_bytes,
        planned_dropped: end.usage.planned_calls_dropped,
        missing: end.missing.clone(),
        unrecorded_files: end.has_unrecorded_files,
    }
}

fn script_error_line(error: &ScriptError) -> ScriptErrorLine {
    ScriptErrorLine {
        code: error.code.as_str().to_owned(),
        message: error.message.clone(),
        name: error.name.clone(),
        stack: error.stack.clone(),
        line: error.line,
        column: error.column,
        source_line: error.source_line.clone(),
        hint: error.hint.clone(),
        tool_code: error.tool_code.map(|code| code.as_str().to_owned()),
        retry_after_ns: error.retry_after.map(nanoseconds),
        problems: error.problems.iter().map(finding_line).collect(),
    }
}

fn finding_line(finding: &Finding) -> FindingLine {
    FindingLine {
        code: finding.code.as_str().to_owned(),
        severity: finding.severity.as_str().to_owned(),
        message: finding.message.clone(),
        hint: finding.hint.clone(),
        location: [finding.line, finding.column, finding.end_line, finding.end_column],
        source_line: finding.source_line.clone(),
    }
}

fn record_line(record: &ToolCallRecord) -> RecordLine {
    let status = match record.status {
        ToolCallStatus::NotApproved(refusal) => {
            let (name, _) = REFUSALS.iter().find(|(_, known)| *known == refusal).unwrap_or(&REFUSALS[0]);
            (*name).to_owned()
        }
        status => status.as_str().to_owned(),
    };
    RecordLine {
        server: record.server.clone(),
        tool: record.tool.clone(),
        status,
        approved: record.approved,
        duration_ns: nanoseconds(record.duration),
        argument_bytes: record.argument_bytes,
        result_bytes: record.result_bytes,
    }
}

fn sampling_line(report: &SamplingReport) -> SamplingLine {
    let metrics = report.metrics;
    let call = |call: &ModelCall| ModelCallLine {
        round: call.round,
        provider: call.provider.clone(),
        model: call.model.clone(),
        status: call.status.as_str().to_owned(),
        tokens: call.tokens,
        estimated: call.is_estimated,
        duration_ns: nanoseconds(call.duration),
        stop_reason: call.stop_reason.clone(),
    };
    SamplingLine {
        calls: report.calls.iter().map(call).collect(),
        rounds: metrics.total_rounds,
        tokens: metrics.total_tokens,
        duration_ns: nanoseconds(metrics.total_duration),
        rounds_left: metrics.rounds_left,
        tokens_left: metrics.tokens_left,
    }
}

const REFUSALS: [(&str, Refusal); 6] = [
    ("not approved: denied", Refusal::Denied),
    ("not approved: no answer", Refusal::NoAnswer),
    ("not approved: no approver", Refusal::NoApprover),
    ("not approved: too many questions", Refusal::TooManyQuestions),
    ("not approved: too long", Refusal::TooLong),
    ("not approved: changed", Refusal::Changed),
];

const ERROR_CODES: [ErrorCode; 14] = [
    ErrorCode::CheckFailed,
    ErrorCode::SyntaxError,
    ErrorCode::TranspileError,
    ErrorCode::RuntimeError,
    ErrorCode::Timeout,
    ErrorCode::CpuLimit,
    ErrorCode::FuelLimit,
    ErrorCode::MemoryLimit,
    ErrorCode::MaxToolCallsExceeded,
    ErrorCode::ResultTooLarge,
    ErrorCode::Cancelled,
    ErrorCode::QueueFull,
    ErrorCode::EngineCrashed,
    ErrorCode::EngineUnavailable,
];

/// Makes a recording of its lines.
#[derive(Default)]
pub(super) struct Builder {
    header: Option<Header>,
    calls: Vec<RecordedCall>,
    timers: Vec<f64>,
    turns: Vec<Turn>,
    end: Option<RecordedEnd>,
    wall: u64,
    monotonic: u64,
    steps: usize,
}

impl Builder {
    /// Adds a line. The error says what is wrong with it.
    pub(super) fn add(&mut self, line: Line) -> Result<(), String> {
        if self.end.is_some() {
            return Err("nothing can follow the outcome".to_owned());
        }
        if self.header.is_none() != matches!(line, Line::Start(_)) {
            return Err("the script is the first line, and only that".to_owned());
        }
        match line {
            Line::Start(line) => self.header = Some(header(*line)?),
            Line::Call(line) => {
                let expected = self.calls.len() + 1;
                if line.number != expected || expected > MAX_CALLS {
                    return Err(format!("expected call {expected}: call {}", line.number));
                }
                self.calls.push(recorded_call(*line)?);
            }
            Line::Timers { delays } => self.timers = delays,
            Line::Turn(line) => {
                if self.turns.len() > MAX_TURNS {
                    return Err(format!("more than {MAX_TURNS} turns"));
                }
                let turn = self.turn(&line)?;
                self.turns.push(turn);
            }
            Line::End(line) => self.end = Some(end(*line)?),
        }
        Ok(())
    }

    fn turn(&mut self, line: &TurnLine) -> Result<Turn, String> {
        let position = |number: usize, count: usize, what: &str| match number.checked_sub(1) {
            Some(position) if position < count => Ok(position),
            _ => Err(format!("there is no {what} {number}")),
        };
        let delivered = match (line.call, line.timer) {
            (Some(call), None) => Delivered::Call(position(call, self.calls.len(), "call")?),
            (None, Some(timer)) => Delivered::Timer(position(timer, self.timers.len(), "timer")?),
            (None, None) => Delivered::End,
            (Some(_), Some(_)) => return Err("a turn delivers a call or a timer, not both".to_owned()),
        };
        let mut readings = |text: &str, last: &mut u64| {
            let readings = Readings::from_text(text, last, MAX_STEPS - self.steps.min(MAX_STEPS));
            let readings = readings.ok_or_else(|| "the readings of a clock cannot be read".to_owned())?;
            self.steps += readings.len();
            Ok::<_, String>(readings)
        };
        let wall = readings(&line.wall, &mut self.wall)?;
        let monotonic = readings(&line.monotonic, &mut self.monotonic)?;
        Ok(Turn { waits: line.waits, delivered, wall, monotonic })
    }

    /// The recording. The error is what is wrong with the whole, or `None` if the end is missing.
    pub(super) fn finish(self) -> Result<Recording, Option<String>> {
        let (header, end) = self.header.zip(self.end).ok_or(None)?;
        let is_ended = self.turns.last().is_some_and(|turn| turn.delivered == Delivered::End);
        let ends = self.turns.iter().filter(|turn| turn.delivered == Delivered::End).count();
        if !is_ended || ends != 1 {
            return Err(Some("the last turn, and only that, ends the script".to_owned()));
        }
        Ok(Recording { header, calls: self.calls, timers: self.timers, turns: self.turns, end })
    }
}

fn header(line: StartLine) -> Result<Header, String> {
    let language = match line.language.as_str() {
        "typescript" => Language::TypeScript,
        "python" => Language::Python,
        other => return Err(format!("expected the language `typescript` or `python`: `{other}`")),
    };
    let mut seed = [0; 32];
    let is_seed = line.seed.len() == 64 && line.seed.is_ascii();
    for (position, byte) in seed.iter_mut().enumerate().take_while(|_| is_seed) {
        *byte = u8::from_str_radix(&line.seed[2 * position..2 * position + 2], 16)
            .map_err(|_| "the seed is 64 hexadecimal digits".to_owned())?;
    }
    if !is_seed {
        return Err("the seed is 64 hexadecimal digits".to_owned());
    }
    let own = line.limits;
    let limits = Limits {
        wall_time: Duration::from_millis(own.wall_time_ms),
        cpu_time: Duration::from_millis(own.cpu_time_ms),
        fuel: own.fuel,
        memory_bytes: own.memory_bytes,
        tool_calls: own.tool_calls,
        calls_in_flight: own.calls_in_flight,
        source_bytes: own.source_bytes,
        argument_bytes: own.argument_bytes,
        result_bytes: own.result_bytes,
        output_bytes: own.output_bytes,
        ..Limits::default()
    };
    limits.validate().map_err(|error| error.to_string())?;
    Ok(Header {
        version: line.cx,
        language,
        name: line.name,
        source: line.source,
        input: line.input.as_deref().map(json).transpose()?,
        limits,
        time_zone: line.time_zone,
        clock_resolution: Duration::from_nanos(line.clock_resolution_ns),
        servers: line.servers.into_iter().map(Arc::from).collect(),
        has_network: line.network,
        seed,
        is_dry_run: line.dry_run,
        started: Duration::from_millis(line.started_ms),
        masked: line.masked,
    })
}

fn json(text: &str) -> Result<Json, String> {
    Json::parse(text).map_err(|error| format!("a text that should be JSON is none: {error}"))
}

fn recorded_call(line: CallLine) -> Result<RecordedCall, String> {
    let request = match (line.server, line.tool, line.arguments, line.query) {
        (Some(server), Some(tool), Some(arguments), None) => Request::Tool { server, tool, arguments },
        (None, Some(name), Some(arguments), None) => Request::FullName { name, arguments },
        (None, None, None, Some(text)) => Request::Query { text },
        _ => return Err("a call has a server, a tool and arguments, or a query".to_owned()),
    };
    let answer = match (line.answer, line.error, line.left_out_bytes) {
        (Some(text), None, None) => RecordedAnswer::Given(Ok(text)),
        (None, Some(error), None) => RecordedAnswer::Given(Err(tool_error(error)?)),
        (None, None, Some(bytes)) => RecordedAnswer::LeftOut(bytes),
        (None, None, None) => RecordedAnswer::None,
        _ => return Err("a call has one answer".to_owned()),
    };
    Ok(RecordedCall {
        request,
        answer,
        lines: logs(line.lines)?,
        is_immediate: line.at_once,
        made: Duration::from_nanos(line.made_ns),
        took: Duration::from_nanos(line.took_ns),
        is_masked: line.masked,
    })
}

fn tool_code(text: &str) -> Result<ToolErrorCode, String> {
    let known = ToolErrorCode::ALL.iter().copied().find(|code| code.as_str() == text);
    known.ok_or_else(|| format!("there is no error code `{text}`"))
}

fn tool_error(line: ToolErrorLine) -> Result<ToolError, String> {
    Ok(ToolError {
        server: line.server,
        tool: line.tool,
        content: line.content.as_deref().map(json).transpose()?,
        retry_after: line.retry_after_ns.map(Duration::from_nanos),
        ..ToolError::new(tool_code(&line.code)?, line.message)
    })
}

fn level(name: &str) -> Result<LogLevel, String> {
    Ok(match name {
        "debug" => LogLevel::Debug,
        "info" => LogLevel::Info,
        "warn" => LogLevel::Warn,
        "error" => LogLevel::Error,
        other => return Err(format!("there is no level `{other}`")),
    })
}

fn logs(lines: Vec<LogLine>) -> Result<Vec<(LogLevel, String)>, String> {
    lines.into_iter().map(|line| Ok((level(&line.level)?, line.text))).collect()
}

fn end(line: EndLine) -> Result<RecordedEnd, String> {
    let outcome = match (line.value, line.error) {
        (Some(value), None) => Outcome::Returned(json(&value)?),
        (None, Some(error)) => Outcome::Failed(script_error(error)?),
        _ => return Err("the outcome is a value or an error".to_owned()),
    };
    let output = |line: OutputLine| {
        Ok::<_, String>(match line.level {
            Some(name) => Output::Log { level: level(&name)?, text: line.text },
            None => Output::Emit(json(&line.text)?),
        })
    };
    let planned = |line: PlannedLine| {
        let arguments = json(&line.arguments)?;
        Ok::<_, String>(PlannedCall { server: line.server, tool: line.tool, arguments })
    };
    let returned =
        |line: ReturnedLine| ReturnedShape { server: line.server, tool: line.tool, shape: line.shape };
    Ok(RecordedEnd {
        outcome,
        logs: line.output.into_iter().map(output).collect::<Result<_, _>>()?,
        closing: logs(line.closing)?,
        tool_calls: line.calls.into_iter().map(record).collect::<Result<_, _>>()?,
        returned: line.returned.into_iter().map(returned).collect(),
        planned_calls: line
            .planned
            .map(|calls| calls.into_iter().map(planned).collect::<Result<_, _>>())
            .transpose()?,
        sampling: line.sampling.map(sampling).transpose()?,
        usage: Usage {
            tool_calls: line.calls_made,
            tool_calls_refused: line.calls_refused,
            tool_result_bytes: line.result_bytes,
            planned_calls_dropped: line.planned_dropped,
            ..Usage::default()
        },
        missing: line.missing,
        has_unrecorded_files: line.unrecorded_files,
    })
}

fn script_error(line: ScriptErrorLine) -> Result<ScriptError, String> {
    let code = ERROR_CODES.iter().copied().find(|code| code.as_str() == line.code);
    let code = code.ok_or_else(|| format!("there is no error code `{}`", line.code))?;
    Ok(ScriptError {
        name: line.name,
        stack: line.stack,
        line: line.line,
        column: line.column,
        source_line: line.source_line,
        hint: line.hint,
        tool_code: line.tool_code.as_deref().map(tool_code).transpose()?,
        retry_after: line.retry_after_ns.map(Duration::from_nanos),
        problems: line.problems.into_iter().map(finding).collect::<Result<_, _>>()?,
        ..ScriptError::new(code, line.message)
    })
}

/// A finding of the check before a run.
fn finding(line: FindingLine) -> Result<Finding, String> {
    let named = [FindingCode::NotAwaited, FindingCode::ToolsUnknown];
    let of_scripts = ERROR_CODES.iter().copied().map(FindingCode::Script);
    let code = match named.into_iter().chain(of_scripts).find(|code| code.as_str() == line.code) {
        Some(code) => code,
        None => FindingCode::Call(tool_code(&line.code)?),
    };
    let severity =
        [Severity::Warning, Severity::Error].into_iter().find(|severity| severity.as_str() == line.severity);
    let severity = severity.ok_or_else(|| format!("there is no severity `{}`", line.severity))?;
    let [first_line, column, end_line, end_column] = line.location;
    Ok(Finding {
        code,
        severity,
        message: line.message,
        hint: line.hint,
        line: first_line,
        column,
        end_line,
        end_column,
        source_line: line.source_line,
    })
}

fn record(line: RecordLine) -> Result<ToolCallRecord, String> {
    let simple = [
        ToolCallStatus::InFlight,
        ToolCallStatus::Ok,
        ToolCallStatus::AwaitingApproval,
        ToolCallStatus::Simulated,
    ];
    let refusal = REFUSALS.iter().find(|(name, _)| *name == line.status);
    let status = match (simple.into_iter().find(|status| status.as_str() == line.status), refusal) {
        (Some(status), _) => status,
        (None, Some((_, refusal))) => ToolCallStatus::NotApproved(*refusal),
        (None, None) => ToolCallStatus::Failed(tool_code(&line.status)?),
    };
    Ok(ToolCallRecord {
        server: line.server,
        tool: line.tool,
        status,
        approved: line.approved,
        duration: Duration::from_nanos(line.duration_ns),
        argument_bytes: line.argument_bytes,
        result_bytes: line.result_bytes,
    })
}

fn sampling(line: SamplingLine) -> Result<SamplingReport, String> {
    let call = |call: ModelCallLine| {
        let simple = [ModelCallStatus::InFlight, ModelCallStatus::Ok];
        let status = match simple.into_iter().find(|status| status.as_str() == call.status) {
            Some(status) => status,
            None => ModelCallStatus::Failed(tool_code(&call.status)?),
        };
        Ok::<_, String>(ModelCall {
            round: call.round,
            provider: call.provider,
            model: call.model,
            status,
            tokens: call.tokens,
            is_estimated: call.estimated,
            duration: Duration::from_nanos(call.duration_ns),
            stop_reason: call.stop_reason,
            // What the filter found is masked in the answer; the names of its patterns are not kept.
            violations: Vec::new(),
        })
    };
    Ok(SamplingReport {
        calls: line.calls.into_iter().map(call).collect::<Result<_, _>>()?,
        metrics: SamplingMetrics {
            total_rounds: line.rounds,
            total_tokens: line.tokens,
            total_duration: Duration::from_nanos(line.duration_ns),
            rounds_left: line.rounds_left,
            tokens_left: line.tokens_left,
        },
    })
}
