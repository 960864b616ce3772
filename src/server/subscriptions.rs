//! The resources that the client of a session has subscribed to, in a handshake revision.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio_util::sync::DropGuard;

use super::client_slots::ClientSlot;

/// The subscriptions of a session, by URI.
#[derive(Default)]
pub(crate) struct Subscriptions {
    state: Arc<Mutex<OpenSubscriptions>>,
}

#[derive(Default)]
struct OpenSubscriptions {
    /// Each with its number.
    by_uri: HashMap<String, (u64, Subscription)>,
    /// The number of the latest one.
    latest: u64,
}

/// A subscription to one resource. Dropping it ends it.
pub(crate) struct Subscription {
    pub(crate) _ended: DropGuard,
    pub(crate) _slot: ClientSlot,
}

/// Names a subscription that was added, without keeping it or those of its session.
pub(crate) struct SubscriptionHandle {
    state: Weak<Mutex<OpenSubscriptions>>,
    uri: String,
    number: u64,
}

impl Subscriptions {
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.state.lock().by_uri.contains_key(uri)
    }

    /// Adds a subscription. It replaces one that was made meanwhile.
    pub(crate) fn insert(&self, uri: String, subscription: Subscription) -> SubscriptionHandle {
        let mut state = self.state.lock();
        state.latest += 1;
        let number = state.latest;
        let replaced = state.by_uri.insert(uri.clone(), (number, subscription));
        drop(state);
        drop(replaced);
        SubscriptionHandle { state: Arc::downgrade(&self.state), uri, number }
    }

    /// Ends a subscription, if there is one.
    pub(crate) fn remove(&self, uri: &str) {
        let _ended = self.state.lock().by_uri.remove(uri);
    }
}

impl SubscriptionHandle {
    /// Ends the subscription, unless it has ended already.
    pub(crate) fn remove(self) {
        let Some(state) = self.state.upgrade() else { return };
        let mut state = state.lock();
        let is_there = state.by_uri.get(&self.uri).is_some_and(|(number, _)| *number == self.number);
        let ended = if is_there { state.by_uri.remove(&self.uri) } else { None };
        // Dropped after the lock is released.
        drop(state);
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::server::client_slots::ClientSlots;

    #[test]
    fn a_subscription_that_ends_by_itself_makes_room_and_ends_no_later_one() {
        let (slots, subscriptions) = (ClientSlots::new(2), Subscriptions::default());
        let subscribe = || {
            let ended = CancellationToken::new();
            let subscription =
                Subscription { _ended: ended.clone().drop_guard(), _slot: slots.acquire("a").unwrap() };
            (ended, subscriptions.insert("cx://runs/a/output".to_owned(), subscription))
        };
        let (first_ended, first) = subscribe();
        let (ended, second) = subscribe();
        assert!(first_ended.is_cancelled() && !ended.is_cancelled(), "it was replaced");
        first.remove();
        assert!(subscriptions.has("cx://runs/a/output") && !ended.is_cancelled());
        second.remove();
        assert!(!subscriptions.has("cx://runs/a/output") && ended.is_cancelled());
        assert!([(); 2].map(|()| slots.acquire("a")).iter().all(Option::is_some), "both slots are free");
        let (ended, last) = subscribe();
        drop(subscriptions);
        assert!(ended.is_cancelled(), "nothing else keeps the subscriptions of a session");
        last.remove();
    }
}
