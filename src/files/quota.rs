//! How much a run may write to granted directories.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{FileError, FileErrorCode};

const WRITTEN: &str = "the run may write no more: `maxWrittenBytes` of the limits";
const FILES: &str = "the run may create no more files: `maxCreatedFiles` of the limits";
const FILE: &str = "a file may not become larger: `maxFileBytes` of the limits";

/// The quotas of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileQuota {
    /// Bytes that the run writes in all. What is written over or deleted counts too.
    pub(crate) written_bytes: u64,
    /// Files and directories that it creates in all.
    pub(crate) files: u64,
    /// Size of one file.
    pub(crate) file_bytes: u64,
}

/// Returns the quotas at this moment. They can be lowered while a run is in flight.
pub(crate) type FileQuotaNow = Box<dyn Fn() -> FileQuota + Send + Sync>;

/// What a run has used of its quotas.
pub(super) struct QuotaUse {
    quota: FileQuotaNow,
    written: AtomicU64,
    files: AtomicU64,
}

impl fmt::Debug for QuotaUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quota, written, files } = self;
        let quota = quota();
        formatter
            .debug_struct("QuotaUse")
            .field("quota", &quota)
            .field("written", written)
            .field("files", files)
            .finish()
    }
}

impl QuotaUse {
    pub(super) fn new(quota: FileQuotaNow) -> Self {
        Self { quota, written: AtomicU64::new(0), files: AtomicU64::new(0) }
    }

    /// Counts a write of `bytes` at `offset`, before it is made.
    pub(super) fn write(&self, offset: u64, bytes: u64) -> Result<(), FileError> {
        let (quota, end) = ((self.quota)(), offset.checked_add(bytes));
        if end.is_none_or(|end| end > quota.file_bytes) {
            return Err(FileError::with_hint(FileErrorCode::FileTooLarge, FILE));
        }
        if take(&self.written, bytes, quota.written_bytes) {
            Ok(())
        } else {
            Err(FileError::with_hint(FileErrorCode::Quota, WRITTEN))
        }
    }

    /// Counts a file or directory that is created, before it is.
    pub(super) fn create(&self) -> Result<(), FileError> {
        if take(&self.files, 1, (self.quota)().files) {
            Ok(())
        } else {
            Err(FileError::with_hint(FileErrorCode::Quota, FILES))
        }
    }

    /// Takes back a [`create`](Self::create) that has failed.
    pub(super) fn not_created(&self) {
        self.files.fetch_sub(1, Ordering::Relaxed);
    }
}

fn take(used: &AtomicU64, amount: u64, most: u64) -> bool {
    let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        used.checked_add(amount).filter(|&wanted| wanted <= most)
    });
    taken.is_ok()
}
