//! What a run's result becomes for a client: structured content, a text of the same, and content blocks. Pure.
//!
//! The structured content is [`ExecuteResult::to_json`] with five differences. `output` beyond 25,000 characters keeps
//! its head and tail, and `outputOmitted` counts what is left out. A `value` whose JSON is longer than that is replaced
//! by `valueTruncated`: `{characters, head, tail}`. What was emitted is not repeated: it follows as content blocks, and
//! `emittedBlocks` counts it. Of `plannedCalls` the first 25,000 bytes are kept, and `plannedCallsOmitted` counts the
//! others. `runId` names the run where more of it can be read: `cx://runs/<runId>/output`, `/value`
//! and `/calls`.

use std::borrow::Cow;
use std::fmt::Write as _;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use crate::json::{self, Json};
use crate::run::result::{ErrorCode, ExecuteResult, ScriptError};
use crate::run::result_json::in_order;

/// The code of answers to calls with arguments that cannot be, as of tools' own.
pub(super) const INVALID_ARGUMENTS: &str = "INVALID_ARGUMENTS";

/// The most of printed output, of the value and of emitted text in one answer, in characters. Clients cut answers of
/// some 25,000 tokens, and where they do, structure is lost.
pub(super) const MAX_CHARACTERS: usize = 25_000;

/// Of a text that is cut, how much of its end is kept, in tenths: the end tells how it went.
const TAIL_TENTHS: usize = 4;

/// What is shown of a value that is too long: enough to see its shape.
const VALUE_HEAD: usize = 4_000;
const VALUE_TAIL: usize = 1_000;

/// The most of an error's message and stack, in characters.
const MAX_ERROR_CHARACTERS: usize = 4_000;

/// The most of the source line that is at fault. One line may be a whole minified program.
const MAX_SOURCE_CHARACTERS: usize = 400;

/// Tools in the summary of calls.
const MAX_TOOLS: usize = 50;

/// The most of the calls that a dry run did not make, in bytes of JSON.
const MAX_PLANNED_BYTES: usize = 25_000;

/// Content blocks beside the text.
const MAX_BLOCKS: usize = 100;

/// How the text of an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// For models: the value, then what was printed, then the calls.
    #[default]
    Text,
    /// The structured content as compact JSON.
    Json,
    /// The structured content as TOON (Token-Oriented Object Notation).
    Toon,
}

/// An answer to the call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) structured: Value,
    /// The text first, then what was emitted.
    pub(super) content: Vec<ContentBlock>,
    pub(super) is_error: bool,
}

/// A result whose texts have been measured.
pub(super) struct Draft<'a> {
    result: &'a ExecuteResult,
    output: String,
    value: Option<&'a Json>,
    emitted: Vec<&'a Json>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(result: &'a ExecuteResult) -> Self {
        Self {
            result,
            output: result.printed(),
            value: result.value_json(),
            emitted: result.emitted().collect(),
        }
    }

    /// Whether the answer will not say everything, so that the run is worth keeping.
    pub(super) fn leaves_out(&self) -> bool {
        let emitted_text = self.emitted.iter().filter_map(|block| block.string_field("text"));
        is_longer(&self.output, MAX_CHARACTERS)
            || self.value.is_some_and(|value| is_longer(value.text(), MAX_CHARACTERS))
            || emitted_text.map(|text| text.len()).sum::<usize>() > MAX_CHARACTERS
            || self.emitted.len() > MAX_BLOCKS
            // Which of the calls had taken effect is what matters after a failure.
            || (self.result.error().is_some() && !self.result.tool_calls.is_empty())
    }

    /// The answer. `run` is the id under which the run is kept, if it is.
    pub(super) fn answer(&self, format: Format, run: Option<&str>) -> Answer {
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
        // What is short enough for an answer is short enough for a tree.
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
            // What is short enough for an answer is short enough for a tree.
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

    /// The compact text. What is in it is what the structured content has.
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

    /// Adds what was emitted: images, audio and resources as they are, text as far as there is room.
    fn push_blocks(&self, content: &mut Vec<ContentBlock>, run: Option<&str>) {
        let mut room = MAX_CHARACTERS;
        // For all blocks together.
        let mut budget = json::budget(self.emitted.iter().map(|block| block.text().len()).sum());
        for &block in self.emitted.iter().take(MAX_BLOCKS) {
            // What would take far more than its text is shown as what it is, as is what is none of the protocol's kinds.
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

/// An answer in the protocol's form.
pub(super) fn respond(answer: Answer) -> CallToolResult {
    let mut result = CallToolResult::success(answer.content);
    result.structured_content = Some(answer.structured);
    result.is_error = Some(answer.is_error);
    result
}

/// The answer to a call that never became a run.
pub(super) fn refusal(format: Format, code: &str, message: &str, hint: Option<&str>) -> Answer {
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

/// An answer that is data and no run: `health`.
pub(super) fn data(format: Format, structured: Value) -> Answer {
    let text = match format {
        Format::Text | Format::Json => structured.to_string(),
        Format::Toon => toon(&structured),
    };
    Answer { structured, content: vec![ContentBlock::text(text)], is_error: false }
}

fn toon(value: &Value) -> String {
    // It fails for what is nested deeper than values of scripts may be.
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

/// `mcp__files__read ×2 (1 failed, 12 ms)`, for each tool.
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
    // All calls may have been refused before they had a record.
    if text.is_empty() { None } else { Some(text) }
}

/// The calls that a dry run did not make, a line for each.
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

/// Where the rest of something can be read, as the end of a sentence.
fn place(run: Option<&str>, part: &str) -> String {
    run.map_or_else(String::new, |run| format!("; all of it is in cx://runs/{run}/{part}"))
}

fn whole_or_cut<'a>(text: &'a str, most: usize, place: &str) -> Cow<'a, str> {
    cut(text, most, place).map_or(Cow::Borrowed(text), |(kept, _)| Cow::Owned(kept))
}

/// The head and the tail of a text that is longer than `most` characters, with a line between that counts what is
/// left out, and how many characters that are. `None` for a text that fits.
fn cut(text: &str, most: usize, place: &str) -> Option<(String, usize)> {
    if !is_longer(text, most) {
        return None;
    }
    let length = text.chars().count();
    let marker = |omitted: usize| format!("\n[… {omitted} characters left out{place} …]\n");
    // The figure has as many digits as that of the whole, at most.
    let room = most.saturating_sub(marker(length).chars().count());
    let tail = room * TAIL_TENTHS / 10;
    let head = room - tail;
    let omitted = length - room;
    Some((format!("{}{}{}", first(text, head), marker(omitted), last(text, tail)), omitted))
}

fn is_longer(text: &str, characters: usize) -> bool {
    // Counting is only needed where bytes do not decide.
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
