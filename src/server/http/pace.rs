//! How fast a client reads its answer: a connection whose client hardly reads makes room for others.
//!
//! The system ends a connection whose client reads nothing (`listener.rs`). One that reads a byte every few seconds
//! would keep its connection for days.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long a client may read slowly before its connection may be evicted.
const MIN_TIME: Duration = Duration::from_secs(30);

/// A client that reads fewer bytes in a second reads slowly. Any network that is of use is faster.
const MIN_BYTES_PER_SECOND: u64 = 1 << 10;

/// How fast the client of one connection reads, while something waits to be written.
#[derive(Default)]
pub(crate) struct ReadingPace(Mutex<Option<Blocked>>);

/// Something waits until the client reads.
#[derive(Clone, Copy)]
struct Blocked {
    since: Instant,
    /// Bytes that the system has taken since.
    written: u64,
}

impl ReadingPace {
    /// The system takes no more bytes now, because the client has not read enough.
    pub(crate) fn note_blocked(&self, now: Instant) {
        self.0.lock().get_or_insert(Blocked { since: now, written: 0 });
    }

    /// The system has taken so many bytes.
    pub(crate) fn note_written(&self, bytes: usize, now: Instant) {
        if let Some(blocked) = &mut *self.0.lock() {
            blocked.written = blocked.written.saturating_add(bytes as u64);
            if blocked.has_lasted(now) && !blocked.is_slow(now) {
                // How fast it was says nothing about how fast it will be.
                *blocked = Blocked { since: now, written: 0 };
            }
        }
    }

    /// Nothing waits to be written.
    pub(crate) fn note_flushed(&self) {
        *self.0.lock() = None;
    }

    /// Whether the client hardly reads what waits for it.
    pub(crate) fn is_slow(&self, now: Instant) -> bool {
        self.0.lock().is_some_and(|blocked| blocked.is_slow(now))
    }
}

impl Blocked {
    fn has_lasted(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= MIN_TIME
    }

    fn is_slow(&self, now: Instant) -> bool {
        let time = now.saturating_duration_since(self.since);
        self.has_lasted(now) && self.written / time.as_secs().max(1) < MIN_BYTES_PER_SECOND
    }
}
