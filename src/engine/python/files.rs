//! `wasi:filesystem` over the files of a run.
//!
//! There is one preopened directory, `/`. The C library of the guest asks for it once, when the interpreter
//! is warmed up and no run is known; what there is in it is decided here, at each operation. The handle of a
//! directory is its path: nothing of a directory is held.

use std::sync::Arc;

use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::file_stream::FileStream;
use crate::files::{
    Charge, Entry, FileError, FileErrorCode, GuestPath, Kind, Metadata, OpenFile, OpenMode, OpenSlot,
    RunFiles,
};

/// Bytes that are counted for an entry of a list in addition to its name.
const ENTRY_BYTES: usize = 64;

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

/// A directory that is being listed.
enum Listing {
    /// By name, so that nothing is held while the directory changes.
    Scratch {
        path: GuestPath,
        after: Option<String>,
        _slot: OpenSlot,
    },
    Entries {
        entries: std::vec::IntoIter<Entry>,
        _slot: OpenSlot,
        _charge: Charge,
    },
}

/// The resource of WASI's bindings has the number of ours in the table.
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

    async fn metadata(&mut self, descriptor: &Resource<types::Descriptor>) -> FsResult<Metadata> {
        match self.table.get(&handle(descriptor))? {
            Handle::File(file) => Arc::clone(file).metadata().await,
            Handle::Directory { path, .. } => match self.run() {
                Ok(files) => files.metadata(path, true).await,
                // The C library looks at the root when it is warmed up.
                Err(_no_run) if path.names().is_empty() => {
                    Ok(Metadata { kind: Kind::Directory, size: 0, modified: 0, id: (0, 0) })
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

impl types::HostDescriptor for FileSystem<'_> {
    fn read_via_stream(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynInputStream>> {
        let stream: DynInputStream = Box::new(FileStream::new(self.file(&descriptor)?, offset));
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(FileStream::new(self.file(&descriptor)?, offset));
        Ok(self.table.push(stream)?)
    }

    fn append_via_stream(
        &mut self,
        descriptor: Resource<types::Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        // The offset does not count for a file that was opened for appending.
        self.write_via_stream(descriptor, u64::MAX)
    }

    async fn advise(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        _offset: u64,
        _length: u64,
        _advice: types::Advice,
    ) -> FsResult<()> {
        self.file(&descriptor).map(|_file| ())
    }

    async fn sync_data(&mut self, descriptor: Resource<types::Descriptor>) -> FsResult<()> {
        self.sync(descriptor).await
    }

    async fn sync(&mut self, descriptor: Resource<types::Descriptor>) -> FsResult<()> {
        self.file(&descriptor)?.sync().await.map_err(|error| fs_error(&error))
    }

    async fn get_flags(
        &mut self,
        descriptor: Resource<types::Descriptor>,
    ) -> FsResult<types::DescriptorFlags> {
        use types::DescriptorFlags as Flags;

        Ok(match self.table.get(&handle(&descriptor))? {
            Handle::Directory { can_change: true, .. } => Flags::READ | Flags::MUTATE_DIRECTORY,
            Handle::Directory { .. } => Flags::READ,
            Handle::File(file) => {
                let read = if file.mode.read { Flags::READ } else { Flags::empty() };
                let write = if file.mode.write { Flags::WRITE } else { Flags::empty() };
                read | write
            }
        })
    }

    async fn get_type(&mut self, descriptor: Resource<types::Descriptor>) -> FsResult<types::DescriptorType> {
        Ok(match self.table.get(&handle(&descriptor))? {
            Handle::Directory { .. } => types::DescriptorType::Directory,
            Handle::File(_) => types::DescriptorType::RegularFile,
        })
    }

    async fn set_size(&mut self, descriptor: Resource<types::Descriptor>, size: u64) -> FsResult<()> {
        self.file(&descriptor)?.set_size(size).await.map_err(|error| fs_error(&error))
    }

    async fn set_times(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        _accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        let file = self.file(&descriptor)?;
        if matches!(modified, types::NewTimestamp::NoChange) {
            return Ok(());
        }
        file.set_modified(new_time(modified)).await.map_err(|error| fs_error(&error))
    }

    async fn set_times_at(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        _flags: types::PathFlags,
        path: String,
        _accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        let (files, path) = self.at(&descriptor, &path)?;
        if matches!(modified, types::NewTimestamp::NoChange) {
            return Ok(());
        }
        files.set_modified(&path, new_time(modified)).await.map_err(|error| fs_error(&error))
    }

    async fn read(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        length: u64,
        offset: u64,
    ) -> FsResult<(Vec<u8>, bool)> {
        let file = self.file(&descriptor)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = file.read(offset, length).await.map_err(|error| fs_error(&error))?;
        let is_end = bytes.is_empty() && length > 0;
        Ok((bytes, is_end))
    }

    async fn write(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        bytes: Vec<u8>,
        offset: u64,
    ) -> FsResult<u64> {
        let file = self.file(&descriptor)?;
        let length = bytes.len() as u64;
        file.write(offset, bytes).await.map_err(|error| fs_error(&error))?;
        Ok(length)
    }

    async fn read_directory(
        &mut self,
        descriptor: Resource<types::Descriptor>,
    ) -> FsResult<Resource<types::DirectoryEntryStream>> {
        let path = self.directory(&descriptor)?.clone();
        let files = self.run().map_err(|error| fs_error(&error))?;
        let slot = files.open_directory().map_err(|error| fs_error(&error))?;
        let listing = match files.next_in_scratch(&path, None) {
            Some(Ok(_first)) => Listing::Scratch { path, after: None, _slot: slot },
            Some(Err(error)) => return Err(fs_error(&error)),
            None => {
                let entries = files.entries(&path).await.map_err(|error| fs_error(&error))?;
                let bytes = entries.iter().map(|entry| entry.name.len() + ENTRY_BYTES).sum();
                let full = || fs_error(&FileErrorCode::NoSpace.into());
                let charge = files.budget().charge(bytes).ok_or_else(full)?;
                Listing::Entries { entries: entries.into_iter(), _slot: slot, _charge: charge }
            }
        };
        let own = self.table.push(listing)?;
        Ok(Resource::new_own(own.rep()))
    }

    async fn create_directory_at(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let (files, path) = self.at(&descriptor, &path)?;
        files.create_directory(&path).await.map_err(|error| fs_error(&error))
    }

    async fn stat(&mut self, descriptor: Resource<types::Descriptor>) -> FsResult<types::DescriptorStat> {
        Ok(stat(&self.metadata(&descriptor).await?))
    }

    async fn stat_at(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::DescriptorStat> {
        let (files, path) = self.at(&descriptor, &path)?;
        let follow = flags.contains(types::PathFlags::SYMLINK_FOLLOW);
        let metadata = files.metadata(&path, follow).await.map_err(|error| fs_error(&error))?;
        Ok(stat(&metadata))
    }

    async fn link_at(
        &mut self,
        _descriptor: Resource<types::Descriptor>,
        _flags: types::PathFlags,
        _from: String,
        _directory: Resource<types::Descriptor>,
        _to: String,
    ) -> FsResult<()> {
        Err(fs_error(&FileErrorCode::NotPermitted.into()))
    }

    async fn symlink_at(
        &mut self,
        _descriptor: Resource<types::Descriptor>,
        _target: String,
        _path: String,
    ) -> FsResult<()> {
        Err(fs_error(&FileErrorCode::NotPermitted.into()))
    }

    async fn readlink_at(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        path: String,
    ) -> FsResult<String> {
        let (files, path) = self.at(&descriptor, &path)?;
        let metadata = files.metadata(&path, false).await.map_err(|error| fs_error(&error))?;
        // The text of a link may name places outside of the directory.
        Err(fs_error(&match metadata.kind {
            Kind::Link => FileErrorCode::NotPermitted.into(),
            _ => FileErrorCode::Invalid.into(),
        }))
    }

    async fn open_at(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        _path_flags: types::PathFlags,
        path: String,
        open: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FsResult<Resource<types::Descriptor>> {
        use types::{DescriptorFlags as Flags, OpenFlags as Open};

        let (files, path) = self.at(&descriptor, &path)?;
        let mode = OpenMode {
            read: flags.contains(Flags::READ),
            write: flags.contains(Flags::WRITE),
            append: false,
            create: open.contains(Open::CREATE),
            exclusive: open.contains(Open::EXCLUSIVE),
            truncate: open.contains(Open::TRUNCATE),
        };
        if !(mode.write || mode.create || mode.truncate) || open.contains(Open::DIRECTORY) {
            let metadata = files.metadata(&path, true).await.map_err(|error| fs_error(&error))?;
            if metadata.kind == Kind::Directory {
                let can_change = flags.contains(Flags::MUTATE_DIRECTORY);
                let slot = files.open_directory().map_err(|error| fs_error(&error))?;
                return self.push(Handle::Directory { path, can_change, _slot: Some(slot) });
            }
            if open.contains(Open::DIRECTORY) {
                return Err(fs_error(&FileErrorCode::NotDirectory.into()));
            }
        }
        let file = files.open(&path, mode).await.map_err(|error| fs_error(&error))?;
        self.push(Handle::File(Arc::new(file)))
    }

    async fn remove_directory_at(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let (files, path) = self.at(&descriptor, &path)?;
        files.remove_directory(&path).await.map_err(|error| fs_error(&error))
    }

    async fn rename_at(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        from: String,
        directory: Resource<types::Descriptor>,
        to: String,
    ) -> FsResult<()> {
        let (files, from) = self.at(&descriptor, &from)?;
        let (_same, to) = self.at(&directory, &to)?;
        files.rename(&from, &to).await.map_err(|error| fs_error(&error))
    }

    async fn unlink_file_at(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let (files, path) = self.at(&descriptor, &path)?;
        files.remove_file(&path).await.map_err(|error| fs_error(&error))
    }

    async fn is_same_object(
        &mut self,
        one: Resource<types::Descriptor>,
        other: Resource<types::Descriptor>,
    ) -> wasmtime::Result<bool> {
        let (one, other) = (self.metadata(&one).await, self.metadata(&other).await);
        Ok(matches!((one, other), (Ok(one), Ok(other)) if one.id == other.id))
    }

    async fn metadata_hash(
        &mut self,
        descriptor: Resource<types::Descriptor>,
    ) -> FsResult<types::MetadataHashValue> {
        Ok(hash(&self.metadata(&descriptor).await?))
    }

    async fn metadata_hash_at(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::MetadataHashValue> {
        let (files, path) = self.at(&descriptor, &path)?;
        let follow = flags.contains(types::PathFlags::SYMLINK_FOLLOW);
        Ok(hash(&files.metadata(&path, follow).await.map_err(|error| fs_error(&error))?))
    }

    fn drop(&mut self, descriptor: Resource<types::Descriptor>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Handle>::new_own(descriptor.rep()))?;
        Ok(())
    }
}

impl types::HostDirectoryEntryStream for FileSystem<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<types::DirectoryEntryStream>,
    ) -> FsResult<Option<types::DirectoryEntry>> {
        let files = self.run().map_err(|error| fs_error(&error))?;
        let listing = self.table.get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
        let entry = match listing {
            Listing::Entries { entries, .. } => entries.next(),
            Listing::Scratch { path, after, .. } => {
                let next = files.next_in_scratch(path, after.as_deref()).transpose();
                let next = next.map_err(|error| fs_error(&error))?.flatten();
                *after = next.as_ref().map(|entry| entry.name.clone()).or_else(|| after.take());
                next
            }
        };
        Ok(entry.map(|Entry { name, kind }| types::DirectoryEntry { name, type_: descriptor_type(kind) }))
    }

    fn drop(&mut self, stream: Resource<types::DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

fn fs_error(error: &FileError) -> FsError {
    code(error).into()
}

fn code(error: &FileError) -> types::ErrorCode {
    use types::ErrorCode as Code;

    match error.code {
        FileErrorCode::Access => Code::Access,
        FileErrorCode::BadDescriptor => Code::BadDescriptor,
        FileErrorCode::Busy => Code::Busy,
        FileErrorCode::CrossDevice => Code::CrossDevice,
        FileErrorCode::Exists => Code::Exist,
        FileErrorCode::FileTooLarge => Code::FileTooLarge,
        FileErrorCode::Invalid => Code::Invalid,
        FileErrorCode::Io => Code::Io,
        FileErrorCode::IsDirectory => Code::IsDirectory,
        FileErrorCode::Loop => Code::Loop,
        FileErrorCode::NameTooLong => Code::NameTooLong,
        FileErrorCode::NoEntry => Code::NoEntry,
        FileErrorCode::NoSpace => Code::InsufficientSpace,
        FileErrorCode::NotDirectory => Code::NotDirectory,
        FileErrorCode::NotEmpty => Code::NotEmpty,
        FileErrorCode::NotPermitted => Code::NotPermitted,
        FileErrorCode::Quota => Code::Quota,
        FileErrorCode::ReadOnly => Code::ReadOnly,
        // WASI has no word for it.
        FileErrorCode::TooManyOpen => Code::InsufficientMemory,
        FileErrorCode::Unsupported => Code::Unsupported,
    }
}

fn descriptor_type(kind: Kind) -> types::DescriptorType {
    match kind {
        Kind::File => types::DescriptorType::RegularFile,
        Kind::Directory => types::DescriptorType::Directory,
        Kind::Link => types::DescriptorType::SymbolicLink,
        Kind::Special => types::DescriptorType::Unknown,
    }
}

fn stat(metadata: &Metadata) -> types::DescriptorStat {
    let time = Datetime {
        seconds: metadata.modified / 1_000_000_000,
        nanoseconds: (metadata.modified % 1_000_000_000) as u32,
    };
    types::DescriptorStat {
        type_: descriptor_type(metadata.kind),
        link_count: 1,
        size: metadata.size,
        data_access_timestamp: Some(time),
        data_modification_timestamp: Some(time),
        status_change_timestamp: Some(time),
    }
}

fn hash(metadata: &Metadata) -> types::MetadataHashValue {
    types::MetadataHashValue { lower: metadata.id.1, upper: metadata.id.0 }
}

/// The time in nanoseconds; `None` is now.
fn new_time(time: types::NewTimestamp) -> Option<u64> {
    match time {
        types::NewTimestamp::NoChange | types::NewTimestamp::Now => None,
        types::NewTimestamp::Timestamp(time) => {
            Some(time.seconds.saturating_mul(1_000_000_000).saturating_add(time.nanoseconds.into()))
        }
    }
}

#[cfg(test)]
mod tests;
