//! Bounds what is kept for clients that resume their streams, of all sessions together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::events::StreamEvents;
use super::shares::{Holder, with_most};

/// Maximum bytes of the events that are kept: as many as for the answers to runs over REST.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// Maximum number of requests that go on without a connection: as many as there are connections, because a proxy that
/// is restarted cuts all of them.
const MAX_AWAY: usize = 512;

/// The streams that can be resumed, of all sessions.
pub(crate) struct KeptEvents {
    max_bytes: usize,
    bytes: AtomicUsize,
    /// The oldest first.
    streams: Mutex<Vec<Weak<StreamEvents>>>,
    away: Arc<Semaphore>,
}

/// A stream of which something is kept.
struct KeptStream {
    events: Arc<StreamEvents>,
    holder: Holder,
    bytes: usize,
    is_unread: bool,
}

impl KeptEvents {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            bytes: AtomicUsize::new(0),
            streams: Mutex::default(),
            away: Arc::new(Semaphore::new(MAX_AWAY)),
        }
    }

    /// A permit for a request that goes on without a connection, if one more may.
    pub(crate) fn away_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.away).try_acquire_owned().ok()
    }

    pub(super) fn add(&self, events: &Arc<StreamEvents>) {
        let mut streams = self.streams.lock();
        if streams.len() == streams.capacity() {
            streams.retain(|stream| stream.strong_count() > 0);
            // As many can be added before this happens again.
            let left = streams.len();
            streams.reserve(left + 1);
        }
        streams.push(Arc::downgrade(events));
    }

    /// Counts `now` bytes of a stream instead of `before`.
    pub(super) fn count(&self, before: usize, now: usize) {
        // Wraps around if it is less, as the sum does.
        self.bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// The bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether more has to be forgotten. That stops somewhat below the maximum, so that it is seldom begun.
    fn has_excess(&self) -> bool {
        self.bytes() > self.max_bytes - self.max_bytes / 8
    }

    /// Forgets streams when they have more than the maximum: those of the tenant that has most, and of its peer that
    /// has most, first what a connection has taken already, and of that the oldest.
    pub(super) fn bound(&self) {
        if self.bytes() <= self.max_bytes {
            return;
        }
        let streams: Vec<Arc<StreamEvents>> = self.streams.lock().iter().filter_map(Weak::upgrade).collect();
        let mut kept: Vec<KeptStream> = streams.into_iter().map(KeptStream::new).collect();
        kept.retain(|stream| stream.bytes > 0);
        while self.has_excess() && !kept.is_empty() {
            let tenant = with_most(kept.iter().map(|stream| (stream.holder.tenant, stream.bytes)));
            let of_tenant = kept.iter().filter(|stream| Some(stream.holder.tenant) == tenant);
            let holder = with_most(of_tenant.map(|stream| (stream.holder, stream.bytes)));
            let (mut own, others): (Vec<_>, Vec<_>) =
                kept.into_iter().partition(|stream| Some(stream.holder) == holder);
            kept = others;
            self.forget(&mut own);
        }
    }

    /// Forgets streams of one holder.
    fn forget(&self, streams: &mut [KeptStream]) {
        // Stable, so that the oldest stay first.
        streams.sort_by_key(|stream| stream.is_unread);
        for stream in streams.iter().take_while(|_| self.has_excess()) {
            stream.events.forget();
        }
    }
}

impl KeptStream {
    fn new(events: Arc<StreamEvents>) -> Self {
        let (holder, bytes, is_unread) = events.kept();
        Self { events, holder, bytes, is_unread }
    }
}
