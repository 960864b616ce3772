//! The state that scripts keep between runs: JSON values by key, in isolated scopes.
//!
//! All state is in one SQLite file, which several processes may use concurrently. It is opened when
//! a script first needs it. In each process one call at a time uses the file, on a thread that may
//! block. The other calls are queued, and are removed from the queue when their run ends. Each call
//! is atomic.

mod entries;
mod error;
mod file;

use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use self::entries::{Entry, Written};
pub(crate) use self::error::StateError;
use self::file::StateFile;
use crate::error::Error;
use crate::json::Json;
use crate::text::hidden_text;

/// Maximum length of a key in characters. The minimum is one.
const MAX_KEY_CHARACTERS: usize = 256;

/// Maximum size of one value in bytes of JSON. Larger values are data for a tool, not state.
const MAX_VALUE_BYTES: usize = 1 << 20;

/// Maximum bytes that one run may write, to limit disk wear, and the overhead that each write
/// counts in addition to its text.
const MAX_WRITTEN_BYTES: u64 = 1 << 30;
const WRITE_OVERHEAD_BYTES: usize = 4 << 10;

/// Maximum length of a session's handle in characters. The minimum is one.
const MAX_SESSION_CHARACTERS: usize = 128;

/// The scripts' state, in one file. Cheap to clone; all clones share the open file. Other processes
/// may use it too.
#[derive(Clone)]
pub struct StateStore {
    file: Arc<StateFile>,
    /// The holder of its permit uses the file.
    turn: Arc<Semaphore>,
}

/// The scope of state: all runs in one workspace, all runs that name one session, or one client of
/// a server while it is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateScope(Scope);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Workspace(PathBuf),
    Session(String),
    Client(String),
}

/// The scope of a run that names no session.
#[derive(Clone, Debug, Default)]
pub(crate) enum DefaultScope {
    #[default]
    Workspace,
    Of(StateScope),
    /// The client cannot be told apart from others, so it has no state.
    Unavailable,
}

/// The usage of one scope in a [`StateStore`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateUsage {
    /// The scope.
    pub scope: StateScope,
    /// Number of keys.
    pub keys: u64,
    /// Bytes of the keys, and of the values as JSON.
    pub bytes: u64,
    /// Number of days since a script last used it.
    pub unused_days: u64,
}

impl StateStore {
    /// The store in this file. The file and its directory are created at the first use, accessible
    /// only to the user. Does not open the file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::of(StateFile::new(path.into()))
    }

    fn of(file: StateFile) -> Self {
        // One connection: SQLite allows one writer, and reads take microseconds.
        Self { file: Arc::new(file), turn: Arc::new(Semaphore::new(1)) }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The usage of all scopes, most recently used first. Blocks for at most about two seconds.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the file cannot be used.
    pub fn usage(&self) -> Result<Vec<StateUsage>, Error> {
        if !self.path().exists() {
            return Ok(Vec::new());
        }
        let usage = self.file.with(crate::storage::files::MAX_WAIT, entries::usage);
        usage.map_err(for_people)
    }

    /// Deletes all state of one scope and returns the number of keys deleted. Blocks for at most
    /// about two seconds.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the file cannot be used.
    pub fn clear(&self, scope: &StateScope) -> Result<u64, Error> {
        self.clear_some(Some(scope))
    }

    /// Deletes the state of all scopes and returns the number of keys deleted. Blocks for at most
    /// about two seconds.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the file cannot be used.
    pub fn clear_all(&self) -> Result<u64, Error> {
        self.clear_some(None)
    }

    fn clear_some(&self, scope: Option<&StateScope>) -> Result<u64, Error> {
        if !self.path().exists() {
            return Ok(0);
        }
        let cleared = self
            .file
            .with(crate::storage::files::MAX_WAIT, |connection, _today| entries::clear(connection, scope));
        cleared.map_err(for_people)
    }
}

fn for_people(error: StateError) -> Error {
    Error::Files { what: "the state of scripts", source: std::io::Error::other(error) }
}

impl fmt::Debug for StateStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StateStore").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl StateScope {
    /// The scope of a workspace: its directory, with symbolic links resolved if possible.
    pub fn workspace(directory: &Path) -> Self {
        let absolute = || std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        Self(Scope::Workspace(directory.canonicalize().unwrap_or_else(|_| absolute())))
    }

    /// The scope of a session. All runs that name the handle share it, in any workspace.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] unless the handle has 1 to 128 visible characters.
    pub fn session(handle: impl Into<String>) -> Result<Self, Error> {
        let handle = handle.into();
        let length = handle.chars().count();
        let problem = if length == 0 || length > MAX_SESSION_CHARACTERS {
            format!("expected 1 to {MAX_SESSION_CHARACTERS} characters: {length}")
        } else if hidden_text(&handle) || handle.contains(char::is_control) {
            "expected characters that can be seen, no control characters".to_owned()
        } else {
            return Ok(Self(Scope::Session(handle)));
        };
        Err(Error::InvalidOptions { option: "session", problem })
    }

    /// The client's id, or `None` for other scopes.
    pub fn as_client(&self) -> Option<&str> {
        match &self.0 {
            Scope::Client(id) => Some(id),
            Scope::Workspace(_) | Scope::Session(_) => None,
        }
    }

    /// The scope of one client, by an id that is never reused. No session handle can equal it.
    pub(crate) fn client(id: &str) -> Self {
        Self(Scope::Client(id.to_owned()))
    }

    /// The workspace's directory, or `None` for other scopes.
    pub fn as_workspace(&self) -> Option<&Path> {
        match &self.0 {
            Scope::Workspace(directory) => Some(directory),
            Scope::Session(_) | Scope::Client(_) => None,
        }
    }

    /// The session's handle, or `None` for other scopes.
    pub fn as_session(&self) -> Option<&str> {
        match &self.0 {
            Scope::Session(handle) => Some(handle),
            Scope::Workspace(_) | Scope::Client(_) => None,
        }
    }

    /// The two columns that identify the scope. The kind separates sessions from directories of the
    /// same name.
    fn columns(&self) -> (i64, &[u8]) {
        match &self.0 {
            Scope::Workspace(directory) => (0, directory.as_os_str().as_bytes()),
            Scope::Session(handle) => (1, handle.as_bytes()),
            Scope::Client(id) => (2, id.as_bytes()),
        }
    }

    fn from_columns(kind: i64, name: Vec<u8>) -> Self {
        let text = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
        Self(match kind {
            0 => Scope::Workspace(PathBuf::from(std::ffi::OsString::from_vec(name))),
            1 => Scope::Session(text(name)),
            _ => Scope::Client(text(name)),
        })
    }
}

