//! What scripts keep from one run to the next: JSON by key, in scopes that do not see each other.
//!
//! All of it is one SQLite file, which several processes use at once. It is opened when a script first needs it. One
//! call of a process works on it at a time, on a thread that may block; the others wait in line, and leave it when
//! their run ends. Each call is whole or has not happened.

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

/// Characters of a key, and at least one.
const MAX_KEY_CHARACTERS: usize = 256;

/// Bytes of one value as JSON. What is larger is data for a tool and not something to remember.
const MAX_VALUE_BYTES: usize = 1 << 20;

/// Bytes that one run may write, each write with what it costs beside its text. A person's disk wears out.
const MAX_WRITTEN_BYTES: u64 = 1 << 30;
const WRITE_OVERHEAD_BYTES: usize = 4 << 10;

/// Characters of a session's handle, and at least one.
const MAX_SESSION_CHARACTERS: usize = 128;

/// What scripts keep, in one file. Cheap to clone; all clones share the open file. Other processes may use it too.
#[derive(Clone)]
pub struct StateStore {
    file: Arc<StateFile>,
    /// Who has it works on the file.
    turn: Arc<Semaphore>,
}

/// Whose state it is: that of all runs in one workspace, of all runs that name one session, or of one client of a
/// server, for as long as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateScope(Scope);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Workspace(PathBuf),
    Session(String),
    Client(String),
}

/// Whose state a run has that names no session.
#[derive(Clone, Debug, Default)]
pub(crate) enum DefaultScope {
    #[default]
    Workspace,
    Of(StateScope),
    /// It is one of many clients that cannot be told apart.
    Unavailable,
}

/// What a [`StateStore`] holds of one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateUsage {
    /// Whose it is.
    pub scope: StateScope,
    /// How many keys there are.
    pub keys: u64,
    /// Bytes of the keys, and of the values as JSON.
    pub bytes: u64,
    /// For how many days no script has used it.
    pub unused_days: u64,
}

impl StateStore {
    /// The store in that file. It and its directory are made when something first uses them, for the person's eyes
    /// only. Opens nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::of(StateFile::new(path.into()))
    }

    fn of(file: StateFile) -> Self {
        // One connection: SQLite has one writer, and what readers need is over in microseconds.
        Self { file: Arc::new(file), turn: Arc::new(Semaphore::new(1)) }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// What there is, those that were used last first. Blocks, for some two seconds at most.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] when the file cannot be used.
    pub fn usage(&self) -> Result<Vec<StateUsage>, Error> {
        if !self.path().exists() {
            return Ok(Vec::new());
        }
        let usage = self.file.with(crate::storage::files::MAX_WAIT, entries::usage);
        usage.map_err(for_people)
    }

    /// Forgets everything of one scope, and returns how many keys that were. Blocks, for some two seconds at most.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] when the file cannot be used.
    pub fn clear(&self, scope: &StateScope) -> Result<u64, Error> {
        self.clear_some(Some(scope))
    }

    /// Forgets everything of all scopes, and returns how many keys that were. Blocks, for some two seconds at most.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] when the file cannot be used.
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
    /// The scope of a workspace: its directory, without links if they can be followed.
    pub fn workspace(directory: &Path) -> Self {
        let absolute = || std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        Self(Scope::Workspace(directory.canonicalize().unwrap_or_else(|_| absolute())))
    }

    /// The scope of a session. Whoever knows the handle shares it, in whatever workspace.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] unless it has 1 to 128 characters that can be seen.
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

    /// The client's id, or `None` for anything else.
    pub fn as_client(&self) -> Option<&str> {
        match &self.0 {
            Scope::Client(id) => Some(id),
            Scope::Workspace(_) | Scope::Session(_) => None,
        }
    }

    /// The scope of one client, by an id that no other client ever has. No session can be called so.
    pub(crate) fn client(id: &str) -> Self {
        Self(Scope::Client(id.to_owned()))
    }

    /// The workspace's directory, or `None` for anything else.
    pub fn as_workspace(&self) -> Option<&Path> {
        match &self.0 {
            Scope::Workspace(directory) => Some(directory),
            Scope::Session(_) | Scope::Client(_) => None,
        }
    }

    /// The session's handle, or `None` for anything else.
    pub fn as_session(&self) -> Option<&str> {
        match &self.0 {
            Scope::Session(handle) => Some(handle),
            Scope::Workspace(_) | Scope::Client(_) => None,
        }
    }

    /// The two columns that name it. The kind keeps a session from being called like a directory.
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

/// What a script wants of its state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum StateCall {
    /// Answers `[value]`, or `[]` if the key is not there; `[value, tag]` if `tagged`.
    Get { key: String, tagged: bool },
    /// Keeps JSON text. Answers `true`; or what there is, as a tagged `Get`, if that is not what `expected` stands for:
    /// a tag, or nothing if it is empty.
    Set { key: String, value: String, expected: Option<String> },
    /// Answers whether the key was there.
    Delete { key: String },
    /// Answers the keys that begin with the prefix, sorted.
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

    /// Does it, on a thread that may block. The answer is JSON text.
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
                // Read by the rules for arguments of tools, and written again: nothing else gets into the file.
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

/// One run's share of a store.
pub(crate) struct RunState {
    store: StateStore,
    scope: StateScope,
    /// A dry run's own copy of the scope, from its first write on.
    trial: Option<Arc<Mutex<Option<Connection>>>>,
    written_bytes: AtomicU64,
}

impl RunState {
    /// In a dry run what is written stays in the run.
    pub(crate) fn new(store: StateStore, scope: StateScope, is_dry_run: bool) -> Self {
        Self { store, scope, trial: is_dry_run.then(Arc::default), written_bytes: AtomicU64::new(0) }
    }

    /// Does what a script wants and answers with JSON text. Dropping the future takes a call that waits for its turn
    /// out of the line; one that has begun is ended by SQLite, and whole.
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
            // A process that holds the file must not hold the line for longer than this run would wait.
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
