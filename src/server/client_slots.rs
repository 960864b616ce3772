//! Slots of each client of a server: for tasks, subscriptions, and runs that wait for an answer.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The same number of slots for each client, so that no client uses up the slots of another.
pub(crate) struct ClientSlots {
    max: usize,
    used: Arc<Mutex<HashMap<String, usize>>>,
}

/// A slot that is in use. It is free again when this is dropped.
pub(crate) struct ClientSlot {
    client: String,
    used: Arc<Mutex<HashMap<String, usize>>>,
}

impl ClientSlots {
    /// `max` slots for each client.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, used: Arc::default() }
    }

    /// Takes a slot of `client`; `None` if all of its slots are in use.
    pub(crate) fn acquire(&self, client: &str) -> Option<ClientSlot> {
        let mut used = self.used.lock();
        let count = used.get(client).copied().unwrap_or(0);
        if count >= self.max {
            return None;
        }
        used.insert(client.to_owned(), count + 1);
        drop(used);
        Some(ClientSlot { client: client.to_owned(), used: Arc::clone(&self.used) })
    }
}

impl ClientSlot {
    pub(crate) fn client(&self) -> &str {
        &self.client
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut used = self.used.lock();
        match used.get_mut(&self.client) {
            Some(count) if *count > 1 => *count -= 1,
            // Only clients with slots in use take memory.
            _ => drop(used.remove(&self.client)),
        }
    }
}

#[cfg(test)]
mod tests;
