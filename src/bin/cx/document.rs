//! Files that the command writes for the user.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Replaces a file by `text`: it is written beside the file and then renamed, so that the old file
/// survives a full disk, and a reader sees one or the other. What a symbolic link leads to is
/// replaced, and the permissions stay. A device or a pipe is written to.
///
/// # Errors
///
/// Those of the system. The incomplete file is removed.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // As any new file: the system takes away what the umask says.
    replace_with(path, text, 0o666)
}

/// The same; a file that is new can be read by its user only.
///
/// # Errors
///
/// As [`replace`].
pub(crate) fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    replace_with(path, text, 0o600)
}

/// The same; the file can be read by its user only, also if an older one could be read by others.
///
/// # Errors
///
/// As [`replace`].
pub(crate) fn replace_secret(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_missing| path.to_owned());
    if let Ok(old) = fs::metadata(&path)
        && old.is_file()
    {
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    }
    replace_with(&path, text, 0o600)
}

/// Makes a file that only its user can read, and its directories, if it is not there.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(drop)
}

fn replace_with(path: &Path, text: &str, mode: u32) -> io::Result<()> {
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
        .permissions(Permissions::from_mode(mode))
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

/// Checks that files can be made in a directory, which is made if it is missing: makes one without a name.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn check_writable(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    tempfile::tempfile_in(directory).map(drop)
}
