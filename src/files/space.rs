//! The files of one run: what each path refers to, and the operations on them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::budget::MemoryBudget;
use super::clock::Clock;
#[cfg(all(feature = "process", target_os = "linux"))]
use super::elsewhere::{Elsewhere, FileHost};
use super::error::{FileError, FileErrorCode};
use super::granted::{Access, GrantedDirectory, Mount};
use super::memory::{MemoryFile, MemoryTree};
use super::metadata::{Entry, EntryKind, Metadata, OpenMode};
use super::operations::{GrantedDirectories, GrantedFile, System};
use super::path::GuestPath;
use super::quota::{FileQuotaNow, QuotaUse};

/// The scratch directory.
pub(crate) const SCRATCH: &str = "/tmp";

/// Its name in the root.
const SCRATCH_NAME: &str = "tmp";

/// Maximum number of files that a run has open at once.
const MAX_OPEN: usize = 256;

/// Maximum bytes of one read.
const MAX_READ: usize = 1 << 20;

const NOT_GRANTED: &str =
    "scripts have /tmp, and the directories that a person grants with --allow-read or --allow-write";
const NOT_READABLE: &str = "this directory is granted for writing only: --allow-read grants reading";
const NOT_WRITABLE: &str = "this directory is granted for reading only: --allow-write grants writing";
const DRY_RUN: &str = "a dry run writes to /tmp only";

/// The options of a run's files.
pub(crate) struct FileOptions<'a> {
    pub(crate) directories: Vec<GrantedDirectory>,
    /// Memory limit of the run.
    pub(crate) memory_bytes: usize,
    pub(crate) quota: FileQuotaNow,
    /// The run whose script has called this one: both use its quotas together.
    pub(crate) caller: Option<&'a RunFiles>,
    pub(crate) clock: Clock,
    /// Where blocking operations have their threads.
    pub(crate) runtime: Handle,
    /// Writes to nothing but the scratch directory.
    pub(crate) is_dry_run: bool,
}

/// The files of one run.
pub(crate) struct RunFiles {
    scratch: Mutex<MemoryTree>,
    mounts: Vec<Arc<Mount>>,
    granted: Box<dyn GrantedDirectories>,
    quota: Arc<QuotaUse>,
    budget: Arc<MemoryBudget>,
    clock: Arc<Clock>,
    open: Arc<AtomicUsize>,
    is_dry_run: bool,
    /// Whether the script has asked for something in a granted directory, or for its name.
    has_used_granted: AtomicBool,
    last_failure: Arc<Mutex<Option<FileError>>>,
}

/// The next entry of a directory in the scratch directory.
#[derive(Debug)]
pub(crate) enum NextInScratch {
    Entry(Entry),
    /// There are no more entries.
    End,
    /// The directory is not in the scratch directory.
    Elsewhere,
}

impl fmt::Debug for RunFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RunFiles").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// What a path refers to.
enum ResolvedPath {
    Scratch,
    Granted(Arc<Mount>),
    /// A directory that exists only because a granted directory is below it.
    Above,
}

/// The access that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Whether it exists, and what it is.
    Know,
    Read,
    Write,
}

impl RunFiles {
    pub(crate) fn new(options: FileOptions<'_>) -> Self {
        let budget = Arc::new(MemoryBudget::new(options.memory_bytes));
        let clock = Arc::new(options.clock);
        let quota = options
            .caller
            .map_or_else(|| Arc::new(QuotaUse::new(options.quota)), |caller| Arc::clone(&caller.quota));
        Self {
            scratch: Mutex::new(MemoryTree::new(Arc::clone(&budget), Arc::clone(&clock))),
            mounts: options.directories.into_iter().filter_map(Mount::new).map(Arc::new).collect(),
            granted: Box::new(Arc::new(System::new(Arc::clone(&quota), options.runtime))),
            quota,
            budget,
            clock,
            open: Arc::default(),
            is_dry_run: options.is_dry_run,
            has_used_granted: AtomicBool::new(false),
            last_failure: Arc::default(),
        }
    }

