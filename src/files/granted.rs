//! Directories of the machine that a person has granted.
//!
//! A path is opened relative to a handle of the directory, by cap-std: neither a link nor a name leads out of it,
//! whatever happens to the directory meanwhile. Only regular files and directories are used: a device or a fifo could
//! block forever or have effects of its own, and files of `/proc` and its like are not data. All of this may block,
//! because a file system can be on another machine or in a process.

use std::fs::{File, FileTimes};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::error::{FileError, FileErrorCode};
use super::metadata::{Entry, EntryKind, Metadata, OpenMode};
use super::operations::permits_of;
use super::path::GuestPath;
use super::quota::QuotaUse;
use crate::durations::nanoseconds;

/// Maximum number of entries of a directory that are listed.
const MAX_ENTRIES: usize = 100_000;

/// Maximum attempts to open or create a file that appears and disappears meanwhile.
const MAX_TRIES: usize = 8;

const SPECIAL: &str = "only regular files and directories can be used";

/// A directory that a run may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrantedDirectory {
    /// The directory that a person has granted. Links in this path are followed.
    pub(crate) root: PathBuf,
    /// The directory that the run asks for: `root` or one in it, which no link may leave.
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
}

/// What may be done in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A granted directory, and its handle once it is open.
pub(super) struct Mount {
    pub(super) guest: GuestPath,
    pub(super) access: Access,
    root: PathBuf,
    /// The path from `root` to the directory; empty for `root` itself.
    inner: PathBuf,
    /// For operations on `root`, of all runs.
    permits: Arc<Semaphore>,
    handle: Mutex<Option<Arc<Dir>>>,
}

impl Mount {
    /// `None` if the path is not UTF-8, because scripts could not name it.
    pub(super) fn new(directory: GrantedDirectory) -> Option<Self> {
        let GrantedDirectory { root, path, access } = directory;
        let guest = GuestPath::of_directory(&path)?;
        let inner = path.strip_prefix(&root).ok()?.to_owned();
        let permits = permits_of(&root);
        Some(Self { guest, access, root, inner, permits, handle: Mutex::default() })
    }

    pub(super) fn permits(&self) -> Arc<Semaphore> {
        Arc::clone(&self.permits)
    }

    fn directory(&self) -> Result<Arc<Dir>, FileError> {
        if let Some(open) = &*self.handle.lock() {
            return Ok(Arc::clone(open));
        }
        // Without the lock: this may block for long.
        let root = Dir::open_ambient_dir(&self.root, ambient_authority())?;
        let directory = if self.inner.as_os_str().is_empty() { root } else { root.open_dir(&self.inner)? };
        check_file_system(&directory)?;
        let directory = Arc::new(directory);
        Ok(Arc::clone(self.handle.lock().get_or_insert(directory)))
    }

    pub(super) fn metadata(&self, names: &[String], follow: bool) -> Result<Metadata, FileError> {
        let (directory, path) = (self.directory()?, relative(names));
        check_parent(&directory, names)?;
        let metadata = if follow { directory.metadata(path)? } else { directory.symlink_metadata(path)? };
        Ok(of_system(&metadata))
    }

