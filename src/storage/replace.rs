//! Atomic replacement of files that are behind paths of the user's choice: another program's configuration, the
//! output of a command.
//!
//! Files in cx's own directories are replaced by [`PrivateDirectory::replace`](super::private::PrivateDirectory),
//! which differs on purpose: it follows no link, always sets mode 0600, and reuses one temporary name under a
//! lock. Here there is no lock that others would respect, so that each temporary file has a random name; users
//! link such files to where they keep them; and who may read them is theirs to say.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Replaces a file: `bytes` are written beside it, and that file is renamed, so that the old file survives a full
/// disk, and a reader sees one or the other. What a symbolic link leads to is replaced, and the permissions stay. A
/// new file has the mode `new_mode`, without what the umask takes away. A device or a pipe is written to.
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
    // Its error does not name the temporary file.
    fs::metadata(directory)?;
    let file = tempfile::Builder::new()
        .prefix(".cx-new-")
        .permissions(Permissions::from_mode(new_mode))
        .tempfile_in(directory)?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    // By the file itself, whose errors do not name it.
    file.as_file().write_all(bytes)?;
    // Some file systems report a full disk only here.
    file.as_file().sync_data()?;
    file.persist(&path)?;
    Ok(())
}

#[cfg(test)]
mod tests;
