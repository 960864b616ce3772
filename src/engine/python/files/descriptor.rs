//! The operations on an open file or directory of a guest, and on paths from a directory.

use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::types;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsResult};

use super::listing::{ENTRY_BYTES, Listing};
use super::values::{fs_error, hash, new_time, stat};
use super::{FileSystem, Handle, handle};
use crate::files::{EntryKind, FileErrorCode, NextInScratch, OpenMode};

impl types::HostDescriptor for FileSystem<'_> {
    fn read_via_stream(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynInputStream>> {
        // Its stream would always be ready, and never have anything.
        if !self.file(&descriptor)?.mode.read {
            return Err(fs_error(&FileErrorCode::BadDescriptor.into()));
        }
        let stream: DynInputStream = Box::new(self.stream(&descriptor, offset)?);
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(
        &mut self,
        descriptor: Resource<types::Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(self.stream(&descriptor, offset)?);
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
        let files = self.run().map_err(|error| fs_error(&error))?;
        let largest = self.memory.largest_list(files.budget().used());
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(largest);
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
        let first = files.next_in_scratch(&path, None).map_err(|error| fs_error(&error))?;
        let listing = match first {
            NextInScratch::Entry(_) | NextInScratch::End => {
                Listing::Scratch { path, after: None, _slot: slot }
            }
            NextInScratch::Elsewhere => {
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
            EntryKind::Link => FileErrorCode::NotPermitted.into(),
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
            if metadata.kind == EntryKind::Directory {
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
