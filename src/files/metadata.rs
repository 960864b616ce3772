//! The metadata of files, and how they are opened.

use serde::{Deserialize, Serialize};

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntryKind {
    File,
    Directory,
    /// A symbolic link in a granted directory.
    Link,
    /// A device, a fifo or a socket.
    Special,
}

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) kind: EntryKind,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: u64,
    /// The number of the file system and that of the file in it, which identify the file.
    pub(crate) id: (u64, u64),
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenMode {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Every write goes to the end.
    pub(crate) append: bool,
    pub(crate) create: bool,
    /// Fails if the file exists. Only with `create`.
    pub(crate) exclusive: bool,
    pub(crate) truncate: bool,
}

impl OpenMode {
    /// Whether opening a file like this, or what it is opened for, can change something.
    pub(crate) fn is_write(self) -> bool {
        self.write || self.append || self.create || self.truncate
    }
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: EntryKind,
}
