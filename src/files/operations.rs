//! Operations on granted directories: what performs them, and the threads on which this process does.
//!
//! A process that can open files performs them itself ([`System`]). A worker process can open none: the executor
//! performs them for it (`elsewhere.rs`).

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::error::{FileError, FileErrorCode};
use super::granted::{self, Mount};
use super::metadata::{Entry, Metadata, OpenMode};
use super::path::GuestPath;
use super::quota::QuotaUse;
use crate::machine::probe;

/// Maximum number of operations on granted directories that are in flight at once: of one run, of all runs on one
/// directory, and of all runs on all of them. Each has a thread, which a file system that does not answer keeps. One
/// after the other in a run, so that a file is read after it was written, also where the guest does not wait for the
/// end of a write. Fewer on one directory than on all, so that one file system does not keep the threads for others.
const MAX_OPERATIONS_OF_RUN: usize = 1;
pub(super) const MAX_OPERATIONS_OF_DIRECTORY: usize = 32;
pub(super) const MAX_OPERATIONS: usize = 128;

/// How long an operation waits for those of other runs. They take milliseconds, so after this time the file system
/// hangs, and the script should learn that before its run is out of time.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(10);

const DIRECTORY_BUSY: &str = "the file system of this granted directory does not answer, and as many operations wait \
                              for it as may: a person should check whether it can be reached";
const ALL_BUSY: &str = "the file systems of other granted directories do not answer, and as many operations wait for \
                        them as may: a person should check whether they can be reached";

/// The permits for operations on all granted directories.
static ALL: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_OPERATIONS)));

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

    /// Runs an operation on a thread that may block, with a permit of its directory. If the file system never answers,
    /// the thread stays and the run goes on to its deadline: dropping the future does not wait for it.
    pub(super) fn blocking<T: Send + 'static>(
        &self,
        of_directory: Arc<Semaphore>,
        work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Operation<T> {
        let (operations, runtime) = (Arc::clone(&self.operations), self.runtime.clone());
        Box::pin(async move {
            let of_run =
                operations.acquire_owned().await.map_err(|_closed| FileError::from(FileErrorCode::Io))?;
            // That of the directory first: what waits for a file system that hangs has none of the others'.
            let of_directory = acquire(of_directory, &runtime, DIRECTORY_BUSY).await?;
            let of_all = acquire(Arc::clone(&ALL), &runtime, ALL_BUSY).await?;
            let task = probe::spawn_blocking(&runtime, move || {
                // Held until the thread is free again.
                let _permits = (of_run, of_directory, of_all);
                work()
            });
            let task = task.map_err(|_no_thread| FileError::from(FileErrorCode::TooManyOpen))?;
            task.await.unwrap_or_else(|_ended| Err(FileErrorCode::Io.into()))
        })
    }

    /// Has a value dropped as an operation of this run on a granted directory.
    pub(super) fn dropped_blocking<T: Send + 'static>(
        &self,
        value: T,
        of_directory: Arc<Semaphore>,
    ) -> BlockingDrop<T> {
        let (of_run, runtime) = (Arc::clone(&self.operations), self.runtime.clone());
        BlockingDrop { value: Some(value), of_run, of_directory, runtime }
    }
}

/// The permits for operations on a granted directory. All runs of the process share them, and operations that have not
/// ended keep them.
pub(super) fn permits_of(root: &Path) -> Arc<Semaphore> {
    static BY_ROOT: Mutex<BTreeMap<PathBuf, Weak<Semaphore>>> = Mutex::new(BTreeMap::new());
    let mut by_root = BY_ROOT.lock();
    if let Some(permits) = by_root.get(root).and_then(Weak::upgrade) {
        return permits;
    }
    by_root.retain(|_, permits| permits.strong_count() > 0);
    let permits = Arc::new(Semaphore::new(MAX_OPERATIONS_OF_DIRECTORY));
    by_root.insert(root.to_owned(), Arc::downgrade(&permits));
    permits
}

/// Waits for a permit.
///
/// # Errors
///
/// With `hint` if there is none within [`MAX_WAIT`].
async fn acquire(
    permits: Arc<Semaphore>,
    runtime: &Handle,
    hint: &'static str,
) -> Result<OwnedSemaphorePermit, FileError> {
    // Nearly always there is one, and no timer is needed.
    if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
        return Ok(permit);
    }
    let acquired = {
        // The timer is the runtime's, also if the thread that polls this has not entered it.
        let _entered = runtime.enter();
        timeout(MAX_WAIT, permits.acquire_owned())
    };
    match acquired.await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_closed)) => Err(FileErrorCode::Io.into()),
        Err(_elapsed) => Err(FileError::with_hint(FileErrorCode::Busy, hint)),
    }
}

fn below(path: &GuestPath, mount: &Mount) -> Vec<String> {
    path.below(&mount.guest).unwrap_or_default().to_vec()
}

impl GrantedDirectories for Arc<System> {
    fn metadata(&self, mount: Arc<Mount>, path: &GuestPath, follow: bool) -> Operation<Metadata> {
        let names = below(path, &mount);
        self.blocking(mount.permits(), move || mount.metadata(&names, follow))
    }

