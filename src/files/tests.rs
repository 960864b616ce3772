use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::*;

mod hung;
mod scratch;

const QUOTA: FileQuota = FileQuota { written_bytes: 10_000, files: 5, file_bytes: 4_000 };

/// The files of a run with these directories, and a memory limit of one megabyte.
fn files(directories: &[(&Path, Access)]) -> RunFiles {
    let directories = directories.iter().map(|&(path, access)| GrantedDirectory {
        root: path.to_owned(),
        path: path.to_owned(),
        access,
    });
    RunFiles::new(FileOptions {
        directories: directories.collect(),
        memory_bytes: 1 << 20,
        quota: Box::new(|| QUOTA),
        caller: None,
        clock: Clock::Real(Duration::ZERO),
        runtime: tokio::runtime::Handle::current(),
        is_dry_run: false,
    })
}

fn path(text: impl AsRef<Path>) -> GuestPath {
    GuestPath::parse(text.as_ref().to_str().unwrap()).unwrap()
}

fn reading() -> OpenMode {
    OpenMode { read: true, ..OpenMode::default() }
}

fn writing() -> OpenMode {
    OpenMode { write: true, create: true, truncate: true, ..OpenMode::default() }
}

async fn read(files: &RunFiles, at: impl AsRef<Path>) -> Result<String, &'static str> {
    let read = async {
        let file = files.open(&path(at), reading()).await?;
        file.read(0, 1 << 20).await
    };
    read.await.map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.code.as_str())
}

async fn write(files: &RunFiles, at: impl AsRef<Path>, text: &str) -> Result<(), &'static str> {
    let write = async {
        let file = files.open(&path(at), writing()).await?;
        file.write(0, text.as_bytes().to_vec()).await
    };
    write.await.map_err(|error| error.code.as_str())
}

#[test]
fn paths_are_resolved_by_their_text() {
    for (text, expected) in [
        ("/", "/"),
        ("//tmp//x/", "/tmp/x"),
        ("/tmp/../../etc/./passwd", "/etc/passwd"),
        ("x/y", "/x/y"),
        ("..", "/"),
        ("/a/b/..", "/a"),
    ] {
        assert_eq!(GuestPath::parse(text).unwrap().to_string(), expected, "{text}");
    }
    let long = ["/tmp/".to_owned() + &"x".repeat(256), "/x".repeat(2_049)];
    for (text, code) in
        [("", "ENOENT"), ("/a\0b", "EINVAL"), (&*long[0], "ENAMETOOLONG"), (&*long[1], "ENAMETOOLONG")]
    {
        assert_eq!(GuestPath::parse(text).unwrap_err().code.as_str(), code, "{text:.20}");
    }
    // A path that grows by being joined is bounded too.
    let mut deep = GuestPath::ROOT;
    let grown = (0..100).try_for_each(|_| {
        deep = deep.join(&"y".repeat(200))?;
        Ok::<_, FileError>(())
    });
    assert_eq!(grown.unwrap_err().code.as_str(), "ENAMETOOLONG");
}

#[tokio::test]
async fn nothing_exists_that_is_not_granted() {
    let files = files(&[]);
    for place in
        ["/etc/passwd", "/proc/self/environ", "/tmp/../etc/passwd", "/dev/null", "/tmpx", "/tmp/missing"]
    {
        assert_eq!(read(&files, place).await, Err("ENOENT"), "{place}");
    }
    for place in ["/etc/passwd", "/new", "/tmp/../new"] {
        assert_eq!(write(&files, place, "x").await, Err("EACCES"), "{place}");
    }
    assert_eq!(write(&files, "/tmp", "x").await, Err("EISDIR"));
    for root in ["/", "/tmp"] {
        assert_eq!(
            files.remove_directory(&path(root)).await.unwrap_err().code.as_str(),
            match root {
                "/" => "EACCES",
                _ => "EBUSY",
            }
        );
    }
    let names: Vec<String> =
        files.entries(&GuestPath::ROOT).await.unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["tmp"]);
}

