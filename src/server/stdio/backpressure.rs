//! Back-pressure on a client over pipes: bounds on its requests in flight, and on the lines that are read beyond them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Requests in flight. More than runs can be active and queued together (300), so that those that are too many are
/// refused and not delayed; a request in flight takes some 15 KB, so that all of them are less than 10 MB.
const MAX_IN_FLIGHT: usize = 512;

/// Bytes of the requests in flight, as they came. Three of the largest arguments.
const MAX_IN_FLIGHT_BYTES: usize = 64 << 20;

/// Bytes of answers that the client has not read, beyond which no more requests are handled. A client that first
/// writes some thousand requests and then reads all answers never gets there.
pub(super) const MAX_UNREAD_BYTES: usize = 4 << 20;

/// Lines in the look-ahead. As many again as may be in flight: a cancellation that follows so many requests is seen.
const MAX_PARKED: usize = 512;

/// Bytes in the look-ahead before the last line, which may be the longest that is read.
const MAX_PARKED_BYTES: usize = 8 << 20;

/// How long a client may read nothing while nothing is taken from it. Longer than a client is busy with anything else,
/// and short enough that a server whose client has stopped working ends on the same day.
pub(super) const MAX_STALL: Duration = Duration::from_secs(120);

/// Counts the requests of one client that are being handled.
#[derive(Default)]
pub(super) struct InFlight {
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    freed: Notify,
}

/// Counts one request until it is dropped.
pub(super) struct Slot {
    counts: Arc<Counts>,
    bytes: usize,
}

impl InFlight {
    /// Whether one more request of that many bytes may be handled. One always may.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let requests = self.counts.requests.load(Ordering::Relaxed);
        let all_bytes = self.counts.bytes.load(Ordering::Relaxed) + bytes;
        requests == 0 || (requests < MAX_IN_FLIGHT && all_bytes <= MAX_IN_FLIGHT_BYTES)
    }

    /// Counts a request.
    pub(super) fn enter(&self, bytes: usize) -> Slot {
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        Slot { counts: Arc::clone(&self.counts), bytes }
    }

    /// Completes when a slot is freed, or at once if one was since the last completion. For one task only.
    pub(super) async fn freed(&self) {
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

/// Lines that wait until a request may be handled, in the order in which they came.
#[derive(Default)]
pub(super) struct LookAhead {
    lines: VecDeque<ParkedLine>,
    bytes: usize,
}

/// A line that is answered in its turn.
pub(super) struct ParkedLine {
    pub(super) line: Vec<u8>,
    /// The request's id, as JSON, to be found by a cancellation.
    pub(super) id: Option<Box<str>>,
}

impl LookAhead {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether no more may be read.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= MAX_PARKED || self.bytes >= MAX_PARKED_BYTES
    }

    /// The size of the first line.
    pub(super) fn first_bytes(&self) -> Option<usize> {
        self.lines.front().map(|parked| parked.line.len())
    }

    pub(super) fn push(&mut self, mut parked: ParkedLine) {
        parked.line.shrink_to_fit();
        self.bytes += parked.line.len();
        self.lines.push_back(parked);
    }

    pub(super) fn pop(&mut self) -> Option<ParkedLine> {
        let parked = self.lines.pop_front()?;
        self.bytes -= parked.line.len();
        Some(parked)
    }

    /// Drops the requests of that id. There is no answer to them any more.
    pub(super) fn cancel(&mut self, id: &str) {
        self.lines.retain(|parked| {
            let is_kept = parked.id.as_deref() != Some(id);
            if !is_kept {
                self.bytes -= parked.line.len();
            }
            is_kept
        });
    }
}
