//! Why transpilation failed.

use std::fmt;

use super::positions::Location;

/// The cause of a transpilation failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TranspileErrorKind {
    /// The text is not TypeScript, or exceeds the bounds.
    Syntax,
    /// It is TypeScript that cannot run here, or that would take too much work.
    Transpile,
    /// The caller's check reported that the run has been stopped.
    Stopped,
}

/// Why transpilation failed, for the author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TranspileError {
    /// Syntax error, transpilation error, or stopped.
    pub(crate) kind: TranspileErrorKind,
    /// A lowercase fragment.
    pub(crate) message: String,
    /// Location in the author's text, if the error has one.
    pub(crate) location: Option<Location>,
    /// What the author can do about it.
    pub(crate) hint: Option<String>,
}

impl fmt::Display for TranspileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match self.location {
            Some(Location { line, column }) => write!(formatter, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}
