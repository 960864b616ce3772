//! Directories and files that only their user can change: creating and checking them, locks between
//! processes, and atomic replacement. The library keeps its state and caches through it.
//!
//! Files that users write themselves (configuration, folders of scripts) may be readable by others
//! and are behind paths of the user's choice; `src/config/file.rs` and `src/storage/scripts.rs`
//! check them, and `replace.rs` replaces them.
//!
//! This is not `tempfile`, which names the files that it creates and replaces by a path, and the path may lead to
//! another directory than the one that was checked. Here each file is opened relative to the descriptor of that
//! directory.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::ownership::Ownership;

/// How long to wait for a lock. Changes take milliseconds, so a longer wait means that its holder
/// hangs.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// Does not follow a symbolic link at the end of a path, does not block on a pipe, and does not make a terminal the
/// controlling terminal of this process.
const NO_FOLLOW: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An open directory that only the user can write to. Its files are opened relative to its
/// descriptor, so the directory that was checked is the one that is used.
#[derive(Debug)]
pub(crate) struct PrivateDirectory {
    directory: File,
}

impl PrivateDirectory {
    /// Creates the directory if it is missing, with mode 0700, and checks that no other user can write
    /// to it. Symbolic links are followed, and the directories above are not checked.
    ///
    /// # Errors
    ///
    /// If it cannot be created, or belongs to or can be written by another user.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        check_owner(&directory.metadata()?, path)?;
        Ok(Self { directory })
    }

    /// As [`create`](Self::create), and checks every directory above it too: no other user can replace
    /// the directory or one that it is in. For files that are as trustworthy as the program itself.
    ///
    /// Symbolic links above are common (`/home`, `/tmp` on macOS). They are resolved once, and no
    /// link is followed after that.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub(crate) fn create_below_trusted(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let path = path.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut directory = File::from(rustix::fs::open("/", flags, Mode::empty())?);
        let mut walked = Path::new("/").to_owned();
        let mut writers = check_directory(&directory, &walked)?;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            walked.push(name);
            directory = File::from(rustix::fs::openat(&directory, name, flags, Mode::empty())?);
            if writers == Writers::AllUsersOwnEntries
                && !Ownership::from_metadata(&directory.metadata()?).is_ours()
            {
                let why = "belongs to another user, in a directory where all users may write";
                return Err(refused(&walked, why));
            }
            writers = check_directory(&directory, &walked)?;
        }
        if !Ownership::from_metadata(&directory.metadata()?).is_ours() {
            return Err(refused(&walked, "belongs to another user"));
        }
        if writers == Writers::AllUsersOwnEntries {
            return Err(refused(&walked, WRITABLE));
        }
        Ok(Self { directory })
    }

    /// Opens a file of the directory. A new one has mode 0600. A symbolic link is an error, and
    /// opening a pipe does not block.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub(crate) fn open(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let file = rustix::fs::openat(&self.directory, name, flags | NO_FOLLOW, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }

    /// Removes a file. A missing file is not an error.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Err(error) if error != rustix::io::Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Replaces the file `name` atomically by what `write` writes, with mode 0600: a reader sees the
    /// old or the new file, and a process that dies meanwhile leaves the old one.
    ///
    /// The caller must hold a lock under which alone `temporary` is used. It has a fixed name, so
    /// that a file left by a killed process is removed by the next one.
    ///
    /// # Errors
    ///
    /// Those of `write` and of the operating system. The incomplete file is removed.
    pub(crate) fn replace(
        &self,
        name: &str,
        temporary: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        self.replace_unsynced(name, temporary, |file| {
            write(file)?;
            file.sync_data()
        })
    }

    /// As [`replace`](Self::replace), without waiting for the disk: after a power failure the file may be empty. For
    /// files that are replaced often and can be recreated.
    ///
    /// # Errors
    ///
    /// As [`replace`](Self::replace).
    pub(crate) fn replace_unsynced(
        &self,
        name: &str,
        temporary: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        self.remove(temporary)?;
        let mut file = self.open(temporary, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        // The umask may have removed permissions that the owner needs.
        let replaced = rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)
            .map_err(io::Error::from)
            .and_then(|()| write(&mut file))
            .and_then(|()| Ok(rustix::fs::renameat(&self.directory, temporary, &self.directory, name)?));
        if replaced.is_err() {
            // For example when the disk is full.
            let _ = self.remove(temporary);
        }
        replaced
    }

    /// Makes the names of replaced files durable.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    /// The names of all files, in no particular order. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.directory)? {
            names.extend(entry?.file_name().to_str().map(str::to_owned));
        }
        Ok(names)
    }
}

