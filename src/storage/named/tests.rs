use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;

fn read(file: io::Result<NamedFile>) -> io::Result<String> {
    let mut text = String::new();
    file?.take(4).read_to_string(&mut text).map(|_bytes| text)
}

#[test]
fn v_794_a_pipe_is_read_and_not_waited_for_without_an_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("file"), "a key").unwrap();
    std::os::unix::fs::symlink("file", path("link")).unwrap();
    // A regular file needs no time.
    assert_eq!(read(NamedFile::open_for(&path("link"), Duration::ZERO)).unwrap(), "a ke");
    assert_eq!(read(NamedFile::open(&path("missing"))).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(read(NamedFile::open(directory.path())).unwrap_err().kind(), ErrorKind::IsADirectory);
    let short = Duration::from_millis(20);
    mkfifoat(CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    let problem = || read(NamedFile::open_for(&path("pipe"), short)).unwrap_err();
    // Nobody has opened it for writing, and then nobody writes.
    assert_eq!(
        (problem().kind(), &*problem().to_string()),
        (ErrorKind::TimedOut, "nothing is written to this pipe")
    );
    let mut writer = OpenOptions::new().read(true).write(true).open(path("pipe")).unwrap();
    assert_eq!(problem().kind(), ErrorKind::TimedOut);
    // A part of the text is not the text.
    writer.write_all(b"ab").unwrap();
    assert_eq!(problem().kind(), ErrorKind::TimedOut);
    drop(writer);
}

#[test]
fn a_secret_is_read_only_if_it_is_its_owners_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "key").unwrap();
    for (mode, is_private) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)] {
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let read = read(NamedFile::open_secret(&path)).map_err(|error| error.to_string());
        let problem = "others may read or change it: `chmod 600` it".to_owned();
        assert_eq!(read, if is_private { Ok("key".to_owned()) } else { Err(problem) }, "{mode:o}");
    }
    // What others may do with a pipe is no matter of its mode.
    let pipe = directory.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o644)).unwrap();
    NamedFile::open_secret(&pipe).unwrap();
}

/// The writer comes after the reader, and the text in two pieces.
#[test]
fn the_writer_of_a_pipe_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    let file = NamedFile::open(&path);
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    let reading = std::thread::spawn(move || read(file));
    writer.write_all(b"ab").unwrap();
    writer.write_all(b"c").unwrap();
    drop(writer);
    assert_eq!(reading.join().unwrap().unwrap(), "abc");
}

/// As a shell passes one: `<(…)`.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_of_a_shell_is_read() {
    use std::os::fd::AsRawFd as _;
    let (reader, mut writer) = io::pipe().unwrap();
    let path = format!("/dev/fd/{}", reader.as_raw_fd());
    let file = NamedFile::open(Path::new(&path));
    writer.write_all(b"abc").unwrap();
    drop(writer);
    assert_eq!(read(file).unwrap(), "abc");
}
