//! Determines from its owner and mode who can change or read a file or a directory. Trust in a file's content depends
//! on who can have written it.
//!
//! All checks of owners and modes use this type. Their rules differ, and each gives its reason: `private.rs` for cx's
//! own files, `named.rs` for files with secrets that a person has named, `scripts.rs` for folders of scripts,
//! `src/config/file.rs` for configuration files, and in the command the files of running servers.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// Bits of a mode: other users may write, all users may write, other users may do anything.
const OTHERS_WRITE: u32 = 0o022;
const ALL_WRITE: u32 = 0o002;
const OTHERS: u32 = 0o077;

/// All permission bits except the owner's and read access for the group.
const MORE_THAN_GROUP_READS: u32 = 0o037;

/// The owner and the mode of a file or a directory. Access control lists are not read: the permissions that they grant
/// to others are included in the mode's group bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    user: u32,
    mode: u32,
}

impl Ownership {
    /// The root user, who can change everything in any case.
    const ROOT: u32 = 0;

    /// The ownership in this metadata. Use the metadata of an open file: a path may refer to another file by now.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        Self { user: metadata.uid(), mode: metadata.mode() }
    }

    /// Whether it belongs to the user of this process.
    pub fn is_ours(self) -> bool {
        self.user == rustix::process::geteuid().as_raw()
    }

    /// Whether it belongs to the user of this process or to root.
    pub fn is_ours_or_of_root(self) -> bool {
        self.is_ours() || self.user == Self::ROOT
    }

    /// Whether users of its group, or all users, may write to it.
    pub fn others_may_write(self) -> bool {
        self.mode & OTHERS_WRITE != 0
    }

    /// Whether all users may write to it.
    pub fn all_may_write(self) -> bool {
        self.mode & ALL_WRITE != 0
    }

    /// Whether users of its group, or all users, may read, write or execute it.
    pub fn others_have_access(self) -> bool {
        self.mode & OTHERS != 0
    }

    /// Whether it belongs to root, and root lets users of its group read it and others do nothing: the usual form of a
    /// secret for a service that does not run as root.
    pub fn is_of_root_for_its_group(self) -> bool {
        self.user == Self::ROOT && !self.is_ours() && self.mode & MORE_THAN_GROUP_READS == 0
    }
}

#[cfg(test)]
mod tests;
