//! Entries that several processes on several machines share. Each process can replace an entry if it is still the one
//! that the process has read. The server that stores the entries can neither read nor forge them, because `src/nats`
//! seals them.

pub(crate) mod parts;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

/// An entry, or its absence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedEntry {
    /// `None` if there is no entry.
    pub(crate) value: Option<Vec<u8>>,
    /// Increases with each change; 0 if there never was an entry, or it was removed.
    pub(crate) revision: u64,
    /// When it was written, in seconds since 1970, by the clock of the storing server.
    pub(crate) written_at: i64,
}

/// All stored entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedKeys {
    pub(crate) keys: Vec<String>,
    /// When the most recent entry was written, by the same clock.
    pub(crate) newest: i64,
}

/// Why shared entries cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SharedError {
    /// There was no answer. A change may have been made, or may still be made.
    #[error("{0}")]
    Away(String),
    /// There is no space.
    #[error("all that is shared together has reached its size")]
    Full,
    /// The request was refused and changed nothing.
    #[error("{0}")]
    Refused(String),
    /// The entry was not sealed with the same key.
    #[error("an entry of it is damaged, or was not written with the same key file")]
    Damaged,
}

/// Stores entries for all processes of one tenant. Each wait has a deadline. Keys consist of lower-case letters, digits
/// and dots.
pub(crate) trait SharedStore: fmt::Debug + Send + Sync {
    /// Returns a key part of 32 characters that stands for a name. The name cannot be derived from it without the
    /// tenant's key. `None` if the system provides no keys.
    fn hide(&self, kind: u8, name: &[u8]) -> Option<String>;

    fn get(&self, key: String) -> BoxFuture<'_, Result<SharedEntry, SharedError>>;

    /// Stores an entry if the current one has the revision `expected`, or unconditionally if that is `None`. Returns
    /// whether it was stored.
    fn put(
        &self,
        key: String,
        value: Vec<u8>,
        expected: Option<u64>,
    ) -> BoxFuture<'_, Result<bool, SharedError>>;

    /// Removes an entry if it has this revision.
    fn remove(&self, key: String, revision: u64) -> BoxFuture<'_, Result<(), SharedError>>;

    /// Removes all entries whose keys are `prefix`, a dot and one more part.
    fn remove_below(&self, prefix: String) -> BoxFuture<'_, Result<(), SharedError>>;

    /// The keys of all entries.
    fn keys(&self) -> BoxFuture<'_, Result<SharedKeys, SharedError>>;
}

/// The stores of a tenant.
pub(crate) struct SharedStores {
    pub(crate) state: Arc<dyn SharedStore>,
    pub(crate) runs: Arc<dyn SharedStore>,
}

#[cfg(test)]
pub(crate) mod fake;
