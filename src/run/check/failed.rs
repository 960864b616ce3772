//! Additional findings in the error of a failed run: the other syntax errors, and problems of the
//! script's calls, so that its author can correct all of them at once.

use std::sync::Arc;

use super::survey::{Mistake, Survey};
use crate::run::context::{ExecutionContext, Purpose};
use crate::run::finding::{Checked, Finding, FindingCode, Lines, Severity};
use crate::run::result::{ErrorCode, Outcome, ScriptError};

/// Maximum number of findings in addition to the error of a script that was run. Most of them are doubtful, because the
/// script did run.
const MAX_BESIDE: usize = 10;

impl ExecutionContext {
    /// Adds to the error of a run that has failed what the check finds in the script. Asks no server.
    pub(crate) fn add_problems(&self, outcome: &mut Outcome, survey: &Survey) {
        let Outcome::Failed(error) = outcome else { return };
        if !error.problems.is_empty() || !is_of_script(error.code) || self.cancel.is_cancelled() {
            return;
        }
        if let Some(replayed) = self.tape().and_then(|tape| tape.problems(&self.script.source)) {
            error.problems = replayed;
            return;
        }
        let is_compiled = !error.code.is_of_compilation();
        // The engine accepted the source although the reader found syntax errors, so the reader may have misread it.
        if is_compiled && !survey.mistakes.is_empty() {
            return;
        }
        let mut found = self.known_findings(survey);
        if is_compiled {
            // The error itself says what is wrong with its line.
            found.retain(|finding| finding.line != error.line && !says_the_same(finding, error));
            found.truncate(MAX_BESIDE);
        } else {
            found.retain(|finding| !is_same(finding, error));
            found.extend(other_mistakes(error, survey, &self.script.source));
            if !found.is_empty() {
                found.push(Finding::from(error.clone()));
            }
            found.sort_by_key(Finding::location);
        }
        error.problems = found;
    }

    /// Stores the findings of a check for the caller that requested it. The error of `outcome` is
    /// left out.
    pub(crate) async fn keep_findings(self: &Arc<Self>, survey: &Survey, outcome: &Outcome) {
        let Purpose::Check { asks_servers, found } = self.purpose() else { return };
        let asking = Arc::clone(self);
        let mut findings =
            Arc::clone(self).in_runtime(async { asking.findings(survey, *asks_servers).await }).await;
        let source = &self.script.source;
        if let Outcome::Failed(error) = outcome {
            findings.retain(|finding| !is_same(finding, error));
            findings.extend(other_mistakes(error, survey, source));
            findings.sort_by_key(Finding::location);
        }
        let program = if survey.program.is_empty() { 0..source.len() } else { survey.program.clone() };
        let calls = survey.uses.iter().map(|one| one.at.clone()).collect();
        *found.lock() = Checked { findings, program, calls };
    }
}

/// The syntax errors of a script other than the one that the engine has reported.
///
/// Engine and reader may see one mistake at different locations: the reader sees an unclosed
/// bracket only behind it.
fn other_mistakes(error: &ScriptError, survey: &Survey, source: &str) -> Vec<Finding> {
    if !error.code.is_of_compilation() {
        return Vec::new();
    }
    let code = FindingCode::Script(error.code);
    let lines = Lines::new(source);
    let finding = |mistake: &Mistake| {
        let mut finding = Finding::at(code, Severity::Error, mistake.message.clone(), &lines, &mistake.at);
        finding.hint.clone_from(&mistake.hint);
        finding
    };
    let mut found: Vec<Finding> = survey.mistakes.iter().map(finding).collect();
    let is_known = found.iter().any(|finding| finding.line == error.line);
    if !is_known && found.first().is_some_and(|first| first.line > error.line) {
        found.remove(0);
    }
    found.retain(|finding| finding.line != error.line);
    found
}

/// Whether a finding reports the same mistake as the error.
fn is_same(finding: &Finding, error: &ScriptError) -> bool {
    let is_same_code = matches!(finding.code, FindingCode::Call(code) if error.tool_code == Some(code));
    finding.line == error.line && (is_same_code || finding.column == error.column)
}

/// Whether the error gives the reason of a finding about an import: `subprocess.run` has failed because scripts have no
/// processes, which is what the import of `subprocess` warns of.
fn says_the_same(finding: &Finding, error: &ScriptError) -> bool {
    let reason = finding.message.split_once(": ").map_or(finding.message.as_str(), |(_, reason)| reason);
    finding.code == FindingCode::ModuleUnavailable && error.message.ends_with(reason)
}

/// Whether the failure is the script's and not that of the executor.
const fn is_of_script(code: ErrorCode) -> bool {
    !matches!(
        code,
        ErrorCode::CheckFailed
            | ErrorCode::Cancelled
            | ErrorCode::QueueFull
            | ErrorCode::EngineCrashed
            | ErrorCode::EngineUnavailable
    )
}