    pub(super) fn entries(&self, names: &[String]) -> Result<Vec<Entry>, FileError> {
        let directory = self.directory()?;
        let directory = directory.open_dir(relative(names))?;
        check_file_system(&directory)?;
        let mut entries = Vec::new();
        for entry in directory.entries()? {
            let entry = entry?;
            if entries.len() == MAX_ENTRIES {
                return Err(FileError::with_hint(
                    FileErrorCode::Unsupported,
                    "a directory with more than 100,000 entries is not listed",
                ));
            }
            let kind = entry.file_type().map_or(EntryKind::Special, kind);
            entries.push(Entry { name: entry.file_name().to_string_lossy().into_owned(), kind });
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    pub(super) fn create_directory(&self, names: &[String], quota: &QuotaUse) -> Result<(), FileError> {
        let directory = self.directory()?;
        check_parent(&directory, names)?;
        quota.create()?;
        directory.create_dir(relative(names)).inspect_err(|_| quota.not_created())?;
        Ok(())
    }

    pub(super) fn remove_file(&self, names: &[String]) -> Result<(), FileError> {
        let directory = self.directory()?;
        check_parent(&directory, names)?;
        Ok(directory.remove_file(relative(names))?)
    }

    pub(super) fn remove_directory(&self, names: &[String]) -> Result<(), FileError> {
        let directory = self.directory()?;
        check_parent(&directory, names)?;
        Ok(directory.remove_dir(relative(names))?)
    }

    pub(super) fn rename(&self, from: &[String], to: &[String]) -> Result<(), FileError> {
        let directory = self.directory()?;
        check_parent(&directory, from)?;
        check_parent(&directory, to)?;
        Ok(directory.rename(relative(from), &directory, relative(to))?)
    }

    pub(super) fn set_modified(&self, names: &[String], time: u64) -> Result<(), FileError> {
        let (directory, mode) = (self.directory()?, OpenMode { read: true, ..OpenMode::default() });
        let file = self.open_existing(&directory, names, mode)?;
        set_modified(&file, time)
    }

    pub(super) fn open(&self, names: &[String], mode: OpenMode, quota: &QuotaUse) -> Result<File, FileError> {
        let directory = self.directory()?;
        for _ in 0..MAX_TRIES {
            let file = match self.open_existing(&directory, names, mode) {
                Err(error) if error.code == FileErrorCode::NoEntry && mode.create => {
                    check_parent(&directory, names)?;
                    quota.create()?;
                    let made = directory.open_with(relative(names), options(mode).create_new(true));
                    match made.map_err(FileError::from) {
                        Ok(file) => return Ok(file.into_std()),
                        Err(error) => {
                            quota.not_created();
                            // A link to a file that does not exist has a name that exists, too.
                            match error.code {
                                FileErrorCode::Exists if !mode.exclusive => continue,
                                _ => return Err(error),
                            }
                        }
                    }
                }
                Ok(_) if mode.create && mode.exclusive => return Err(FileErrorCode::Exists.into()),
                other => other?,
            };
            if mode.truncate {
                // Not when the file is opened: only now is it known to be a regular one.
                file.set_len(0)?;
            }
            return Ok(file);
        }
        Err(FileErrorCode::Busy.into())
    }

    fn open_existing(&self, directory: &Dir, names: &[String], mode: OpenMode) -> Result<File, FileError> {
        let path = relative(names);
        // Before it is opened, because opening a device can have an effect.
        check_kind(kind(directory.metadata(&path)?.file_type()), mode)?;
        let file = directory.open_with(&path, &options(mode))?.into_std();
        // The file that was opened may not be the one that was checked.
        let metadata = file.metadata()?;
        let opened = match () {
            () if metadata.is_file() => EntryKind::File,
            () if metadata.is_dir() => EntryKind::Directory,
            () => EntryKind::Special,
        };
        check_kind(opened, mode)?;
        check_file_system(&file)?;
        Ok(file)
    }
}

/// The metadata of an open file.
pub(super) fn metadata(file: &File) -> Result<Metadata, FileError> {
    let metadata = cap_std::fs::Metadata::from_file(file)?;
    Ok(of_system(&metadata))
}

pub(super) fn set_modified(file: &File, time: u64) -> Result<(), FileError> {
    let time = UNIX_EPOCH + Duration::from_nanos(time);
    Ok(file.set_times(FileTimes::new().set_modified(time).set_accessed(time))?)
}

/// Options that make the system neither wait for another end of a fifo nor take a terminal.
fn options(mode: OpenMode) -> OpenOptions {
    let mut options = OpenOptions::new();
    // A file cannot be opened without any access, and reading is the least.
    let is_read = mode.read || !(mode.write || mode.append);
    options.read(is_read).write(mode.write || mode.append).append(mode.append);
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    options
}

fn check_kind(kind: EntryKind, mode: OpenMode) -> Result<(), FileError> {
    match kind {
        EntryKind::File => Ok(()),
        EntryKind::Directory if mode.write || mode.append => Err(FileErrorCode::IsDirectory.into()),
        EntryKind::Directory => Ok(()),
        EntryKind::Link | EntryKind::Special => Err(FileError::with_hint(FileErrorCode::Access, SPECIAL)),
    }
}

/// Refuses names in directories of the kernel's file systems.
fn check_parent(directory: &Dir, names: &[String]) -> Result<(), FileError> {
    match names.split_last() {
        Some((_, parent)) if !parent.is_empty() => check_file_system(&directory.open_dir(relative(parent))?),
        // The directory itself was checked when it was opened.
        _ => Ok(()),
    }
}

/// Refuses the file systems of the kernel, whose files are not data but views of the machine and switches.
#[cfg(target_os = "linux")]
fn check_file_system(file: impl std::os::fd::AsFd) -> Result<(), FileError> {
    /// `man 2 statfs`: proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, bpf, selinuxfs, devpts,
    /// configfs, efivarfs, pstore, binfmt_misc, mqueue, fusectl, nfsd, smackfs, binderfs, resctrl, xenfs.
    const OF_KERNEL: [u32; 21] = [
        0x9fa0,
        0x6265_6572,
        0x0027_e0eb,
        0x6367_7270,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0xcafe_4a11,
        0xf97c_ff8c,
        0x1cd1,
        0x6265_6570,
        0xde5e_81e4,
        0x6165_676c,
        0x4249_4e4d,
        0x1980_0202,
        0x6573_5543,
        0x6e66_7364,
        0x4341_5d53,
        0x6c6f_6f70,
        0x0765_5821,
        0xabba_1974,
    ];
    let kind = rustix::fs::fstatfs(file).map_err(std::io::Error::from)?.f_type;
    // The type is 32 bits wide on every machine, in a field that may be wider and signed.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "only 32 bits count")]
    if OF_KERNEL.contains(&(kind as u32)) {
        return Err(FileError::with_hint(FileErrorCode::Access, SPECIAL));
    }
    Ok(())
}

/// Other systems have their views of the machine elsewhere.
#[cfg(not(target_os = "linux"))]
fn check_file_system(_file: impl std::os::fd::AsFd) -> Result<(), FileError> {
    Ok(())
}

fn of_system(metadata: &cap_std::fs::Metadata) -> Metadata {
    let modified = metadata.modified().map_or(UNIX_EPOCH, cap_std::time::SystemTime::into_std);
    Metadata {
        kind: kind(metadata.file_type()),
        size: metadata.len(),
        modified: nanoseconds(modified.duration_since(UNIX_EPOCH).unwrap_or_default()),
        id: (metadata.dev().wrapping_add(2), metadata.ino()),
    }
}

fn kind(kind: cap_std::fs::FileType) -> EntryKind {
    match () {
        () if kind.is_file() => EntryKind::File,
        () if kind.is_dir() => EntryKind::Directory,
        () if kind.is_symlink() => EntryKind::Link,
        () => EntryKind::Special,
    }
}

fn relative(names: &[String]) -> PathBuf {
    if names.is_empty() { PathBuf::from(".") } else { names.iter().collect() }
}
