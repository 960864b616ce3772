//! How a worker process is ended, and how it has ended.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, pidfd_send_signal};

use crate::engine::process::lost::LostWorker;

/// Maximum time that a process may take to end after `SIGTERM`. It has to send one message in that
/// time.
pub(super) const MAX_END: Duration = Duration::from_millis(150);

/// Kills a process, also from other threads, which need nothing else of it.
#[derive(Debug)]
pub(in crate::engine::process) struct Killer {
    process: Arc<OwnedFd>,
    pub(in crate::engine::process) pid: Pid,
    /// Whether it gets `SIGTERM` first.
    asks_first: bool,
    asked_at: OnceLock<Instant>,
}

impl Killer {
    pub(super) fn new(process: Arc<OwnedFd>, pid: Pid, asks_first: bool) -> Self {
        Self { process, pid, asks_first, asked_at: OnceLock::new() }
    }

    /// Kills it. If it has ended, this does nothing, also if another process has its number now.
    pub(in crate::engine::process) fn kill(&self) {
        let asked_at = *self.asked_at.get_or_init(Instant::now);
        let waits = self.asks_first && asked_at.elapsed() < MAX_END;
        let _gone = pidfd_send_signal(&*self.process, if waits { Signal::TERM } else { Signal::KILL });
    }
}

/// Whether a process with this status has ended itself by a fault, such as the use of an address that it does not have.
pub(super) fn is_crash(status: ExitStatus) -> bool {
    let faults =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGFPE, libc::SIGSYS];
    status.signal().is_some_and(|signal| faults.contains(&signal))
}

/// How a worker has ended, as the rest of a sentence.
pub(super) fn describe(status: Option<ExitStatus>, is_elsewhere: bool) -> String {
    if is_elsewhere {
        let lost = status.and_then(|status| LostWorker::from_code(status.code()?));
        // With any other end of this process the connection to the worker has ended too.
        return lost.unwrap_or(LostWorker::Unreachable).sentence().to_owned();
    }
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("ended with exit status {code}"),
        Some((None, Some(signal))) => match signal {
            libc::SIGKILL => {
                "was killed (signal 9), which the system does when it has no memory left".to_owned()
            }
            libc::SIGSEGV => "crashed (signal 11, SIGSEGV)".to_owned(),
            libc::SIGABRT => "aborted (signal 6, SIGABRT)".to_owned(),
            libc::SIGILL | libc::SIGTRAP => format!("aborted (signal {signal})"),
            _ => format!("was ended by signal {signal}"),
        },
        _ => "closed its connection".to_owned(),
    }
}
