//! The state of scopes that several processes share, in a store that can only replace single entries.
//!
//! A scope has one entry that lists its keys, the head. A call reads the head, and a write replaces it if it has not
//! changed meanwhile; otherwise the call starts again. So each call is atomic for all processes, and so are the bounds
//! of a scope. Short values are stored in the head, longer ones in separate parts, which are written before the head
//! that refers to them and removed after it. [`Scopes::sweep`] removes parts that a process leaves behind when it dies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::call::{StateCall, json_value};
use super::entries::{self, Entry};
use super::error::StateError;
use super::scope::StateScope;
use crate::storage::shared::parts::{self, Stored};
use crate::storage::shared::{SharedError, SharedStore};
use crate::text::ids::random_bytes;

/// Maximum time of a call, however many other processes write to the same scope.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Number of concurrent calls of this process. Calls of one scope are made one after another, so that they do not
/// compete.
const TURNS: usize = 16;

/// The first byte of a head: the version of its format.
const VERSION: u8 = 1;

/// The second byte of a head: whether the list of keys is in the head or in parts.
const HERE: u8 = 0;
const IN_PARTS: u8 = 1;

/// Maximum bytes of a list of keys that is stored in the head.
const MAX_HEAD: usize = 256 << 10;

/// Maximum bytes of a value that is stored in the list of keys, unless these values exceed the bound together: each
/// write to the scope writes all of them.
const MAX_HERE: usize = 1 << 10;
const MAX_ALL_HERE: usize = 64 << 10;

/// Maximum pause before a process repeats a write that another process has preceded.
const MAX_PAUSE: Duration = Duration::from_millis(40);

/// Maximum number of reads of a value whose parts are missing because other processes replace it repeatedly.
const MAX_READS: u32 = 20;

/// State that no script has used for this time is removed. The clock is that of the store, as of its last write.
const MAX_UNUSED: i64 = 90 * DAY;

/// Minimum interval of recording that a scope is used.
const DAY: i64 = 24 * 60 * 60;

/// Age up to which unreferenced parts may belong to a write in flight.
const MAX_WRITE: i64 = 60 * 60;

/// How often a process looks for unreferenced parts and unused scopes, and how many scopes it examines.
const SWEEP: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_SWEPT: usize = 50_000;

/// The kind of name that keys of scopes are derived from.
const SCOPE: u8 = b's';

/// State that is shared with other processes.
pub(crate) struct SharedState {
    scopes: Arc<Scopes>,
    turns: [Semaphore; TURNS],
    sweeping: Mutex<Sweeping>,
}

/// The scopes of a store.
struct Scopes {
    store: Arc<dyn SharedStore>,
}

#[derive(Default)]
struct Sweeping {
    began: Option<Instant>,
    /// The last sweep. It ends with this.
    task: JoinSet<()>,
}

/// The keys of a scope.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    entries: BTreeMap<String, Item>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    value: Stored,
    /// Bytes of the value.
    bytes: usize,
    /// The tag of the [`Entry`].
    tag: String,
}

/// The result of reading a head.
struct Head {
    index: Index,
    at: HeadEntry,
}

/// The entry of a head.
struct HeadEntry {
    /// The parts of the list of keys, if it is stored in parts.
    parts: Option<Stored>,
    revision: u64,
    written_at: i64,
}

impl Index {
    fn bytes(&self) -> usize {
        self.entries.iter().map(|(key, item)| key.len() + item.bytes).sum()
    }

    /// Bytes of the values that are stored in this list.
    fn here(&self) -> usize {
        let here = |item: &Item| if item.value.id().is_none() { item.bytes } else { 0 };
        self.entries.values().map(here).sum()
    }
}

impl SharedState {
    pub(crate) fn new(store: Arc<dyn SharedStore>) -> Self {
        let turns = [const { Semaphore::const_new(1) }; TURNS];
        Self { scopes: Arc::new(Scopes { store }), turns, sweeping: Mutex::default() }
    }

