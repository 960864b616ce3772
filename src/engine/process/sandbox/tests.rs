//! What Landlock and the filter of system calls do by themselves: in a process that has only one of them.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::process::{DumpableBehavior, dumpable_behavior};

use super::{Confinement, close_files, filter_calls};
use crate::engine::process::connection::end_process_with;
use crate::machine::SandboxFeatures;

/// The name of the test that is the process, and the beginning of the argument that says what confines it. For the test
/// harness it is a `--skip` that matches no test.
const CONFINED: &str = "engine::process::sandbox::tests::confined";
const MARK: &str = "--skip=this-process-has-only-";

/// The exit status of a process whose attempts were all refused.
const REFUSED: i32 = 42;

type Attempt<'a> = (&'static str, &'a dyn Fn() -> io::Result<()>);

/// Not a test: the process, if this program was started as one.
#[test]
fn confined() {
    let argument = std::env::args().find_map(|argument| argument.strip_prefix(MARK).map(str::to_owned));
    let Some(argument) = argument else { return };
    let (measure, port) = argument.split_once(':').unwrap();
    let port: u16 = port.parse().unwrap();
    let parent = rustix::process::getppid().unwrap();
    let version = SandboxFeatures::of_kernel().landlock_abi.unwrap_or(0);
    let made = std::env::temp_dir().join(format!("cx-confined-{}", std::process::id()));

    let open = || File::open("/etc/passwd").map(drop);
    let make = || File::create(&made).map(drop);
    let list = || std::fs::read_dir("/").map(drop);
    let connect = || TcpStream::connect(("127.0.0.1", port)).map(drop);
    let signal = || rustix::process::test_kill_process(parent).map_err(io::Error::from);
    let pair = || UnixStream::pair().map(drop);
    #[expect(clippy::disallowed_methods, reason = "it must not start")]
    let start = || Command::new("/bin/true").status().map(drop);
    let of_files: [Attempt<'_>; 3] = [("open", &open), ("make", &make), ("list", &list)];
    let mut attempts = of_files.to_vec();
    let mut confinement = Confinement::default();
    // Nothing else refuses them here.
    let others: [Attempt<'_>; 2] = [("connect", &connect), ("signal", &signal)];
    for (name, attempt) in attempts.iter().chain(&others) {
        assert!(attempt().is_ok(), "{name}");
    }
    let _removed = std::fs::remove_file(&made);
    if measure == "landlock" {
        // Newer versions of its interface refuse more.
        if version >= 4 {
            attempts.push(("connect", &connect));
        }
        if version >= 6 {
            attempts.push(("signal", &signal));
        }
        close_files(&mut confinement);
        // Threat 707. Nothing else prevents core dumps.
        assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
    } else {
        attempts.push(("connect", &connect));
        attempts.push(("signal", &signal));
        attempts.push(("pair", &pair));
        attempts.push(("start", &start));
        filter_calls(&mut confinement, 1);
    }
    let is_refused =
        |result: io::Result<()>| result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    let possible: Vec<&str> =
        attempts.iter().filter(|(_, attempt)| !is_refused(attempt())).map(|(name, _)| *name).collect();
    let missing = &confinement.missing;
    let _unread = writeln!(io::stderr(), "possible: {possible:?}; missing: {missing:?}");
    end_process_with(if possible.is_empty() && missing.is_empty() { REFUSED } else { 1 });
}

/// Starts that process.
#[track_caller]
fn refuses(measure: &str) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mark = format!("{MARK}{measure}:{}", listener.local_addr().unwrap().port());
    #[expect(clippy::disallowed_methods, reason = "the process is this test program")]
    let output = Command::new("/proc/self/exe")
        .args(["--exact", CONFINED, "--nocapture", "--test-threads=1"])
        .arg(mark)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(REFUSED), "{measure}: {said}");
}

/// A confined process of this test program says so itself: the filter of a worker lets it ask no more.
#[test]
fn v_707_there_is_no_core_dump_of_a_worker_whatever_the_limit_and_the_pattern() {
    refuses("landlock");
}

#[test]
fn v_552_landlock_alone_opens_no_file_and_no_tcp_connection() {
    refuses("landlock");
}

#[test]
fn v_552_the_filter_of_system_calls_alone_opens_and_connects_nothing() {
    refuses("seccomp");
}
