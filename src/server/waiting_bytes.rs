//! Bounds the bytes of events and notifications that wait for clients which do not read them.
//!
//! Their number is bounded too. But each can have kilobytes, and there are as many queues as clients have connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum bytes in one queue: as many of the longest printed lines as it has slots.
const MAX_OF_QUEUE: usize = 3 << 19;

/// Bytes in all queues of the process beyond which a queue has no more than its share.
const MAX_OF_ALL: usize = 64 << 20;

/// The share: some fifty short lines. A client that reads needs no more.
const SHARE: usize = 64 << 10;

/// Bytes that an event takes beside its text.
const OF_EVENT: usize = 1 << 10;

/// The bytes in all queues.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// The bytes in one queue.
#[derive(Clone)]
pub(crate) struct WaitingBytes {
    own: Arc<AtomicUsize>,
    all: &'static AtomicUsize,
}

/// The bytes of one event, which count until this is dropped.
pub(crate) struct HeldBytes {
    bytes: usize,
    of: WaitingBytes,
}

impl WaitingBytes {
    /// Those of a new queue.
    pub(crate) fn new() -> Self {
        Self::within(&ALL)
    }

    fn within(all: &'static AtomicUsize) -> Self {
        Self { own: Arc::default(), all }
    }

    /// Counts an event with this much text. `None` if too much waits already: then the event is dropped.
    pub(crate) fn hold(&self, text_bytes: usize) -> Option<HeldBytes> {
        let bytes = text_bytes.saturating_add(OF_EVENT);
        let is_crowded = self.all.load(Ordering::Relaxed) > MAX_OF_ALL;
        let max = if is_crowded { SHARE } else { MAX_OF_QUEUE };
        let held = self.own.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |own| {
            own.checked_add(bytes).filter(|sum| *sum <= max)
        });
        held.ok()?;
        self.all.fetch_add(bytes, Ordering::Relaxed);
        Some(HeldBytes { bytes, of: self.clone() })
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.of.own.fetch_sub(self.bytes, Ordering::Relaxed);
        self.of.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
