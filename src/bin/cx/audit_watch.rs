//! Reports on stderr while `cx serve` cannot write its audit trail.

use std::path::Path;
use std::time::Duration;

use cx::Executor;

use crate::diagnostic;
use crate::text::shown_path;

/// How often the state of the trail is checked.
const LOOK: Duration = Duration::from_secs(1);

/// Warns that the trail in this directory cannot be written.
pub(crate) fn print_failure(directory: &Path, failure: &str) {
    let shown = shown_path(directory);
    diagnostic::print_warning(&format!("the audit trail cannot be written: {shown}: {failure}"));
}

/// Reports when the trail cannot be written, and when it can again, once each time. Runs until it is dropped, or ends
/// at once if there is no trail.
pub(crate) async fn watch(executor: Executor) {
    let mut was_failing = false;
    while let Some(status) = executor.audit_status() {
        match &status.failure {
            Some((_since, failure)) if !was_failing => {
                print_failure(&status.directory, failure);
            }
            None if was_failing => diagnostic::print_note("the audit trail is written again"),
            _ => {}
        }
        was_failing = status.failure.is_some();
        tokio::time::sleep(LOOK).await;
    }
}
