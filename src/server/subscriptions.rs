//! The resources that the client of a session has subscribed to, in a handshake revision.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio_util::sync::DropGuard;

use super::client_slots::ClientSlot;

/// The subscriptions of a session, by URI.
#[derive(Default)]
pub(crate) struct Subscriptions {
    by_uri: Mutex<HashMap<String, Subscription>>,
}

/// A subscription to one resource. Dropping it ends it.
pub(crate) struct Subscription {
    pub(crate) _ended: DropGuard,
    pub(crate) _slot: ClientSlot,
}

impl Subscriptions {
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.by_uri.lock().contains_key(uri)
    }

    /// Adds a subscription. It replaces one that was made meanwhile.
    pub(crate) fn insert(&self, uri: String, subscription: Subscription) {
        // Dropped after the lock is released.
        let _replaced = self.by_uri.lock().insert(uri, subscription);
    }

    /// Ends a subscription, if there is one.
    pub(crate) fn remove(&self, uri: &str) {
        let _ended = self.by_uri.lock().remove(uri);
    }
}