    /// Performs an operation and returns JSON text. If the future of a write is dropped, the write may or may not be
    /// made.
    pub(crate) async fn call(
        &self,
        call: StateCall,
        scope: &StateScope,
        deadline: Instant,
        runtime: &Handle,
    ) -> Result<String, StateError> {
        self.sweep_at_times(runtime);
        let scope = self.scopes.name(scope)?;
        self.within(deadline, &scope, self.scopes.perform(call, &scope)).await
    }

    /// All keys and values of a scope.
    pub(crate) async fn all(
        &self,
        scope: &StateScope,
        deadline: Instant,
    ) -> Result<Vec<(String, String)>, StateError> {
        let scope = self.scopes.name(scope)?;
        self.within(deadline, &scope, self.scopes.all(&scope)).await
    }

    async fn within<T>(
        &self,
        deadline: Instant,
        scope: &str,
        work: impl Future<Output = Result<T, StateError>>,
    ) -> Result<T, StateError> {
        let most = MAX_TIME.min(deadline.saturating_duration_since(Instant::now()));
        let turn = scope.bytes().map(usize::from).sum::<usize>() % TURNS;
        let working = async {
            // The semaphores are never closed.
            let _turn = self.turns[turn].acquire().await.map_err(|_closed| StateError::Ended)?;
            work.await
        };
        timeout(most, working).await.unwrap_or(Err(StateError::Contended))
    }

    fn sweep_at_times(&self, runtime: &Handle) {
        let mut sweeping = self.sweeping.lock();
        if sweeping.began.is_some_and(|began| began.elapsed() < SWEEP) {
            return;
        }
        sweeping.began = Some(Instant::now());
        let scopes = Arc::clone(&self.scopes);
        let mut task = JoinSet::new();
        let sweep = async move {
            if let Err(error) = scopes.sweep().await {
                tracing::debug!(%error, "what is not needed any more was not looked for");
            }
        };
        task.spawn_on(sweep, runtime);
        sweeping.task = task;
    }
}

impl Scopes {
    /// The name of a scope in keys. No other scope can have the same, whatever name a session has.
    fn name(&self, scope: &StateScope) -> Result<String, StateError> {
        let (kind, name) = scope.columns();
        let kind = u8::try_from(kind).unwrap_or(u8::MAX);
        let hidden = self.store.hide(SCOPE, &[&[kind], name].concat());
        hidden.ok_or_else(|| StateError::Away("the system provides no keys".to_owned()))
    }

    async fn perform(&self, call: StateCall, scope: &str) -> Result<String, StateError> {
        match call {
            StateCall::Get { key, tagged } => {
                let entry = self.get(scope, &key).await?;
                Ok(entries::entry_text(entry.as_ref(), tagged))
            }
            StateCall::Set { key, value, expected } => {
                let value = json_value(&value)?;
                self.set(scope, &key, &value, expected.as_deref()).await
            }
            StateCall::Delete { key } => Ok(self.delete(scope, &key).await?.to_string()),
            StateCall::Keys { prefix } => {
                let index = self.used_head(scope).await?.index;
                let keys = index.entries.into_keys().filter(|key| key.starts_with(&prefix));
                Ok(keys.map(serde_json::Value::from).collect::<serde_json::Value>().to_string())
            }
        }
    }

    async fn get(&self, scope: &str, key: &str) -> Result<Option<Entry>, StateError> {
        let mut revision = None;
        for _ in 0..MAX_READS {
            // Recording the use is a change too.
            let is_first = revision.is_none();
            let head = if is_first { self.used_head(scope).await? } else { self.head(scope).await? };
            let Some(item) = head.index.entries.get(key) else { return Ok(None) };
            if let Some(text) = parts::read(&*self.store, scope, &item.value).await? {
                return Ok(Some(Entry(text)));
            }
            if revision.replace(head.at.revision) == Some(head.at.revision) {
                return Err(StateError::DamagedValue(key.to_owned()));
            }
        }
        Err(StateError::Contended)
    }

