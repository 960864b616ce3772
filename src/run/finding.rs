//! What a check finds in a script.

use std::fmt;
use std::ops::Range;

use serde_json::{Value, json};

use crate::json::set_present;
use crate::run::result::{ErrorCode, ScriptError};
use crate::text::preview;
use crate::tools::ToolErrorCode;

/// Maximum characters of a source line in a finding. One line may be a whole minified program.
const MAX_SOURCE_LINE: usize = 400;

/// Something that is wrong with a script, found without running it: see
/// [`Executor::check`](crate::Executor::check).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of mistake.
    pub code: FindingCode,
    /// Whether a run of the script would fail for certain.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What the author can do about it, if the message does not say it.
    pub hint: Option<String>,
    /// Line of the source, from 1.
    pub line: Option<u32>,
    /// Column of the source, from 1, in UTF-16 units.
    pub column: Option<u32>,
    /// The line on which the span ends.
    pub end_line: Option<u32>,
    /// The column after the last character of the span.
    pub end_column: Option<u32>,
    /// The text of `line`.
    pub source_line: Option<String>,
}

/// What a check of a script has found: see [`Executor::check`](crate::Executor::check).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Checked {
    /// What is wrong, by location.
    pub findings: Vec<Finding>,
    /// The part of the source that is the program, in bytes: what is inside a Markdown fence, else all of it.
    pub program: Range<usize>,
    /// The calls and imports that were checked, in bytes of the source.
    pub calls: Vec<Range<usize>>,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The script may succeed: the call may never be reached, its error may be caught, or it is not known
    /// what is called.
    Warning,
    /// A run of the script cannot succeed.
    Error,
}

impl Severity {
    /// The name as it appears in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The kind of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingCode {
    /// The script cannot be compiled, or the check reached a limit: the code that a run would end with.
    Script(ErrorCode),
    /// A call would fail with this code.
    Call(ToolErrorCode),
    /// A call is not awaited.
    NotAwaited,
    /// A server's tools are not known, so calls of them are not checked.
    ToolsUnknown,
    /// A module of Python that scripts cannot import, or that can be imported and not be used.
    ModuleUnavailable,
}

impl FindingCode {
    /// The code as it is written in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Script(code) => code.as_str(),
            Self::Call(code) => code.as_str(),
            Self::NotAwaited => "NOT_AWAITED",
            Self::ToolsUnknown => "TOOLS_UNKNOWN",
            Self::ModuleUnavailable => "MODULE_UNAVAILABLE",
        }
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Checked {
    /// Adds the error with which the check ended, at its location.
    pub(crate) fn add_error(&mut self, error: ScriptError) {
        let error = Finding::from(error);
        let at = self.findings.partition_point(|finding| finding.location() < error.location());
        self.findings.insert(at, error);
    }
}

impl Finding {
    /// A finding about a part of a source.
    pub(crate) fn at(
        code: FindingCode,
        severity: Severity,
        message: String,
        source: &Lines<'_>,
        bytes: &Range<usize>,
    ) -> Self {
        let (line, column) = source.position(bytes.start);
        let (end_line, end_column) = source.position(bytes.end);
        Self {
            code,
            severity,
            message,
            hint: None,
            line: Some(line),
            column: Some(column),
            end_line: Some(end_line),
            end_column: Some(end_column),
            source_line: Some(preview(source.line(line), MAX_SOURCE_LINE)),
        }
    }

    /// Line and column, by which findings are sorted.
    pub(crate) fn location(&self) -> (Option<u32>, Option<u32>) {
        (self.line, self.column)
    }

    /// The finding as a JSON object; what is not known is left out.
    pub fn to_json(&self) -> Value {
        let mut report = json!({
            "severity": self.severity.as_str(),
            "code": self.code.as_str(),
            "message": self.message,
        });
        let optional = [
            ("line", self.line.map(Value::from)),
            ("column", self.column.map(Value::from)),
            ("endLine", self.end_line.map(Value::from)),
            ("endColumn", self.end_column.map(Value::from)),
            ("sourceLine", self.source_line.clone().map(Value::from)),
            ("hint", self.hint.clone().map(Value::from)),
        ];
        set_present(&mut report, optional);
        report
    }
}

impl From<ScriptError> for Finding {
    fn from(error: ScriptError) -> Self {
        Self {
            code: error.tool_code.map_or(FindingCode::Script(error.code), FindingCode::Call),
            severity: Severity::Error,
            message: error.message,
            hint: error.hint,
            line: error.line,
            column: error.column,
            end_line: None,
            end_column: None,
            source_line: error.source_line,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}, column {}: ", self.column.unwrap_or(1))?;
        }
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

/// The lines of a source. Made once, because a script can have a hundred findings in its last line, and to read all
/// of it for each would take seconds.
pub(crate) struct Lines<'a> {
    source: &'a str,
    /// The byte at which each line starts.
    starts: Vec<u32>,
    /// UTF-16 units before each multiple of [`BLOCK`].
    units: Vec<u32>,
}

/// Bytes between two positions whose UTF-16 units are recorded: the most that is read to find a column.
const BLOCK: usize = 1 << 10;

impl<'a> Lines<'a> {
    /// Reads the source.
    pub(crate) fn new(source: &'a str) -> Self {
        let starts = source.match_indices('\n').map(|(end, _)| number(end + 1));
        let mut lines = Self { source, starts: std::iter::once(0).chain(starts).collect(), units: vec![0] };
        for block in 1..=source.len() / BLOCK {
            let units = lines.units_before(source.floor_char_boundary(block * BLOCK));
            lines.units.push(units);
        }
        lines
    }

    /// Line and column of a byte, both from 1, the column in UTF-16 units.
    fn position(&self, byte: usize) -> (u32, u32) {
        let byte = self.source.floor_char_boundary(byte);
        let line = self.starts.partition_point(|start| *start as usize <= byte);
        let start = self.starts[line - 1] as usize;
        (number(line), self.units_before(byte) - self.units_before(start) + 1)
    }

    /// The text of a line, which is counted from 1, without its end.
    fn line(&self, line: u32) -> &'a str {
        let start = self.starts[line as usize - 1] as usize;
        let end = self.starts.get(line as usize).map_or(self.source.len(), |next| *next as usize - 1);
        self.source[start..end].trim_end_matches('\r')
    }

    /// UTF-16 units before a character, counted from the last recorded position.
    fn units_before(&self, byte: usize) -> u32 {
        let block = (byte / BLOCK).min(self.units.len() - 1);
        let read = &self.source[self.source.floor_char_boundary(block * BLOCK)..byte];
        self.units[block] + number(read.encode_utf16().count())
    }
}

/// Converts an offset. Sources have at most some megabytes.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX >> 1)
}

#[cfg(test)]
mod tests;
