//! The process of a worker, as a child of this process or of a fork server.

use std::io;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::end::is_crash;
use super::forking::ForkServer;
use crate::engine::process::forks::is_readable;

/// A process that this one, or its fork server, has started and not yet reaped.
pub(super) enum WorkerChild {
    Started(Child),
    Forked {
        pid: Pid,
        process: Arc<OwnedFd>,
        /// Its parent, which tells how it has ended, and lives as long as this does.
        server: Arc<ForkServer>,
        status: Option<ExitStatus>,
    },
}

impl WorkerChild {
    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        match self {
            Self::Started(child) => !matches!(child.try_wait(), Ok(None)),
            Self::Forked { process, .. } => has_ended(process),
        }
    }

    /// The exit status, if the process has ended and that is known already.
    ///
    /// # Errors
    ///
    /// If its parent has lost it.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Started(child) => child.try_wait(),
            Self::Forked { pid, process, server, status } => {
                if status.is_none() && has_ended(process) {
                    *status = server.take_status(*pid).inspect_err(|_| reap_orphan(process))?;
                }
                Ok(*status)
            }
        }
    }

    /// Whether `server` has forked it, and it is known that it has ended with a fault of its own.
    pub(super) fn has_crashed_of(&self, server: &Arc<ForkServer>) -> bool {
        match self {
            Self::Started(_) => false,
            Self::Forked { server: parent, status, .. } => {
                Arc::ptr_eq(parent, server) && status.is_some_and(is_crash)
            }
        }
    }

    /// Kills it, if it has not ended.
    pub(super) fn kill(&mut self) {
        let _ended = match self {
            Self::Started(child) => child.kill(),
            Self::Forked { process, .. } => {
                pidfd_send_signal(&**process, Signal::KILL).map_err(io::Error::from)
            }
        };
    }

    /// Waits for a process that was killed, which takes no longer than the kernel needs to free its memory. Only a
    /// parent can.
    pub(super) fn reap(&mut self) {
        if let Self::Started(child) = self {
            let _status = child.wait();
        }
    }
}

/// Reaps a process whose fork server has ended. Its parent is the machine's first process then, or that of its container,
/// which may be this one. Elsewhere this has no effect.
fn reap_orphan(process: &OwnedFd) {
    let _of_another = waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
}

fn has_ended(process: &OwnedFd) -> bool {
    is_readable(process, Duration::ZERO)
}
