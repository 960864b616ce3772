//! The half of a fork server that forks. A fork server has started an engine and made one instance, and becomes a
//! worker each time the executor asks for one: its child has the warm instance at once, in memory that both share until
//! one of them writes it. To start the program and to warm it up would take ten times as long.
//!
//! No script runs in it, and it reads nothing but requests of its executor, so each worker begins with the same memory.
//! What must not be the same is made new in the child: random numbers, the sandbox, descriptors, threads.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use rustix::net::RecvFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};

use super::connection::end_process;
use super::forks::{self, ForkReport, REQUEST};

/// The reported status of a worker whose own is not known: neither an exit nor a signal.
const NO_STATUS: i32 = 0x7f;

/// A worker, of which the fork server is the parent.
struct Child {
    pid: Pid,
    process: OwnedFd,
}

/// What a request leads to.
enum Forked {
    /// In the fork server.
    Parent,
    /// In a new worker: its connection to the executor.
    Worker(OwnedFd),
}

/// Lets processes that are forked have all memory of this one. V8 excludes its own (`MADV_DONTFORK`), because the
/// programs that it is usually part of fork only to start others. Call it when the instance is warm.
///
/// # Errors
///
/// If the system does not tell what memory there is.
pub(super) fn share_memory() -> io::Result<()> {
    for Mapping { addresses, .. } in mappings()? {
        #[expect(unsafe_code, reason = "no safe crate has this call for memory of others")]
        // SAFETY: it changes what a forked process has, and nothing in this one.
        let _special = unsafe {
            // The kernel's own mappings, such as `[vvar]`, refuse it.
            madvise(std::ptr::without_provenance_mut(addresses.start), addresses.len(), Advice::LinuxDoFork)
        };
    }
    Ok(())
}

/// Memory of this process.
pub(super) struct Mapping {
    pub(super) addresses: Range<usize>,
    pub(super) is_readable: bool,
}

/// All memory of this process.
///
/// # Errors
///
/// If the system does not tell.
pub(super) fn mappings() -> io::Result<Vec<Mapping>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let mapping = |line: &str| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let addresses = address(start)?..address(end)?;
        Some(Mapping { addresses, is_readable: fields.next()?.starts_with('r') })
    };
    Ok(maps.lines().filter_map(mapping).collect())
}

/// Forks a worker for each request. Returns only in workers, with the worker's connection; `executor` is closed there.
/// Ends the process with the executor.
pub(super) fn become_worker(executor: OwnedFd) -> OwnedFd {
    let mut children: Vec<Child> = Vec::new();
    if report(executor.as_fd(), ForkReport::Warm, None).is_err() {
        end_process();
    }
    loop {
        let is_requested = {
            let readable = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
            let mut events = vec![readable(executor.as_fd())];
            events.extend(children.iter().map(|child| readable(child.process.as_fd())));
            match poll(&mut events, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => end_process(),
            }
            events.first().is_some_and(|event| !event.revents().is_empty())
        };
        children.retain(|child| match status(child) {
            None => true,
            Some(status) => {
                let process = child.pid.as_raw_nonzero().get();
                if report(executor.as_fd(), ForkReport::Ended { process, status }, None).is_err() {
                    end_process();
                }
                false
            }
        });
        if is_requested && let Forked::Worker(connection) = answer(executor.as_fd(), &mut children) {
            // Here they are descriptors of the worker: of other workers, and of the fork server's connection.
            drop((executor, children));
            return connection;
        }
    }
}

fn report(
    executor: BorrowedFd<'_>,
    report: ForkReport,
    descriptor: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    forks::send(executor, &report.encode(), descriptor)
}

/// Sets `SIGCHLD` to its default, so that the system keeps the exit statuses of children until they are read. It
/// discards them where the signal is ignored, which a process can inherit.
fn keep_child_statuses() {
    #[expect(unsafe_code, reason = "no safe crate changes what a signal does to its default")]
    // SAFETY: no handler is installed, and by default this signal does nothing.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// The status of a worker that has ended, as `wait` returns it. It is reaped then.
fn status(child: &Child) -> Option<i32> {
    match waitpid(Some(child.pid), WaitOptions::NOHANG) {
        Ok(ended) => ended.map(|(_pid, status)| status.as_raw()),
        Err(Errno::INTR) => None,
        Err(_) => Some(NO_STATUS),
    }
}

/// Reads one request, and forks.
fn answer(executor: BorrowedFd<'_>, children: &mut Vec<Child>) -> Forked {
    let mut request = REQUEST;
    let connection = match forks::receive(executor, &mut request, RecvFlags::empty()) {
        Ok((length, Some(connection))) if length == REQUEST.len() => connection,
        Ok((length, None)) if length == REQUEST.len() => {
            // The system leaves a descriptor out for which this process has no number. Its workers have runs.
            return end_if_unsent(report(executor, ForkReport::Refused(Errno::MFILE.raw_os_error()), None));
        }
        Err(Errno::INTR) => return Forked::Parent,
        // The executor has gone.
        _ => end_process(),
    };
    let forked = match fork() {
        Ok(None) => return Forked::Worker(connection),
        Ok(Some(pid)) => open_child(pid).map_err(io::Error::from),
        Err(error) => Err(error),
    };
    let sent = match forked {
        Ok(child) => {
            let pid = child.pid.as_raw_nonzero().get();
            let sent = report(executor, ForkReport::Forked(pid), Some(child.process.as_fd()));
            children.push(child);
            sent
        }
        Err(error) => report(executor, ForkReport::Refused(error.raw_os_error().unwrap_or_default()), None),
    };
    end_if_unsent(sent)
}

/// Ends the process if an answer could not be sent: its executor has gone.
fn end_if_unsent(sent: rustix::io::Result<()>) -> Forked {
    if sent.is_err() {
        end_process();
    }
    Forked::Parent
}

/// Forks this process. Returns `None` in the child, which has a copy of the calling thread and no other one. No other
/// process gets the child's number before its status is asked for.
///
/// # Errors
///
/// If the system refuses it.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    keep_child_statuses();
    #[expect(unsafe_code, reason = "no safe crate forks")]
    // SAFETY: the other threads are the first one, which is parked, and those from which the engine starts threads and
    // V8's pool, which wait for tasks that never come: none of them holds a lock. The C library makes its allocator
    // usable in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Opens a descriptor of a forked worker, which has not been reaped: no other process has its id.
fn open_child(pid: Pid) -> Result<Child, Errno> {
    let process = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
        // Without a descriptor the executor could not end it.
        let _killed = kill_process(pid, Signal::KILL);
        let _reaped = waitpid(Some(pid), WaitOptions::empty());
    })?;
    Ok(Child { pid, process })
}
