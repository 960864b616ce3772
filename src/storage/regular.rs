//! Reads regular files at paths where another program may have put something else: a pipe, a device, or gigabytes.
//!
//! Files that a person names for one command (a script, a key) are not read here: there a pipe is what they mean, as in
//! `cx check <(generate)`. Secrets among them have `named.rs`, and cx's own private documents
//! [`private`](super::private), which follows no link.

use std::fs::{File, OpenOptions};
#[cfg(feature = "cli")]
use std::io::Read as _;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading. Links are followed. Never blocks: a pipe is opened without waiting for a writer,
/// and is then refused, as is everything else that is no regular file. What was opened is checked, and not the path,
/// which may refer to another file by now.
///
/// # Errors
///
/// Those of the system, and [`ErrorKind::InvalidData`] if it is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidData, "expected a regular file, found something else"));
    }
    Ok(file)
}

/// The whole content of a regular file of at most `max` bytes. Links are followed; a pipe or a device is an error at
/// once.
///
/// # Errors
///
/// Those of the system, and [`ErrorKind::InvalidData`] if it is not a regular file, or larger.
#[cfg(feature = "cli")]
pub fn read_regular(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let too_large =
        || io::Error::new(ErrorKind::InvalidData, format!("expected at most {max} bytes, found more"));
    // Known before anything is read; a file of `/proc` has no size, and one can grow meanwhile.
    if file.metadata()?.len() > max {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(too_large()) } else { Ok(bytes) }
}

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests;
