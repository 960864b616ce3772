//! What a fork server sends while something else is waited for. The fork server here is the test.

use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use rustix::net::{AddressFamily, SocketFlags, socketpair};
use rustix::process::{PidfdFlags, Signal, kill_process, pidfd_open};

use super::*;
use crate::engine::process::tests::{MARK, WORKER, program};
use crate::run::limits::Limits;

/// How often a worker is asked for.
const FORKS: usize = 200;

/// Timeout of a test that would otherwise hang.
const WATCHDOG: Duration = Duration::from_secs(120);

fn connection(kind: SocketType) -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap()
}

/// The executor's half of a fork server, and the connection of the other half. Its process does nothing.
fn fork_server() -> (ForkServer, OwnedFd) {
    let (own, theirs) = connection(SocketType::SEQPACKET);
    rustix::io::ioctl_fionbio(&own, true).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a process in the place of a fork server")]
    let child = Command::new("/bin/sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    (ForkServer::new(child, pid, own), theirs)
}

/// Answers to a request, if one comes soon. The worker is this process.
fn answer(theirs: &OwnedFd) {
    if !forks::is_readable(theirs, Duration::from_millis(10)) {
        return;
    }
    let mut request = REQUEST;
    let (length, connection) = forks::receive(theirs, &mut request, RecvFlags::empty()).unwrap();
    assert_eq!((length, connection.is_some()), (REQUEST.len(), true));
    let process = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let report = ForkReport::Forked(getpid().as_raw_nonzero().get());
    forks::send(theirs, &report.encode(), Some(process.as_fd())).unwrap();
}

/// The threads of runs ask how their workers have ended while the thread of the workers asks for another one.
#[test]
fn v_696_to_ask_for_a_status_takes_no_answer_away() {
    let (server, theirs) = fork_server();
    let (connection, _other) = connection(SocketType::STREAM);
    let is_over = AtomicBool::new(false);
    let failed = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                answer(&theirs);
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _unknown = server.take_status(getpid());
            }
        });
        let failed = (0..FORKS).find_map(|_| server.fork(&connection).err());
        is_over.store(true, Ordering::Relaxed);
        failed
    });
    assert!(failed.is_none(), "{failed:?}");
}

#[test]
fn v_696_an_answer_that_comes_too_late_is_nobodys() {
    let (server, theirs) = fork_server();
    let (connection, _other) = connection(SocketType::STREAM);
    let late = server.fork(&connection).unwrap_err();
    assert_eq!((late.kind(), server.is_lost()), (io::ErrorKind::TimedOut, true));
    answer(&theirs);
    let killed = ForkReport::Ended { process: 7, status: libc::SIGKILL };
    forks::send(&theirs, &killed.encode(), None).unwrap();
    let pid = Pid::from_raw(7).unwrap();
    let status = server.take_status(pid).unwrap().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert_eq!(server.take_status(pid).unwrap(), None);
}

/// Such as when there are too many processes for a moment. Another fork server would have to warm up first.
#[test]
fn a_fork_server_whose_worker_the_system_refuses_is_asked_again() {
    let (server, theirs) = fork_server();
    let (connection, _other) = connection(SocketType::STREAM);
    forks::send(&theirs, &ForkReport::Refused(libc::EAGAIN).encode(), None).unwrap();
    let refused = server.fork(&connection).unwrap_err();
    assert_eq!((refused.raw_os_error(), server.is_lost()), (Some(libc::EAGAIN), false));
    // The first request.
    answer(&theirs);
    server.fork(&connection).unwrap();
}

/// However long it takes to warm up: otherwise each crash would replace it on a slow machine, and all runs would wait
/// for the next one.
#[test]
fn v_705_the_age_of_a_fork_server_begins_when_it_is_warm() {
    let (server, theirs) = fork_server();
    std::thread::sleep(Duration::from_millis(1));
    assert_eq!(server.age(), Duration::ZERO);
    forks::send(&theirs, &ForkReport::Warm.encode(), None).unwrap();
    server.await_warm(|| false).unwrap();
    std::thread::sleep(Duration::from_millis(1));
    assert_ne!(server.age(), Duration::ZERO);
}

/// The system leaves out the descriptor of a message for which a process has no number. If the fork server ended, so would
/// the runs in its workers.
#[test]
fn v_706_a_fork_server_without_a_free_descriptor_refuses_a_worker_and_goes_on() {
    let options = WorkerOptions {
        program: program(WORKER, MARK, 1),
        spare: 1,
        is_python: false,
        counts_fuel: false,
        memory_bytes: Limits::default().memory_bytes,
        caches: Vec::new(),
    };
    let server = ForkServer::start(&options).unwrap();
    server.await_warm(|| false).unwrap();
    forks::send(&server.socket, &REQUEST, None).unwrap();
    assert!(server.is_readable(WATCHDOG));
    let (report, _no_process) = server.receive().unwrap();
    assert_eq!(report, ForkReport::Refused(libc::EMFILE));
    let (connection, _other) = connection(SocketType::STREAM);
    server.fork(&connection).unwrap();
}

/// Before that its workers still have it as their parent, and nobody else can reap them.
#[test]
fn a_status_is_lost_when_the_process_of_the_fork_server_has_ended() {
    let (server, theirs) = fork_server();
    let pid = Pid::from_raw(7).unwrap();
    drop(theirs);
    // Another test may have started a process meanwhile, which has the descriptor until it executes its program.
    assert!(server.is_readable(WATCHDOG));
    assert_eq!(server.take_status(pid).unwrap(), None);
    kill_process(server.pid, Signal::KILL).unwrap();
    let began = Instant::now();
    while server.take_status(pid).is_ok() {
        assert!(began.elapsed() < WATCHDOG, "the process has not ended");
        std::thread::yield_now();
    }
}
