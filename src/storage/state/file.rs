//! The state file: opened when it is first needed, checked, and set aside if it is damaged.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, TransactionBehavior, ffi};
use rustix::fs::Access;

use super::days::{self, Clock, Today};
use super::entries;
use super::error::StateError;
use super::scope::StateScope;
use crate::storage::private::{self, PrivateDirectory, remove_if_present};

/// "cxst": distinguishes the file from databases of other programs.
const APPLICATION_ID: i64 = 0x6378_7374;

/// Version of [`SCHEMA`].
const VERSION: i64 = 2;

/// Maximum size of all state together, 256 MB, in SQLite's default pages of 4 KB. Limits how much
/// of the user's disk scripts can use.
const MAX_PAGES: i64 = (256 << 20) / PAGE_BYTES;
const PAGE_BYTES: i64 = 4 << 10;

/// The write-ahead log is truncated to this size, in bytes, after it has been larger.
const LOG_BYTES: i64 = 4 << 20;

/// A file of at most this many pages, 1 MB, is checked completely when it is opened, which takes a few milliseconds. In
/// a larger file damage is detected when it is read.
const MAX_CHECKED_PAGES: i64 = (1 << 20) / PAGE_BYTES;

/// `keys` and `bytes` are sums over the entries, so that bounds can be checked without reading them. `used` is the
/// number of counted days when a script last used the scope, see [`days`]. `meta` has one row. It repeats the version,
/// because the header of a damaged file may contain any number.
const SCHEMA: &str = "
    CREATE TABLE meta (
        version INTEGER NOT NULL,
        day INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE days (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        day INTEGER NOT NULL UNIQUE
    ) STRICT;
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

/// Migrates from version 1, where `used` was a day since 1970. Only the days on which scopes were last used are known,
/// so no scope becomes older than it was.
const MIGRATE_FROM_1: &str = "
    CREATE TABLE meta (
        version INTEGER NOT NULL,
        day INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE days (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        day INTEGER NOT NULL UNIQUE
    ) STRICT;
    INSERT INTO meta (version, day) SELECT 2, coalesce(max(used), 0) FROM scopes;
    INSERT INTO days (day) SELECT DISTINCT used FROM scopes ORDER BY used;
    UPDATE scopes SET used = (SELECT number FROM days WHERE day = scopes.used);
    PRAGMA user_version = 2;
";

/// The file, open or not.
pub(crate) struct StateFile {
    path: PathBuf,
    clock: Clock,
    open: Mutex<Option<Open>>,
}

struct Open {
    connection: Connection,
    identity: Identity,
    /// The number of counted days in the file, once this process has determined it.
    today: Option<Today>,
    /// The connection excludes other processes, because there was no space for the memory that it
    /// would share with them. It is closed after one call.
    is_exclusive: bool,
}

/// Identifies a file, to detect that it was replaced: device and inode.
type Identity = (u64, u64);

impl StateFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self::with_clock(path, Clock::of_the_system())
    }

    pub(crate) fn with_clock(path: PathBuf, clock: Clock) -> Self {
        Self { path, clock, open: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `work` with the open file and the number of days that are counted in it. Waits for
    /// other processes for up to `wait`, and slightly longer if the file has to be opened. If the
    /// file is damaged, it is set aside and `work` is called again with a new one.
    pub(crate) fn with<R>(
        &self,
        wait: Duration,
        work: impl Fn(&mut Connection, i64) -> Result<R, StateError>,
    ) -> Result<R, StateError> {
        let mut open = self.open.lock();
        let first = self.on_open(&mut open, wait, &work);
        let Err(StateError::Damaged(error)) = first else { return first };
        tracing::warn!(%error, path = %self.path.display(), "the state file is damaged and set aside");
        if let Some(Open { connection, identity: damaged, .. }) = open.take() {
            drop(connection);
            let _lock = self.lock()?;
            // Another process may already have replaced the damaged file.
            if identity(&self.path).ok() == Some(damaged) {
                self.set_aside()?;
            }
        }
        // Retried only once: if the new file is damaged too, further retries would not help.
        self.on_open(&mut open, wait, &work)
    }

    /// The damaged file that was set aside last, if it is still there.
    pub(crate) fn damaged_file(&self) -> Option<PathBuf> {
        Some(self.beside(DAMAGED)).filter(|path| fs::symlink_metadata(path).is_ok())
    }

    /// Removes the file with all state, which needs no space on the disk. Other processes find that
    /// it was replaced.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let mut open = self.open.lock();
        *open = None;
        let _lock = self.lock()?;
        for ending in ["-wal", "-shm", ""] {
            remove_if_present(&self.beside(ending))?;
        }
        Ok(())
    }

    /// Deletes the state of one scope on a full disk: copies the others into memory, removes the file with its log,
    /// which frees space, and writes a new file. A crash during this loses all state. Returns the number of keys
    /// deleted.
    pub(crate) fn clear_without_space(&self, scope: &StateScope, wait: Duration) -> Result<u64, StateError> {
        let mut open = self.open.lock();
        *open = None;
        let path = self.make()?;
        // Other processes cannot open the file meanwhile, and none has it open, because the connection is exclusive. An
        // open file would keep its space occupied.
        let _lock = self.lock()?;
        let mut old = self.connect(&path, wait, true)?.connection;
        let mut others = Connection::open_in_memory()?;
        prepare(&mut others, 0)?;
        let cleared = entries::copy_others(&mut old, &mut others, Some(scope))?;
        drop(old);
        for ending in ["-wal", "-shm", ""] {
            remove_if_present(&self.beside(ending))?;
        }
        private::make_file(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut new = Connection::open_with_flags(&path, flags)?;
        // A journal would need space, and an empty file needs none.
        new.pragma_update_and_check(None, "journal_mode", "OFF", |_mode| Ok(()))?;
        prepare(&mut new, 0)?;
        entries::copy_others(&mut others, &mut new, None)?;
        Ok(cleared)
    }

    /// Removes the damaged file that was set aside.
    pub(crate) fn remove_damaged(&self) -> io::Result<()> {
        for (_, to) in SET_ASIDE {
            remove_if_present(&self.beside(to))?;
        }
        Ok(())
    }

    fn on_open<R>(
        &self,
        slot: &mut Option<Open>,
        wait: Duration,
        work: impl Fn(&mut Connection, i64) -> Result<R, StateError>,
    ) -> Result<R, StateError> {
        if slot.as_ref().is_some_and(|open| identity(&self.path).ok() != Some(open.identity)) {
            // The file was removed, or set aside by another process.
            *slot = None;
        }
        let open = match slot {
            Some(open) => open,
            None => slot.insert(self.open(wait)?),
        };
        open.connection.busy_timeout(wait)?;
        let today = days::count(&mut open.connection, &self.clock, &mut open.today)?;
        let result = work(&mut open.connection, today);
        if open.is_exclusive && !matches!(result, Err(StateError::Damaged(_))) {
            *slot = None;
        }
        result
    }

    fn open(&self, wait: Duration) -> Result<Open, StateError> {
        let path = self.make()?;
        // Under the lock, so that only one process creates the tables or sets a damaged file aside.
        let _lock = self.lock()?;
        let opened = self.open_locked(&path, wait);
        let Err(StateError::Damaged(error)) = opened else { return opened };
        tracing::warn!(%error, path = %self.path.display(), "the state file is damaged and set aside");
        self.set_aside()?;
        self.open_locked(&path, wait)
    }

    fn open_locked(&self, path: &Path, wait: Duration) -> Result<Open, StateError> {
        private::make_file(path)?;
        let opened = self.connect(path, wait, false);
        match opened {
            Err(StateError::NoSharedMemory(_)) => self.connect(path, wait, true),
            opened => opened,
        }
    }

    fn connect(&self, path: &Path, wait: Duration, is_exclusive: bool) -> Result<Open, StateError> {
        let identity = identity(path)?;
        for ending in BESIDE {
            check_regular(&self.beside(ending))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(wait)?;
        // The file may have been written by any process that ran as this user. Temporary files
        // could be on a disk that is full.
        connection.execute_batch(
            "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;",
        )?;
        if is_exclusive {
            connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_mode| Ok(()))?;
        }
        let day = self.clock.day();
        prepare(&mut connection, day)?;
        if connection.is_readonly(MAIN_DB)? && rustix::fs::access(path, Access::WRITE_OK).is_ok() {
            return Err(damaged("its header says that a newer version of SQLite wrote it"));
        }
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_mode| Ok(())) {
            // A log needs a little space. Without one each write replaces pages in the file, until
            // the next opening.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {}
            set => set?,
        }
        // A crash of the process loses nothing; a crash of the machine loses the last transactions.
        // Writes do not wait for the disk.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_bytes| Ok(()))?;
        connection.pragma_update_and_check(None, "max_page_count", MAX_PAGES, |_pages| Ok(()))?;
        // Deleted data is overwritten.
        connection.pragma_update_and_check(None, "secure_delete", "ON", |_on| Ok(()))?;
        check(&connection)?;
        Ok(Open { connection, identity, today: None, is_exclusive })
    }

    /// Creates the directory and returns the file's path without symbolic links, because SQLite is
    /// told not to follow any.
    fn make(&self) -> Result<PathBuf, StateError> {
        let (Some(directory), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            let message = format!("{} is not a path of a file", self.path.display());
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
    fn set_aside(&self) -> io::Result<()> {
        // The write-ahead log is moved too: it may contain data that the user wants to recover.
        for (from, to) in SET_ASIDE {
            match fs::rename(self.beside(from), self.beside(to)) {
                // An existing file there belongs to the file that was set aside before.
                Err(error) if error.kind() == ErrorKind::NotFound => remove_if_present(&self.beside(to))?,
                moved => moved?,
            }
        }
        Ok(())
    }
}

/// Ending of a damaged file that was set aside.
const DAMAGED: &str = ".damaged";

/// Endings of the file and what belongs to it, and those where it is set aside.
const SET_ASIDE: [(&str, &str); 3] = [("-wal", ".damaged-wal"), ("-shm", ".damaged-shm"), ("", DAMAGED)];

/// Endings of the files that SQLite opens beside the file.
const BESIDE: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Checks that nothing but a regular file is at a path. SQLite would wait for the writer of a pipe, without a bound.
fn check_regular(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            let message = format!("{} is not a regular file", path.display());
            Err(io::Error::new(ErrorKind::InvalidData, message))
        }
        _ => Ok(()),
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

fn damaged(why: impl Into<String>) -> StateError {
    StateError::Damaged(why.into().into())
}

/// Creates the tables, or checks that the database is one of cx and migrates it. `day` is the
/// current one.
fn prepare(connection: &mut Connection, day: i64) -> Result<(), StateError> {
    connection.pragma_update(None, "foreign_keys", "ON")?;
    let pragma =
        |connection: &Connection, name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (pragma(connection, "application_id")?, pragma(connection, "user_version")?);
    let tables = schema(connection)?;
    let has = |name: &str| tables.iter().any(|table| table.contains(&format!(" {name} (")));
    if (application, version) == (0, 0) && tables.is_empty() {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.execute("INSERT INTO meta (version, day) VALUES (?1, ?2)", [VERSION, day])?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        return Ok(transaction.commit()?);
    }
    if application != APPLICATION_ID && !tables.is_empty() && !(has("scopes") && has("entries")) {
        return Err(StateError::Foreign);
    }
    if application != APPLICATION_ID {
        return Err(damaged("its header is not that of a state file"));
    }
    let noted = |connection: &Connection| {
        connection.query_row("SELECT version FROM meta", [], |row| row.get::<_, i64>(0))
    };
    match version {
        VERSION => {}
        1 if !has("meta") => migrate(connection)?,
        // One version is in the header and the other in a table, so that damage does not change both.
        _ if version > VERSION && has("meta") && noted(connection)? == version => {
            return Err(StateError::Newer);
        }
        _ => return Err(damaged("its header has another version than its tables")),
    }
    let expected = Connection::open_in_memory()?;
    expected.execute_batch(SCHEMA)?;
    if schema(connection)? != schema(&expected)? || noted(connection)? != VERSION {
        return Err(damaged("its tables are not those of a state file"));
    }
    Ok(())
}

/// The tables and indices of a database, in a fixed order.
fn schema(connection: &Connection) -> Result<Vec<String>, StateError> {
    let mut statement = connection.prepare(
        "SELECT concat(type, ' ', name, ' ', tbl_name, ' ', sql) FROM sqlite_schema ORDER BY name",
    )?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn migrate(connection: &mut Connection) -> Result<(), StateError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(MIGRATE_FROM_1)?;
    Ok(transaction.commit()?)
}

/// Checks a small file as a whole.
fn check(connection: &Connection) -> Result<(), StateError> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages > MAX_CHECKED_PAGES {
        return Ok(());
    }
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(damaged(found)) }
}

/// An in-memory copy of one scope.
pub(crate) fn trial(connection: &mut Connection, scope: &StateScope) -> Result<Connection, StateError> {
    let mut trial = Connection::open_in_memory()?;
    prepare(&mut trial, 0)?;
    entries::copy(connection, &mut trial, scope)?;
    Ok(trial)
}

/// A database in memory with these entries of one scope.
pub(crate) fn copy_of(scope: &StateScope, all: &[(String, String)]) -> Result<Connection, StateError> {
    let mut copy = Connection::open_in_memory()?;
    prepare(&mut copy, 0)?;
    for (key, value) in all {
        entries::set(&mut copy, scope, key, value, None, 0)?;
    }
    Ok(copy)
}

/// Results of SQLite where the system refuses to write to a file, or to enlarge it.
const FAILED_WRITES: [i32; 2] = [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_TRUNCATE];

/// Results of SQLite for memory that processes share: creating it fails if the disk is full.
const NO_SHARED_MEMORY: [i32; 3] =
    [ffi::SQLITE_IOERR_SHMOPEN, ffi::SQLITE_IOERR_SHMSIZE, ffi::SQLITE_IOERR_SHMMAP];

impl From<rusqlite::Error> for StateError {
    fn from(error: rusqlite::Error) -> Self {
        let Some(code) = error.sqlite_error() else {
            // A column has a type that no statement of cx writes there.
            return Self::Damaged(error.into());
        };
        match code.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy,
            ErrorCode::DiskFull => Self::Full(
                "all state together has reached its 256 MB, or the disk is full; a user frees space with \
                 `cx state clear`"
                    .to_owned(),
            ),
            // The statements are correct, so an error in one of them, or in a type or a constraint, means that the
            // tables are damaged.
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::TooBig
            | ErrorCode::TypeMismatch
            | ErrorCode::ConstraintViolation => Self::Damaged(error.into()),
            _ if code.extended_code == ffi::SQLITE_ERROR => Self::Damaged(error.into()),
            // An error of the disk, or a limit of the process (`ulimit -f`). SQLite does not distinguish these.
            _ if FAILED_WRITES.contains(&code.extended_code) => Self::Full(
                "the state file cannot be written: a limit on the size of files (`ulimit -f`) or the disk \
                 does not allow it"
                    .to_owned(),
            ),
            _ if NO_SHARED_MEMORY.contains(&code.extended_code) => Self::NoSharedMemory(error.into()),
            _ => Self::Database(error.into()),
        }
    }
}
