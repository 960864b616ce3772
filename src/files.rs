//! Files of scripts: a scratch directory in memory for each run, and the directories that a person has
//! granted to it. Both languages use the same implementation.
//!
//! A script names a file by an absolute path in a name space of its own: `/`, in which there are `/tmp`,
//! the scratch directory, and the granted directories at the paths that they have on the machine. Nothing
//! else exists there. There are no links that a script could make.

mod budget;
mod clock;
#[cfg(all(feature = "process", target_os = "linux"))]
mod elsewhere;
mod error;
mod granted;
#[cfg(all(feature = "process", target_os = "linux"))]
mod hosted;
mod memory;
mod metadata;
mod operations;
mod path;
mod quota;
mod space;

pub(crate) use self::budget::{Charge, MemoryBudget};
pub(crate) use self::clock::Clock;
#[cfg(all(feature = "process", target_os = "linux"))]
pub(crate) use self::elsewhere::{FileAnswer, FileHost, FileOperation};
pub(crate) use self::error::{FileError, FileErrorCode};
pub(crate) use self::granted::{Access, GrantedDirectory};
#[cfg(all(feature = "process", target_os = "linux"))]
pub(crate) use self::hosted::HostedFiles;
pub(crate) use self::metadata::{Entry, EntryKind, Metadata, OpenMode};
pub(crate) use self::path::GuestPath;
pub(crate) use self::quota::FileQuota;
pub(crate) use self::space::{FileOptions, NextInScratch, OpenFile, OpenSlot, RunFiles, SCRATCH};

#[cfg(test)]
mod tests;
