//! Counts the calls in flight: of one session, or of several sessions together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// The calls in flight of one session or of several.
#[derive(Default)]
pub(crate) struct CallsInFlight {
    count: AtomicUsize,
    /// Whether no further runs start.
    is_closed: AtomicBool,
    one_ended: Notify,
    /// The group of calls that these are also counted in.
    group: Option<Arc<Self>>,
}

/// A call that counts as in flight until this is dropped.
pub(crate) struct CallGuard(Arc<CallsInFlight>);

impl CallsInFlight {
    /// Makes a counter whose calls are also counted in `group`.
    pub(crate) fn within(group: &Arc<Self>) -> Self {
        Self { group: Some(Arc::clone(group)), ..Self::default() }
    }

    /// Counts a call.
    pub(crate) fn begin(self: &Arc<Self>) -> CallGuard {
        for calls in self.with_groups() {
            calls.count.fetch_add(1, Ordering::SeqCst);
        }
        CallGuard(Arc::clone(self))
    }

    /// Lets no further runs start. Calls in flight go on.
    ///
    /// A run that is counted before it asks [`is_closed`](Self::is_closed) is either refused or waited for: both this
    /// and the count are sequentially consistent.
    #[cfg(feature = "http")]
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Whether no further runs start, because these calls or the group that they are counted in are closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.with_groups().any(|calls| calls.is_closed.load(Ordering::SeqCst))
    }

    /// Whether no call is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// The number of calls in flight.
    #[cfg(feature = "http")]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until no call is in flight, for at most `max`.
    pub(crate) async fn wait_until_empty(&self, max: Duration) {
        let ended = async {
            loop {
                // Registered before the count is read. Otherwise a call that ends between the two
                // would be missed.
                let next = self.one_ended.notified();
                if self.is_empty() {
                    return;
                }
                next.await;
            }
        };
        let _late = timeout(max, ended).await;
    }

    fn with_groups(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |calls| calls.group.as_deref())
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        for calls in self.0.with_groups() {
            calls.count.fetch_sub(1, Ordering::SeqCst);
            calls.one_ended.notify_waiters();
        }
    }
}