#[tokio::test]
async fn a_granted_directory_is_read_or_written_as_granted() {
    let place = tempfile::tempdir().unwrap();
    let (input, output) = (place.path().join("in"), place.path().join("out"));
    for directory in [&input, &output] {
        fs::create_dir(directory).unwrap();
    }
    fs::write(input.join("a"), "hello").unwrap();
    let files = files(&[(&input, Access::Read), (&output, Access::Write)]);
    assert_eq!(read(&files, input.join("a")).await.unwrap(), "hello");
    assert_eq!(write(&files, input.join("b"), "x").await, Err("EACCES"));
    assert_eq!(files.remove_file(&path(input.join("a"))).await.unwrap_err().code.as_str(), "EACCES");
    assert_eq!(write(&files, output.join("b"), "made").await, Ok(()));
    assert_eq!(fs::read_to_string(output.join("b")).unwrap(), "made");
    assert_eq!(read(&files, output.join("b")).await, Err("EACCES"));
    assert_eq!(files.metadata(&path(output.join("b")), true).await.unwrap().size, 4);
    // The directory itself, and what is beside it.
    assert_eq!(files.remove_directory(&path(&output)).await.unwrap_err().code.as_str(), "EBUSY");
    assert_eq!(
        files.rename(&path(output.join("b")), &path(input.join("c"))).await.unwrap_err().code.as_str(),
        "EACCES"
    );
    assert_eq!(
        files.rename(&path(output.join("b")), &path("/tmp/c")).await.unwrap_err().code.as_str(),
        "EXDEV"
    );
    assert_eq!(read(&files, place.path().join("other")).await, Err("ENOENT"));
}

/// What is around a granted directory cannot be moved away, so that something else took its place.
#[tokio::test]
async fn what_is_around_a_granted_directory_stays() {
    let place = tempfile::tempdir().unwrap();
    let (outer, inner) = (place.path().to_owned(), place.path().join("between/inner"));
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir(outer.join("other")).unwrap();
    let files = files(&[(&outer, Access::Write), (&inner, Access::Read)]);
    for around in ["between", "between/inner"] {
        let around = path(outer.join(around));
        let moved = files.rename(&around, &path(outer.join("away"))).await;
        assert_eq!(moved.unwrap_err().code.as_str(), "EBUSY");
        let replaced = files.rename(&path(outer.join("other")), &around).await;
        assert_eq!(replaced.unwrap_err().code.as_str(), "EBUSY");
        assert_eq!(files.remove_directory(&around).await.unwrap_err().code.as_str(), "EBUSY");
    }
    files.rename(&path(outer.join("other")), &path(outer.join("away"))).await.unwrap();
}

/// Threat 123: links, absolute and relative ones, that lead out of the directory, are not followed.
#[tokio::test]
async fn no_link_leaves_a_granted_directory() {
    let place = tempfile::tempdir().unwrap();
    let granted = place.path().join("granted");
    fs::create_dir_all(granted.join("inner")).unwrap();
    fs::write(place.path().join("secret"), "secret").unwrap();
    fs::write(granted.join("inner/mine"), "mine").unwrap();
    for (target, name) in [
        (place.path().join("secret"), "absolute"),
        ("../secret".into(), "relative"),
        (place.path().to_owned(), "directory"),
        ("../..".into(), "above"),
        ("absolute".into(), "chain"),
        ("loop".into(), "loop"),
        ("/proc/self".into(), "proc"),
        ("inner/mine".into(), "fine"),
        (place.path().join("new"), "dangling"),
    ] {
        symlink(target, granted.join(name)).unwrap();
    }
    let files = files(&[(&granted, Access::Read), (&granted, Access::Write)]);
    for name in
        ["absolute", "relative", "directory/secret", "above/etc/passwd", "chain", "proc/environ", "dangling"]
    {
        assert_eq!(read(&files, granted.join(name)).await, Err("EACCES"), "{name}");
        assert_eq!(write(&files, granted.join(name), "overwritten").await, Err("EACCES"), "{name}");
    }
    assert_eq!(read(&files, granted.join("loop")).await, Err("ELOOP"));
    assert_eq!(read(&files, granted.join("fine")).await.unwrap(), "mine");
    assert_eq!(read(&files, granted.join("directory/../inner/mine")).await.unwrap(), "mine");
    assert_eq!(files.metadata(&path(granted.join("absolute")), false).await.unwrap().kind, EntryKind::Link);
    // Removing a link removes the link.
    files.remove_file(&path(granted.join("absolute"))).await.unwrap();
    assert_eq!(fs::read_to_string(place.path().join("secret")).unwrap(), "secret");
    assert!(!place.path().join("new").exists());
}

