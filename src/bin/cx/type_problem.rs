//! A problem of a script's types.

use serde_json::{Value, json};

/// One problem that a type checker found.
#[derive(Debug)]
pub(crate) struct TypeProblem {
    /// The checker's own code, such as `TS2345` or `reportCallIssue`.
    pub(crate) code: String,
    pub(crate) message: String,
    /// Line and column, from 1.
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl TypeProblem {
    /// The problem as `cx check --json` prints it.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "severity": "error",
            "code": "TYPE_ERROR",
            "message": format!("{}: {}", self.code, self.message),
            "line": self.line,
            "column": self.column,
        })
    }
}
