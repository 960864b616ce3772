//! The state file: opened when it is first needed, checked, and moved aside if it is damaged.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rusqlite::ffi::{SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::entries;
use super::error::StateError;
use super::scope::StateScope;
use crate::storage::private::{self, PrivateDirectory};

/// "cxst": distinguishes the file from databases of other programs.
const APPLICATION_ID: i64 = 0x6378_7374;

/// Version of [`SCHEMA`].
const VERSION: i64 = 1;

/// Maximum size of all state together, 256 MB, in SQLite's default pages of 4 KB. Limits how much
/// of the user's disk scripts can use.
const MAX_PAGES: i64 = (256 << 20) / PAGE_BYTES;
const PAGE_BYTES: i64 = 4 << 10;

/// The write-ahead log is truncated to this size, in bytes, after it has been larger.
const LOG_BYTES: i64 = 4 << 20;

/// State that no script has used for more than this many days is deleted.
const MAX_UNUSED_DAYS: i64 = 90;

const DAY: u64 = 24 * 60 * 60;

/// `keys` and `bytes` are sums over the entries, so that bounds can be checked without reading
/// them.
const SCHEMA: &str = "
    CREATE TABLE scopes (
        id INTEGER PRIMARY KEY,
        kind INTEGER NOT NULL,
        name BLOB NOT NULL,
        used INTEGER NOT NULL,
        keys INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        UNIQUE (kind, name)
    ) STRICT;
    CREATE TABLE entries (
        scope INTEGER NOT NULL REFERENCES scopes (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        UNIQUE (scope, key)
    ) STRICT;
";

type Clock = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// The file, open or not.
pub(crate) struct StateFile {
    path: PathBuf,
    clock: Clock,
    open: Mutex<Option<Open>>,
}

struct Open {
    connection: Connection,
    identity: Identity,
    /// The last day on which unused scopes were deleted.
    swept: i64,
}

/// Identifies a file, to detect that it was replaced: device and inode.
type Identity = (u64, u64);

impl StateFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self::with_clock(path, Box::new(SystemTime::now))
    }

    pub(crate) fn with_clock(path: PathBuf, clock: Clock) -> Self {
        Self { path, clock, open: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Days since 1970-01-01.
    pub(crate) fn today(&self) -> i64 {
        let time = (self.clock)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(time.as_secs() / DAY).unwrap_or(i64::MAX)
    }

    /// Calls `work` with the open file and the current day. Waits for other processes for up to
    /// `wait`, and slightly longer if the file has to be opened. If the file is damaged, it is
    /// moved aside and `work` is called again with a new one.
    pub(crate) fn with<R>(
        &self,
        wait: Duration,
        work: impl Fn(&mut Connection, i64) -> Result<R, StateError>,
    ) -> Result<R, StateError> {
        let mut open = self.open.lock();
        let first = self.on_open(&mut open, wait, &work);
        let Err(StateError::Damaged(error)) = first else { return first };
        tracing::warn!(%error, path = %self.path.display(), "the state file is damaged");
        if let Some(Open { connection, identity: damaged, .. }) = open.take() {
            drop(connection);
            let _lock = self.lock()?;
            // Another process may already have replaced the damaged file.
            if identity(&self.path).ok() == Some(damaged) {
                self.move_aside()?;
            }
        }
        // Retried only once: if the new file is damaged too, further retries would not help.
        self.on_open(&mut open, wait, &work)
    }

    fn on_open<R>(
        &self,
        open: &mut Option<Open>,
        wait: Duration,
        work: impl Fn(&mut Connection, i64) -> Result<R, StateError>,
    ) -> Result<R, StateError> {
        let today = self.today();
        if open.as_ref().is_some_and(|open| identity(&self.path).ok() != Some(open.identity)) {
            // The file was removed, or moved aside by another process.
            *open = None;
        }
        let open = match open {
            Some(open) => open,
            None => open.insert(self.open(wait)?),
        };
        open.connection.busy_timeout(wait)?;
        if open.swept < today {
            match entries::delete_unused(&mut open.connection, today - MAX_UNUSED_DAYS) {
                Ok(()) => open.swept = today,
                // Another process is writing. Reading is still possible.
                Err(StateError::Busy) => {}
                Err(error) => return Err(error),
            }
        }
        work(&mut open.connection, today)
    }

    fn open(&self, wait: Duration) -> Result<Open, StateError> {
        let path = self.make()?;
        // Under the lock, so that only one process creates the tables or moves a damaged file
        // aside.
        let _lock = self.lock()?;
        let opened = Self::open_locked(&path, wait);
        let Err(StateError::Damaged(error)) = opened else { return opened };
        tracing::warn!(%error, path = %self.path.display(), "the state file is damaged");
        self.move_aside()?;
        Self::open_locked(&path, wait)
    }

    fn open_locked(path: &Path, wait: Duration) -> Result<Open, StateError> {
        private::make_file(path)?;
        let identity = identity(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(wait)?;
        // The file may have been written by any process that ran as this user.
        connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
        prepare(&mut connection)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_mode| Ok(()))?;
        // A crash of the process loses nothing; a crash of the machine loses the last transactions.
        // Writes do not wait for the disk.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_bytes| Ok(()))?;
        connection.pragma_update_and_check(None, "max_page_count", MAX_PAGES, |_pages| Ok(()))?;
        // Deleted data is overwritten.
        connection.pragma_update_and_check(None, "secure_delete", "ON", |_on| Ok(()))?;
        Ok(Open { connection, identity, swept: i64::MIN })
    }

    /// Creates the directory and returns the file's path without symbolic links, because SQLite is
    /// told not to follow any.
    fn make(&self) -> Result<PathBuf, StateError> {
        let (Some(directory), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            let message = format!("{} is no path of a file", self.path.display());
            return Err(io::Error::new(ErrorKind::InvalidInput, message).into());
        };
        PrivateDirectory::create(directory)?;
        Ok(directory.canonicalize()?.join(name))
    }

    /// The lock for opening the file or moving it aside.
    fn lock(&self) -> io::Result<fs::File> {
        private::lock(&self.beside(".lock"))
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(ending);
        path.into()
    }

    /// Moves the file to the name where the next damaged file replaces it. The caller must hold the
    /// lock.
    fn move_aside(&self) -> io::Result<()> {
        // The write-ahead log is moved too: it may contain data that the user wants to recover.
        for (from, to) in [("-wal", ".damaged-wal"), ("-shm", ".damaged-shm"), ("", ".damaged")] {
            match fs::rename(self.beside(from), self.beside(to)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Creates the tables, or checks that the database is one of cx.
fn prepare(connection: &mut Connection) -> Result<(), StateError> {
    connection.pragma_update(None, "foreign_keys", "ON")?;
    let pragma =
        |connection: &Connection, name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (pragma(connection, "application_id")?, pragma(connection, "user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version, tables) {
        (APPLICATION_ID, VERSION, _) => Ok(()),
        (APPLICATION_ID, version, _) if version > VERSION => Err(StateError::Newer),
        (0, 0, 0) => {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            Ok(transaction.commit()?)
        }
        _ => Err(StateError::Foreign),
    }
}

/// An in-memory copy of one scope.
pub(crate) fn trial(
    connection: &mut Connection,
    scope: &StateScope,
    today: i64,
) -> Result<Connection, StateError> {
    let mut trial = Connection::open_in_memory()?;
    prepare(&mut trial)?;
    entries::copy(connection, &mut trial, scope, today)?;
    Ok(trial)
}

/// Whether the system refused to write to a file, or to enlarge it.
fn is_failed_write(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    [SQLITE_IOERR_WRITE, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_SHMSIZE].iter().any(|write| code == Some(*write))
}

impl From<rusqlite::Error> for StateError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full(
                "all state together has reached its 256 MB, or the disk is full; a user frees space with \
                 `cx state clear`"
                    .to_owned(),
            ),
            // The disk's own errors, and a limit of the process (`ulimit -f`), which SQLite does not
            // tell apart.
            Some(ErrorCode::SystemIoFailure) if is_failed_write(&error) => Self::Full(
                "the state file cannot be written: a limit on the size of files (`ulimit -f`) or the disk \
                 does not allow it"
                    .to_owned(),
            ),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.into()),
            _ => Self::Database(error.into()),
        }
    }
}
