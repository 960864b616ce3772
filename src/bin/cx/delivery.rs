//! Waits until the output of a run is written.

use std::time::Duration;

use cx::{CancellationToken, ErrorCode, ExecuteResult};

use crate::diagnostic;
use crate::exit::ExitStatus;
use crate::output::OutputError;
use crate::writer::Writer;

/// How long a reader of stdout may take for the remaining output when the time is over or the user has interrupted the
/// run. A reader that reads takes a queue of 256 KB in a millisecond. Together with ending the script this takes less
/// than half a second.
const MAX_LAST_WRITE: Duration = Duration::from_millis(200);

/// How long the reader of stdout may take for the remaining output. A `--timeout` bounds that too. Without one the user
/// decides, as with any command: `less` reads when its user scrolls.
pub(crate) fn max_wait(result: &ExecuteResult, timeout: Option<Duration>) -> Option<Duration> {
    if result.error().is_some_and(|error| matches!(error.code, ErrorCode::Timeout | ErrorCode::Cancelled)) {
        return Some(MAX_LAST_WRITE);
    }
    let used = result.usage.wall_time.saturating_sub(result.usage.approval_time);
    timeout.map(|timeout| timeout.saturating_sub(used).max(MAX_LAST_WRITE))
}

/// Waits until everything is written, for at most `max_wait` and until the user interrupts. Returns the exit status:
/// `status`, that of the run, if everything was written.
pub(crate) async fn deliver(
    writer: &Writer,
    mut status: ExitStatus,
    interrupted: &CancellationToken,
    max_wait: Option<Duration>,
) -> ExitStatus {
    let is_written = tokio::select! {
        () = writer.finish() => true,
        () = sleep_for(max_wait) => false,
        () = after_interrupt(interrupted, MAX_LAST_WRITE) => false,
    };
    if let Some(error) = writer.failure().map(OutputError::from) {
        if !error.is_closed_pipe() {
            diagnostic::print_note(&format!("error: {error}"));
            let _late = tokio::time::timeout(MAX_LAST_WRITE, writer.finish()).await;
        }
        // Ctrl-C ends the whole pipeline, and the reader may be the first to go.
        return if interrupted.is_cancelled() { ExitStatus::Interrupted } else { error.status() };
    }
    let unwritten = writer.unwritten();
    if is_written && unwritten == 0 {
        return status;
    }
    if interrupted.is_cancelled() {
        status = ExitStatus::Interrupted;
    } else if status == ExitStatus::Success {
        status = ExitStatus::Limit;
    }
    writer.abandon(&format!("error: {unwritten} bytes of output were not written: stdout is not read\n"));
    status
}

/// Completes after this time; never if it is `None`.
async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Completes this time after an interrupt, when an active reader has had enough.
pub(crate) async fn after_interrupt(interrupted: &CancellationToken, time: Duration) {
    interrupted.cancelled().await;
    tokio::time::sleep(time).await;
}
