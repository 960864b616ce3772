//! Converts a run's result to an answer: structured content, a text rendering of it, and content
//! blocks. Pure.
//!
//! The structured content is [`ExecuteResult::to_json`] with six differences:
//!
//! - `output` beyond the bound of characters keeps its head and tail, and `outputOmitted` counts the
//!   omitted characters.
//! - A `value` whose JSON is longer than that is replaced by `valueTruncated`: `{characters, head,
//!   tail, rest}`. `rest` is the expression that gets the run's record in the next script.
//! - Of what the check has found in a script, `error.problems` is a text with a line each. The message of
//!   `CHECK_FAILED` has all of it already.
//! - Emitted content is not repeated: it follows as content blocks, and `emittedBlocks` counts it.
//! - The first 25,000 bytes of `plannedCalls` are kept, and `plannedCallsOmitted` counts the other
//!   calls.
//! - `runId` is the id of the run record, where the rest can be read: `cx://runs/<runId>/output`,
//!   `/value` and `/calls`.

use rmcp::model::ContentBlock;
use serde_json::{Map, Value, json};

use super::Answer;
use super::format::Format;
use super::text;
use super::truncation::{cut, is_longer, last, record_call, record_note, shorten, whole_or_cut};
use crate::json::{self, Json};
use crate::run::result::{ErrorCode, ExecuteResult, ScriptError};
use crate::run::result_json::in_order;
use crate::text::start;

/// Maximum characters of printed output, of the value, and of emitted text in one answer, unless the
/// operator sets another bound. Clients truncate answers of about 25,000 tokens, and their truncation
/// breaks the structure.
pub(crate) const MAX_CHARACTERS: usize = 25_000;

/// Characters that are kept of a value that is too long: enough to show its structure.
const VALUE_HEAD: usize = 4_000;
const VALUE_TAIL: usize = 1_000;

/// Maximum characters of an error's message, and of its stack.
const MAX_ERROR_CHARACTERS: usize = 4_000;

/// Maximum characters of the source line of an error. One line may be a whole minified program.
const MAX_SOURCE_CHARACTERS: usize = 400;

/// Maximum number of calls of language models in an answer. The sums in the answer include all of them.
const MAX_MODEL_CALLS: usize = 20;

/// Maximum number of tools in the summary of calls.
const MAX_TOOLS: usize = 50;

/// Maximum bytes of JSON of the planned calls of a dry run.
const MAX_PLANNED_BYTES: usize = 25_000;

/// Maximum number of content blocks in addition to the text.
const MAX_BLOCKS: usize = 100;

/// A result whose texts have been measured.
pub(crate) struct Draft<'a> {
    result: &'a ExecuteResult,
    output: String,
    value: Option<&'a Json>,
    emitted: Vec<&'a Json>,
    max_characters: usize,
    /// Whether the client has received the first part of the output already.
    is_rest: bool,
}

impl<'a> Draft<'a> {
    /// Measures a result. Each part of the answer will have at most `max_characters`.
    pub(crate) fn new(result: &'a ExecuteResult, max_characters: usize) -> Self {
        Self {
            result,
            output: result.printed(),
            value: result.value_json(),
            emitted: result.emitted().collect(),
            max_characters,
            is_rest: false,
        }
    }

    /// Leaves out the first `bytes` of the output, which the client has already.
    pub(crate) fn without_first(mut self, bytes: usize) -> Self {
        if bytes > 0 {
            let rest = self.output.get(bytes..).unwrap_or_default();
            self.output = rest.strip_prefix('\n').unwrap_or(rest).to_owned();
            self.is_rest = true;
        }
        self
    }

    /// Whether the answer will be incomplete, so that the run should be recorded.
    pub(crate) fn leaves_out(&self) -> bool {
        let emitted_text = self.emitted.iter().filter_map(|block| block.string_field("text"));
        is_longer(&self.output, self.max_characters)
            || self.value.is_some_and(|value| is_longer(value.text(), self.max_characters))
            || emitted_text.map(|text| text.len()).sum::<usize>() > self.max_characters
            || self.emitted.len() > MAX_BLOCKS
            // After a failure, the client needs to know which of the calls had taken effect.
            || (self.result.error().is_some() && !self.result.tool_calls.is_empty())
    }

    /// Makes the answer. `run` is the id of the run record, if there is one.
    pub(crate) fn answer(&self, format: Format, run: Option<&str>) -> Answer {
        let structured = self.structured(run);
        let text = format.render(&structured, || {
            text::render(self.result, &structured, self.shown_value(run).as_deref(), run)
        });
        let mut content = vec![ContentBlock::text(text)];
        self.push_blocks(&mut content, run);
        Answer { structured, content, is_error: self.result.error().is_some() }
    }

