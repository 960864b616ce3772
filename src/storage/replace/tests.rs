use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::replace_file;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_file_is_replaced_with_its_permissions_behind_its_link() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    replace_file(&file, b"first", 0o600).unwrap();
    assert_eq!((fs::read(&file).unwrap().as_slice(), mode(&file)), (b"first".as_slice(), 0o600));
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    symlink("file", &link).unwrap();
    let reader = fs::File::open(&file).unwrap();
    replace_file(&link, b"second", 0o600).unwrap();
    assert_eq!((fs::read(&file).unwrap().as_slice(), mode(&file)), (b"second".as_slice(), 0o640));
    assert!(link.is_symlink());
    // Who has opened the old file still reads it.
    assert_eq!(std::io::read_to_string(reader).unwrap(), "first");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn what_cannot_be_replaced_stays() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing/file");
    assert_eq!(replace_file(&missing, b"", 0o600).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    // A device is written to.
    replace_file(Path::new("/dev/null"), b"text", 0o600).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

/// As where a link leads into a store of packages that only its program may write to.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_without_new_files_is_named_and_no_temporary_file() {
    let unwritable = replace_file(Path::new("/proc/file"), b"", 0o600).unwrap_err();
    assert_eq!(unwritable.to_string(), "no file can be made in /proc: entity not found");
}
