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
    pub(crate) fn note_written(&self, bytes: usize) {
        if let Some(blocked) = &mut *self.0.lock() {
            blocked.written = blocked.written.saturating_add(bytes as u64);
        }
    }

    /// Nothing waits to be written.
    pub(crate) fn note_flushed(&self) {
        *self.0.lock() = None;
    }

    /// Whether the client hardly reads what waits for it.
    pub(crate) fn is_slow(&self, now: Instant) -> bool {
        let Some(Blocked { since, written }) = *self.0.lock() else { return false };
        let time = now.saturating_duration_since(since);
        time >= MIN_TIME && written / time.as_secs() < MIN_BYTES_PER_SECOND
    }
}
