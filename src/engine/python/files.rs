//! `wasi:filesystem` over the files of a run.
//!
//! There is one preopened directory, `/`. The C library of the guest asks for it once, when the interpreter
//! is warmed up and no run is known; what there is in it is decided here, at each operation. The handle of a
//! directory is its path: nothing of a directory is held.

mod descriptor;
mod listing;
mod values;

use std::sync::Arc;

use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{FsError, FsResult};

use self::values::{code, fs_error};
use super::file_stream::FileStream;
use super::memory_limit::GuestMemory;
use crate::files::{EntryKind, FileError, FileErrorCode, GuestPath, Metadata, OpenFile, OpenSlot, RunFiles};

/// The files of a guest, as data of its store.
pub(super) struct GuestFiles;

impl HasData for GuestFiles {
    type Data<'a> = FileSystem<'a>;
}

/// The files of a guest while it calls a host function.
pub(super) struct FileSystem<'a> {
    pub(super) table: &'a mut ResourceTable,
    /// `None` until the interpreter has a run.
    pub(super) files: Option<&'a Arc<RunFiles>>,
    /// The guest's memory.
    pub(super) memory: Arc<GuestMemory>,
}

/// A handle of the guest's.
enum Handle {
    /// The root is open before there is a run that could count it.
    Directory {
        path: GuestPath,
        can_change: bool,
        _slot: Option<OpenSlot>,
    },
    File(Arc<OpenFile>),
}

/// The handle in the table that a descriptor of WASI's bindings stands for: both have the same
/// number.
fn handle(descriptor: &Resource<types::Descriptor>) -> Resource<Handle> {
    Resource::new_borrow(descriptor.rep())
}

impl FileSystem<'_> {
    fn run(&self) -> Result<Arc<RunFiles>, FileError> {
        self.files.map(Arc::clone).ok_or_else(|| FileErrorCode::NoEntry.into())
    }

    fn directory(&self, descriptor: &Resource<types::Descriptor>) -> FsResult<&GuestPath> {
        match self.table.get(&handle(descriptor))? {
            Handle::Directory { path, .. } => Ok(path),
            Handle::File(_) => Err(fs_error(&FileErrorCode::NotDirectory.into())),
        }
    }

    /// The files and a path from a directory.
    fn at(
        &self,
        descriptor: &Resource<types::Descriptor>,
        path: &str,
    ) -> FsResult<(Arc<RunFiles>, GuestPath)> {
        let path = self.directory(descriptor)?.join(path.trim_start_matches('/')).or_else(|error| {
            // `/` itself, from the root.
            if path.chars().all(|character| character == '/') && !path.is_empty() {
                Ok(GuestPath::ROOT)
            } else {
                Err(error)
            }
        });
        Ok((self.run().map_err(|error| fs_error(&error))?, path.map_err(|error| fs_error(&error))?))
    }

    fn file(&self, descriptor: &Resource<types::Descriptor>) -> FsResult<Arc<OpenFile>> {
        match self.table.get(&handle(descriptor))? {
            Handle::File(file) => Ok(Arc::clone(file)),
            Handle::Directory { .. } => Err(fs_error(&FileErrorCode::IsDirectory.into())),
        }
    }

    /// A stream of an open file, from an offset on.
    fn stream(&self, descriptor: &Resource<types::Descriptor>, offset: u64) -> FsResult<FileStream> {
        let file = self.file(descriptor)?;
        let files = self.run().map_err(|error| fs_error(&error))?;
        Ok(FileStream::new(file, offset, Arc::clone(files.budget()), Arc::clone(&self.memory)))
    }

    async fn metadata(&mut self, descriptor: &Resource<types::Descriptor>) -> FsResult<Metadata> {
        match self.table.get(&handle(descriptor))? {
            Handle::File(file) => Arc::clone(file).metadata().await,
            Handle::Directory { path, .. } => match self.run() {
                Ok(files) => files.metadata(path, true).await,
                // The C library looks at the root when it is warmed up.
                Err(_no_run) if path.names().is_empty() => {
                    Ok(Metadata { kind: EntryKind::Directory, size: 0, modified: 0, id: (0, 0) })
                }
                Err(error) => Err(error),
            },
        }
        .map_err(|error| fs_error(&error))
    }

    fn push(&mut self, handle: Handle) -> FsResult<Resource<types::Descriptor>> {
        let own = self.table.push(handle)?;
        Ok(Resource::new_own(own.rep()))
    }
}

impl preopens::Host for FileSystem<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<types::Descriptor>, String)>> {
        let root =
            self.table.push(Handle::Directory { path: GuestPath::ROOT, can_change: true, _slot: None })?;
        Ok(vec![(Resource::new_own(root.rep()), "/".to_owned())])
    }
}

impl types::Host for FileSystem<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<types::ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<types::ErrorCode>> {
        Ok(self.table.get(&error)?.downcast_ref::<FileError>().map(code))
    }
}

#[cfg(test)]
mod tests;
