//! Locks that identify their holder: of `cx setup`, and of `cx sync`.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::{SetupError, io};
use crate::config::environment::Directories;
use crate::storage::private::{self, PrivateDirectory};

/// How often a lock is tried again. Commands hardly wait for one another: the other process has a user, or does the
/// same work.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock of `cx sync` among all processes of a user, until it is dropped.
#[derive(Debug)]
pub struct SyncLock {
    _file: File,
}

impl SyncLock {
    /// Takes the lock. A lock whose holder has died is free.
    ///
    /// # Errors
    ///
    /// [`SetupError::Running`] if another process holds it, and [`SetupError::Io`] if its file cannot be
    /// used.
    pub fn acquire(directories: &Directories) -> Result<Self, SetupError> {
        Ok(Self { _file: lock(&directories.state.join("sync"), "sync")? })
    }
}

/// The lock of `cx setup` among all processes of a user, until it is dropped.
#[derive(Debug)]
pub struct SetupLock {
    _file: File,
    /// The directory of the changes.
    pub(super) root: PathBuf,
}

impl SetupLock {
    /// Takes the lock. A lock whose holder has died is free.
    ///
    /// # Errors
    ///
    /// [`SetupError::Running`] if another process holds it, and [`SetupError::Io`] if its file cannot be
    /// used.
    pub fn acquire(directories: &Directories) -> Result<Self, SetupError> {
        let root = directories.state.join("setup");
        Ok(Self { _file: lock(&root, "setup")?, root })
    }
}

/// Locks `command` for all processes of the user. The file in `directory` identifies the holder; the kernel releases
/// the lock when its holder dies, so the entry of a dead process blocks nothing.
fn lock(directory: &Path, command: &'static str) -> Result<File, SetupError> {
    let private = PrivateDirectory::create(directory).map_err(io(directory))?;
    let path = directory.join("lock");
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CREATE;
    let mut file = private.open("lock", flags).map_err(io(&path))?;
    private::check_file(&file, &path).map_err(io(&path))?;
    let duplicate = file.try_clone().map_err(io(&path))?;
    match private::acquire(duplicate, Duration::ZERO, PAUSE, || ()) {
        Ok(_same) => {}
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let mut text = String::new();
            // The file has two numbers; a longer one was not written by cx.
            let _ = file.take(100).read_to_string(&mut text);
            let mut words = text.split_whitespace();
            let pid = words.next().and_then(|word| word.parse().ok());
            let since = words.next().and_then(|word| word.parse().ok());
            return Err(SetupError::Running {
                command,
                pid,
                since: since.and_then(|since| UNIX_EPOCH.checked_add(Duration::from_secs(since))),
            });
        }
        Err(error) => return Err(SetupError::Io { path, error }),
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let told = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{} {since}", std::process::id()));
    told.map_err(io(&path))?;
    Ok(file)
}