    /// Stores a value if the current one has the tag `expected`, and returns the answer to the script.
    async fn set(
        &self,
        scope: &str,
        key: &str,
        value: &str,
        expected: Option<&str>,
    ) -> Result<String, StateError> {
        let entry = Entry(value.to_owned());
        let tag = entry.tag();
        let mut written: Option<Stored> = None;
        let mut attempt = 0;
        loop {
            let Head { mut index, at } = self.head(scope).await?;
            let old = index.entries.remove(key);
            let differs = expected.is_some_and(|expected| {
                expected != old.as_ref().map(|item| item.tag.as_str()).unwrap_or_default()
            });
            let refused = if differs { None } else { check_bounds(&index, key, value).err() };
            if differs || refused.is_some() {
                if let Some(written) = &written {
                    parts::remove(&*self.store, scope, written).await;
                }
                return match refused {
                    Some(error) => Err(error),
                    None => Ok(entries::entry_text(self.get(scope, key).await?.as_ref(), true)),
                };
            }
            let stored = match &written {
                Some(written) => written.clone(),
                None if value.len() <= MAX_HERE && index.here() + value.len() <= MAX_ALL_HERE => {
                    Stored::Here(value.to_owned())
                }
                None => written.insert(parts::write(&*self.store, scope, value).await?).clone(),
            };
            let item = Item { value: stored, bytes: value.len(), tag: tag.clone() };
            index.entries.insert(key.to_owned(), item);
            match self.commit(scope, &index, &at).await {
                Ok(true) => {
                    if let Some(old) = old {
                        parts::remove(&*self.store, scope, &old.value).await;
                    }
                    return Ok("true".to_owned());
                }
                Ok(false) => pause(&mut attempt).await,
                Err(error) => {
                    // Without an answer, the head may refer to these parts.
                    if let (StateError::Full(_), Some(written)) = (&error, &written) {
                        parts::remove(&*self.store, scope, written).await;
                    }
                    return Err(error);
                }
            }
        }
    }

    async fn delete(&self, scope: &str, key: &str) -> Result<bool, StateError> {
        let mut attempt = 0;
        loop {
            let Head { mut index, at } = self.head(scope).await?;
            let Some(old) = index.entries.remove(key) else { return Ok(false) };
            if self.commit(scope, &index, &at).await? {
                parts::remove(&*self.store, scope, &old.value).await;
                return Ok(true);
            }
            pause(&mut attempt).await;
        }
    }

    /// Replaces the head that was read. Returns `false` if another process has replaced it meanwhile.
    async fn commit(&self, scope: &str, index: &Index, at: &HeadEntry) -> Result<bool, StateError> {
        let json = |error: serde_json::Error| StateError::Invalid(error.to_string());
        let text = serde_json::to_string(index).map_err(json)?;
        let mut bytes = vec![VERSION];
        let mut written = None;
        if text.len() <= MAX_HEAD {
            bytes.push(HERE);
            bytes.extend(text.as_bytes());
        } else {
            bytes.push(IN_PARTS);
            let parts = written.insert(parts::write(&*self.store, scope, &text).await?);
            bytes.extend(serde_json::to_vec(parts).map_err(json)?);
        }
        let put = self.store.put(head_key(scope), bytes, Some(at.revision)).await;
        let unneeded = match &put {
            Ok(true) => &at.parts,
            Ok(false) | Err(SharedError::Full) => &written,
            // Without an answer, the head may refer to these parts.
            Err(_) => &None,
        };
        if let Some(unneeded) = unneeded {
            parts::remove(&*self.store, scope, unneeded).await;
        }
        Ok(put?)
    }

    async fn head(&self, scope: &str) -> Result<Head, StateError> {
        for _ in 0..MAX_READS {
            let entry = self.store.get(head_key(scope)).await?;
            let mut at = HeadEntry { parts: None, revision: entry.revision, written_at: entry.written_at };
            let Some(value) = entry.value else { return Ok(Head { index: Index::default(), at }) };
            let [version, place, rest @ ..] = &value[..] else { return Err(SharedError::Damaged.into()) };
            if *version != VERSION {
                return Err(StateError::NewerShared);
            }
            let damaged = |_| StateError::from(SharedError::Damaged);
            let text = if *place == HERE {
                Some(String::from_utf8_lossy(rest).into_owned())
            } else {
                let stored: Stored = serde_json::from_slice(rest).map_err(damaged)?;
                let text = parts::read(&*self.store, scope, &stored).await?;
                at.parts = Some(stored);
                text
            };
            if let Some(text) = text {
                return Ok(Head { index: serde_json::from_str(&text).map_err(damaged)?, at });
            }
        }
        Err(StateError::Contended)
    }