/// Special files neither block nor are used.
#[tokio::test]
async fn special_files_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let fifo = place.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.path().join("socket")).unwrap();
    let directories = [
        (place.path(), Access::Read),
        (place.path(), Access::Write),
        (Path::new("/dev"), Access::Read),
        (Path::new("/proc"), Access::Read),
    ];
    let files = files(&directories);
    for name in ["fifo", "socket"] {
        assert_eq!(read(&files, place.path().join(name)).await, Err("EACCES"), "{name}");
        assert_eq!(write(&files, place.path().join(name), "x").await, Err("EACCES"), "{name}");
    }
    for name in ["/dev/zero", "/dev/tty", "/proc/self/environ", "/proc/version"] {
        assert_eq!(read(&files, name).await, Err("EACCES"), "{name}");
    }
}

#[tokio::test]
async fn quotas_hold() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let files = files(&[(place.path(), Access::Read), (place.path(), Access::Write)]);
    // One file.
    assert_eq!(write(&files, at("0"), &"x".repeat(4_000)).await, Ok(()));
    let file = files.open(&path(at("0")), OpenMode { write: true, ..OpenMode::default() }).await.unwrap();
    for offset in [4_000, 1 << 60, u64::MAX] {
        assert_eq!(file.write(offset, vec![1]).await.unwrap_err().code.as_str(), "EFBIG");
    }
    assert_eq!(file.set_size(1 << 50).await.unwrap_err().code.as_str(), "EFBIG");
    // All bytes. Writing the same again counts again.
    file.write(0, vec![1; 4_000]).await.unwrap();
    assert_eq!(file.write(0, vec![1; 4_000]).await.unwrap_err().code.as_str(), "EDQUOT");
    assert_eq!(fs::metadata(at("0")).unwrap().len(), 4_000);
    // All files. What exists already, and what fails, counts nothing.
    for _ in 0..10 {
        assert_eq!(write(&files, at("0"), "").await, Ok(()));
        assert_eq!(files.create_directory(&path(at("0"))).await.unwrap_err().code.as_str(), "EEXIST");
    }
    for name in ["1", "2", "3"] {
        assert_eq!(write(&files, at(name), "").await, Ok(()));
    }
    files.create_directory(&path(at("4"))).await.unwrap();
    assert_eq!(write(&files, at("5"), "").await, Err("EDQUOT"));
    assert_eq!(files.create_directory(&path(at("5"))).await.unwrap_err().code.as_str(), "EDQUOT");
    files.remove_file(&path(at("1"))).await.unwrap();
    assert_eq!(write(&files, at("1"), "").await, Err("EDQUOT"));
}

/// Threat 814: a byte in each block of a file takes all of its space.
#[tokio::test]
async fn v_814_gaps_count_as_written() {
    let place = tempfile::tempdir().unwrap();
    let files = files(&[(place.path(), Access::Write)]);
    let mut mode = writing();
    let mut counted = 0;
    for (name, written) in [("0", 4_000), ("1", 4_000), ("2", 1_990)] {
        let file = files.open(&path(place.path().join(name)), mode).await.unwrap();
        file.write(written - 1, vec![1]).await.unwrap();
        // Nothing is written, and no file becomes longer.
        file.write(3_999, Vec::new()).await.unwrap();
        assert_eq!(file.metadata().await.unwrap().size, written);
        counted += written;
    }
    assert_eq!(counted, 9_990);
    mode.create = false;
    mode.truncate = false;
    let file = files.open(&path(place.path().join("0")), mode).await.unwrap();
    // In the gap a byte is a byte.
    for offset in 0..10 {
        file.write(offset * 100, vec![1]).await.unwrap();
    }
    assert_eq!(file.write(0, vec![1]).await.unwrap_err().code.as_str(), "EDQUOT");
}

/// The longest directory decides, and `/tmp` is the scratch directory whatever is granted above it.
#[tokio::test]
async fn the_longest_directory_decides() {
    let place = tempfile::tempdir().unwrap();
    let inner = place.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(place.path().join("a"), "a").unwrap();
    let files = files(&[(Path::new("/"), Access::Read), (&inner, Access::Write)]);
    assert_eq!(write(&files, inner.join("x"), "x").await, Ok(()));
    let is_in_tmp = place.path().starts_with("/tmp");
    // In the scratch directory there is no directory of this name.
    let refused = if is_in_tmp { "ENOENT" } else { "EACCES" };
    assert_eq!(write(&files, place.path().join("x"), "x").await, Err(refused));
    assert_eq!(read(&files, "/etc/hostname").await.is_ok(), Path::new("/etc/hostname").exists());
    // `/` does not bring the machine's `/tmp`.
    assert_eq!(read(&files, place.path().join("a")).await.is_err(), is_in_tmp);
    assert_eq!(write(&files, "/tmp/mine", "mine").await, Ok(()));
    assert!(!Path::new("/tmp/mine").exists());
}

