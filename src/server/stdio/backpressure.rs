//! Back-pressure on a stdio client: bounds on its requests in flight, and on the lines that are
//! read beyond them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Maximum number of requests in flight. It is higher than the number of runs that can be active
/// and queued (300), so that excess runs are refused and not delayed. A request in flight takes
/// about 15 KB, so all of them take less than 10 MB.
const MAX_IN_FLIGHT: usize = 512;

/// Maximum bytes of the requests in flight, as they were received. One message may have 34 MiB.
const MAX_IN_FLIGHT_BYTES: usize = 64 << 20;

/// Bytes of unread answers beyond which no more requests are handled. A client that writes some
/// thousand requests before it reads the answers does not reach it.
pub(crate) const MAX_UNREAD_BYTES: usize = 4 << 20;

/// Maximum number of lines in the look-ahead. It equals the number of requests in flight, so that a
/// cancellation that follows that many requests is seen.
const MAX_PARKED: usize = 512;

/// Maximum bytes in the look-ahead before its last line, which may have the maximum line length.
const MAX_PARKED_BYTES: usize = 8 << 20;

/// How long a client may read nothing while nothing is read from it. Longer than a client is busy
/// with other work, and short enough that a server does not keep running for long after its client
/// has stopped working.
pub(crate) const MAX_STALL: Duration = Duration::from_secs(120);

/// Counts the requests of one client that are being handled.
#[derive(Default)]
pub(crate) struct InFlight {
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    freed: Notify,
}

/// Counts one request until it is dropped.
pub(crate) struct Slot {
    counts: Arc<Counts>,
    bytes: usize,
}

impl InFlight {
    /// Whether one more request of this many bytes may be handled. If none is in flight, always.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let requests = self.counts.requests.load(Ordering::Relaxed);
        let all_bytes = self.counts.bytes.load(Ordering::Relaxed) + bytes;
        requests == 0 || (requests < MAX_IN_FLIGHT && all_bytes <= MAX_IN_FLIGHT_BYTES)
    }

    /// Counts a request.
    pub(crate) fn enter(&self, bytes: usize) -> Slot {
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        Slot { counts: Arc::clone(&self.counts), bytes }
    }

    /// Completes when a slot is freed, or at once if one was freed since the last completion. For
    /// one task only.
    pub(crate) async fn freed(&self) {
        self.counts.freed.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.counts.requests.fetch_sub(1, Ordering::Relaxed);
        self.counts.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.counts.freed.notify_one();
    }
}

/// Lines that wait until a request may be handled, in the order in which they were read.
#[derive(Default)]
pub(crate) struct LookAhead {
    lines: VecDeque<ParkedLine>,
    bytes: usize,
}

/// A line that is handled in its turn.
pub(crate) struct ParkedLine {
    pub(crate) line: Vec<u8>,
    /// The request's id as JSON, for cancellations.
    pub(crate) id: Option<Box<str>>,
}

impl LookAhead {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether no more lines may be read.
    pub(crate) fn is_full(&self) -> bool {
        self.lines.len() >= MAX_PARKED || self.bytes >= MAX_PARKED_BYTES
    }

    /// The size of the first line in bytes.
    pub(crate) fn first_bytes(&self) -> Option<usize> {
        self.lines.front().map(|parked| parked.line.len())
    }

    pub(crate) fn push(&mut self, mut parked: ParkedLine) {
        parked.line.shrink_to_fit();
        self.bytes += parked.line.len();
        self.lines.push_back(parked);
    }

    pub(crate) fn pop(&mut self) -> Option<ParkedLine> {
        let parked = self.lines.pop_front()?;
        self.bytes -= parked.line.len();
        Some(parked)
    }

    /// Drops the requests with this id. They get no answer.
    pub(crate) fn cancel(&mut self, id: &str) {
        self.lines.retain(|parked| {
            let is_kept = parked.id.as_deref() != Some(id);
            if !is_kept {
                self.bytes -= parked.line.len();
            }
            is_kept
        });
    }
}
