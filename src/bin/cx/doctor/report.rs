//! The findings of `cx doctor`, as text and as JSON.

use std::fmt::Write as _;

use cx::text::one_line;
use serde_json::{Map, Value, json};

use crate::text::{counted, wrapped};

/// Whether something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It works, or is only reported.
    Ok,
    /// It was not checked.
    Skipped,
    /// It works, but may need attention.
    Warning,
    /// It does not work.
    Problem,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    /// The color of its name: green, dim, yellow, or bold and red.
    fn color(self) -> &'static str {
        match self {
            Self::Ok => "\u{1b}[32m",
            Self::Skipped => "\u{1b}[2m",
            Self::Warning => "\u{1b}[33m",
            Self::Problem => "\u{1b}[1;31m",
        }
    }
}

const NO_COLOR: &str = "\u{1b}[0m";

/// Width of the longest name of a status.
const STATUS_WIDTH: usize = 7;

/// One check and its result.
#[derive(Debug)]
pub(super) struct Check {
    section: &'static str,
    name: String,
    status: Status,
    message: String,
    /// The remedy, in one line.
    hint: Option<String>,
    details: Map<String, Value>,
}

impl Check {
    fn new(section: &'static str, name: &str, status: Status, message: impl Into<String>) -> Self {
        let (name, message) = (name.to_owned(), message.into());
        Self { section, name, status, message, hint: None, details: Map::new() }
    }

    pub(super) fn ok(section: &'static str, name: &str, message: impl Into<String>) -> Self {
        Self::new(section, name, Status::Ok, message)
    }

    pub(super) fn skipped(section: &'static str, name: &str, message: impl Into<String>) -> Self {
        Self::new(section, name, Status::Skipped, message)
    }

    /// The check of something in a configuration that cannot be loaded.
    pub(super) fn unknown(section: &'static str) -> Self {
        Self::skipped(section, "all", "not known, because the configuration cannot be used")
    }

    pub(super) fn warning(
        section: &'static str,
        name: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { hint: Some(hint.into()), ..Self::new(section, name, Status::Warning, message) }
    }

    pub(super) fn problem(
        section: &'static str,
        name: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { hint: Some(hint.into()), ..Self::new(section, name, Status::Problem, message) }
    }

    /// Adds a field to `details`, for programs.
    pub(super) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.details.insert(field.to_owned(), value.into());
        self
    }

    fn to_json(&self) -> Value {
        let mut check = json!({
            "section": self.section,
            "name": self.name,
            "status": self.status.as_str(),
            "message": self.message,
        });
        if let Some(hint) = &self.hint {
            check["hint"] = hint.as_str().into();
        }
        if !self.details.is_empty() {
            check["details"] = Value::Object(self.details.clone());
        }
        check
    }
}

/// All checks, in the order in which they are shown.
#[derive(Debug, Default)]
pub(super) struct Report {
    checks: Vec<Check>,
}

impl Report {
    /// Adds checks, each after those of its section.
    pub(super) fn add(&mut self, checks: impl IntoIterator<Item = Check>) {
        for check in checks {
            let last = self.checks.iter().rposition(|other| other.section == check.section);
            self.checks.insert(last.map_or(self.checks.len(), |last| last + 1), check);
        }
    }

    fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }

    /// Whether there are no problems. Warnings do not count.
    pub(super) fn is_ok(&self) -> bool {
        self.count(Status::Problem) == 0
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "ok": self.is_ok(),
            "problems": self.count(Status::Problem),
            "warnings": self.count(Status::Warning),
            "version": env!("CARGO_PKG_VERSION"),
            "checks": self.checks.iter().map(Check::to_json).collect::<Vec<_>>(),
        })
    }

    /// The report as lines, which are complete: what others have written is escaped. At a terminal of a known width
    /// lines end with a word.
    pub(super) fn render(&self, has_color: bool, columns: Option<usize>) -> String {
        /// Columns before a check's name: two, its status, two.
        const INDENT: usize = STATUS_WIDTH + 4;
        /// The arrow before what can be done.
        const ARROW: usize = 3;
        let fit = |line: &str, indent| match columns {
            Some(columns) => wrapped(line, indent, columns),
            None => line.to_owned(),
        };
        let mut text = String::new();
        let mut section = "";
        for check in &self.checks {
            if check.section != section {
                section = check.section;
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{section}");
            }
            let status = check.status.as_str();
            let padded = format!("{status:STATUS_WIDTH$}");
            let shown = match has_color {
                true => format!("{}{padded}{NO_COLOR}", check.status.color()),
                false => padded,
            };
            let line = format!("{}: {}", one_line(&check.name), one_line(&check.message));
            let _ = writeln!(text, "  {shown}  {}", fit(&line, INDENT));
            if let Some(hint) = &check.hint {
                let _ = writeln!(text, "{:INDENT$}-> {}", "", fit(&one_line(hint), INDENT + ARROW));
            }
        }
        let _ = writeln!(text, "{}", self.summary());
        text
    }

    fn summary(&self) -> String {
        match (self.count(Status::Problem), self.count(Status::Warning)) {
            (0, 0) => "no problems".to_owned(),
            (0, warnings) => format!("no problems, {}", counted(warnings, "warning")),
            (problems, 0) => counted(problems, "problem"),
            (problems, warnings) => {
                format!("{}, {}", counted(problems, "problem"), counted(warnings, "warning"))
            }
        }
    }
}
