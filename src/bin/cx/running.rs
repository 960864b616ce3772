//! The registry of running servers of this user, by which `cx ui` and `cx top` find each `cx serve`.
//!
//! Each server has a file below the state directory, which only its user can read, and holds a lock on it. The system
//! releases the lock when the process ends, however it ends, so a file whose lock can be taken is stale. A process id
//! and a start time would be less reliable: ids are reused, and containers that share a home directory each have their
//! own.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use cx::command::{Ownership, open_regular};
use serde::{Deserialize, Serialize};

/// The ending of the files' names.
const ENDING: &str = ".json";

/// Maximum number of servers that are listed, and maximum bytes of a file.
const MAX_SERVERS: usize = 64;
const MAX_BYTES: u64 = 64 << 10;

/// Maximum number of names in the directory that are examined. More means that something else writes there.
const MAX_NAMES: usize = 1_000;

/// The registered data of a running server.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunningServer {
    /// Its process.
    pub(crate) process: u32,
    /// When it was started, in seconds since 1970.
    pub(crate) started: u64,
    /// The version of cx.
    pub(crate) version: String,
    /// How its clients reach it.
    pub(crate) transport: Transport,
    /// The directory in which it was started.
    pub(crate) workspace: PathBuf,
    /// The address of its metrics and its page, if it listens.
    #[serde(default)]
    pub(crate) address: Option<SocketAddr>,
    /// The token for both.
    #[serde(default)]
    pub(crate) token: Option<String>,
    /// The directory of its audit trail.
    #[serde(default)]
    pub(crate) audit: Option<PathBuf>,
    /// The directory of its traces.
    #[serde(default)]
    pub(crate) traces: Option<PathBuf>,
}

/// How clients reach a server.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// One client at stdin and stdout.
    Stdio,
    /// Any number over HTTP.
    Http,
}

impl Transport {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// The file of this process. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

/// Registers this process for the user's other commands.
///
/// # Errors
///
/// If the file cannot be written. The server works without it.
pub(crate) fn register(state: &Path, server: &RunningServer) -> anyhow::Result<Registration> {
    let directory = directory(state);
    let shown = directory.display();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("failed to make the directory `{shown}`"))?;
    let written = || -> io::Result<Registration> {
        // Only the user can read a temporary file.
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&directory)?;
        // Locked before it has its name, so that no process sees it without the lock.
        file.as_file().try_lock().map_err(io::Error::from)?;
        file.write_all(serde_json::to_string(server)?.as_bytes())?;
        let path = directory.join(format!("{}-{}{ENDING}", server.process, server.started));
        let file = file.persist(&path)?;
        Ok(Registration { path, _file: file })
    };
    written().with_context(|| format!("failed to write a file in `{shown}`"))
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A file that stays is stale.
        let _ = fs::remove_file(&self.path);
    }
}

/// The running servers, the oldest first. Files of servers that are gone are removed.
///
/// # Errors
///
/// If the directory cannot be read. None if there is no directory.
pub(crate) fn list(state: &Path) -> io::Result<Vec<RunningServer>> {
    let entries = match fs::read_dir(directory(state)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut servers = Vec::new();
    for entry in entries.take(MAX_NAMES) {
        let path = entry?.path();
        let is_listed = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
            name.ends_with(ENDING) && name.starts_with(|first: char| first.is_ascii_digit())
        });
        if is_listed && let Some(server) = read(&path) {
            servers.push(server);
        }
    }
    servers.sort_by_key(|server| (server.started, server.process));
    servers.truncate(MAX_SERVERS);
    Ok(servers)
}

/// The server of a file, if it is running. A file that cannot be read is not one of this user.
fn read(path: &Path) -> Option<RunningServer> {
    let file = open_regular(path).ok()?;
    let metadata = file.metadata().ok()?;
    // The token in the file is sent to the address in it, so no other user may have written the file, or be able to
    // read it.
    let ownership = Ownership::from_metadata(&metadata);
    if !ownership.is_ours() || ownership.others_have_access() {
        return None;
    }
    match file.try_lock_shared() {
        Ok(()) => {
            // Its server is gone.
            let _ = fs::remove_file(path);
            return None;
        }
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn directory(state: &Path) -> PathBuf {
    state.join("running")
}

/// The seconds since 1970. 0 if the clock is before that.
pub(crate) fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
