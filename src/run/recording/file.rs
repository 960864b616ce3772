//! Recordings as files: JSON lines.
//!
//! The first line is the script and its options, then a line for each call, one for the timers, one
//! for each turn, and the outcome last. A file is untrusted: it is read within bounds, every line
//! is one of five forms, and it can only cause a run of a script without servers, within the limits
//! of any run.

use super::error::{MAX_FILE_BYTES, RecordingError, VERSION};
use super::mask::{Masker, TextKind};
use super::wire::Line;
use super::wire::read::Builder;
use super::wire::write::lines;
use super::{MAX_CALLS, MAX_TURNS, RecordedAnswer, Recording, Request};
use crate::json::{self, Json};
use crate::run::result::{LogLevel, Outcome, Output, ScriptError};
use crate::text::visible_preview;
use crate::tools::ToolError;

/// Maximum bytes that the tree of one line may take. The file as a text may have a quarter of that.
const MAX_LINE_COST: usize = 1 << 30;

/// How many times the budget of any JSON text a line has. The line of the outcome has an object for each printed line
/// and each call of the run; the smallest, of 29 bytes, takes 35 times as much as a tree.
const LINE_FACTOR: usize = 18;

impl Recording {
    /// Maximum bytes of a recording as text: what a recording keeps, with every character escaped in JSON's longest
    /// form, and its turns.
    pub const MAX_FILE_BYTES: usize = MAX_FILE_BYTES;

    /// The recording as the text of a file, with secrets masked.
    pub fn to_text(&self) -> String {
        let recording = self.masked_copy();
        let mut text = String::new();
        for line in lines(&recording) {
            // Strings and numbers can always be serialized.
            text.push_str(&serde_json::to_string(&line).unwrap_or_default());
            text.push('\n');
        }
        text
    }

    /// Reads the text of a file. It is untrusted.
    ///
    /// # Errors
    ///
    /// [`RecordingError`] if it is not a recording, or is damaged, truncated or too large.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        if text.len() > Self::MAX_FILE_BYTES {
            return Err(RecordingError::TooLarge { bytes: text.len() });
        }
        let mut builder = Builder::default();
        let mut lines = 0;
        let most = MAX_CALLS + MAX_TURNS + 4;
        for (position, line) in text.lines().enumerate() {
            lines = position + 1;
            let damaged = |problem: String| RecordingError::Line { line: lines, problem };
            if lines > most {
                return Err(damaged(format!("more than {most} lines")));
            }
            if position == 0 {
                check_version(line)?;
            }
            // Checked before memory is allocated for the line.
            let budget = json::budget(line.len()).saturating_mul(LINE_FACTOR).min(MAX_LINE_COST);
            json::check(line, budget).map_err(|error| damaged(error.to_string()))?;
            let line: Line = serde_json::from_str(line).map_err(|error| damaged(error.to_string()))?;
            builder.add(line).map_err(damaged)?;
        }
        builder.finish().map_err(|problem| match problem {
            Some(problem) => RecordingError::Line { line: lines, problem },
            None => RecordingError::CutOff { lines },
        })
    }

    /// The recording with its secrets masked.
    pub(crate) fn masked_copy(&self) -> Self {
        let mut masker = Masker::default();
        let mut copy = self.clone();
        mask(&mut copy.header.source, TextKind::Source, &mut masker);
        mask(&mut copy.header.name, TextKind::Data, &mut masker);
        if let Some(input) = &mut copy.header.input {
            mask_json(input, &mut masker);
        }
        for call in &mut copy.calls {
            let mut is_masked = match &mut call.request {
                Request::Tool { arguments, .. } | Request::FullName { arguments, .. } => {
                    mask(arguments, TextKind::Data, &mut masker)
                }
                Request::Query { text } => mask(text, TextKind::Data, &mut masker),
            };
            is_masked |= match &mut call.answer {
                RecordedAnswer::Given(Ok(text)) => mask(text, TextKind::Data, &mut masker),
                RecordedAnswer::Given(Err(error)) => mask_tool_error(error, &mut masker),
                RecordedAnswer::None | RecordedAnswer::LeftOut(_) => false,
            };
            mask_lines(&mut call.lines, &mut masker);
            call.is_masked |= is_masked;
        }
        let end = &mut copy.end;
        match &mut end.outcome {
            Outcome::Returned(value) => mask_json(value, &mut masker),
            Outcome::Failed(error) => mask_script_error(error, &mut masker),
        };
        for entry in &mut end.logs {
            match entry {
                Output::Log { text, .. } => mask(text, TextKind::Data, &mut masker),
                Output::Emit(block) => mask_json(block, &mut masker),
            };
        }
        mask_lines(&mut end.closing, &mut masker);
        for planned in end.planned_calls.iter_mut().flatten() {
            mask_json(&mut planned.arguments, &mut masker);
        }
        // A recording that was read has a count of its own.
        copy.header.masked = copy.header.masked.saturating_add(masker.found());
        copy
    }
}

fn mask(text: &mut String, kind: TextKind, masker: &mut Masker) -> bool {
    let Some(masked) = masker.mask(text, kind) else { return false };
    *text = masked;
    true
}

fn mask_json(json: &mut Json, masker: &mut Masker) -> bool {
    let Some(masked) = masker.mask(json.text(), TextKind::Data) else { return false };
    // Masking keeps JSON valid. If it did not, nothing of the value would be written.
    *json = Json::parse(&masked).unwrap_or_else(|_| serde_json::Value::Null.into());
    true
}

fn mask_lines(lines: &mut [(LogLevel, String)], masker: &mut Masker) {
    for (_, text) in lines {
        mask(text, TextKind::Data, masker);
    }
}

fn mask_tool_error(error: &mut ToolError, masker: &mut Masker) -> bool {
    let is_masked = mask(&mut error.message, TextKind::Data, masker);
    error.content.as_mut().is_some_and(|content| mask_json(content, masker)) || is_masked
}

fn mask_script_error(error: &mut ScriptError, masker: &mut Masker) -> bool {
    let mut is_masked = mask(&mut error.message, TextKind::Data, masker);
    for text in [&mut error.stack, &mut error.source_line, &mut error.hint].into_iter().flatten() {
        is_masked |= mask(text, TextKind::Source, masker);
    }
    for problem in &mut error.problems {
        is_masked |= mask(&mut problem.message, TextKind::Data, masker);
        if let Some(text) = &mut problem.source_line {
            is_masked |= mask(text, TextKind::Source, masker);
        }
    }
    is_masked
}

/// Checks the format before anything else is expected of the first line.
fn check_version(line: &str) -> Result<(), RecordingError> {
    #[derive(serde::Deserialize)]
    struct Start {
        recording: Option<u64>,
        cx: Option<String>,
    }
    let none = |problem: &str| RecordingError::Line { line: 1, problem: problem.to_owned() };
    let start: Start = serde_json::from_str(line)
        .map_err(|_| none("a recording of `cx run --record` begins with a JSON object"))?;
    match start.recording {
        Some(found) if found == u64::from(VERSION) => Ok(()),
        Some(found) => {
            let version = start.cx.unwrap_or_else(|| "that wrote it".to_owned());
            Err(RecordingError::Version { found, version: visible_preview(&version, 40) })
        }
        None => Err(none("this is not a recording of `cx run --record`: `recording` is missing")),
    }
}

#[cfg(test)]
#[path = "../../../fuzz/entries/recording.rs"]
mod fuzzing;
