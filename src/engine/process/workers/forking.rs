//! The executor's half of a fork server (`../fork_server.rs`).

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketType};
use rustix::process::{Pid, getpid};

use super::launch::{hello, launch, sockets};
use super::options::WorkerOptions;
use crate::engine::process::forks::{self, ForkReport, REQUEST};

/// How often it is checked whether the executor is closed, while a fork server warms up.
const TICK: Duration = Duration::from_millis(20);

/// Maximum time in which a fork server forks: it has nothing else to do, and the rest is for a busy machine.
const MAX_FORK: Duration = Duration::from_secs(5);

/// Maximum time in which it makes its instance. Machine code that is in no cache is compiled first.
const MAX_WARM_UP: Duration = Duration::from_mins(2);

/// A process that forks workers. It is ended when this is dropped, and its workers with it.
pub(super) struct ForkServer {
    child: Mutex<Child>,
    pub(super) pid: Pid,
    socket: OwnedFd,
    /// When it was warm.
    warm_since: OnceLock<Instant>,
    /// How workers have ended for which nobody has asked yet. Whoever reads the socket holds it, because a message that
    /// one thread waits for must not be read by another one.
    ended: Mutex<HashMap<Pid, ExitStatus>>,
    /// Whether it has failed to answer: what it would say next may be the answer to an earlier request.
    is_lost: AtomicBool,
}

impl ForkServer {
    /// Starts one, which warms up by itself.
    pub(super) fn start(options: &WorkerOptions) -> io::Result<Self> {
        let (socket, theirs) = sockets(SocketType::SEQPACKET)?;
        let (child, pid) = launch(options, theirs)?;
        // Ended when this is dropped.
        let server = Self::new(child, pid, socket);
        rustix::net::send(&server.socket, &hello(options, getpid(), true)?, SendFlags::NOSIGNAL)?;
        Ok(server)
    }

    fn new(child: Child, pid: Pid, socket: OwnedFd) -> Self {
        Self {
            child: Mutex::new(child),
            pid,
            socket,
            warm_since: OnceLock::new(),
            ended: Mutex::default(),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Whether it forks no more workers. Otherwise the system has only refused some.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// How long it has been able to fork workers.
    pub(super) fn age(&self) -> Duration {
        self.warm_since.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Waits until it is warm, or `is_closed`.
    ///
    /// # Errors
    ///
    /// If it has ended, or takes too long.
    pub(super) fn await_warm(&self, is_closed: impl Fn() -> bool) -> io::Result<()> {
        let began = Instant::now();
        while !self.is_readable(TICK) {
            if is_closed() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if began.elapsed() > MAX_WARM_UP {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        match self.receive()? {
            (ForkReport::Warm, _) => {
                self.warm_since.get_or_init(Instant::now);
                Ok(())
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// Forks a worker with this end of a connection. Returns its process, and the descriptor of it.
    ///
    /// # Errors
    ///
    /// If the system refuses it, or the fork server has ended or does not answer.
    pub(super) fn fork(&self, connection: &OwnedFd) -> io::Result<(Pid, OwnedFd)> {
        self.ask(connection).inspect_err(|_| self.is_lost.store(true, Ordering::Relaxed))?
    }

    /// The same. The inner error is that of the system which has refused a worker.
    fn ask(&self, connection: &OwnedFd) -> io::Result<io::Result<(Pid, OwnedFd)>> {
        // Until the answer is there.
        let mut ended = self.ended.lock();
        forks::send(&self.socket, &REQUEST, Some(connection.as_fd()))?;
        let began = Instant::now();
        loop {
            if !self.is_readable(MAX_FORK.saturating_sub(began.elapsed())) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.receive()? {
                (ForkReport::Forked(process), Some(descriptor)) => {
                    let pid = Pid::from_raw(process).ok_or(io::ErrorKind::InvalidData)?;
                    // That of an earlier process with this number, for which nobody has asked.
                    ended.remove(&pid);
                    return Ok(Ok((pid, descriptor)));
                }
                (ForkReport::Refused(error), _) => return Ok(Err(io::Error::from_raw_os_error(error))),
                (ForkReport::Ended { process, status }, _) => note_end(&mut ended, process, status),
                (other, _) => return Err(unexpected(&other)),
            }
        }
    }

    /// How a worker has ended, if the fork server has reported it. `None` also while it is asked for a worker: ask again.
    ///
    /// # Errors
    ///
    /// If it has not reported it, and has ended itself.
    pub(super) fn take_status(&self, pid: Pid) -> io::Result<Option<ExitStatus>> {
        let Some(mut ended) = self.ended.try_lock() else { return Ok(None) };
        loop {
            if let Some(status) = ended.remove(&pid) {
                return Ok(Some(status));
            }
            if !self.is_readable(Duration::ZERO) {
                return Ok(None);
            }
            match self.receive() {
                Ok((ForkReport::Ended { process, status }, _)) => note_end(&mut ended, process, status),
                // The answer to a request that nobody waits for any more. Its worker has no connection, and ends.
                Ok(_late) => {}
                Err(error) => return if self.has_ended() { Err(error) } else { Ok(None) },
            }
        }
    }

    /// Whether its process has ended, and its workers have another parent.
    fn has_ended(&self) -> bool {
        !matches!(self.child.lock().try_wait(), Ok(None))
    }

    fn is_readable(&self, wait: Duration) -> bool {
        forks::is_readable(&self.socket, wait)
    }

    fn receive(&self) -> io::Result<(ForkReport, Option<OwnedFd>)> {
        // One byte more, so that a longer message is noticed.
        let mut message = [0; ForkReport::BYTES + 1];
        loop {
            let (length, descriptor) = match forks::receive(&self.socket, &mut message, RecvFlags::DONTWAIT) {
                Err(Errno::INTR) => continue,
                received => received?,
            };
            if length == 0 {
                return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the fork server has ended"));
            }
            let report = message.get(..length).and_then(ForkReport::decode);
            let report = report.ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "a message that no fork server sends")
            })?;
            return Ok((report, descriptor));
        }
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        let _gone = child.kill();
        // It was killed, so this takes no longer than the kernel needs to free its memory.
        let _status = child.wait();
    }
}

fn note_end(ended: &mut HashMap<Pid, ExitStatus>, process: i32, status: i32) {
    if let Some(pid) = Pid::from_raw(process) {
        ended.insert(pid, ExitStatus::from_raw(status));
    }
}

fn unexpected(report: &ForkReport) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the fork server reports {report:?}"))
}

#[cfg(test)]
mod tests;