    fn structured(&self, run: Option<&str>) -> Value {
        let mut report = self.result.without_values();
        // The message of a script that was not run contains all findings, and the text has a line for each.
        if let Some(Value::Object(shown)) = report.get_mut("error")
            && shown.shift_remove("problems").is_some()
            && let Some(error) = self.result.error()
            && error.code != ErrorCode::CheckFailed
        {
            shown.insert("problems".to_owned(), text::beside(error).collect::<Vec<_>>().join("\n").into());
        }
        if self.is_rest {
            report.shift_remove("output");
            if !self.output.is_empty() {
                report.insert("output".to_owned(), self.output.clone().into());
            }
        }
        if let Some((kept, omitted)) = cut(&self.output, self.max_characters, &record_note(run, "output")) {
            report.insert("output".to_owned(), kept.into());
            report.insert("outputOmitted".to_owned(), omitted.into());
        }
        self.insert_value(&mut report, run);
        if !self.emitted.is_empty() {
            report.insert("emittedBlocks".to_owned(), self.emitted.len().into());
        }
        if let Some(Value::Object(error)) = report.get_mut("error") {
            // A client may show a model the fields one after the other: each thing is said once.
            match self.result.error().and_then(ScriptError::stack_for_model) {
                Some(stack) => error.insert("stack".to_owned(), stack.into()),
                None => error.shift_remove("stack"),
            };
            // Python's text of a missing key is only the key.
            if self.result.error().is_some_and(|error| error.name.as_deref() == Some("KeyError"))
                && let Some(key) = error.get("message").and_then(Value::as_str)
                && !key.starts_with("KeyError")
            {
                let message = format!("KeyError: {key}");
                error.insert("message".to_owned(), message.into());
            }
            shorten(error, "message", MAX_ERROR_CHARACTERS);
            shorten(error, "stack", MAX_ERROR_CHARACTERS);
            shorten(error, "sourceLine", MAX_SOURCE_CHARACTERS);
        }
        truncate_list(&mut report, "toolCallSummary", MAX_TOOLS);
        truncate_list(&mut report, "samplingCalls", MAX_MODEL_CALLS);
        self.insert_planned(&mut report);
        if let Some(run) = run {
            report.insert("runId".to_owned(), run.into());
        }
        in_order(report)
    }

    /// Inserts the value, or its beginning and its end if it is too long.
    fn insert_value(&self, report: &mut Map<String, Value>, run: Option<&str>) {
        let Some(value) = self.value else { return };
        // A text that is short enough for an answer is small enough to be parsed into a tree.
        if !is_longer(value.text(), self.max_characters)
            && let Some(whole) = value.value()
        {
            report.insert("value".to_owned(), whole.clone());
            return;
        }
        let value = value.text();
        // An operator's bound may be smaller than both.
        let tail = VALUE_TAIL.min(self.max_characters / 5);
        let head = VALUE_HEAD.min(self.max_characters - tail);
        let mut truncated = json!({
            "characters": value.chars().count(),
            "head": start(value, head),
            "tail": last(value, tail),
        });
        if let Some(run) = run {
            truncated["rest"] = record_call(run).into();
        }
        report.insert("valueTruncated".to_owned(), truncated);
    }

    /// Inserts the planned calls of a dry run, in order, as many as fit.
    fn insert_planned(&self, report: &mut Map<String, Value>) {
        let Some(planned) = self.result.planned() else { return };
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

    /// The value as the text shows it. `None` if it adds nothing to the output.
    fn shown_value(&self, run: Option<&str>) -> Option<String> {
        let shows_something = !self.output.is_empty() || !self.emitted.is_empty();
        let value = self.value.filter(|value| !(value.is_null() && shows_something))?;
        let string = value.as_string();
        let value = string.as_deref().unwrap_or(value.text());
        Some(whole_or_cut(value, self.max_characters, &record_note(run, "value")).into_owned())
    }

    /// Appends the emitted content: images, audio and resources unchanged, text up to the character
    /// limit.
    fn push_blocks(&self, content: &mut Vec<ContentBlock>, run: Option<&str>) {
        let mut room = self.max_characters;
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
                    if let Some((kept, _)) = cut(&text.text, room, &record_note(run, "output")) {
                        text.text = kept;
                    }
                    room = room.saturating_sub(length);
                    ContentBlock::Text(text)
                }
                Ok(block) => block,
                Err(_) => {
                    let json = block.text();
                    let shown = whole_or_cut(json, room, &record_note(run, "output")).into_owned();
                    room = room.saturating_sub(json.chars().count());
                    ContentBlock::text(shown)
                }
            });
        }
        if let Some(more) = self.emitted.len().checked_sub(MAX_BLOCKS).filter(|&more| more > 0) {
            content.push(ContentBlock::text(format!(
                "{more} more blocks were emitted{}",
                record_note(run, "output")
            )));
        }
    }
}

/// Keeps the first `max` items of a list, and counts the others in a field beside it.
fn truncate_list(report: &mut Map<String, Value>, name: &str, max: usize) {
    let Some(Value::Array(items)) = report.get_mut(name) else { return };
    let more = items.len().saturating_sub(max);
    items.truncate(max);
    if more > 0 {
        report.insert(format!("{name}Omitted"), more.into());
    }
}
