//! Granted directories for a process that can open no file: the process that has the run performs the operations.
//! The operations and their results are what crosses between the two; `hosted.rs` is the other side.

use std::sync::Arc;

use futures::FutureExt as _;
use serde::{Deserialize, Serialize};

use super::error::{FileError, FileErrorCode};
use super::granted::Mount;
use super::metadata::{Entry, Metadata, OpenMode};
use super::operations::{GrantedDirectories, GrantedFile, Operation};
use super::path::GuestPath;

/// Maximum bytes of one write. Longer ones are divided.
pub(crate) const MAX_WRITE: usize = 1 << 20;

/// An operation on granted directories. Paths are as scripts write them; files have the numbers of
/// [`FileAnswer::Opened`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FileOperation {
    Metadata { path: String, follow: bool },
    Entries { path: String },
    CreateDirectory { path: String },
    RemoveFile { path: String },
    RemoveDirectory { path: String },
    Rename { from: String, to: String },
    SetModified { path: String, time: u64 },
    Open { path: String, mode: OpenMode },
    FileMetadata { file: u64 },
    Read { file: u64, offset: u64, length: u64 },
    Write { file: u64, offset: u64, bytes: Vec<u8> },
    SetSize { file: u64, size: u64 },
    SetFileModified { file: u64, time: u64 },
    Sync { file: u64 },
}

/// The result of a [`FileOperation`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FileAnswer {
    Done,
    Metadata(Metadata),
    Entries(Vec<Entry>),
    /// The number of the open file.
    Opened(u64),
    Bytes(Vec<u8>),
}

/// Passes operations on to the process that performs them.
pub(crate) trait FileHost: Send + Sync {
    /// Operations are performed in the order of these calls.
    fn perform(&self, operation: FileOperation) -> Operation<FileAnswer>;
    /// Closes a file.
    fn close(&self, file: u64);
}

/// Granted directories that are elsewhere.
pub(super) struct Elsewhere(pub(super) Arc<dyn FileHost>);

/// The path as text, from which it can be read again.
fn text(path: &GuestPath) -> String {
    let end = if path.must_be_directory && !path.names().is_empty() { "/" } else { "" };
    format!("{path}{end}")
}

/// The host's answer to something else.
fn unexpected<T>() -> Result<T, FileError> {
    Err(FileErrorCode::Io.into())
}

fn done(answer: Operation<FileAnswer>) -> Operation<()> {
    answer.map(|answer| answer.map(drop)).boxed()
}

fn metadata(answer: Operation<FileAnswer>) -> Operation<Metadata> {
    let metadata = |answer| match answer {
        FileAnswer::Metadata(metadata) => Ok(metadata),
        _ => unexpected(),
    };
    answer.map(move |answer| answer.and_then(metadata)).boxed()
}

impl Elsewhere {
    /// Begins when it is polled first, as other operations do.
    fn perform(&self, operation: FileOperation) -> Operation<FileAnswer> {
        let host = Arc::clone(&self.0);
        async move { host.perform(operation).await }.boxed()
    }
}

impl GrantedDirectories for Elsewhere {
    fn metadata(&self, _mount: Arc<Mount>, path: &GuestPath, follow: bool) -> Operation<Metadata> {
        metadata(self.perform(FileOperation::Metadata { path: text(path), follow }))
    }

    fn entries(&self, _mount: Arc<Mount>, path: &GuestPath) -> Operation<Vec<Entry>> {
        let entries = |answer| match answer {
            FileAnswer::Entries(entries) => Ok(entries),
            _ => unexpected(),
        };
        let answer = self.perform(FileOperation::Entries { path: text(path) });
        answer.map(move |answer| answer.and_then(entries)).boxed()
    }

    fn create_directory(&self, _mount: Arc<Mount>, path: &GuestPath) -> Operation<()> {
        done(self.perform(FileOperation::CreateDirectory { path: text(path) }))
    }

    fn remove_file(&self, _mount: Arc<Mount>, path: &GuestPath) -> Operation<()> {
        done(self.perform(FileOperation::RemoveFile { path: text(path) }))
    }

    fn remove_directory(&self, _mount: Arc<Mount>, path: &GuestPath) -> Operation<()> {
        done(self.perform(FileOperation::RemoveDirectory { path: text(path) }))
    }

    fn rename(&self, _mount: Arc<Mount>, from: &GuestPath, to: &GuestPath) -> Operation<()> {
        done(self.perform(FileOperation::Rename { from: text(from), to: text(to) }))
    }

    fn set_modified(&self, _mount: Arc<Mount>, path: &GuestPath, time: u64) -> Operation<()> {
        done(self.perform(FileOperation::SetModified { path: text(path), time }))
    }

    fn open(&self, _mount: Arc<Mount>, path: &GuestPath, mode: OpenMode) -> Operation<Arc<dyn GrantedFile>> {
        let host = Arc::clone(&self.0);
        let answer = self.perform(FileOperation::Open { path: text(path), mode });
        let opened = move |answer| match answer {
            FileAnswer::Opened(number) => {
                Ok(Arc::new(OpenElsewhere { host, number }) as Arc<dyn GrantedFile>)
            }
            _ => unexpected(),
        };
        answer.map(|answer| answer.and_then(opened)).boxed()
    }
}

/// An open file that is elsewhere.
struct OpenElsewhere {
    host: Arc<dyn FileHost>,
    number: u64,
}

impl OpenElsewhere {
    fn perform(&self, operation: impl FnOnce(u64) -> FileOperation) -> Operation<FileAnswer> {
        let (host, operation) = (Arc::clone(&self.host), operation(self.number));
        async move { host.perform(operation).await }.boxed()
    }
}

impl GrantedFile for OpenElsewhere {
    fn metadata(&self) -> Operation<Metadata> {
        metadata(self.perform(|file| FileOperation::FileMetadata { file }))
    }

    fn read(&self, offset: u64, length: usize) -> Operation<Vec<u8>> {
        let bytes = |answer| match answer {
            FileAnswer::Bytes(bytes) => Ok(bytes),
            _ => unexpected(),
        };
        let length = length as u64;
        let answer = self.perform(|file| FileOperation::Read { file, offset, length });
        answer.map(move |answer| answer.and_then(bytes)).boxed()
    }

    fn write(&self, offset: Option<u64>, bytes: Vec<u8>) -> Operation<()> {
        let (host, file) = (Arc::clone(&self.host), self.number);
        // The host knows whether the file was opened for appending.
        let mut offset = offset.unwrap_or_default();
        async move {
            // A write of no bytes is passed on too, because it may be refused.
            let nothing = bytes.is_empty().then(Vec::new);
            for bytes in bytes.chunks(MAX_WRITE).map(<[u8]>::to_vec).chain(nothing) {
                let written = bytes.len() as u64;
                host.perform(FileOperation::Write { file, offset, bytes }).await?;
                offset = offset.saturating_add(written);
            }
            Ok(())
        }
        .boxed()
    }

    fn set_size(&self, size: u64) -> Operation<()> {
        done(self.perform(|file| FileOperation::SetSize { file, size }))
    }

    fn set_modified(&self, time: u64) -> Operation<()> {
        done(self.perform(|file| FileOperation::SetFileModified { file, time }))
    }

    fn sync(&self) -> Operation<()> {
        done(self.perform(|file| FileOperation::Sync { file }))
    }
}

impl Drop for OpenElsewhere {
    fn drop(&mut self) {
        self.host.close(self.number);
    }
}
