use std::fs;
use std::io::Write as _;

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
