//! Files that the command writes for the user.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Replaces a file by `text`: it is written beside the file and then renamed, so that the old file
/// survives a full disk, and a reader sees one or the other. What a symbolic link leads to is
/// replaced, and the permissions stay. A device or a pipe is written to.
///
/// # Errors
///
/// Those of the system. The incomplete file is removed.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // The name of a file that does not exist yet is used as it is.
    let path = path.canonicalize().unwrap_or_else(|_missing| path.to_owned());
    let old = fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return fs::write(&path, text);
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Its error does not name the temporary file.
    fs::metadata(directory)?;
    let file = tempfile::Builder::new()
        .prefix(".cx-new-")
        // As any new file: the system takes away what the umask says.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().write_all(text.as_bytes())?;
    // Some file systems report a full disk only here.
    file.as_file().sync_data()?;
    file.persist(&path)?;
    Ok(())
}