    /// Reads the head, and records that the scope is used.
    async fn used_head(&self, scope: &str) -> Result<Head, StateError> {
        let head = self.head(scope).await?;
        // A wrong clock only causes additional writes.
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
        let age = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(head.at.written_at);
        if head.at.revision > 0
            && age.saturating_abs() > DAY
            // If another process was faster, it has recorded the use.
            && let Err(error) = self.commit(scope, &head.index, &head.at).await
        {
            tracing::debug!(%error, "the use of a scope is not noted");
        }
        Ok(head)
    }

    /// All keys and values.
    async fn all(&self, scope: &str) -> Result<Vec<(String, String)>, StateError> {
        for _ in 0..MAX_READS {
            let head = self.head(scope).await?;
            if let Some(all) = self.values(scope, &head.index).await? {
                return Ok(all);
            }
        }
        Err(StateError::Contended)
    }

    /// All values, or `None` if one of them was replaced meanwhile.
    async fn values(&self, scope: &str, index: &Index) -> Result<Option<Vec<(String, String)>>, StateError> {
        let mut all = Vec::new();
        for (key, item) in &index.entries {
            let Some(text) = parts::read(&*self.store, scope, &item.value).await? else { return Ok(None) };
            all.push((key.clone(), text));
        }
        Ok(Some(all))
    }

    /// Removes scopes that no script has used for long, and parts that no head refers to.
    async fn sweep(&self) -> Result<(), StateError> {
        let all = self.store.keys().await?;
        let mut scopes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for key in &all.keys {
            if let Some(scope) = key.strip_prefix(HEADS) {
                scopes.entry(scope).or_default();
            } else if let Some((scope, id)) = parts::parse_key(key) {
                scopes.entry(scope).or_default().insert(id);
            }
        }
        for (scope, mut ids) in scopes.into_iter().take(MAX_SWEPT) {
            let head = match self.head(scope).await {
                Ok(head) => head,
                Err(StateError::Away(problem)) => return Err(StateError::Away(problem)),
                // The next use of the scope reports the error.
                Err(_) => continue,
            };
            if head.at.revision > 0 && all.newest.saturating_sub(head.at.written_at) > MAX_UNUSED {
                self.store.remove(head_key(scope), head.at.revision).await?;
            } else {
                for stored in head.index.entries.values().map(|item| &item.value).chain(&head.at.parts) {
                    if let Some(id) = stored.id() {
                        ids.remove(id);
                    }
                }
            }
            for id in ids {
                let first = self.store.get(parts::first_key(scope, id)).await?;
                if all.newest.saturating_sub(first.written_at) > MAX_WRITE {
                    parts::remove(&*self.store, scope, &Stored::Parts { id: id.to_owned(), count: 0 }).await;
                }
            }
        }
        Ok(())
    }
}

/// The prefix of the keys of heads.
const HEADS: &str = "head.";

fn head_key(scope: &str) -> String {
    format!("{HEADS}{scope}")
}

/// Checks that a scope may have this entry in addition to those of `others`.
fn check_bounds(others: &Index, key: &str, value: &str) -> Result<(), StateError> {
    let length = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    entries::check_keys(length(others.entries.len() + 1))?;
    entries::check_bytes(length(others.bytes() + key.len() + value.len()))
}

/// Waits for a random time, so that competing processes do not stay in step.
async fn pause(attempt: &mut u32) {
    *attempt += 1;
    let most = Duration::from_millis(1).saturating_mul(1 << (*attempt).min(8)).min(MAX_PAUSE);
    // Without random numbers all pauses have the same length.
    let [random] = random_bytes().unwrap_or([u8::MAX]);
    sleep(most.mul_f64(f64::from(random) / 255.0)).await;
}

#[cfg(test)]
mod tests;