impl fmt::Display for StateScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Scope::Workspace(directory) => write!(formatter, "workspace {}", directory.display()),
            Scope::Session(handle) => write!(formatter, "session {handle}"),
            Scope::Client(id) => write!(formatter, "client {id}"),
        }
    }
}

/// A script's operation on its state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum StateCall {
    /// Returns `[value]`, or `[]` if the key does not exist; `[value, tag]` if `tagged`.
    Get { key: String, tagged: bool },
    /// Stores JSON text. Returns `true`, or the current entry as a tagged `Get` does if that does
    /// not match `expected`: a tag, or empty text for no entry.
    Set { key: String, value: String, expected: Option<String> },
    /// Returns whether the key existed.
    Delete { key: String },
    /// Returns the keys that start with the prefix, sorted.
    Keys { prefix: String },
}

impl StateCall {
    /// Bytes that the call holds while it waits.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Get { key, .. } | Self::Delete { key } => key.len(),
            Self::Keys { prefix } => prefix.len(),
            Self::Set { key, value, .. } => key.len() + value.len(),
        }
    }

    fn writes(&self) -> bool {
        matches!(self, Self::Set { .. } | Self::Delete { .. })
    }

    fn check(&self) -> Result<(), StateError> {
        let key = match self {
            Self::Keys { .. } => return Ok(()),
            Self::Get { key, .. } | Self::Delete { key } | Self::Set { key, .. } => key,
        };
        let length = key.chars().count();
        if length == 0 || length > MAX_KEY_CHARACTERS {
            let problem = format!("a key has 1 to {MAX_KEY_CHARACTERS} characters: {length}");
            return Err(StateError::Invalid(problem));
        }
        if let Self::Set { value, .. } = self
            && value.len() > MAX_VALUE_BYTES
        {
            let problem = format!(
                "the value is {} bytes of JSON, at most {MAX_VALUE_BYTES} are kept under one key; keep less of it, \
                 or parts of it under several keys",
                value.len()
            );
            return Err(StateError::Invalid(problem));
        }
        Ok(())
    }

    /// Performs the operation on a thread that may block. Returns JSON text.
    fn perform(
        self,
        connection: &mut Connection,
        scope: &StateScope,
        today: i64,
    ) -> Result<String, StateError> {
        match self {
            Self::Get { key, tagged } => {
                Ok(entry_text(entries::get(connection, scope, &key, today)?.as_ref(), tagged))
            }
            Self::Set { key, value, expected } => {
                // Parsed by the same rules as tool arguments and serialized again, so that the file
                // contains only valid JSON.
                let value = Json::parse(&value)
                    .map_err(|error| StateError::Invalid(format!("the value is not valid JSON: {error}")))?
                    .into_text();
                match entries::set(connection, scope, &key, &value, expected.as_deref(), today)? {
                    Written::Yes => Ok("true".to_owned()),
                    Written::Differs(entry) => Ok(entry_text(entry.as_ref(), true)),
                }
            }
            Self::Delete { key } => Ok(entries::delete(connection, scope, &key, today)?.to_string()),
            Self::Keys { prefix } => {
                Ok(Value::from(entries::keys(connection, scope, &prefix, today)?).to_string())
            }
        }
    }
}

fn entry_text(entry: Option<&Entry>, is_tagged: bool) -> String {
    match entry {
        None => "[]".to_owned(),
        Some(Entry(value)) if !is_tagged => format!("[{value}]"),
        Some(entry) => format!(r#"[{},"{}"]"#, entry.0, entry.tag()),
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
        // The semaphore is never closed.
        let turn = Arc::clone(&self.store.turn).acquire_owned().await.map_err(|_closed| StateError::Ended)?;
        let (file, scope, trial) = (Arc::clone(&self.store.file), self.scope.clone(), self.trial.clone());
        let work = move || {
            let _turn = turn;
            // Another process's lock must not block the queue for longer than this run would wait.
            let wait =
                crate::storage::files::MAX_WAIT.min(deadline.saturating_duration_since(Instant::now()));
            let Some(trial) = trial else {
                return file.with(wait, |connection, today| call.clone().perform(connection, &scope, today));
            };
            let mut trial = trial.lock();
            if trial.is_none() && call.writes() {
                *trial = Some(file.with(wait, |connection, today| file::trial(connection, &scope, today))?);
            }
            match &mut *trial {
                Some(connection) => call.perform(connection, &scope, file.today()),
                None => file.with(wait, |connection, today| call.clone().perform(connection, &scope, today)),
            }
        };
        let done = runtime.spawn_blocking(work).await;
        done.unwrap_or_else(|lost| {
            let panicked = || std::io::Error::other("the call panicked").into();
            Err(if lost.is_panic() { panicked() } else { StateError::Ended })
        })
    }
}

#[cfg(test)]
mod tests;