/// Another process swaps a directory for a link to another one while paths in it are opened. The target of
/// the link is never read.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_swapped_in_while_a_path_is_opened() {
    let races = 10_000;
    let place = tempfile::tempdir().unwrap();
    let (granted, outside) = (place.path().join("granted"), place.path().join("outside"));
    fs::create_dir_all(granted.join("real")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(granted.join("real/file"), "inside").unwrap();
    fs::write(outside.join("file"), "secret").unwrap();
    symlink(&outside, granted.join("link")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (granted, stop) = (granted.clone(), Arc::clone(&stop));
        thread::spawn(move || {
            let mut swaps = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                for from in ["real", "link"] {
                    let _busy = fs::rename(granted.join(from), granted.join("now"));
                    thread::yield_now();
                    let _busy = fs::rename(granted.join("now"), granted.join(from));
                    swaps += 1;
                }
            }
            swaps
        })
    };
    let files = files(&[(&granted, Access::Read), (&granted, Access::Write)]);
    let mut seen = [0; 2];
    for _ in 0..races {
        match read(&files, granted.join("now/file")).await {
            Ok(text) => {
                assert_eq!(text, "inside");
                seen[0] += 1;
            }
            // Which step of opening sees the swap is up to the race: each refuses in its own way.
            Err(code) => {
                assert!(["ENOENT", "EACCES", "EBUSY", "EIO", "ENOTDIR", "ELOOP"].contains(&code), "{code}");
                seen[1] += 1;
            }
        }
        let _refused = write(&files, granted.join("now/made"), "").await;
    }
    stop.store(true, Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    assert!(swaps > 10 && seen[0] + seen[1] == races, "{swaps} {seen:?}");
    assert!(!outside.join("made").exists());
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "secret");
}

#[tokio::test]
async fn a_dry_run_writes_to_scratch_only() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a"), "a").unwrap();
    let granted = |access| GrantedDirectory { root: place.path().into(), path: place.path().into(), access };
    let files = RunFiles::new(FileOptions {
        directories: vec![granted(Access::Read), granted(Access::Write)],
        memory_bytes: 1 << 20,
        quota: Box::new(|| QUOTA),
        caller: None,
        clock: Clock::counting(),
        runtime: tokio::runtime::Handle::current(),
        is_dry_run: true,
    });
    assert_eq!(read(&files, place.path().join("a")).await.unwrap(), "a");
    assert_eq!(write(&files, place.path().join("a"), "b").await, Err("EROFS"));
    assert_eq!(write(&files, "/tmp/x", "x").await, Ok(()));
    assert_eq!(fs::read_to_string(place.path().join("a")).unwrap(), "a");
}

/// Passes operations on without a connection between.
#[cfg(all(feature = "process", target_os = "linux"))]
struct Direct(Arc<HostedFiles>);

#[cfg(all(feature = "process", target_os = "linux"))]
impl FileHost for Direct {
    fn perform(
        &self,
        operation: FileOperation,
    ) -> futures::future::BoxFuture<'static, Result<FileAnswer, FileError>> {
        self.0.perform(operation)
    }

    fn close(&self, file: u64) {
        self.0.close(file);
    }
}

