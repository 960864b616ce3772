//! The store, and one run's access to it.
//!
//! All state is in one SQLite file, which several processes may use concurrently. It is opened when
//! a script first needs it. In each process one call at a time uses the file, on a thread that may
//! block. The other calls are queued, and are removed from the queue when their run ends. Each call
//! is atomic.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use rusqlite::Connection;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::call::{StateCall, json_value};
use super::entries::{self, Written, entry_text};
use super::error::StateError;
use super::file::{self, StateFile};
use super::scope::{StateScope, StateUsage};
use super::shared::SharedState;
use crate::error::Error;
use crate::machine::probe;
use crate::storage::private::MAX_WAIT;

/// Maximum bytes that one run may write, to limit disk wear, and the overhead that each write
/// counts in addition to its text.
const MAX_WRITTEN_BYTES: u64 = 1 << 30;
const WRITE_OVERHEAD_BYTES: usize = 4 << 10;

/// The scripts' state, in one file. Cheap to clone; all clones share the open file. Other processes
/// may use it too.
#[derive(Clone)]
pub struct StateStore {
    file: Arc<StateFile>,
    /// The holder of its permit uses the file.
    turn: Arc<Semaphore>,
    /// Stores the scopes of workspaces and sessions instead of the file.
    shared: Option<Arc<SharedState>>,
}

impl StateStore {
    /// The store in this file. The file and its directory are created at the first use, accessible
    /// only to the user. Does not open the file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::from_file(StateFile::new(path.into()))
    }

    fn from_file(file: StateFile) -> Self {
        // One connection: SQLite allows one writer, and reads take microseconds.
        Self { file: Arc::new(file), turn: Arc::new(Semaphore::new(1)), shared: None }
    }

    /// This store, with the state of workspaces and sessions shared with other processes. The file then contains only
    /// the state of clients, which are connected to this process only.
    pub(crate) fn sharing(self, shared: SharedState) -> Self {
        Self { shared: Some(Arc::new(shared)), ..self }
    }

    /// The shared state that contains a scope, if there is one.
    fn shared(&self, scope: &StateScope) -> Option<&Arc<SharedState>> {
        self.shared.as_ref().filter(|_| scope.as_client().is_none())
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The usage of all scopes, most recently used first. Reads all of the state, at most 256 MB, and
    /// waits for other processes for at most two seconds.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the file cannot be used.
    pub fn usage(&self) -> Result<Vec<StateUsage>, Error> {
        if !self.path().exists() {
            return Ok(Vec::new());
        }
        let usage = self.file.with(MAX_WAIT, entries::usage);
        usage.map_err(for_people)
    }

    /// Deletes all state of one scope and returns the number of keys deleted. Works on a full disk too,
    /// unless another process uses the file. Blocks for at most about two seconds.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the file cannot be used.
    pub fn clear(&self, scope: &StateScope) -> Result<u64, Error> {
        if !self.path().exists() {
            return Ok(0);
        }
        let work = |connection: &mut Connection, _today| entries::clear(connection, Some(scope));
        let cleared = match self.file.with(MAX_WAIT, work) {
            Err(StateError::Full(_)) => self.file.clear_without_space(scope, MAX_WAIT),
            cleared => cleared,
        };
        cleared.map_err(for_people)
    }

    /// Deletes the state of all scopes, and a damaged file that was set aside. Returns the number of
    /// keys deleted. Works on a full disk too. Blocks for at most about two seconds.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the file cannot be used.
    pub fn clear_all(&self) -> Result<u64, Error> {
        self.file.remove_damaged().map_err(|error| for_people(error.into()))?;
        if !self.path().exists() {
            return Ok(0);
        }
        let cleared = match self.file.with(MAX_WAIT, |connection, _today| entries::clear(connection, None)) {
            Err(StateError::Full(_)) => self.remove_file(),
            cleared => cleared,
        };
        cleared.map_err(for_people)
    }

    /// Removes the file, which is possible on a full disk.
    fn remove_file(&self) -> Result<u64, StateError> {
        let keys = self.file.with(MAX_WAIT, |connection, _today| entries::count_keys(connection))?;
        self.file.remove()?;
        Ok(keys)
    }

    /// The damaged file that was set aside last, until [`clear_all`](Self::clear_all) removes it. Scripts cannot access
    /// its content.
    pub fn damaged_file(&self) -> Option<PathBuf> {
        self.file.damaged_file()
    }
}

fn for_people(error: StateError) -> Error {
    Error::Files { what: "the state of scripts", source: error.into() }
}

