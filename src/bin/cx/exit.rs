//! Exit statuses, and how the process exits.

use cx::{ErrorCode, ExecuteResult};

/// The command's documented exit statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ExitStatus {
    /// The command did what it was told to; the script returned.
    Success = 0,
    /// The script failed, a confirmation was refused, or a server is signed out.
    Failed = 1,
    /// The arguments, the configuration or the script's file cannot be used.
    Usage = 2,
    /// A limit was exceeded, or no engine or worker is available, or stdout was not read in time.
    Limit = 3,
    /// Stdout could not be written: for example, its disk is full.
    Output = 4,
    /// Interrupted.
    Interrupted = 130,
    /// The reader of stdout has closed it, as by SIGPIPE.
    ClosedPipe = 141,
}

impl ExitStatus {
    /// The status for a run's result.
    pub(crate) fn from_result(result: &ExecuteResult) -> Self {
        match result.error() {
            None => Self::Success,
            Some(error) if error.code == ErrorCode::Cancelled => Self::Interrupted,
            Some(error) if error.code.is_limit() => Self::Limit,
            Some(_) => Self::Failed,
        }
    }

    /// The status of a `cx` process that has ended with this code; `None` is one that a signal has ended, which counts
    /// as interrupted, as does every other code.
    pub(crate) fn from_code(code: Option<i32>) -> Self {
        let known = [Self::Success, Self::Failed, Self::Usage, Self::Limit, Self::Output, Self::ClosedPipe];
        let found = known.into_iter().find(|status| code == Some(i32::from(*status as u8)));
        found.unwrap_or(Self::Interrupted)
    }
}

/// A signal, or Ctrl-C in place of an answer, has ended the command.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Ends the process at once.
///
/// Does not return through `main`: that would run the destructors of V8 and libc while a thread
/// whose script cannot be stopped may still execute V8's code. Does not flush buffers; code that
/// prints flushes them itself.
#[expect(unsafe_code, reason = "`_exit` is only in libc")]
pub(crate) fn exit(status: ExitStatus) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(i32::from(status as u8)) }
}
