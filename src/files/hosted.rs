//! Performs the operations on granted directories that another process asks for (`elsewhere.rs`), with the grants and
//! the quotas of the run. That process is not trusted: what it asks for is checked as if its script had asked here.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::elsewhere::{FileAnswer, FileOperation, MAX_WRITE};
use super::error::{FileError, FileErrorCode};
use super::operations::Operation;
use super::path::GuestPath;
use super::space::{NextInScratch, OpenFile, RunFiles};

/// Maximum number of operations in flight. A script waits for each; this bounds what a process that was taken over can
/// make the host hold, 1 MiB for each.
const MAX_IN_FLIGHT: usize = 64;

/// The files of a run, for the process that executes its script.
pub(crate) struct HostedFiles {
    files: Arc<RunFiles>,
    /// Their number is bounded where they are opened.
    open: Mutex<HashMap<u64, Arc<OpenFile>>>,
    last: AtomicU64,
    in_flight: Arc<Semaphore>,
}

impl HostedFiles {
    pub(crate) fn new(files: Arc<RunFiles>) -> Self {
        let in_flight = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
        Self { files, open: Mutex::default(), last: AtomicU64::new(0), in_flight }
    }

    /// Performs an operation. It begins when the future is polled first.
    pub(crate) fn perform(self: &Arc<Self>, operation: FileOperation) -> Operation<FileAnswer> {
        let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() else {
            return futures::future::ready(Err(FileErrorCode::TooManyOpen.into())).boxed();
        };
        let hosted = Arc::clone(self);
        async move {
            let _permit = permit;
            hosted.answer(operation).await
        }
        .boxed()
    }

    /// Closes a file, if it is open.
    pub(crate) fn close(&self, file: u64) {
        self.open.lock().remove(&file);
    }

    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        self.open.lock().len()
    }

    fn file(&self, number: u64) -> Result<Arc<OpenFile>, FileError> {
        self.open.lock().get(&number).cloned().ok_or_else(|| FileErrorCode::BadDescriptor.into())
    }

    /// Refuses to make anything in the scratch directory: that of the script is in the other process, whose memory is
    /// measured. A process that was taken over could have another one here.
    fn check_place(&self, path: &GuestPath) -> Result<(), FileError> {
        match self.files.next_in_scratch(path, None) {
            Ok(NextInScratch::Elsewhere) => Ok(()),
            _ => Err(FileErrorCode::Access.into()),
        }
    }

    async fn answer(&self, operation: FileOperation) -> Result<FileAnswer, FileError> {
        use FileOperation as Op;

        let (files, at) = (&self.files, |path: String| GuestPath::parse(&path));
        match operation {
            Op::Metadata { path, follow } => {
                return files.metadata(&at(path)?, follow).await.map(FileAnswer::Metadata);
            }
            Op::Entries { path } => return files.entries(&at(path)?).await.map(FileAnswer::Entries),
            Op::Open { path, mode } => {
                let path = at(path)?;
                if mode.is_write() {
                    self.check_place(&path)?;
                }
                let file = files.open(&path, mode).await?;
                let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
                self.open.lock().insert(number, Arc::new(file));
                return Ok(FileAnswer::Opened(number));
            }
            Op::FileMetadata { file } => {
                return self.file(file)?.metadata().await.map(FileAnswer::Metadata);
            }
            Op::Read { file, offset, length } => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                return self.file(file)?.read(offset, length).await.map(FileAnswer::Bytes);
            }
            Op::Write { bytes, .. } if bytes.len() > MAX_WRITE => {
                return Err(FileErrorCode::FileTooLarge.into());
            }
            Op::CreateDirectory { path } => {
                let path = at(path)?;
                self.check_place(&path)?;
                files.create_directory(&path).await?;
            }
            Op::RemoveFile { path } => files.remove_file(&at(path)?).await?,
            Op::RemoveDirectory { path } => files.remove_directory(&at(path)?).await?,
            Op::Rename { from, to } => files.rename(&at(from)?, &at(to)?).await?,
            Op::SetModified { path, time } => files.set_modified(&at(path)?, Some(time)).await?,
            Op::Write { file, offset, bytes } => self.file(file)?.write(offset, bytes).await?,
            Op::SetSize { file, size } => self.file(file)?.set_size(size).await?,
            Op::SetFileModified { file, time } => self.file(file)?.set_modified(Some(time)).await?,
            Op::Sync { file } => self.file(file)?.sync().await?,
        }
        Ok(FileAnswer::Done)
    }
}