/// Acquires the lock of a file, until that is dropped. All processes respect it, and the kernel also
/// releases it when its holder dies. Waits for at most two seconds.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    acquire(open_lock(path)?, MAX_WAIT, PAUSE, || ()).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            let message = format!("another process has held {} for too long", path.display());
            io::Error::new(ErrorKind::WouldBlock, message)
        }
        _ => error,
    })
}

/// As [`lock`], for a file that is open already: tries every `pause` for at most `max_wait`.
/// `on_wait` is called once, if another process holds the lock.
///
/// # Errors
///
/// [`ErrorKind::WouldBlock`] if another process holds it for longer; others if the file system has
/// no locks.
pub(crate) fn acquire(
    file: File,
    max_wait: Duration,
    pause: Duration,
    on_wait: impl FnOnce(),
) -> io::Result<File> {
    let deadline = Instant::now() + max_wait;
    let mut on_wait = Some(on_wait);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                if let Some(on_wait) = on_wait.take() {
                    on_wait();
                }
                std::thread::sleep(pause);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens the file of a lock, and creates it if it is missing. Callers that need a longer wait than
/// [`lock`] allows use this and lock the file themselves.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600).custom_flags(flags(NO_FOLLOW)).open(path)
}

/// Opens a file for reading and checks that it is a regular file of the user, which no other user can
/// write to.
///
/// # Errors
///
/// If it is not, or cannot be opened.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let file = open_without_links(path)?;
    check_file(&file, path)?;
    Ok(file)
}

/// Opens a file for reading, whoever can write to it. A symbolic link at the end of the path is an error, and
/// opening a pipe does not block.
///
/// # Errors
///
/// Those of the operating system.
pub(crate) fn open_without_links(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(flags(NO_FOLLOW)).open(path)
}

/// Checks that an open file is a regular file of the user, which no other user can write to. `path` is
/// for the message only.
///
/// # Errors
///
/// If it is not.
pub(crate) fn check_file(file: &File, path: &Path) -> io::Result<fs::Metadata> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_a_file(path));
    }
    check_owner(&metadata, path)?;
    Ok(metadata)
}

/// Creates an empty file that only the user can read, or checks that an existing one is a regular
/// file of the user. An existing file is not opened, because closing it would release this
/// process's locks on it.
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().create_new(true).write(true).mode(0o600).open(path) {
        Ok(_made) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() {
        return Err(not_a_file(path));
    }
    check_owner(&metadata, path)?;
    if Ownership::from_metadata(&metadata).others_have_access() {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Removes a file. A missing file is not an error.
///
/// # Errors
///
/// Those of the operating system.
pub(crate) fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

const fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn not_a_file(path: &Path) -> io::Error {
    let message = format!("{} is not a regular file", path.display());
    io::Error::new(ErrorKind::InvalidData, message)
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{} {why}", path.display()))
}

/// Why a directory that others can write to is refused. The message does not suggest removing the
/// permission, because for some directories, such as `/tmp`, that would be wrong.
const WRITABLE: &str = "can be written by other users";

/// Who may change the entries of a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writers {
    /// This user, or root.
    Us,
    /// All users may add entries, but remove and rename only their own: the directory is sticky,
    /// like `/tmp`.
    AllUsersOwnEntries,
}

/// Checks who can write to a directory on the path. Those users can replace its entries. In a
/// sticky directory others cannot replace entries that belong to this user (`man 7 inode`), so the
/// next directory on the path must belong to this user.
fn check_directory(directory: &File, path: &Path) -> io::Result<Writers> {
    let metadata = directory.metadata()?;
    let ownership = Ownership::from_metadata(&metadata);
    if !ownership.is_ours_or_of_root() {
        return Err(refused(path, "belongs to another user"));
    }
    if !ownership.others_may_write() {
        Ok(Writers::Us)
    } else if Mode::from_raw_mode(metadata.mode()).contains(Mode::SVTX) {
        Ok(Writers::AllUsersOwnEntries)
    } else {
        Err(refused(path, WRITABLE))
    }
}

/// A file that another user can write to cannot be trusted.
fn check_owner(metadata: &fs::Metadata, path: &Path) -> io::Result<()> {
    let ownership = Ownership::from_metadata(metadata);
    if ownership.is_ours() && !ownership.others_may_write() {
        return Ok(());
    }
    Err(refused(path, "belongs to or can be written by another user"))
}
