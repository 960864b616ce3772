//! The text of an answer for models: the value or the error, then the output, then the calls.

use std::fmt::Write as _;

use serde_json::Value;

use crate::run::finding::Finding;
use crate::run::result::{ErrorCode, ExecuteResult, ScriptError, ToolCallRecord, ToolCallStatus};
use crate::text::one_line;
use crate::tools::names::{python_name, typescript_name};

/// Renders a result. The text contains the same information as the structured content. `value` is
/// the value as it is shown, `run` is the id of the run record.
pub(crate) fn render(
    result: &ExecuteResult,
    structured: &Value,
    value: Option<&str>,
    run: Option<&str>,
) -> String {
    let mut text = String::new();
    if let Some(error) = result.error() {
        push_error(&mut text, error, &structured["error"]);
    } else if let Some(value) = value {
        text.push_str(value);
    }
    if let Some(output) = structured["output"].as_str() {
        push_section(&mut text, "output", output);
    }
    if result.usage.output_bytes_dropped > 0 {
        let dropped = result.usage.output_bytes_dropped;
        push_section(&mut text, "output", &format!("{dropped} bytes were printed beyond what is kept"));
    }
    // The line of the source has the call.
    let line = structured["error"]["sourceLine"].as_str();
    let is_shown = only_failed_call(result).is_some_and(|call| line.is_some_and(|line| names(line, call)));
    if let Some(calls) = render_calls(structured).filter(|_| !is_shown) {
        push_section(&mut text, "calls", &calls);
    }
    if let Some(planned) = render_planned(structured) {
        push_section(&mut text, "dry run", &planned);
    }
    if let Some(run) = run {
        push_record(&mut text, result, run);
    }
    if text.is_empty() {
        text.push_str("null");
    }
    text
}

fn push_error(text: &mut String, error: &ScriptError, shown: &Value) {
    // The findings follow with their locations. The error is one of them, so the first line describes them together.
    let about_all = match error.code {
        _ if error.problems.len() < 2 => None,
        ErrorCode::CheckFailed => Some("calls or imports of the script cannot succeed"),
        ErrorCode::SyntaxError | ErrorCode::TranspileError => Some("the script cannot be compiled"),
        _ => None,
    };
    let code = match error.tool_code {
        Some(code) if about_all.is_none() => code.as_str(),
        _ => error.code.as_str(),
    };
    let message = about_all.unwrap_or_else(|| shown["message"].as_str().unwrap_or_default());
    // Writing to a string cannot fail.
    let _ = write!(text, "{code}: {}{message}", kind_of(error, message));
    if about_all.is_some() {
        push_problems(text, &error.problems);
    } else if let Some(line) = error.line {
        let column = error.column.unwrap_or(1);
        let _ = write!(text, "\nat line {line}, column {column}");
        if let Some(source) = shown["sourceLine"].as_str() {
            let _ = write!(text, ": {}", source.trim());
        }
    }
    if let Some(hint) = &error.hint {
        let _ = write!(text, "\nhint: {hint}");
    }
    if let Some(retry) = shown["retryAfterMs"].as_f64() {
        let _ = write!(text, "\ntry again after {} ms", retry.ceil());
    }
    if error.code == ErrorCode::RuntimeError
        && let Some(stack) = shown["stack"].as_str()
    {
        let _ = write!(text, "\n{stack}");
    }
    if about_all.is_none() && error.code != ErrorCode::CheckFailed && !error.problems.is_empty() {
        text.push_str("\nthe check of the script has found besides:");
        for line in beside(error) {
            text.push('\n');
            text.push_str(&line);
        }
    }
}

/// Maximum bytes of the name of an error before its message. A script chooses it.
const MAX_NAME: usize = 100;

/// The name of an uncaught error before its message: without it `'x'` is not a missing key. Of a failed call the code
/// says more, and `Error` says nothing.
fn kind_of(error: &ScriptError, message: &str) -> String {
    match &error.name {
        Some(name)
            if error.code == ErrorCode::RuntimeError
                && error.tool_code.is_none()
                && name != "Error"
                && name.len() <= MAX_NAME
                && !message.starts_with(name.as_str()) =>
        {
            format!("{}: ", one_line(name))
        }
        _ => String::new(),
    }
}

/// The findings of the check in a script that was run, one a line.
pub(super) fn beside(error: &ScriptError) -> impl Iterator<Item = String> + use<'_> {
    error.problems.iter().map(|problem| format!("{} at {}", problem.severity, one_line(&problem.to_string())))
}

/// Lists everything that the check before the run has found, one finding per line.
fn push_problems(text: &mut String, problems: &[Finding]) {
    for problem in problems {
        let (line, column) = (problem.line.unwrap_or(1), problem.column.unwrap_or(1));
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{} at line {line}, column {column}: ", problem.severity);
        let _ = write!(text, "{}: {}", problem.code, problem.message);
        if let Some(source) = &problem.source_line {
            let _ = write!(text, "\n    {}", source.trim());
        }
    }
}

