//! Reads configuration files in one go, and refuses anything that cannot be one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use super::error::{Finding, FindingKind};
use crate::storage::ownership::Ownership;
#[cfg(feature = "cli")]
use crate::storage::regular::open_regular;

/// Maximum size in bytes. Real files have a few kilobytes; a larger one is not a configuration.
const MAX_FILE: u64 = 1 << 20;

/// Maximum size of a file in the user's own directories. Claude Code keeps the history of all projects in the same file
/// as the servers.
const MAX_USER_FILE: u64 = 16 << 20;

/// The provenance of a file, which decides whether links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provenance {
    /// The user has named it. Links are followed.
    Named,
    /// It is in the user's own directories. No other user may be able to change it. Links are
    /// followed, because many users keep such files elsewhere and link them.
    User,
    /// It is in a workspace. Links are not followed, because they could expose files from
    /// elsewhere.
    Workspace,
}

/// Reads a file in one go, so that the bytes that are hashed are the bytes that are parsed. `None`
/// if it does not exist.
///
/// Never blocks: a pipe is opened without waiting for a writer, and then refused.
pub(super) fn read(path: &Path, provenance: Provenance) -> Result<Option<Vec<u8>>, Finding> {
    if provenance == Provenance::Workspace && has_link(path) {
        let hint = "links in a workspace are not followed: replace it by the directory, or name the file";
        return Err(Finding::from(FindingKind::NotAFile("something behind a link")).hint(hint));
    }
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if provenance == Provenance::Workspace {
        flags |= OFlags::NOFOLLOW;
    }
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match file {
        Ok(file) => file,
        Err(error) => return unopened(path, provenance, error),
    };
    check(&file, provenance)?;
    let mut bytes = Vec::new();
    let max = max_size(provenance);
    file.take(max + 1).read_to_end(&mut bytes).map_err(FindingKind::Unreadable)?;
    if bytes.len() as u64 > max {
        return Err(FindingKind::TooLarge(max >> 20).into());
    }
    Ok(Some(bytes))
}

/// Reads a file that setup plans to change, or has changed, as it is now. `None` if it does not exist. Of a file that
/// has grown beyond any that setup writes only the start, which differs from those.
///
/// Never blocks, as [`read`] does not: another program may have put something else there meanwhile.
///
/// # Errors
///
/// Those of the system, and if it is not a regular file.
#[cfg(feature = "cli")]
pub(super) fn read_again(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(2 * MAX_USER_FILE).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// The finding about a link that leads to no file. Nothing is read through it, and a file that is written in its place
/// would be the end of the link.
#[cfg(feature = "cli")]
pub(super) fn broken_link(path: &Path) -> Option<Finding> {
    let is_broken = path.is_symlink() && !path.exists();
    let hint = "make the file that it leads to, or remove the link";
    is_broken.then(|| Finding::from(FindingKind::NotAFile("a link that leads to none")).hint(hint))
}

fn max_size(provenance: Provenance) -> u64 {
    if provenance == Provenance::User { MAX_USER_FILE } else { MAX_FILE }
}

/// Whether one of the hidden directories directly above the file is a link: `.cursor` in
/// `.cursor/mcp.json`. Directories above the workspace belong to the user.
fn has_link(path: &Path) -> bool {
    let hidden = |directory: &&Path| {
        directory.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    path.ancestors().skip(1).take_while(hidden).any(Path::is_symlink)
}

/// The file's bytes as UTF-8 text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Finding> {
    std::str::from_utf8(bytes).map_err(|error| {
        let finding = Finding::from(FindingKind::NotUtf8(error.valid_up_to()));
        match bytes {
            // Its byte order mark, in either order.
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                finding.hint("it is UTF-16, as Windows PowerShell writes it: save it as UTF-8")
            }
            _ => finding,
        }
    })
}

fn unopened(path: &Path, provenance: Provenance, error: io::Error) -> Result<Option<Vec<u8>>, Finding> {
    let is_link = provenance == Provenance::Workspace && path.is_symlink();
    if is_link {
        let hint = "links in a workspace are not followed: replace it by the file, or name that";
        return Err(Finding::from(FindingKind::NotAFile("a link")).hint(hint));
    }
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if provenance != Provenance::Named => Ok(None),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            Err(FindingKind::NotAFile("a device or a pipe").into())
        }
        _ => Err(FindingKind::Unreadable(error).into()),
    }
}

/// Checks the opened file and not the path, which may refer to another file by now.
fn check(file: &File, provenance: Provenance) -> Result<(), Finding> {
    let metadata = file.metadata().map_err(FindingKind::Unreadable)?;
    if !metadata.is_file() {
        let found = if metadata.is_dir() { "a directory" } else { "a device or a pipe" };
        return Err(FindingKind::NotAFile(found).into());
    }
    let max = max_size(provenance);
    if metadata.len() > max {
        return Err(FindingKind::TooLarge(max >> 20).into());
    }
    if provenance == Provenance::User {
        // Less strict than for cx's own files (`src/storage/private.rs`): root may have made the file for the user, and
        // users of its group may write to it if the umask permits that, because on many systems the group contains only
        // the user.
        let ownership = Ownership::from_metadata(&metadata);
        if ownership.all_may_write() {
            return Err(
                Finding::from(FindingKind::NotPrivate("all users may write to it")).hint("chmod o-w it")
            );
        }
        if !ownership.is_ours_or_of_root() {
            return Err(Finding::from(FindingKind::NotPrivate("it belongs to another user"))
                .hint("make it yours, or name it with --mcp-config"));
        }
    }
    Ok(())
}
