//! Converts a run's result to an answer: structured content, a text rendering of it, and content
//! blocks. Pure.
//!
//! The structured content is [`ExecuteResult::to_json`] with five differences:
//!
//! - `output` beyond 25,000 characters keeps its head and tail, and `outputOmitted` counts the
//!   omitted characters.
//! - A `value` whose JSON is longer than that is replaced by `valueTruncated`: `{characters, head,
//!   tail}`.
//! - Emitted content is not repeated: it follows as content blocks, and `emittedBlocks` counts it.
//! - The first 25,000 bytes of `plannedCalls` are kept, and `plannedCallsOmitted` counts the other
//!   calls.
//! - `runId` is the id of the run record, where the rest can be read: `cx://runs/<runId>/output`,
//!   `/value` and `/calls`.

use std::borrow::Cow;
use std::fmt::Write as _;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use crate::json::{self, Json};
use crate::run::result::{ErrorCode, ExecuteResult, ScriptError};
use crate::run::result_json::in_order;

/// Error code of answers to calls with invalid arguments. Tools use the same code.
pub(crate) const INVALID_ARGUMENTS: &str = "INVALID_ARGUMENTS";

/// Maximum characters of printed output, of the value, and of emitted text in one answer. Clients
/// truncate answers of about 25,000 tokens, and their truncation breaks the structure.
pub(crate) const MAX_CHARACTERS: usize = 25_000;

/// Tenths of a truncated text that are kept from its end. The end shows how the run went.
const TAIL_TENTHS: usize = 4;

/// Characters that are kept of a value that is too long: enough to see its structure.
const VALUE_HEAD: usize = 4_000;
const VALUE_TAIL: usize = 1_000;

/// Maximum characters of an error's message, and of its stack.
const MAX_ERROR_CHARACTERS: usize = 4_000;

/// Maximum characters of the source line of an error. One line may be a whole minified program.
const MAX_SOURCE_CHARACTERS: usize = 400;

/// Maximum number of tools in the summary of calls.
const MAX_TOOLS: usize = 50;

/// Maximum bytes of JSON of the calls that a dry run did not make.
const MAX_PLANNED_BYTES: usize = 25_000;

/// Maximum number of content blocks in addition to the text.
const MAX_BLOCKS: usize = 100;

/// Format of an answer's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// For models: the value, then the printed output, then the calls.
    #[default]
    Text,
    /// The structured content as compact JSON.
    Json,
    /// The structured content as TOON (Token-Oriented Object Notation).
    Toon,
}

/// An answer to a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) structured: Value,
    /// The text first, then the emitted content.
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) is_error: bool,
}

