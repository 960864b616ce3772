//! The check of a script that a call would store, before a person is asked to approve the call: what they are shown can
//! be run as it is shown.
//!
//! It is a check as `cx check` makes it, in the engine of the script's language and wherever scripts are executed,
//! within what is left of the run's limits. It runs no part of the script.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::{MAX_MESSAGE, code_of_call};
use crate::run::context::{ExecutionContext, Purpose};
use crate::run::finding::{Checked, Finding, FindingCode};
use crate::run::result::{Outcome, ScriptError};
use crate::text::{MAX_SHOWN_NAME, one_line, preview, visible_preview};
use crate::tools::catalog::ResolvedTool;
use crate::tools::caught::caught;
use crate::tools::{StoredScript, ToolError, ToolErrorCode, UnsavedScript};

/// Maximum characters of one mistake in the error. There are at most some twenty.
const MAX_MISTAKE: usize = 600;

impl ExecutionContext {
    /// Checks the script that a call of this tool would store, if it would store one.
    ///
    /// # Errors
    ///
    /// Why the call cannot succeed: all syntax errors of the script, or why it could not be checked.
    pub(in crate::run) async fn check_unsaved(
        self: &Arc<Self>,
        tool: &ResolvedTool,
        arguments: &Map<String, Value>,
    ) -> Result<(), ToolError> {
        let (dispatcher, language) = (tool.dispatcher(), self.script.language);
        let unsaved = async { dispatcher.unsaved_script(&tool.server, &tool.tool, arguments, language) };
        let Some(UnsavedScript { name, language, source, lines_before }) =
            caught("the tool", unsaved).await?
        else {
            return Ok(());
        };
        let name = visible_preview(&name, MAX_SHOWN_NAME);
        let found = Arc::new(Mutex::new(Checked::default()));
        let purpose = Purpose::Check { asks_servers: false, found: Arc::clone(&found) };
        let stored = StoredScript::new(name.as_str(), language, source, Value::Null.into());
        let error = match self.perform_stored(&name, stored, purpose, None).await? {
            Outcome::Returned(_) => return Ok(()),
            Outcome::Failed(error) => error,
        };
        if !error.code.is_of_compilation() {
            return Err(not_checked(&name, &error));
        }
        let mut checked = std::mem::take(&mut *found.lock());
        checked.add_error(error);
        Err(not_compiled(&name, &checked.findings, lines_before))
    }
}

/// The error for a script with these findings, in whose source `lines_before` lines are not the author's.
fn not_compiled(name: &str, findings: &[Finding], lines_before: u32) -> ToolError {
    let mut message = format!("`{name}` cannot be compiled; nobody was asked, and nothing was saved:");
    for finding in findings.iter().filter(|finding| matches!(finding.code, FindingCode::Script(_))) {
        let line =
            finding.line.map(|line| line.checked_sub(lines_before).filter(|own| *own > 0).unwrap_or(line));
        let hint = finding.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let mistake = format!("{}{hint}", Finding { line, ..finding.clone() });
        message.push('\n');
        message.push_str(&preview(&one_line(&mistake), MAX_MISTAKE));
    }
    ToolError::new(ToolErrorCode::InvalidArguments, message)
}

/// The error for a script whose check did not come to an end.
fn not_checked(name: &str, error: &ScriptError) -> ToolError {
    let message = format!(
        "`{name}` could not be checked, so that nobody was asked and nothing was saved: {}: {}",
        error.code,
        preview(&error.message, MAX_MESSAGE)
    );
    let mut failed = ToolError::new(code_of_call(error.code), message);
    failed.retry_after = error.retry_after;
    failed
}