    /// The same, for granted directories on which `host` performs the operations: `directories` says which paths they
    /// have.
    #[cfg(all(feature = "process", target_os = "linux"))]
    pub(crate) fn elsewhere(options: FileOptions<'_>, host: Arc<dyn FileHost>) -> Self {
        Self { granted: Box::new(Elsewhere(host)), ..Self::new(options) }
    }

    /// The granted directories, as scripts see them.
    pub(crate) fn granted_directories(&self) -> impl Iterator<Item = (String, Access)> {
        self.mounts.iter().map(|mount| (mount.guest.to_string(), mount.access))
    }

    /// The memory of the scratch directory.
    pub(crate) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Why the last write to an open file has failed. Python learns only that it has failed.
    pub(crate) fn last_failure(&self) -> Option<FileError> {
        self.last_failure.lock().clone()
    }

    /// Whether the script has used granted directories: then it behaves differently without them.
    pub(crate) fn has_used_granted(&self) -> bool {
        self.has_used_granted.load(Ordering::Relaxed)
    }

    /// Whether a file may be read or written to.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn check_access(&self, path: &GuestPath, write: bool) -> Result<(), FileError> {
        match self.resolve(path, if write { Need::Write } else { Need::Read })? {
            ResolvedPath::Above if write => Err(FileErrorCode::Access.into()),
            _ => Ok(()),
        }
    }

    /// Counts a handle of a directory among the open files.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub(crate) fn open_directory(&self) -> Result<OpenSlot, FileError> {
        OpenSlot::acquire(&self.open)
    }

    /// Determines what a path refers to, by the longest directory that it is in.
    fn resolve(&self, path: &GuestPath, need: Need) -> Result<ResolvedPath, FileError> {
        let is_scratch = path.names().first().is_some_and(|name| name == SCRATCH_NAME);
        let least = usize::from(is_scratch);
        let within = self.mounts.iter().filter(|mount| path.below(&mount.guest).is_some());
        // A granted directory below `/tmp` hides that part of the scratch directory. One that
        // contains `/tmp`, or is `/tmp`, hides nothing of it.
        let mut within = within.filter(|mount| mount.guest.names().len() > least || !is_scratch).peekable();
        if within.peek().is_none() {
            return self.resolve_without_grant(path, need, is_scratch);
        }
        self.has_used_granted.store(true, Ordering::Relaxed);
        let has_access = |mount: &&Arc<Mount>| match need {
            Need::Know => true,
            Need::Read => mount.access == Access::Read,
            Need::Write => mount.access == Access::Write,
        };
        let found = within.filter(has_access).max_by_key(|mount| mount.guest.names().len());
        match (found, need) {
            (Some(_), Need::Write) if self.is_dry_run => {
                Err(FileError::with_hint(FileErrorCode::ReadOnly, DRY_RUN))
            }
            (Some(mount), _) => Ok(ResolvedPath::Granted(Arc::clone(mount))),
            (None, Need::Write) => Err(FileError::with_hint(FileErrorCode::Access, NOT_WRITABLE)),
            (None, _) => Err(FileError::with_hint(FileErrorCode::Access, NOT_READABLE)),
        }
    }

    fn resolve_without_grant(
        &self,
        path: &GuestPath,
        need: Need,
        is_scratch: bool,
    ) -> Result<ResolvedPath, FileError> {
        let is_above =
            path.names().is_empty() || self.mounts.iter().any(|mount| mount.guest.below(path).is_some());
        if is_scratch {
            // The directories above one that is granted below `/tmp` exist.
            let is_granted_below =
                need != Need::Write && is_above && self.scratch.lock().metadata(&path.names()[1..]).is_err();
            return Ok(if is_granted_below { ResolvedPath::Above } else { ResolvedPath::Scratch });
        }
        match need {
            // What does not exist cannot be read.
            Need::Know | Need::Read if is_above => Ok(ResolvedPath::Above),
            Need::Know | Need::Read => Err(FileError::with_hint(FileErrorCode::NoEntry, NOT_GRANTED)),
            Need::Write => Err(FileError::with_hint(FileErrorCode::Access, NOT_GRANTED)),
        }
    }

    pub(crate) async fn metadata(&self, path: &GuestPath, follow: bool) -> Result<Metadata, FileError> {
        let metadata = match self.resolve(path, Need::Know)? {
            ResolvedPath::Scratch => self.scratch.lock().metadata(&path.names()[1..])?,
            ResolvedPath::Above => {
                Metadata { kind: EntryKind::Directory, size: 0, modified: 0, id: above(path) }
            }
            ResolvedPath::Granted(mount) => self.granted.metadata(mount, path, follow).await?,
        };
        if path.must_be_directory && !matches!(metadata.kind, EntryKind::Directory | EntryKind::Link) {
            return Err(FileErrorCode::NotDirectory.into());
        }
        Ok(metadata)
    }

    /// All entries of a directory, in the order of their names.
    pub(crate) async fn entries(&self, path: &GuestPath) -> Result<Vec<Entry>, FileError> {
        match self.resolve(path, Need::Read)? {
            ResolvedPath::Scratch => self.scratch.lock().entries(&path.names()[1..]),
            ResolvedPath::Above => Ok(self.entries_above(path)),
            ResolvedPath::Granted(mount) => self.granted.entries(mount, path).await,
        }
    }

    /// The next entry of a directory in the scratch directory, by name.
    pub(crate) fn next_in_scratch(
        &self,
        path: &GuestPath,
        after: Option<&str>,
    ) -> Result<NextInScratch, FileError> {
        if !matches!(self.resolve(path, Need::Read), Ok(ResolvedPath::Scratch)) {
            return Ok(NextInScratch::Elsewhere);
        }
        let next = self.scratch.lock().next_entry(&path.names()[1..], after)?;
        Ok(next.map_or(NextInScratch::End, NextInScratch::Entry))
    }

    fn entries_above(&self, path: &GuestPath) -> Vec<Entry> {
        if !self.mounts.is_empty() {
            self.has_used_granted.store(true, Ordering::Relaxed);
        }
        let mut names: Vec<&str> = self
            .mounts
            .iter()
            .filter_map(|mount| mount.guest.below(path)?.first())
            .map(String::as_str)
            .collect();
        names.extend(path.names().is_empty().then_some(SCRATCH_NAME));
        names.sort_unstable();
        names.dedup();
        let entry = |name: &str| Entry { name: name.to_owned(), kind: EntryKind::Directory };
        names.into_iter().map(entry).collect()
    }

    pub(crate) async fn create_directory(&self, path: &GuestPath) -> Result<(), FileError> {
        match self.changed(path)? {
            ResolvedPath::Scratch => self.scratch.lock().create_directory(&path.names()[1..]),
            ResolvedPath::Above => Err(FileErrorCode::Exists.into()),
            ResolvedPath::Granted(mount) if mount.guest.names() == path.names() => {
                Err(FileErrorCode::Exists.into())
            }
            ResolvedPath::Granted(mount) => self.granted.create_directory(mount, path).await,
        }
    }

    pub(crate) async fn remove_file(&self, path: &GuestPath) -> Result<(), FileError> {
        match self.removed(path)? {
            ResolvedPath::Granted(mount) => self.granted.remove_file(mount, path).await,
            _ if path.must_be_directory => Err(FileErrorCode::NotDirectory.into()),
            _ => self.scratch.lock().remove_file(&path.names()[1..]),
        }
    }

    pub(crate) async fn remove_directory(&self, path: &GuestPath) -> Result<(), FileError> {
        match self.removed(path)? {
            ResolvedPath::Granted(mount) => self.granted.remove_directory(mount, path).await,
            _ => self.scratch.lock().remove_directory(&path.names()[1..]),
        }
    }

    pub(crate) async fn rename(&self, from: &GuestPath, to: &GuestPath) -> Result<(), FileError> {
        match (self.removed(from)?, self.removed(to)?) {
            (ResolvedPath::Granted(mount), ResolvedPath::Granted(other)) if Arc::ptr_eq(&mount, &other) => {
                self.granted.rename(mount, from, to).await
            }
            (ResolvedPath::Scratch, ResolvedPath::Scratch) => {
                let mut scratch = self.scratch.lock();
                let must_be_directory = from.must_be_directory || to.must_be_directory;
                if must_be_directory && scratch.metadata(&from.names()[1..])?.kind != EntryKind::Directory {
                    return Err(FileErrorCode::NotDirectory.into());
                }
                scratch.rename(&from.names()[1..], &to.names()[1..])
            }
            _ => Err(FileErrorCode::CrossDevice.into()),
        }
    }

    pub(crate) async fn set_modified(&self, path: &GuestPath, time: Option<u64>) -> Result<(), FileError> {
        let time = time.unwrap_or_else(|| self.clock.now());
        match self.changed(path)? {
            ResolvedPath::Scratch => self.scratch.lock().set_modified(&path.names()[1..], time),
            ResolvedPath::Above => Err(FileErrorCode::Access.into()),
            ResolvedPath::Granted(mount) => self.granted.set_modified(mount, path, time).await,
        }
    }

    /// Opens a file.
    pub(crate) async fn open(&self, path: &GuestPath, mode: OpenMode) -> Result<OpenFile, FileError> {
        let is_write = mode.is_write();
        let resolved = self.resolve(path, if is_write { Need::Write } else { Need::Read })?;
        if is_write && mode.read {
            // Both must be granted.
            self.resolve(path, Need::Read)?;
        }
        if path.must_be_directory {
            let kind = self.metadata(path, true).await.map(|metadata| metadata.kind);
            return Err(kind.map_or_else(|error| error, |_directory| FileErrorCode::IsDirectory.into()));
        }
        let slot = OpenSlot::acquire(&self.open)?;
        let inner = match resolved {
            ResolvedPath::Scratch => {
                let mut scratch = self.scratch.lock();
                let file = scratch.open(&path.names()[1..], mode.create, mode.exclusive)?;
                drop(scratch);
                if mode.truncate {
                    file.set_size(0)?;
                }
                Inner::Memory(file)
            }
            ResolvedPath::Above => return Err(FileErrorCode::IsDirectory.into()),
            ResolvedPath::Granted(mount) => Inner::Granted(self.granted.open(mount, path, mode).await?),
        };
        let (clock, last_failure) = (Arc::clone(&self.clock), Arc::clone(&self.last_failure));
        Ok(OpenFile { inner, mode, clock, last_failure, _slot: slot })
    }

    /// Resolves a path that is created or changed.
    fn changed(&self, path: &GuestPath) -> Result<ResolvedPath, FileError> {
        match self.resolve(path, Need::Write) {
            // A directory that exists is reported as such, also where writing is not granted.
            Err(error) => match self.resolve(path, Need::Know) {
                Ok(ResolvedPath::Above) => Ok(ResolvedPath::Above),
                _ => Err(error),
            },
            resolved => resolved,
        }
    }

    /// Resolves a path that is removed or renamed: neither a granted directory
    /// itself nor the scratch directory.
    fn removed(&self, path: &GuestPath) -> Result<ResolvedPath, FileError> {
        let resolved = self.resolve(path, Need::Write)?;
        let is_root = match &resolved {
            ResolvedPath::Scratch => path.names().len() == 1,
            ResolvedPath::Above => true,
            ResolvedPath::Granted(mount) => mount.guest.names() == path.names(),
        };
        // Nor one that another granted directory is in: something else could take its place.
        let is_root = is_root || self.mounts.iter().any(|mount| mount.guest.below(path).is_some());
        if is_root { Err(FileErrorCode::Busy.into()) } else { Ok(resolved) }
    }
}