/// A result whose texts have been measured.
pub(crate) struct Draft<'a> {
    result: &'a ExecuteResult,
    output: String,
    value: Option<&'a Json>,
    emitted: Vec<&'a Json>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(result: &'a ExecuteResult) -> Self {
        Self {
            result,
            output: result.printed(),
            value: result.value_json(),
            emitted: result.emitted().collect(),
        }
    }

    /// Whether the answer will be incomplete, so that the run should be recorded.
    pub(crate) fn leaves_out(&self) -> bool {
        let emitted_text = self.emitted.iter().filter_map(|block| block.string_field("text"));
        is_longer(&self.output, MAX_CHARACTERS)
            || self.value.is_some_and(|value| is_longer(value.text(), MAX_CHARACTERS))
            || emitted_text.map(|text| text.len()).sum::<usize>() > MAX_CHARACTERS
            || self.emitted.len() > MAX_BLOCKS
            // After a failure, the client needs to know which of the calls had taken effect.
            || (self.result.error().is_some() && !self.result.tool_calls.is_empty())
    }

    /// Makes the answer. `run` is the id of the run record, if there is one.
    pub(crate) fn answer(&self, format: Format, run: Option<&str>) -> Answer {
        let structured = self.structured(run);
        let text = match format {
            Format::Text => self.text(&structured, run),
            Format::Json => structured.to_string(),
            Format::Toon => toon(&structured),
        };
        let mut content = vec![ContentBlock::text(text)];
        self.push_blocks(&mut content, run);
        Answer { structured, content, is_error: self.result.error().is_some() }
    }

    fn structured(&self, run: Option<&str>) -> Value {
        let mut report = self.result.without_values();
        if let Some((kept, omitted)) = cut(&self.output, MAX_CHARACTERS, &place(run, "output")) {
            report.insert("output".to_owned(), kept.into());
            report.insert("outputOmitted".to_owned(), omitted.into());
        }
        // A text that is short enough for an answer is small enough to be parsed into a tree.
        let whole = self.value.filter(|value| !is_longer(value.text(), MAX_CHARACTERS)).and_then(Json::value);
        match (whole, self.value.map(Json::text)) {
            (Some(value), _) => {
                report.insert("value".to_owned(), value.clone());
            }
            (None, Some(value)) => {
                let truncated = json!({
                    "characters": value.chars().count(),
                    "head": first(value, VALUE_HEAD),
                    "tail": last(value, VALUE_TAIL),
                });
                report.insert("valueTruncated".to_owned(), truncated);
            }
            (None, None) => {}
        }
        if !self.emitted.is_empty() {
            report.insert("emittedBlocks".to_owned(), self.emitted.len().into());
        }
        if let Some(Value::Object(error)) = report.get_mut("error") {
            shorten(error, "message", MAX_ERROR_CHARACTERS);
            shorten(error, "stack", MAX_ERROR_CHARACTERS);
            shorten(error, "sourceLine", MAX_SOURCE_CHARACTERS);
        }
        if let Some(Value::Array(tools)) = report.get_mut("toolCallSummary") {
            let more = tools.len().saturating_sub(MAX_TOOLS);
            tools.truncate(MAX_TOOLS);
            if more > 0 {
                report.insert("toolCallSummaryOmitted".to_owned(), more.into());
            }
        }
        if let Some(planned) = self.result.planned() {
            let mut room = MAX_PLANNED_BYTES;
            let fitting = planned.iter().take_while(|call| {
                let bytes = call.text().len();
                let fits = bytes <= room;
                room = room.saturating_sub(bytes);
                fits
            });
            // A text that is short enough for an answer is small enough to be parsed into a tree.
            let fitting: Vec<Value> = fitting.map(|call| call.value().cloned().unwrap_or_default()).collect();
            let more = planned.len() - fitting.len();
            report.insert("plannedCalls".to_owned(), fitting.into());
            if more > 0 {
                report.insert("plannedCallsOmitted".to_owned(), more.into());
            }
        }
        if let Some(run) = run {
            report.insert("runId".to_owned(), run.into());
        }
        in_order(report)
    }

    /// The compact text. It contains the same information as the structured content.
    fn text(&self, structured: &Value, run: Option<&str>) -> String {
        let mut text = String::new();
        if let Some(error) = self.result.error() {
            push_error(&mut text, error, &structured["error"]);
        } else {
            self.push_value(&mut text, run);
        }
        if let Some(output) = structured["output"].as_str() {
            push_section(&mut text, "output", output);
        }
        if self.result.usage.output_bytes_dropped > 0 {
            let dropped = self.result.usage.output_bytes_dropped;
            push_section(&mut text, "output", &format!("{dropped} bytes were printed beyond what is kept"));
        }
        if let Some(calls) = calls_text(structured) {
            push_section(&mut text, "calls", &calls);
        }
        if let Some(planned) = planned_text(structured) {
            push_section(&mut text, "dry run", &planned);
        }
        if let Some(run) = run {
            push_section(&mut text, "more", &format!("cx://runs/{run}/output, /value, /calls"));
        }
        if text.is_empty() {
            text.push_str("null");
        }
        text
    }

    fn push_value(&self, text: &mut String, run: Option<&str>) {
        let shows_something = !self.output.is_empty() || !self.emitted.is_empty();
        match self.value {
            Some(value) if value.is_null() && shows_something => {}
            Some(value) => {
                let string = value.as_string();
                let value = string.as_deref().unwrap_or(value.text());
                text.push_str(&whole_or_cut(value, MAX_CHARACTERS, &place(run, "value")));
            }
            None => {}
        }
    }

    /// Appends the emitted content: images, audio and resources unchanged, text up to the character
    /// limit.
    fn push_blocks(&self, content: &mut Vec<ContentBlock>, run: Option<&str>) {
        let mut room = MAX_CHARACTERS;
        // Memory budget of all blocks together.
        let mut budget = json::budget(self.emitted.iter().map(|block| block.text().len()).sum());
        for &block in self.emitted.iter().take(MAX_BLOCKS) {
            // A block that would take far more memory than its text is replaced by a description of
            // it. So is a block of a type that the protocol does not have.
            let read = json::check(block.text(), budget).and_then(|cost| {
                budget -= cost;
                Ok(serde_json::from_str(block.text())?)
            });
            content.push(match read {
                Ok(ContentBlock::Text(mut text)) => {
                    let length = text.text.chars().count();
                    if let Some((kept, _)) = cut(&text.text, room, &place(run, "output")) {
                        text.text = kept;
                    }
                    room = room.saturating_sub(length);
                    ContentBlock::Text(text)
                }
                Ok(block) => block,
                Err(_) => {
                    let json = block.text();
                    let shown = whole_or_cut(json, room, &place(run, "output")).into_owned();
                    room = room.saturating_sub(json.chars().count());
                    ContentBlock::text(shown)
                }
            });
        }
        if let Some(more) = self.emitted.len().checked_sub(MAX_BLOCKS).filter(|&more| more > 0) {
            content
                .push(ContentBlock::text(format!("{more} more blocks were emitted{}", place(run, "output"))));
        }
    }
}

/// Converts an answer to the protocol's type.
pub(crate) fn respond(answer: Answer) -> CallToolResult {
    let mut result = CallToolResult::success(answer.content);
    result.structured_content = Some(answer.structured);
    result.is_error = Some(answer.is_error);
    result
}

