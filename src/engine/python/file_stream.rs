//! `wasi:io` streams of an open file, from an offset on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio_util::bytes::Bytes;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::memory_limit::GuestMemory;
use crate::files::{FileError, FileErrorCode, MemoryBudget, OpenFile};

/// Maximum bytes of one write to a stream.
pub(super) const MAX_WRITE: usize = 1 << 20;

/// Bytes that are read ahead for a guest that waits before it reads.
const READ_AHEAD: usize = 8 << 10;

/// Reads or writes a file from an offset on.
pub(super) struct FileStream {
    file: Arc<OpenFile>,
    offset: u64,
    /// Counts the bytes of a write until it has ended.
    budget: Arc<MemoryBudget>,
    /// The memory of the guest, which gets what is read.
    memory: Arc<GuestMemory>,
    /// What was read ahead because the guest waited for it.
    read: Option<Bytes>,
    /// A write that the guest has begun.
    written: Option<Waiting<'static, Result<(), FileError>>>,
    failure: Option<FileError>,
}

type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl FileStream {
    pub(super) fn new(
        file: Arc<OpenFile>,
        offset: u64,
        budget: Arc<MemoryBudget>,
        memory: Arc<GuestMemory>,
    ) -> Self {
        Self { file, offset, budget, memory, read: None, written: None, failure: None }
    }

    /// How many bytes the guest gets of those that it asks for.
    fn at_most(&self, size: usize) -> usize {
        size.min(self.memory.largest_list(self.budget.used()))
    }

    async fn read_some(&mut self, size: usize) -> StreamResult<Bytes> {
        let size = self.at_most(size);
        match self.file.read(self.offset, size).await {
            Ok(bytes) if bytes.is_empty() && size > 0 => Err(StreamError::Closed),
            Ok(bytes) => {
                self.offset += bytes.len() as u64;
                Ok(bytes.into())
            }
            Err(error) => Err(stream_error(error)),
        }
    }

    async fn write_all(&mut self, bytes: Bytes) -> StreamResult<()> {
        let length = bytes.len() as u64;
        write_at(Arc::clone(&self.file), self.offset, bytes).await.map_err(stream_error)?;
        if self.offset != u64::MAX {
            self.offset = self.offset.saturating_add(length);
        }
        Ok(())
    }

    /// Checks whether the write that was begun has ended.
    fn poll_written(&mut self) {
        let Some(written) = &mut self.written else { return };
        if let Some(result) = written.now_or_never() {
            self.written = None;
            self.failure = result.err();
        }
    }
}

/// Writes at an offset; at the end of the file if it is the largest there is.
async fn write_at(file: Arc<OpenFile>, offset: u64, bytes: Bytes) -> Result<(), FileError> {
    let offset = if offset == u64::MAX { file.metadata().await?.size } else { offset };
    file.write(offset, bytes.into()).await
}

impl Pollable for FileStream {
    fn ready<'a, 'b>(&'a mut self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            if let Some(written) = &mut self.written {
                self.failure = written.await.err();
                self.written = None;
                return;
            }
            if self.file.mode.read && self.read.is_none() && self.failure.is_none() {
                match self.file.read(self.offset, READ_AHEAD).await {
                    Ok(bytes) => self.read = Some(bytes.into()),
                    Err(error) => self.failure = Some(error),
                }
            }
        })
    }
}

impl InputStream for FileStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if let Some(error) = self.failure.take() {
            return Err(stream_error(error));
        }
        // Nothing is known until the guest has waited.
        let Some(bytes) = self.read.take() else { return Ok(Bytes::new()) };
        if bytes.is_empty() {
            return Err(StreamError::Closed);
        }
        let bytes = bytes.slice(..bytes.len().min(self.at_most(size)));
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    fn blocking_read<'a, 'b>(&'a mut self, size: usize) -> Waiting<'b, StreamResult<Bytes>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            // The file may have changed since.
            self.read = None;
            self.read_some(size).await
        })
    }
}

impl OutputStream for FileStream {
    /// Begins a write. `ready` waits for its end, and `check_write` says how it went.
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        // Checked here, because a guest that was taken over does not ask first.
        if self.written.is_some() || bytes.len() > MAX_WRITE {
            return Err(StreamError::trap("more is written than `check-write` permits"));
        }
        // In a granted directory it may wait for earlier operations of the run.
        let Some(held) = self.budget.hold_waiting(bytes.len()) else {
            return Err(stream_error(FileErrorCode::NoSpace.into()));
        };
        let (file, offset) = (Arc::clone(&self.file), self.offset);
        if offset != u64::MAX {
            self.offset = offset.saturating_add(bytes.len() as u64);
        }
        self.written = Some(Box::pin(async move {
            let _held = held;
            write_at(file, offset, bytes).await
        }));
        // A write to memory has ended after this poll; any other has begun.
        self.poll_written();
        match self.failure.take() {
            Some(error) => Err(stream_error(error)),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.poll_written();
        match self.failure.take() {
            Some(error) => Err(stream_error(error)),
            None if self.written.is_some() => Ok(0),
            None => Ok(MAX_WRITE),
        }
    }

    fn blocking_write_and_flush<'a, 'b>(&'a mut self, bytes: Bytes) -> Waiting<'b, StreamResult<()>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.write_all(bytes))
    }
}

fn stream_error(error: FileError) -> StreamError {
    StreamError::LastOperationFailed(wasmtime::Error::from(error))
}
