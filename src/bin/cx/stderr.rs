//! Stderr of a service: lines of notes and logs.
//!
//! A write to a full pipe blocks until its reader reads, and some clients never read the stderr of a server that they
//! start. These lines are written by the threads that serve requests, so a line that waits for too long is dropped.

use std::io::{self, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long a line may wait for the reader altogether: one that reads a little now and then delays no line for longer.
/// After one that was dropped no line waits until the reader reads again.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Bytes that a pipe which is ready takes without blocking: at least that many on every system (POSIX).
const MAX_PIECE: usize = 512;

/// Whether this process is a service. Set once, before the first line.
static IS_SERVICE: AtomicBool = AtomicBool::new(false);

/// What has become of the last line.
static LAST: Mutex<LastLine> = Mutex::new(LastLine::Written);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastLine {
    Written,
    Dropped,
    /// Dropped after a part of it was written.
    Cut,
}

/// From now on this process is a service: lines that are not read are dropped.
pub(crate) fn drop_unread_lines() {
    IS_SERVICE.store(true, Ordering::Relaxed);
}

pub(crate) fn is_of_service() -> bool {
    IS_SERVICE.load(Ordering::Relaxed)
}

/// Writes a line of a service, or drops it. A closed stderr cannot be reported.
pub(crate) fn write(line: &[u8]) {
    write_to(io::stderr().as_fd(), &mut LAST.lock(), line);
}

/// As [`write`]. `last` is what has become of the last line of this stream.
fn write_to(stream: BorrowedFd<'_>, last: &mut LastLine, line: &[u8]) {
    if *last != LastLine::Written && !is_ready(stream, Duration::ZERO) {
        return;
    }
    if *last == LastLine::Cut {
        let _ = rustix::io::write(stream, b"\n");
    }
    *last = LastLine::Written;
    let deadline = Instant::now() + MAX_WAIT;
    let mut rest = line;
    while !rest.is_empty() {
        let (piece, _later) = rest.split_at(rest.len().min(MAX_PIECE));
        let left = deadline.saturating_duration_since(Instant::now());
        let written =
            if is_ready(stream, left) { rustix::io::write(stream, piece) } else { Err(Errno::AGAIN) };
        match written {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                *last = if rest.len() == line.len() { LastLine::Dropped } else { LastLine::Cut };
                return;
            }
            Ok(0) | Err(_) => return,
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
        }
    }
}

/// Whether a stream takes bytes without blocking, within this time. What cannot be polled is ready.
fn is_ready(stream: BorrowedFd<'_>, wait: Duration) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(stream, PollFlags::OUT)];
    let wait = Timespec::try_from(wait).ok();
    loop {
        match poll(&mut polled, wait.as_ref()) {
            Err(Errno::INTR) => {}
            ready => return ready != Ok(0),
        }
    }
}

/// A writer of logs, to which each is one write.
pub(crate) struct Logs;

impl Write for Logs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !is_of_service() {
            return io::stderr().write(line);
        }
        write(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
