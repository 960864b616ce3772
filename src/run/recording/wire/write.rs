//! Makes the lines of a recording.

use super::{
    CallLine, EndLine, FindingLine, LimitsLine, Line, LogLine, ModelCallLine, NOT_APPROVED, OutputLine,
    PlannedLine, RecordLine, ReturnedLine, SamplingLine, ScriptErrorLine, StartLine, ToolErrorLine, TurnLine,
};
use crate::durations::{milliseconds, nanoseconds};
use crate::run::finding::Finding;
use crate::run::recording::error::VERSION;
use crate::run::recording::{
    Delivered, Header, RecordedAnswer, RecordedCall, RecordedEnd, Recording, Request,
};
use crate::run::result::{
    LogLevel, Outcome, Output, PlannedCall, ScriptError, ToolCallRecord, ToolCallStatus,
};
use crate::run::sampling::{ModelCall, SamplingReport};
use crate::tools::ToolError;

/// The lines of a recording.
pub(in crate::run::recording) fn lines(recording: &Recording) -> impl Iterator<Item = Line> + '_ {
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
        language: header.language.as_str().to_owned(),
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
        clock_resolution_ns: nanoseconds(header.clock_resolution),
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
    lines
        .iter()
        .map(|(level, text)| LogLine { level: level.as_str().to_owned(), text: text.clone() })
        .collect()
}

fn end_line(end: &RecordedEnd) -> EndLine {
    let (value, error) = match &end.outcome {
        Outcome::Returned(value) => (Some(value.text().to_owned()), None),
        Outcome::Failed(error) => (None, Some(script_error_line(error))),
    };
    let output = |entry: &Output| match entry {
        Output::Log { level, text } => {
            OutputLine { level: Some(level.as_str().to_owned()), text: text.clone() }
        }
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
        ToolCallStatus::NotApproved(refusal) => format!("{NOT_APPROVED}{}", refusal.as_str()),
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
