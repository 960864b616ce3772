//! Operations on granted directories: what performs them, and the threads on which this process does.
//!
//! A process that can open files performs them itself ([`System`]). A worker process can open none: the executor
//! performs them for it (`elsewhere.rs`).

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::error::{FileError, FileErrorCode};
use super::granted::{self, Mount};
use super::metadata::{Entry, Metadata, OpenMode};
use super::path::GuestPath;
use super::quota::QuotaUse;
use crate::machine::probe;

/// Maximum number of operations on granted directories that one run, and all runs of the process, have in flight at
/// once. Each has a thread, which a file system that does not answer keeps. One after the other in a run, so that a
/// file is read after it was written, also where the guest does not wait for the end of a write.
const MAX_OPERATIONS_OF_RUN: usize = 1;
const MAX_OPERATIONS: usize = 128;

/// What an operation completes with. It begins when it is polled first.
pub(super) type Operation<T> = BoxFuture<'static, Result<T, FileError>>;

/// Performs operations on granted directories. The path is in the directory.
pub(super) trait GrantedDirectories: Send + Sync {
    fn metadata(&self, mount: Arc<Mount>, path: &GuestPath, follow: bool) -> Operation<Metadata>;
    /// All entries, in the order of their names.
    fn entries(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<Vec<Entry>>;
    fn create_directory(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<()>;
    fn remove_file(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<()>;
    fn remove_directory(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<()>;
    /// Both paths are in the directory.
    fn rename(&self, mount: Arc<Mount>, from: &GuestPath, to: &GuestPath) -> Operation<()>;
    fn set_modified(&self, mount: Arc<Mount>, path: &GuestPath, time: u64) -> Operation<()>;
    fn open(&self, mount: Arc<Mount>, path: &GuestPath, mode: OpenMode) -> Operation<Arc<dyn GrantedFile>>;
}

/// Performs operations on an open file of a granted directory. It is closed when it is dropped.
pub(super) trait GrantedFile: Send + Sync {
    fn metadata(&self) -> Operation<Metadata>;
    /// At most `length` bytes, and none at the end of the file.
    fn read(&self, offset: u64, length: usize) -> Operation<Vec<u8>>;
    /// Writes all of `bytes`; without an offset at the end.
    fn write(&self, offset: Option<u64>, bytes: Vec<u8>) -> Operation<()>;
    fn set_size(&self, size: u64) -> Operation<()>;
    fn set_modified(&self, time: u64) -> Operation<()>;
    fn sync(&self) -> Operation<()>;
}

/// Granted directories of this machine, as one run uses them.
pub(super) struct System {
    quota: Arc<QuotaUse>,
    runtime: Handle,
    operations: Arc<Semaphore>,
}

impl System {
    /// `runtime` is where blocking operations have their threads.
    pub(super) fn new(quota: Arc<QuotaUse>, runtime: Handle) -> Self {
        Self { quota, runtime, operations: Arc::new(Semaphore::new(MAX_OPERATIONS_OF_RUN)) }
    }

    /// Runs an operation on a thread that may block. If the file system never answers, the thread stays and
    /// the run goes on to its deadline: dropping the future does not wait for it.
    fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Operation<T> {
        static ALL: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_OPERATIONS)));
        let (operations, runtime) = (Arc::clone(&self.operations), self.runtime.clone());
        Box::pin(async move {
            let closed = |_| FileError::from(FileErrorCode::Io);
            let of_run = operations.acquire_owned().await.map_err(closed)?;
            let of_all = Arc::clone(&ALL).acquire_owned().await.map_err(closed)?;
            let task = probe::spawn_blocking(&runtime, move || {
                // Held until the thread is free again.
                let _permits = (of_run, of_all);
                work()
            });
            let task = task.map_err(|_no_thread| FileError::from(FileErrorCode::TooManyOpen))?;
            task.await.unwrap_or_else(|_ended| Err(FileErrorCode::Io.into()))
        })
    }
}

fn below(path: &GuestPath, mount: &Mount) -> Vec<String> {
    path.below(&mount.guest).unwrap_or_default().to_vec()
}

impl GrantedDirectories for Arc<System> {
    fn metadata(&self, mount: Arc<Mount>, path: &GuestPath, follow: bool) -> Operation<Metadata> {
        let names = below(path, &mount);
        self.blocking(move || mount.metadata(&names, follow))
    }

