//! Reports on stderr while an audit trail cannot be written or signed.

use std::path::Path;
use std::time::Duration;

use cx::Executor;
use cx::audit::AuditStatus;

use crate::diagnostic;
use crate::text::shown_path;

/// How often the state of the trail is checked.
const LOOK: Duration = Duration::from_secs(1);

/// What is done with a trail, and why it fails now.
fn parts(status: &AuditStatus) -> [(&'static str, Option<&str>); 2] {
    let failure = status.failure.as_ref().map(|(_since, reason)| reason.as_str());
    let signing_failure = status.signing_failure.as_ref().map(|(_since, reason)| reason.as_str());
    [("written", failure), ("signed", signing_failure)]
}

fn print_failure(directory: &Path, what: &str, reason: &str) {
    let shown = shown_path(directory);
    diagnostic::print_warning(&format!("the audit trail cannot be {what}: {shown}: {reason}"));
}

/// Warns if the trail cannot be written or signed now.
pub(crate) fn print_failures(status: &AuditStatus) {
    for (what, failure) in parts(status) {
        if let Some(reason) = failure {
            print_failure(&status.directory, what, reason);
        }
    }
}

/// Reports when the trail cannot be written or signed, and when it can again, once each time. Runs until it is dropped,
/// or ends at once if there is no trail.
pub(crate) async fn watch(executor: Executor) {
    let mut were_failing = [false; 2];
    while let Some(status) = executor.audit_status() {
        for (was_failing, (what, failure)) in were_failing.iter_mut().zip(parts(&status)) {
            match failure {
                Some(reason) if !*was_failing => print_failure(&status.directory, what, reason),
                None if *was_failing => diagnostic::print_note(&format!("the audit trail is {what} again")),
                _ => {}
            }
            *was_failing = failure.is_some();
        }
        tokio::time::sleep(LOOK).await;
    }
}