/// The number of a directory that only exists because of what is below it.
fn above(path: &GuestPath) -> (u64, u64) {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    // Fixed keys: the same path has the same number, also in a replay.
    let mut hasher = DefaultHasher::new();
    path.names().hash(&mut hasher);
    (0, hasher.finish())
}

/// One of the files that a run has open.
pub(crate) struct OpenSlot(Arc<AtomicUsize>);

impl OpenSlot {
    fn acquire(open: &Arc<AtomicUsize>) -> Result<Self, FileError> {
        let taken = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < MAX_OPEN).then_some(count + 1)
        });
        match taken {
            Ok(_) => Ok(Self(Arc::clone(open))),
            Err(_) => Err(FileErrorCode::TooManyOpen.into()),
        }
    }
}

impl Drop for OpenSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open file.
pub(crate) struct OpenFile {
    inner: Inner,
    pub(crate) mode: OpenMode,
    clock: Arc<Clock>,
    last_failure: Arc<Mutex<Option<FileError>>>,
    _slot: OpenSlot,
}

enum Inner {
    Memory(Arc<MemoryFile>),
    Granted(Arc<dyn GrantedFile>),
}

impl OpenFile {
    pub(crate) async fn metadata(&self) -> Result<Metadata, FileError> {
        match &self.inner {
            Inner::Memory(file) => Ok(file.metadata()),
            Inner::Granted(file) => file.metadata().await,
        }
    }