/// A process that can open no file has the same files, with the same rules, and their messages.
#[cfg(all(feature = "process", target_os = "linux"))]
#[tokio::test]
async fn another_process_has_the_same_files() {
    let place = tempfile::tempdir().unwrap();
    let (input, output) = (place.path().join("in"), place.path().join("out"));
    for directory in [&input, &output] {
        fs::create_dir(directory).unwrap();
    }
    fs::write(input.join("a"), "hello").unwrap();
    symlink("/etc/passwd", input.join("link")).unwrap();
    let granted = [(&*input, Access::Read), (&*output, Access::Write)];
    let hosted = Arc::new(HostedFiles::new(Arc::new(files(&granted))));
    let directories = granted.map(|(path, access)| GrantedDirectory {
        root: path.to_owned(),
        path: path.to_owned(),
        access,
    });
    let options = FileOptions {
        directories: directories.to_vec(),
        memory_bytes: 1 << 20,
        // Those of the host count.
        quota: Box::new(|| FileQuota { written_bytes: 0, files: 0, file_bytes: 0 }),
        caller: None,
        clock: Clock::Real(Duration::ZERO),
        runtime: tokio::runtime::Handle::current(),
        is_dry_run: false,
    };
    let files = RunFiles::elsewhere(options, Arc::new(Direct(Arc::clone(&hosted))));
    assert_eq!(read(&files, input.join("a")).await.unwrap(), "hello");
    assert_eq!(read(&files, input.join("link")).await, Err("EACCES"));
    assert_eq!(write(&files, input.join("b"), "x").await, Err("EACCES"));
    assert_eq!(files.entries(&path(&input)).await.unwrap().len(), 2);
    assert_eq!(write(&files, output.join("b"), "made").await, Ok(()));
    files.rename(&path(output.join("b")), &path(output.join("c"))).await.unwrap();
    assert_eq!(fs::read_to_string(output.join("c")).unwrap(), "made");
    let large = files.open(&path(output.join("large")), writing()).await.unwrap();
    let error = large.write(0, vec![0; 3 << 20]).await.unwrap_err();
    assert_eq!(error.code, FileErrorCode::FileTooLarge);
    assert!(error.to_string().contains("maxFileBytes"), "{error}");
    // The scratch directory is here.
    assert_eq!(write(&files, "/tmp/x", "scratch").await, Ok(()));
    assert_eq!(fs::read_dir(&output).unwrap().count(), 2);
    drop(large);
    assert_eq!(hosted.open_count(), 0, "what is dropped there is closed here");
}

/// Requests of a process that a script has taken over.
#[cfg(all(feature = "process", target_os = "linux"))]
#[tokio::test]
async fn another_process_is_not_trusted() {
    use FileOperation as Op;

    let place = tempfile::tempdir().unwrap();
    let granted = place.path().join("granted");
    fs::create_dir(&granted).unwrap();
    fs::write(place.path().join("secret"), "x").unwrap();
    let hosted =
        Arc::new(HostedFiles::new(Arc::new(files(&[(&granted, Access::Read), (&granted, Access::Write)]))));
    let text = |name: &str| granted.join(name).to_str().unwrap().to_owned();
    let attempt = async |operation| hosted.perform(operation).await.map_err(|error| error.code.as_str());
    for (operation, code) in [
        (Op::Open { path: "/etc/passwd".to_owned(), mode: reading() }, "ENOENT"),
        (Op::Open { path: text("../secret"), mode: reading() }, "ENOENT"),
        (Op::Open { path: "granted".to_owned(), mode: reading() }, "ENOENT"),
        (Op::Open { path: "x".repeat(1 << 20), mode: reading() }, "ENAMETOOLONG"),
        (Op::Rename { from: text(".."), to: text("b") }, "EBUSY"),
        (Op::RemoveDirectory { path: text("") }, "EBUSY"),
        (Op::Read { file: 0, offset: 0, length: u64::MAX }, "EBADF"),
        (Op::Write { file: u64::MAX, offset: u64::MAX, bytes: Vec::new() }, "EBADF"),
        (Op::Write { file: 1, offset: 0, bytes: vec![0; (1 << 20) + 1] }, "EFBIG"),
    ] {
        let shown = format!("{operation:?}").chars().take(100).collect::<String>();
        assert_eq!(attempt(operation).await.unwrap_err(), code, "{shown}");
    }
    // Its scratch directory is its own.
    for operation in [
        Op::Open { path: "/tmp/x".to_owned(), mode: writing() },
        Op::CreateDirectory { path: "/tmp/x".to_owned() },
    ] {
        assert_eq!(attempt(operation).await.unwrap_err(), "EACCES");
    }
    // Handles, and operations that are not awaited.
    let mode = OpenMode { read: true, ..writing() };
    for number in 1..=256 {
        let opened = attempt(Op::Open { path: text("a"), mode }).await.unwrap();
        assert!(matches!(opened, FileAnswer::Opened(opened) if opened == number), "{opened:?}");
    }
    assert_eq!(attempt(Op::Open { path: text("a"), mode }).await.unwrap_err(), "EMFILE");
    let length = u64::MAX;
    let held: Vec<_> = (0..1_000).map(|_| hosted.perform(Op::Read { file: 1, offset: 0, length })).collect();
    let ends = futures::future::join_all(held).await;
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 64);
    hosted.close(1);
    hosted.close(1);
    assert_eq!(attempt(Op::Sync { file: 1 }).await.unwrap_err(), "EBADF");
}