    fn entries(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<Vec<Entry>> {
        let names = below(path, &mount);
        self.blocking(mount.permits(), move || mount.entries(&names))
    }

    fn create_directory(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<()> {
        let (names, quota) = (below(path, &mount), Arc::clone(&self.quota));
        self.blocking(mount.permits(), move || mount.create_directory(&names, &quota))
    }

    fn remove_file(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<()> {
        let names = below(path, &mount);
        self.blocking(mount.permits(), move || mount.remove_file(&names))
    }

    fn remove_directory(&self, mount: Arc<Mount>, path: &GuestPath) -> Operation<()> {
        let names = below(path, &mount);
        self.blocking(mount.permits(), move || mount.remove_directory(&names))
    }

    fn rename(&self, mount: Arc<Mount>, from: &GuestPath, to: &GuestPath) -> Operation<()> {
        let (from, to) = (below(from, &mount), below(to, &mount));
        self.blocking(mount.permits(), move || mount.rename(&from, &to))
    }

    fn set_modified(&self, mount: Arc<Mount>, path: &GuestPath, time: u64) -> Operation<()> {
        let names = below(path, &mount);
        self.blocking(mount.permits(), move || mount.set_modified(&names, time))
    }

    fn open(&self, mount: Arc<Mount>, path: &GuestPath, mode: OpenMode) -> Operation<Arc<dyn GrantedFile>> {
        let (names, system) = (below(path, &mount), Self::clone(self));
        self.blocking(mount.permits(), move || {
            let file = mount.open(&names, mode, &system.quota)?;
            let file = Arc::new(system.dropped_blocking(file, mount.permits()));
            Ok(Arc::new(SystemFile { file, system }) as Arc<dyn GrantedFile>)
        })
    }
}

/// An open file of this machine.
struct SystemFile {
    file: Arc<BlockingDrop<File>>,
    system: Arc<System>,
}

impl SystemFile {
    fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Operation<T> {
        self.system.blocking(Arc::clone(&self.file.of_directory), work)
    }
}

/// What is dropped on a thread that may block, as an operation of its run and with the permits of one. Closing a file
/// can wait for its file system, and the thread that needs the file no longer is a script's, or the one that speaks to
/// a worker process. The next operation of the run waits for it: from some file systems, such as NFS, no directory can
/// be removed while a file of it is open.
pub(super) struct BlockingDrop<T: Send + 'static> {
    /// `None` only while this is dropped.
    value: Option<T>,
    /// The permits of its run.
    of_run: Arc<Semaphore>,
    /// Those of its granted directory.
    of_directory: Arc<Semaphore>,
    runtime: Handle,
}

impl<T: Send + 'static> Deref for BlockingDrop<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("the value is there until this is dropped")
    }
}

impl<T: Send + 'static> Drop for BlockingDrop<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        // In the order in which operations acquire them.
        let wanted = [&self.of_run, &self.of_directory, &*ALL].map(Arc::clone);
        let runtime = self.runtime.clone();
        let drop_on_thread = move |permits: Vec<OwnedSemaphorePermit>| {
            // Where the system has no thread for it, it is dropped here.
            let _detached = probe::spawn_blocking(&runtime, move || drop((value, permits)));
        };
        // Nearly always there are permits. Then nothing depends on when the runtime is polled next.
        let now = wanted.iter().map(|semaphore| Arc::clone(semaphore).try_acquire_owned());
        if let Ok(permits) = now.collect::<Result<Vec<_>, _>>() {
            return drop_on_thread(permits);
        }
        self.runtime.spawn(async move {
            let mut permits = Vec::with_capacity(wanted.len());
            for semaphore in wanted {
                let Ok(permit) = semaphore.acquire_owned().await else { return };
                permits.push(permit);
            }
            drop_on_thread(permits);
        });
    }
}

impl GrantedFile for SystemFile {
    fn metadata(&self) -> Operation<Metadata> {
        let file = Arc::clone(&self.file);
        self.blocking(move || granted::metadata(&file))
    }

    fn read(&self, offset: u64, length: usize) -> Operation<Vec<u8>> {
        let file = Arc::clone(&self.file);
        self.blocking(move || {
            let mut bytes = vec![0; length];
            let count = file.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
            Ok(bytes)
        })
    }

    fn write(&self, offset: Option<u64>, bytes: Vec<u8>) -> Operation<()> {
        let (file, quota) = (Arc::clone(&self.file), Arc::clone(&self.system.quota));
        self.blocking(move || {
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
        self.blocking(move || {
            let now = file.metadata()?.len();
            quota.write(now.min(size), size.saturating_sub(now))?;
            Ok(file.set_len(size)?)
        })
    }

    fn set_modified(&self, time: u64) -> Operation<()> {
        let file = Arc::clone(&self.file);
        self.blocking(move || granted::set_modified(&file, time))
    }

    fn sync(&self) -> Operation<()> {
        let file = Arc::clone(&self.file);
        self.blocking(move || Ok(file.sync_all()?))
    }
}