/// Names the resources that contain the run's record.
fn push_record(text: &mut String, result: &ExecuteResult, run: &str) {
    let parts = [
        ("output", !result.logs.is_empty()),
        ("value", result.value_json().is_some()),
        ("calls", !result.tool_calls.is_empty() && only_failed_call(result).is_none()),
    ];
    let names: Vec<&str> = parts.iter().filter_map(|&(name, exists)| exists.then_some(name)).collect();
    if !names.is_empty() {
        push_section(text, "more", &format!("cx://runs/{run}/{}", names.join(", /")));
    }
}

/// The run's only call, if it ended the run, so that the error has all that there is to know of it but the tool's name.
/// Every fifth call of the conversations that `benches/agents/recorded.py` repeats is one of these.
fn only_failed_call(result: &ExecuteResult) -> Option<&ToolCallRecord> {
    let code = result.error()?.tool_code?;
    let [call] = &result.tool_calls[..] else { return None };
    let is_only = result.usage.tool_calls == 1 && result.usage.tool_calls_refused == 0;
    (is_only && call.status == ToolCallStatus::Failed(code)).then_some(call)
}

/// Whether a line names the tool of a call, in one of the forms that scripts have. One that calls what a variable
/// names, or throws what it has caught, does not.
fn names(line: &str, call: &ToolCallRecord) -> bool {
    [&call.tool, &typescript_name(&call.tool), &python_name(&call.tool)]
        .iter()
        .any(|name| line.contains(name.as_str()))
}

fn push_section(text: &mut String, name: &str, content: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    let separator = if content.contains('\n') { '\n' } else { ' ' };
    // Writing to a string cannot fail.
    let _ = write!(text, "[{name}]{separator}{content}");
}

/// What went wrong with calls of a tool: the field that counts it, and the word that the text uses.
const CALL_PROBLEMS: [(&str, &str); 3] =
    [("failed", "failed"), ("inFlight", "in flight"), ("notApproved", "not approved")];

/// Summarizes the calls of each tool where something failed: `mcp__files__read ×2 (1 failed)`. After a failure of the
/// run it lists all tools, because their calls may have had an effect, and the shape of what they returned: ` →
/// {content: string}`. A model does not need this for a successful run.
fn render_calls(structured: &Value) -> Option<String> {
    let tools = structured["toolCallSummary"].as_array().map(Vec::as_slice).unwrap_or_default();
    let run_failed = structured["error"].is_object();
    let has_problem = |tool: &Value| CALL_PROBLEMS.iter().any(|&(field, _)| tool[field].is_u64());
    let tool = |summary: &Value| {
        let mut text = summary["tool"].as_str().unwrap_or_default().to_owned();
        let _ = write!(text, " ×{}", summary["calls"]);
        let problems: Vec<String> = CALL_PROBLEMS
            .iter()
            .filter_map(|&(field, word)| Some(format!("{} {word}", summary[field].as_u64()?)))
            .collect();
        if !problems.is_empty() {
            let _ = write!(text, " ({})", problems.join(", "));
        }
        if let Some(shape) = summary["returned"].as_str() {
            let _ = write!(text, " → {shape}");
        }
        text
    };
    // A shape contains commas, so each tool has a line of its own.
    let separator = if tools.iter().any(|tool| tool["returned"].is_string()) { "\n" } else { ", " };
    let shown = tools.iter().filter(|summary| run_failed || has_problem(summary));
    let mut text = shown.map(tool).collect::<Vec<_>>().join(separator);
    if run_failed && let Some(more) = structured["toolCallSummaryOmitted"].as_u64() {
        let separator = if text.contains('\n') { "\n" } else { " " };
        let _ = write!(text, "{separator}and {more} more tools");
    }
    if let Some(refused) = structured["toolCallsRefused"].as_u64() {
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}{refused} refused");
    }
    if text.is_empty() { None } else { Some(text) }
}

/// Lists the calls that a dry run did not make, one per line.
fn render_planned(structured: &Value) -> Option<String> {
    let planned = structured["plannedCalls"].as_array()?;
    let mut lines: Vec<String> = planned
        .iter()
        .map(|call| format!("{} {}", call["tool"].as_str().unwrap_or_default(), call["arguments"]))
        .collect();
    let more =
        ["plannedCallsOmitted", "plannedCallsDropped"].map(|field| structured[field].as_u64().unwrap_or(0));
    if let Some(more) = Some(more.iter().sum::<u64>()).filter(|&more| more > 0) {
        lines.push(format!("and {more} more"));
    }
    Some(if lines.is_empty() {
        "it would have called nothing that writes".to_owned()
    } else {
        lines.join("\n")
    })
}
