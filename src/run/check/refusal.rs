//! The error of a run that was refused because of what its check found.

use crate::run::finding::{Finding, FindingCode, Severity};
use crate::run::result::{ErrorCode, ScriptError};

/// Maximum number of findings that the message of a refused run names.
pub(super) const MAX_NAMED: usize = 10;

/// The error of a run that is refused.
pub(super) fn refusal(findings: Vec<Finding>) -> ScriptError {
    let errors: Vec<&Finding> =
        findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let mut error = ScriptError::new(ErrorCode::CheckFailed, String::new());
    if let Some(first) = errors.first() {
        error.line = first.line;
        error.column = first.column;
        error.source_line.clone_from(&first.source_line);
        error.tool_code = match first.code {
            FindingCode::Call(code) => Some(code),
            _ => None,
        };
    }
    error.message = match errors.as_slice() {
        [only] => only.message.clone(),
        errors => {
            let named = errors.iter().take(MAX_NAMED);
            let named = named.map(|one| format!("line {}: {}", one.line.unwrap_or(1), one.message));
            let named = named.collect::<Vec<_>>().join("; ");
            let more = errors.len().saturating_sub(MAX_NAMED);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            format!("{} calls or imports cannot succeed: {named}{more}", errors.len())
        }
    };
    error.hint = Some("nothing of the script was run; correct it and run it again".to_owned());
    error.problems = findings;
    error
}
