//! A store in memory for tests, in which servers become unreachable and other processes write at the worst moment.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use futures::future::{BoxFuture, FutureExt as _};
use parking_lot::Mutex;

use super::{SharedEntry, SharedError, SharedKeys, SharedStore};

#[derive(Debug, Default)]
pub(crate) struct FakeStore {
    pub(crate) entries: Mutex<BTreeMap<String, SharedEntry>>,
    revision: Mutex<u64>,
    /// Seconds since 1970.
    pub(crate) now: AtomicI64,
    pub(crate) is_away: AtomicBool,
    /// This many writes are stored but not confirmed.
    pub(crate) unconfirmed: AtomicUsize,
    /// The maximum number of stored bytes; 0 for no limit.
    pub(crate) most: AtomicUsize,
}

impl FakeStore {
    fn answer(&self) -> Result<(), SharedError> {
        if self.is_away.load(Ordering::Relaxed) { Err(SharedError::Away("away".to_owned())) } else { Ok(()) }
    }
}

impl SharedStore for FakeStore {
    fn hide(&self, kind: u8, name: &[u8]) -> Option<String> {
        Some(crate::storage::files::sha256(&[&[kind], name].concat())[..32].to_owned())
    }

    fn get(&self, key: String) -> BoxFuture<'_, Result<SharedEntry, SharedError>> {
        async move {
            tokio::task::yield_now().await;
            self.answer()?;
            Ok(self.entries.lock().get(&key).cloned().unwrap_or_default())
        }
        .boxed()
    }

    fn put(
        &self,
        key: String,
        value: Vec<u8>,
        expected: Option<u64>,
    ) -> BoxFuture<'_, Result<bool, SharedError>> {
        async move {
            tokio::task::yield_now().await;
            self.answer()?;
            let mut entries = self.entries.lock();
            let current = entries.get(&key).map_or(0, |entry| entry.revision);
            if expected.is_some_and(|expected| expected != current) {
                return Ok(false);
            }
            let most = self.most.load(Ordering::Relaxed);
            let bytes = |entry: &SharedEntry| entry.value.as_ref().map_or(0, Vec::len);
            let kept: usize = entries.values().map(bytes).sum();
            let old = entries.get(&key).map_or(0, bytes);
            // As in a NATS server, an entry can always become smaller.
            if most > 0 && kept + value.len() > most && value.len() >= old {
                return Err(SharedError::Full);
            }
            let mut revision = self.revision.lock();
            *revision += 1;
            let written_at = self.now.load(Ordering::Relaxed);
            entries.insert(key, SharedEntry { value: Some(value), revision: *revision, written_at });
            let unconfirmed = self.unconfirmed.load(Ordering::Relaxed);
            if unconfirmed > 0 {
                self.unconfirmed.store(unconfirmed - 1, Ordering::Relaxed);
                return Err(SharedError::Away("unconfirmed".to_owned()));
            }
            Ok(true)
        }
        .boxed()
    }

    fn remove(&self, key: String, revision: u64) -> BoxFuture<'_, Result<(), SharedError>> {
        async move {
            self.answer()?;
            let mut entries = self.entries.lock();
            if entries.get(&key).is_some_and(|entry| entry.revision == revision) {
                entries.remove(&key);
            }
            Ok(())
        }
        .boxed()
    }

    fn remove_below(&self, prefix: String) -> BoxFuture<'_, Result<(), SharedError>> {
        async move {
            self.answer()?;
            self.entries.lock().retain(|key, _| {
                !key.strip_prefix(&prefix)
                    .is_some_and(|rest| rest.starts_with('.') && !rest[1..].contains('.'))
            });
            Ok(())
        }
        .boxed()
    }

    fn keys(&self) -> BoxFuture<'_, Result<SharedKeys, SharedError>> {
        async move {
            self.answer()?;
            let entries = self.entries.lock();
            let newest = entries.values().map(|entry| entry.written_at).max().unwrap_or_default();
            Ok(SharedKeys { keys: entries.keys().cloned().collect(), newest })
        }
        .boxed()
    }
}