impl fmt::Debug for StateStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StateStore").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// Performs the operation on a thread that may block. Returns JSON text.
fn perform(
    call: StateCall,
    connection: &mut Connection,
    scope: &StateScope,
    today: i64,
) -> Result<String, StateError> {
    match call {
        StateCall::Get { key, tagged } => {
            Ok(entry_text(entries::get(connection, scope, &key, today)?.as_ref(), tagged))
        }
        StateCall::Set { key, value, expected } => {
            let value = json_value(&value)?;
            match entries::set(connection, scope, &key, &value, expected.as_deref(), today)? {
                Written::Yes => Ok("true".to_owned()),
                Written::Differs(entry) => Ok(entry_text(entry.as_ref(), true)),
            }
        }
        StateCall::Delete { key } => Ok(entries::delete(connection, scope, &key, today)?.to_string()),
        StateCall::Keys { prefix } => {
            Ok(Value::from(entries::keys(connection, scope, &prefix, today)?).to_string())
        }
    }
}

/// One run's access to a store.
pub(crate) struct RunState {
    store: StateStore,
    scope: StateScope,
    /// A dry run's own copy of the scope, created by its first write.
    trial: Option<Arc<Mutex<Option<Connection>>>>,
    written_bytes: AtomicU64,
}

impl RunState {
    /// In a dry run, writes are visible only to the run.
    pub(crate) fn new(store: StateStore, scope: StateScope, is_dry_run: bool) -> Self {
        Self { store, scope, trial: is_dry_run.then(Arc::default), written_bytes: AtomicU64::new(0) }
    }

    /// Performs a script's operation and returns JSON text. Dropping the future removes a waiting
    /// call from the queue. A call that has started is completed by SQLite, atomically.
    pub(crate) async fn call(
        &self,
        call: StateCall,
        deadline: Instant,
        runtime: &Handle,
    ) -> Result<String, StateError> {
        call.check()?;
        if call.writes() {
            let bytes = (call.bytes() + WRITE_OVERHEAD_BYTES) as u64;
            if self.written_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_WRITTEN_BYTES {
                let problem = "this run has written 1 GB to its state; write less often, or the results only";
                return Err(StateError::Full(problem.to_owned()));
            }
        }
        if let Some(shared) = self.store.shared(&self.scope) {
            return self.call_shared(shared, call, deadline, runtime).await;
        }
        // The semaphore is never closed.
        let turn = Arc::clone(&self.store.turn).acquire_owned().await.map_err(|_closed| StateError::Ended)?;
        let (file, scope, trial) = (Arc::clone(&self.store.file), self.scope.clone(), self.trial.clone());
        let work = move || {
            let _turn = turn;
            // Another process's lock must not block the queue for longer than this run would wait.
            let wait = MAX_WAIT.min(deadline.saturating_duration_since(Instant::now()));
            let Some(trial) = trial else {
                return file.with(wait, |connection, today| perform(call.clone(), connection, &scope, today));
            };
            let mut trial = trial.lock();
            if trial.is_none() && call.writes() {
                *trial = Some(file.with(wait, |connection, _today| file::trial(connection, &scope))?);
            }
            match &mut *trial {
                // In the copy scopes do not age.
                Some(connection) => perform(call, connection, &scope, 0),
                None => file.with(wait, |connection, today| perform(call.clone(), connection, &scope, today)),
            }
        };
        let done = probe::spawn_blocking(runtime, work)?.await;
        done.unwrap_or_else(|lost| {
            Err(if lost.is_panic() { std::io::Error::from(lost).into() } else { StateError::Ended })
        })
    }

    /// As [`call`](Self::call), on shared state.
    async fn call_shared(
        &self,
        shared: &Arc<SharedState>,
        call: StateCall,
        deadline: Instant,
        runtime: &Handle,
    ) -> Result<String, StateError> {
        let Some(trial) = &self.trial else {
            return shared.call(call, &self.scope, deadline, runtime).await;
        };
        if trial.lock().is_none() {
            if !call.writes() {
                return shared.call(call, &self.scope, deadline, runtime).await;
            }
            let copy = file::copy_of(&self.scope, &shared.all(&self.scope, deadline).await?)?;
            trial.lock().get_or_insert(copy);
        }
        let mut trial = trial.lock();
        let connection = trial.as_mut().ok_or(StateError::Ended)?;
        perform(call, connection, &self.scope, 0)
    }
}

#[cfg(test)]
mod tests;
