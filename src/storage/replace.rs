//! Atomic replacement of files at paths of the user's choice: another program's configuration, or the output of a
//! command.
//!
//! Files in cx's own directories are replaced by [`PrivateDirectory::replace`](super::private::PrivateDirectory), which
//! differs on purpose: it follows no link, always sets mode 0600, and reuses one temporary name under a lock. Here no
//! other program respects a lock, so each temporary file has a random name; links are followed, because users keep such
//! files elsewhere; and permissions are kept, because they are the user's choice.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Replaces a file: `bytes` are written to a temporary file in the same directory, which is then renamed, so that the
/// old file survives a full disk and a reader sees either the old or the new content. The target of a symbolic link is
/// replaced, not the link, and permissions are kept. A new file has the mode `new_mode`, restricted by the umask. A
/// device or a pipe is written to directly.
///
/// # Errors
///
/// Those of the system. The incomplete file is removed.
pub fn replace_file(path: &Path, bytes: &[u8], new_mode: u32) -> io::Result<()> {
    // The name of a file that does not exist yet is used as it is.
    let path = path.canonicalize().unwrap_or_else(|_missing| path.to_owned());
    let old = fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return fs::write(&path, bytes);
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Checked first, because this error does not name the temporary file.
    fs::metadata(directory)?;
    let file = tempfile::Builder::new()
        .prefix(".cx-new-")
        .permissions(Permissions::from_mode(new_mode))
        .tempfile_in(directory)
        // The error names the temporary file, which nobody knows.
        .map_err(|error| {
            let problem = format!("no file can be made in {}: {}", directory.display(), error.kind());
            io::Error::new(error.kind(), problem)
        })?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    // Written through the file handle, whose errors do not name the temporary file.
    file.as_file().write_all(bytes)?;
    // Some file systems report a full disk only here.
    file.as_file().sync_data()?;
    file.persist(&path)?;
    Ok(())
}

#[cfg(test)]
mod tests;