/// The answer to a call that was refused before it became a run.
pub(crate) fn refusal(format: Format, code: &str, message: &str, hint: Option<&str>) -> Answer {
    let mut error = json!({ "code": code, "message": message });
    if let Some(hint) = hint {
        error["hint"] = hint.into();
    }
    let structured = json!({ "success": false, "error": error });
    let text = match format {
        Format::Text => {
            let mut text = format!("{code}: {message}");
            if let Some(hint) = hint {
                let _ = write!(text, "\nhint: {hint}");
            }
            text
        }
        Format::Json => structured.to_string(),
        Format::Toon => toon(&structured),
    };
    Answer { structured, content: vec![ContentBlock::text(text)], is_error: true }
}

/// The answer to a call that is not a run: `health`.
pub(crate) fn data(format: Format, structured: Value) -> Answer {
    let text = match format {
        Format::Text | Format::Json => structured.to_string(),
        Format::Toon => toon(&structured),
    };
    Answer { structured, content: vec![ContentBlock::text(text)], is_error: false }
}

fn toon(value: &Value) -> String {
    // Encoding fails if the nesting is deeper than values of scripts may have.
    toon_format::encode_default(value).unwrap_or_else(|_| value.to_string())
}

fn push_error(text: &mut String, error: &ScriptError, shown: &Value) {
    let code = error.tool_code.map_or(error.code.as_str(), |code| code.as_str());
    let message = shown["message"].as_str().unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = write!(text, "{code}: {message}");
    if let Some(line) = error.line {
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
        let _ = write!(text, "\ntry again after {retry} ms");
    }
    if error.code == ErrorCode::RuntimeError
        && let Some(stack) = shown["stack"].as_str()
    {
        let _ = write!(text, "\n{stack}");
    }
}

fn push_section(text: &mut String, name: &str, content: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    let separator = if content.contains('\n') { '\n' } else { ' ' };
    // Writing to a string cannot fail.
    let _ = write!(text, "[{name}]{separator}{content}");
}

/// Summarizes the calls of each tool: `mcp__files__read ×2 (1 failed, 12 ms)`.
fn calls_text(structured: &Value) -> Option<String> {
    let tools = structured["toolCallSummary"].as_array()?;
    let tool = |summary: &Value| {
        let mut text = summary["tool"].as_str().unwrap_or_default().to_owned();
        let _ = write!(text, " ×{} (", summary["calls"]);
        for (field, word) in [
            ("failed", "failed"),
            ("inFlight", "in flight"),
            ("notApproved", "not approved"),
            ("stubbed", "stubbed"),
        ] {
            if let Some(count) = summary[field].as_u64() {
                let _ = write!(text, "{count} {word}, ");
            }
        }
        let _ = write!(text, "{} ms)", summary["totalMs"]);
        text
    };
    let mut text = tools.iter().map(tool).collect::<Vec<_>>().join(", ");
    if let Some(more) = structured["toolCallSummaryOmitted"].as_u64() {
        let _ = write!(text, " and {more} more tools");
    }
    // All calls may have been refused before they were recorded.
    if text.is_empty() { None } else { Some(text) }
}

/// Lists the calls that a dry run did not make, one per line.
fn planned_text(structured: &Value) -> Option<String> {
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

/// Says where the full text can be read, as the end of a sentence. Empty if the run is not
/// recorded.
fn place(run: Option<&str>, part: &str) -> String {
    run.map_or_else(String::new, |run| format!("; all of it is in cx://runs/{run}/{part}"))
}

fn whole_or_cut<'a>(text: &'a str, most: usize, place: &str) -> Cow<'a, str> {
    cut(text, most, place).map_or(Cow::Borrowed(text), |(kept, _)| Cow::Owned(kept))
}

/// Truncates a text that is longer than `most` characters: keeps its head and tail, with a line
/// between them that counts the omitted characters. Also returns that count. `None` if the text
/// fits.
fn cut(text: &str, most: usize, place: &str) -> Option<(String, usize)> {
    if !is_longer(text, most) {
        return None;
    }
    let length = text.chars().count();
    let marker = |omitted: usize| format!("\n[… {omitted} characters left out{place} …]\n");
    // The number of omitted characters has at most as many digits as the length of the whole text.
    let room = most.saturating_sub(marker(length).chars().count());
    let tail = room * TAIL_TENTHS / 10;
    let head = room - tail;
    let omitted = length - room;
    Some((format!("{}{}{}", first(text, head), marker(omitted), last(text, tail)), omitted))
}

fn is_longer(text: &str, characters: usize) -> bool {
    // The characters are only counted if the length in bytes does not decide.
    text.len() > characters && text.chars().nth(characters).is_some()
}

fn first(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

fn last(text: &str, characters: usize) -> &str {
    match characters.checked_sub(1) {
        Some(before) => text.char_indices().nth_back(before).map_or(text, |(start, _)| &text[start..]),
        None => "",
    }
}

fn shorten(fields: &mut Map<String, Value>, name: &str, most: usize) {
    if let Some(Value::String(text)) = fields.get_mut(name)
        && let Some((kept, _)) = cut(text, most, "")
    {
        *text = kept;
    }
}

#[cfg(test)]
mod tests;
