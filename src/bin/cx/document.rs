//! Files that the command writes for the user.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use cx::command::replace_file;
use rustix::fs::OFlags;

/// Replaces a file by `text`: the text is written to a temporary file in the same directory, which is then renamed, so
/// that the old file survives a full disk and a reader sees either content. The target of a symbolic link is replaced,
/// and permissions are kept. A device or a pipe is written to directly.
///
/// # Errors
///
/// If the file cannot be written. The incomplete file is removed.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Like any new file: the umask restricts the mode.
    replace_file(path, text.as_bytes(), 0o666)
}

/// Checks that a path which the command has chosen, not the user, has no file or a regular one. Writing to a pipe would
/// wait for its reader.
///
/// # Errors
///
/// If something else is there.
pub(crate) fn check_regular(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file: remove it"))
        }
        _ => Ok(()),
    }
}

/// Checks, as far as possible in advance, that [`replace`] can write a file: the path is no directory, and a file can
/// be created beside it. A device or a pipe is not opened.
///
/// # Errors
///
/// If it cannot.
pub(crate) fn check_replaceable(path: &Path) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_missing| path.to_owned());
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        Ok(found) if !found.is_file() => return Ok(()),
        _ => {}
    }
    let directory = directory_of(&path);
    tempfile::tempfile_in(directory).map(drop).map_err(|error| {
        // The system's error names a temporary file, which the user does not know.
        let problem = format!("no file can be made in {}: {}", directory.display(), error.kind());
        io::Error::new(error.kind(), problem)
    })
}

/// Whether [`replace`] writes both to the same file, which need not exist.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    replaced(one) == replaced(other)
}

/// The file that [`replace`] writes to: what the path leads to, or a new file in the directory of the path.
fn replaced(path: &Path) -> PathBuf {
    let new_file = || Some(directory_of(path).canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(new_file).unwrap_or_else(|| path.to_owned())
}

/// The directory that a file is in.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// As [`replace`], but a new file can be read by its user only.
///
/// # Errors
///
/// As [`replace`].
pub(crate) fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    replace_file(path, text.as_bytes(), 0o600)
}

/// As [`replace`], but the file can be read by its user only, even if an older one could be read by others.
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
    replace_file(&path, text.as_bytes(), 0o600)
}

/// Creates a file that only its user can read, with its directories, if it does not exist. An existing one must be a
/// regular file of at most `max` bytes. Does not wait for the reader of a pipe.
///
/// # Errors
///
/// If the file cannot be created, or an existing one is not regular or too large.
pub(crate) fn make_private(path: &Path, max: u64) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    let metadata = options.open(path)?.metadata()?;
    if !metadata.is_file() || metadata.len() > max {
        let problem = format!("expected a regular file of at most {max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(())
}

/// Checks that files can be created in a directory, which is created if it is missing. Creates a file without a name.
///
/// # Errors
///
/// If the directory or a file in it cannot be created.
pub(crate) fn check_writable(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    tempfile::tempfile_in(directory).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn v_605_a_private_file_is_a_regular_one_of_a_bounded_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        make_private(&path("below/history"), 0).unwrap();
        assert_eq!(fs::metadata(path("below/history")).unwrap().permissions().mode() & 0o777, 0o600);
        File::create(path("large")).unwrap().set_len(9).unwrap();
        make_private(&path("large"), 9).unwrap();
        let error = make_private(&path("large"), 8).unwrap_err().to_string();
        assert_eq!(error, "expected a regular file of at most 8 bytes");
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RWXU).unwrap();
        // Nobody reads it, so the system does not open it.
        assert!(make_private(&path("pipe"), 8).is_err());
        let _reader = OpenOptions::new().read(true).write(true).open(path("pipe")).unwrap();
        for other in [path("pipe"), "/dev/null".into()] {
            assert_eq!(make_private(&other, 8).unwrap_err().to_string(), error, "{other:?}");
        }
    }

    #[test]
    fn a_file_that_can_be_replaced_is_no_directory_and_beside_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("old"), "old").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RWXU).unwrap();
        for name in ["old", "new", "pipe"] {
            check_replaceable(&path(name)).unwrap();
        }
        assert!(!path("new").exists());
        let problem = |name: &str| check_replaceable(&path(name)).unwrap_err().to_string();
        assert_eq!(problem("."), "it is a directory");
        let expected = format!("no file can be made in {}: entity not found", path("absent").display());
        assert_eq!(problem("absent/new"), expected);
    }

    #[test]
    fn two_paths_of_one_file_are_the_same_whether_it_exists_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("below")).unwrap();
        std::os::unix::fs::symlink("below", path("link")).unwrap();
        for exists in [false, true] {
            if exists {
                fs::write(path("below/a.json"), "{}").unwrap();
            }
            for other in ["below/../below/./a.json", "link/a.json"] {
                assert!(is_same(&path("below/a.json"), &path(other)), "{exists} {other}");
            }
            assert!(!is_same(&path("below/a.json"), &path("below/b.json")));
            assert!(!is_same(&path("below/a.json"), &path("a.json")));
        }
        std::os::unix::fs::symlink("below/a.json", path("a-link.json")).unwrap();
        assert!(is_same(&path("a-link.json"), &path("link/a.json")));
        assert!(is_same(Path::new("absent.json"), Path::new("./absent.json")));
    }
}