    fn entries(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<Vec<Entry>> {
        let names = below(path, &mount);
        self.blocking(move || mount.entries(&names))
    }

    fn create_directory(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<()> {
        let (names, quota) = (below(path, &mount), Arc::clone(&self.quota));
        self.blocking(move || mount.create_directory(&names, &quota))
    }

    fn remove_file(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<()> {
        let names = below(path, &mount);
        self.blocking(move || mount.remove_file(&names))
    }

    fn remove_directory(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<()> {
        let names = below(path, &mount);
        self.blocking(move || mount.remove_directory(&names))
    }

    fn rename(&self, mount: Arc<Mount>, from: &GuestPath, to: &GuestPath) -> Operation<()> {
        let (from, to) = (below(from, &mount), below(to, &mount));
        self.blocking(move || mount.rename(&from, &to))
    }

    fn set_modified(&self, mount: Arc<Mount>, path: &GuestPath, time: u64) -> Operation<()> {
        let names = below(path, &mount);
        self.blocking(move || mount.set_modified(&names, time))
    }

    fn open(&self, mount: Arc<Mount>, path: &GuestPath, mode: OpenMode) -> Operation<Arc<dyn GrantedFile>> {
        let (names, system) = (below(path, &mount), Self::clone(self));
        self.blocking(move || {
            let file = Arc::new(mount.open(&names, mode, &system.quota)?);
            Ok(Arc::new(SystemFile { file, system }) as Arc<dyn GrantedFile>)
        })
    }
}

/// An open file of this machine.
struct SystemFile {
    file: Arc<File>,
    system: Arc<System>,
}

impl GrantedFile for SystemFile {
    fn metadata(&self) -> Operation<Metadata> {
        let file = Arc::clone(&self.file);
        self.system.blocking(move || granted::metadata(&file))
    }

    fn read(&self, offset: u64, length: usize) -> Operation<Vec<u8>> {
        let file = Arc::clone(&self.file);
        self.system.blocking(move || {
            let mut bytes = vec![0; length];
            let count = file.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
            Ok(bytes)
        })
    }

    fn write(&self, offset: Option<u64>, bytes: Vec<u8>) -> Operation<()> {
        let (file, quota) = (Arc::clone(&self.file), Arc::clone(&self.system.quota));
        self.system.blocking(move || {
            let size = file.metadata()?.len();
            let offset = offset.unwrap_or(size);
            let gap = if bytes.is_empty() { 0 } else { offset.saturating_sub(size) };
            // A gap has no space yet. A block of it gets some with its first byte, so that all of it counts.
            quota.write(offset - gap, gap.saturating_add(bytes.len() as u64))?;
            // With the flag for appending the system ignores the offset.
            Ok(file.write_all_at(&bytes, offset)?)
        })
    }

    fn set_size(&self, size: u64) -> Operation<()> {
        let (file, quota) = (Arc::clone(&self.file), Arc::clone(&self.system.quota));
        self.system.blocking(move || {
            let now = file.metadata()?.len();
            quota.write(now.min(size), size.saturating_sub(now))?;
            Ok(file.set_len(size)?)
        })
    }

    fn set_modified(&self, time: u64) -> Operation<()> {
        let file = Arc::clone(&self.file);
        self.system.blocking(move || granted::set_modified(&file, time))
    }

    fn sync(&self) -> Operation<()> {
        let file = Arc::clone(&self.file);
        self.system.blocking(move || Ok(file.sync_all()?))
    }
}
