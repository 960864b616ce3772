//! Builds a recording from the lines of a file, which is untrusted.

use std::sync::Arc;
use std::time::Duration;

use super::{
    CallLine, EndLine, FindingLine, Line, LogLine, ModelCallLine, NOT_APPROVED, OutputLine, PlannedLine,
    RecordLine, ReturnedLine, SamplingLine, ScriptErrorLine, StartLine, ToolErrorLine, TurnLine,
};
use crate::json::Json;
use crate::run::finding::{Finding, FindingCode, Severity};
use crate::run::limits::Limits;
use crate::run::recording::{
    Delivered, Header, MAX_CALLS, MAX_TURNS, Readings, RecordedAnswer, RecordedCall, RecordedEnd, Recording,
    Request, Turn,
};
use crate::run::result::{
    ErrorCode, LogLevel, Outcome, Output, PlannedCall, Refusal, ReturnedShape, ScriptError, ToolCallRecord,
    ToolCallStatus, Usage,
};
use crate::run::sampling::{ModelCall, ModelCallStatus, SamplingMetrics, SamplingReport};
use crate::run::script::Language;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum number of clock steps that are read. Recordings have far fewer.
const MAX_STEPS: usize = 2_000_000;

/// Makes a recording of its lines.
#[derive(Default)]
pub(in crate::run::recording) struct Builder {
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
    /// Adds a line. The error describes what is wrong with it.
    pub(in crate::run::recording) fn add(&mut self, line: Line) -> Result<(), String> {
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

    /// The recording. The error describes what is wrong with the file as a whole; it is `None` if the end is missing.
    pub(in crate::run::recording) fn finish(self) -> Result<Recording, Option<String>> {
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
    hex::decode_to_slice(&line.seed, &mut seed)
        .map_err(|_| "the seed is 64 hexadecimal digits".to_owned())?;
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
    ToolErrorCode::from_name(text).ok_or_else(|| format!("there is no error code `{text}`"))
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
    LogLevel::from_name(name).ok_or_else(|| format!("there is no level `{name}`"))
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
    let code = ErrorCode::from_name(&line.code);
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
    let named = [FindingCode::NotAwaited, FindingCode::ToolsUnknown, FindingCode::ModuleUnavailable];
    let of_scripts = ErrorCode::ALL.into_iter().map(FindingCode::Script);
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
    let refusal = line.status.strip_prefix(NOT_APPROVED).and_then(Refusal::from_name);
    let status = match (ToolCallStatus::from_name(&line.status), refusal) {
        (Some(status), _) => status,
        (None, Some(refusal)) => ToolCallStatus::NotApproved(refusal),
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
        let status = match ModelCallStatus::from_name(&call.status) {
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
            // Violations that the filter found are masked in the answer; the names of its patterns are not kept.
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