    /// At most `length` bytes from `offset` on, and at most 1 MiB. None at the end of the file.
    pub(crate) async fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        if !self.mode.read {
            return Err(FileErrorCode::BadDescriptor.into());
        }
        let length = length.min(MAX_READ);
        match &self.inner {
            Inner::Memory(file) => Ok(file.read(offset, length)),
            Inner::Granted(file) => file.read(offset, length).await,
        }
    }

    /// Writes all of `bytes` at `offset`, or at the end if the file was opened for that.
    pub(crate) async fn write(&self, offset: u64, bytes: Vec<u8>) -> Result<(), FileError> {
        let written = self.try_write(offset, bytes).await;
        if let Err(error) = &written {
            *self.last_failure.lock() = Some(error.clone());
        }
        written
    }

    async fn try_write(&self, offset: u64, bytes: Vec<u8>) -> Result<(), FileError> {
        if !(self.mode.write || self.mode.append) {
            return Err(FileErrorCode::BadDescriptor.into());
        }
        let offset = (!self.mode.append).then_some(offset);
        match &self.inner {
            Inner::Memory(file) => file.write(offset, &bytes),
            Inner::Granted(file) => file.write(offset, bytes).await,
        }
    }

    pub(crate) async fn set_size(&self, size: u64) -> Result<(), FileError> {
        if !(self.mode.write || self.mode.append) {
            return Err(FileErrorCode::BadDescriptor.into());
        }
        match &self.inner {
            Inner::Memory(file) => file.set_size(size),
            Inner::Granted(file) => file.set_size(size).await,
        }
    }

    pub(crate) async fn set_modified(&self, time: Option<u64>) -> Result<(), FileError> {
        if !(self.mode.write || self.mode.append) {
            return Err(FileErrorCode::BadDescriptor.into());
        }
        let time = time.unwrap_or_else(|| self.clock.now());
        match &self.inner {
            Inner::Memory(file) => {
                file.set_modified(time);
                Ok(())
            }
            Inner::Granted(file) => file.set_modified(time).await,
        }
    }

    /// Waits until what was written is on the disk.
    pub(crate) async fn sync(&self) -> Result<(), FileError> {
        match &self.inner {
            Inner::Memory(_) => Ok(()),
            Inner::Granted(file) => file.sync().await,
        }
    }
}
