use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::read_regular;

#[test]
fn v_605_only_regular_files_of_a_bounded_size_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("file"), "four").unwrap();
    symlink("file", path("link")).unwrap();
    assert_eq!(read_regular(&path("link"), 4).unwrap(), b"four");
    assert_eq!(read_regular(&path("missing"), 4).unwrap_err().kind(), ErrorKind::NotFound);
    let problem = |path: &Path| read_regular(path, 3).unwrap_err().to_string();
    assert_eq!(problem(&path("file")), "expected at most 3 bytes, found more");
    // Of a sparse file of gigabytes nothing is read.
    File::create(path("huge")).unwrap().set_len(1 << 33).unwrap();
    assert_eq!(problem(&path("huge")), "expected at most 3 bytes, found more");
    mkfifoat(CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    symlink("pipe", path("link-to-pipe")).unwrap();
    for other in [path("pipe"), path("link-to-pipe"), "/dev/zero".into(), directory.path().to_owned()] {
        assert_eq!(problem(&other), "expected a regular file, found something else", "{other:?}");
    }
}
