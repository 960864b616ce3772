//! Measures how fast a client reads its answer. A connection whose client hardly reads may be evicted for another.
//!
//! The system ends a connection whose client reads nothing (`listener.rs`). Without this measure, a client that reads a
//! byte every few seconds would keep its connection for days.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long a client may read slowly before its connection may be evicted.
const MIN_TIME: Duration = Duration::from_secs(30);

/// A client that reads fewer bytes a second is slow. Any usable network is faster.
const MIN_BYTES_PER_SECOND: u64 = 1 << 10;

/// How fast the client of one connection reads while data waits to be written.
#[derive(Default)]
pub(crate) struct ReadingPace(Mutex<Option<Blocked>>);

/// Data waits until the client reads.
#[derive(Clone, Copy)]
struct Blocked {
    since: Instant,
    /// Bytes that the system has accepted since then.
    written: u64,
}

impl ReadingPace {
    /// Records that the system accepts no more bytes now, because the client has not read enough.
    pub(crate) fn note_blocked(&self, now: Instant) {
        self.0.lock().get_or_insert(Blocked { since: now, written: 0 });
    }

    /// Records that the system has accepted this many bytes.
    pub(crate) fn note_written(&self, bytes: usize, now: Instant) {
        if let Some(blocked) = &mut *self.0.lock() {
            blocked.written = blocked.written.saturating_add(bytes as u64);
            if blocked.has_lasted(now) && !blocked.is_slow(now) {
                // The measurement starts again, because the past speed does not predict the future one.
                *blocked = Blocked { since: now, written: 0 };
            }
        }
    }

    /// Records that nothing waits to be written.
    pub(crate) fn note_flushed(&self) {
        *self.0.lock() = None;
    }

    /// Bytes per second that the client reads while data waits for it. `None` if no data waits, or has waited for less
    /// than a second, which is too short to measure.
    pub(crate) fn bytes_per_second(&self, now: Instant) -> Option<u64> {
        let blocked = (*self.0.lock())?;
        let is_known = now.saturating_duration_since(blocked.since) >= Duration::from_secs(1);
        is_known.then(|| blocked.bytes_per_second(now))
    }

    /// Whether data waits for the client and the client reads too slowly.
    pub(crate) fn is_slow(&self, now: Instant) -> bool {
        self.0.lock().is_some_and(|blocked| blocked.is_slow(now))
    }
}

impl Blocked {
    fn has_lasted(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= MIN_TIME
    }

    fn bytes_per_second(&self, now: Instant) -> u64 {
        self.written / now.saturating_duration_since(self.since).as_secs().max(1)
    }

    fn is_slow(&self, now: Instant) -> bool {
        self.has_lasted(now) && self.bytes_per_second(now) < MIN_BYTES_PER_SECOND
    }
}
