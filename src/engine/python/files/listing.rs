//! Directories that a guest lists.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types;

use super::FileSystem;
use super::values::{descriptor_type, fs_error};
use crate::files::{Charge, Entry, GuestPath, NextInScratch, OpenSlot};

/// Bytes that are counted for an entry of a list in addition to its name.
pub(super) const ENTRY_BYTES: usize = 64;

/// A directory that is being listed.
pub(super) enum Listing {
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
                let next = files.next_in_scratch(path, after.as_deref());
                match next.map_err(|error| fs_error(&error))? {
                    NextInScratch::Entry(entry) => {
                        *after = Some(entry.name.clone());
                        Some(entry)
                    }
                    NextInScratch::End | NextInScratch::Elsewhere => None,
                }
            }
        };
        Ok(entry.map(|Entry { name, kind }| types::DirectoryEntry { name, type_: descriptor_type(kind) }))
    }

    fn drop(&mut self, stream: Resource<types::DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}
