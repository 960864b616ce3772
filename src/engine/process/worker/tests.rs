//! What a worker does that a script has taken over: for tests, in builds for tests only. The first line of the source
//! says which: `// hostile: open`.
#![expect(unsafe_code, reason = "attacks use system calls that no safe crate has")]

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::engine::host::Answer;
use crate::engine::process::connection::{Connection, Waiter, end_process};
use crate::engine::process::frames::{self, RunNumber};
use crate::engine::process::wire::{Done, FromWorker, WireName, WireTerms};
use crate::engine::stop::{Stop, StopReason};
use crate::run::result::{ErrorCode, Outcome, ScriptError};

/// Does what the first line says.
pub(super) fn act(connection: &Arc<Connection>, stop: &Stop, source: &str) {
    let first = source.lines().next().unwrap_or_default();
    let kind = first.strip_prefix("// hostile: ").or_else(|| first.strip_prefix("# hostile: "));
    let Some(kind) = kind else { return };
    let say = |text: String| connection.send(&FromWorker::Log { level: 1, text }).unwrap();
    match kind {
        "abort" => std::process::abort(),
        "overflow" => {
            std::hint::black_box(overflow(1));
        }
        // The test kills the process that it names, as the system does when it has no memory left.
        "kill" => {
            say(std::process::id().to_string());
            connection.flush();
            loop {
                std::thread::park();
            }
        }
        // SAFETY: none: this is the crash.
        "fault" => unsafe { std::ptr::null_mut::<u8>().write_volatile(1) },
        // V8 ends a process in this way when its state is inconsistent.
        "illegal" => {
            // SAFETY: the signal goes to this process, which has no handler for it.
            unsafe { libc::raise(libc::SIGILL) };
        }
        "parent" => {
            let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
            say(format!("{} {parent}", std::process::id()));
        }
        "sockets" => say(blocking_sockets().to_string()),
        "corrupt" => connection.send_raw(&[0xff; 64]),
        "oversize" => {
            let mut bytes = u32::MAX.to_le_bytes().to_vec();
            bytes.extend_from_slice(&connection.run().0.to_le_bytes());
            connection.send_raw(&bytes);
        }
        "other-run" => {
            let mut bytes = Vec::new();
            let message = FromWorker::Log { level: 1, text: "of another run".to_owned() };
            frames::append(&mut bytes, RunNumber(connection.run().0 ^ 2), &message, 1 << 20).unwrap();
            connection.send_raw(&bytes);
        }
        "exit" => end_process(),
        // As an operation of V8 that nothing interrupts.
        "stuck" => {
            stop.request(StopReason::Memory);
            loop {
                std::thread::park();
            }
        }
        // The same, while the script's thread waits for a reply of the executor that does not come.
        "stuck-waiting" => {
            stop.request(StopReason::Memory);
            let _never = connection.await_reply();
        }
        "deaf" => loop {
            std::thread::park();
        },
        "flood" => loop {
            let name = WireName::Pair { server: "none".to_owned(), tool: "none".to_owned() };
            let (arguments, terms) = ("x".repeat(1000), WireTerms::default());
            let call = |call| FromWorker::Call { call, name, arguments, terms };
            let (waiter, _answer) = oneshot::channel();
            let _sent = connection.begin(Waiter::Answer(waiter), call);
            let _sent = connection.send(&FromWorker::Log { level: 1, text: "y".repeat(1000) });
        },
        "denied" => {
            let pair = |server: &str, tool: &str| WireName::Pair { server: server.into(), tool: tool.into() };
            let full = WireName::Full("mcp__mock__denied".to_owned());
            let names = [pair("mock", "denied"), full, pair("none", "denied")];
            say(names.map(|name| called(connection, name)).join(" "));
        }
        "budget" => {
            let free = || WireName::Pair { server: "mock".to_owned(), tool: "free".to_owned() };
            say([0; 6].map(|_| called(connection, free())).join(" "));
        }
        "unanswered" => {
            let waits = || WireName::Pair { server: "mock".to_owned(), tool: "waits".to_owned() };
            let mut answers: Vec<_> = (0..MORE_CALLS).map(|_| begun(connection, waits())).collect();
            connection.flush();
            let refused = answers.split_off(MORE_CALLS - 100);
            let mut codes: Vec<String> =
                refused.into_iter().map(|answer| answered(connection, answer)).collect();
            codes.dedup();
            say(codes.join(" "));
        }
        "unread" => {
            let large = || WireName::Pair { server: "mock".to_owned(), tool: "large".to_owned() };
            let _answers: Vec<_> = (0..LARGE_CALLS).map(|_| begun(connection, large())).collect();
            connection.flush();
            loop {
                std::thread::park();
            }
        }
        "forge" => {
            let error = ScriptError {
                tool_code: Some(crate::tools::ToolErrorCode::ToolDenied),
                ..ScriptError::new(ErrorCode::QueueFull, "I say so")
            };
            connection
                .leave(&FromWorker::Done(Done::from_outcome(
                    Outcome::Failed(error),
                    usize::MAX,
                    Some(u64::MAX),
                )))
                .unwrap();
            loop {
                std::thread::park();
            }
        }
        "memory-bomb" => {
            let mut kept = Vec::new();
            loop {
                kept.push(std::hint::black_box(vec![1_u8; 8 << 20]));
            }
        }
        // The first thread of a forked worker is that of the scripts.
        "leaderless" => {
            // SAFETY: this thread never goes on, so nothing that it has borrowed is used afterwards. It holds no lock.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
        "uncounted" => say(uncounted_memory()),
        "clocks" => {
            let others = named_processes(source);
            // As `clock_getcpuclockid` makes the number of a clock.
            let clock = |process: i64| (!process << 3) | 2;
            let all = |call| others.iter().all(|other| fails(call, [clock(*other), 0, 0, 0]));
            let own = i64::from(libc::CLOCK_PROCESS_CPUTIME_ID);
            say([
                tried("own", fails(libc::SYS_clock_gettime, [own, 0, 0, 0])),
                tried("of others", all(libc::SYS_clock_gettime)),
                tried("resolution", all(libc::SYS_clock_getres)),
            ]
            .join("; "));
        }
        "numbers" => {
            let others = named_processes(source);
            let is_absent =
                |other: i64| error_of(libc::SYS_sched_getaffinity, [other, 0, 0, 0]) == libc::ENOSYS;
            let futex = |command: i32| {
                let command = i64::from(command | libc::FUTEX_PRIVATE_FLAG);
                fails(libc::SYS_futex, [0, command, 0, 0])
            };
            let with_owners = [
                libc::FUTEX_LOCK_PI,
                libc::FUTEX_UNLOCK_PI,
                libc::FUTEX_TRYLOCK_PI,
                libc::FUTEX_WAIT_REQUEUE_PI,
                libc::FUTEX_CMP_REQUEUE_PI,
                libc::FUTEX_LOCK_PI2,
            ];
            say([
                tried("own processors", is_absent(0)),
                tried("those of others", others.iter().all(|other| is_absent(*other))),
                tried("attributes of threads", !std::thread::spawn(has_attributes).join().unwrap()),
                tried("locks", futex(libc::FUTEX_WAKE)),
                tried("locks with owners", with_owners.into_iter().all(futex)),
            ]
            .join("; "));
        }
        "pid" => say(std::process::id().to_string()),
        "open" => say([
            tried("open /etc/passwd", std::fs::File::open("/etc/passwd").is_err()),
            tried("create /tmp/cx-escape", std::fs::write("/tmp/cx-escape", "x").is_err()),
            tried("stat", std::fs::metadata("/etc").is_err()),
            tried("readdir /proc", std::fs::read_dir("/proc").is_err()),
        ]
        .join("; ")),
        "connect" => say([
            tried(
                "socket inet",
                fails(libc::SYS_socket, [libc::AF_INET.into(), libc::SOCK_STREAM.into(), 0, 0]),
            ),
            tried(
                "socket unix",
                fails(libc::SYS_socket, [libc::AF_UNIX.into(), libc::SOCK_STREAM.into(), 0, 0]),
            ),
            tried("pair", std::os::unix::net::UnixStream::pair().is_err()),
        ]
        .join("; ")),
        "signal" => {
            let parent = i64::from(std::os::unix::process::parent_id());
            let others = named_processes(source);
            say([
                tried("kill parent", fails(libc::SYS_kill, [parent, 0, 0, 0])),
                tried("kill others", others.iter().all(|other| fails(libc::SYS_kill, [*other, 0, 0, 0]))),
                tried("kill 1", fails(libc::SYS_tgkill, [1, 1, 0, 0])),
                tried("pidfd", fails(libc::SYS_pidfd_open, [parent, 0, 0, 0])),
            ]
            .join("; "));
        }
        "memory" => {
            let mut others = named_processes(source);
            others.push(i64::from(std::os::unix::process::parent_id()));
            let all = |is_refused: &dyn Fn(i64) -> bool| others.iter().all(|other| is_refused(*other));
            let attach = i64::from(libc::PTRACE_ATTACH);
            let memory = |other: i64| std::fs::File::open(format!("/proc/{other}/mem"));
            say([
                tried("read", all(&|other| fails(libc::SYS_process_vm_readv, [other, 0, 0, 0]))),
                tried("write", all(&|other| fails(libc::SYS_process_vm_writev, [other, 0, 0, 0]))),
                tried("ptrace", all(&|other| fails(libc::SYS_ptrace, [attach, other, 0, 0]))),
                tried("mem", all(&|other| memory(other).is_err())),
            ]
            .join("; "));
        }
        "spawn" => say([
            tried("fork", fails(libc::SYS_clone, [libc::SIGCHLD.into(), 0, 0, 0])),
            tried("exec", fails(libc::SYS_execve, [0, 0, 0, 0])),
            tried("unshare", fails(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0, 0])),
            tried("privileges", fails(libc::SYS_setuid, [0, 0, 0, 0])),
            tried("bpf", fails(libc::SYS_bpf, [0, 0, 0, 0])),
        ]
        .join("; ")),
        "environment" => {
            // Those of the worker: standard streams, the connection, its event loop, and what V8 has.
            let open = (0..1000).filter(|descriptor| {
                // SAFETY: the call reads flags of a number that may be no descriptor.
                unsafe { libc::fcntl(*descriptor, libc::F_GETFD) >= 0 }
            });
            let count = open.count();
            let shown = if count <= 16 { "only its own".to_owned() } else { format!("{count}") };
            // Measured code sets this variable itself: see tests/coverage.
            let variables = std::env::vars_os().filter(|(name, _)| name != "__LLVM_PROFILE_RT_INIT_ONCE");
            say(format!("environment: {}; descriptors: {shown}", variables.count()));
        }
        other => say(format!("unknown: {other}")),
    }
    connection.flush();
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
}

/// Memory that the executor would not see when it measures this process.
fn uncounted_memory() -> String {
    const BYTES: usize = 1 << 20;
    /// The page tables of so many pages of zeros take 512 MiB.
    const MANY_BYTES: usize = 256 << 30;
    let map = |bytes: usize, kind: i32| {
        let flags = kind | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the kernel chooses a place where nothing else is.
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0) }
    };
    let is_refused = |address: *mut libc::c_void| address == libc::MAP_FAILED;
    // Not for want of such pages.
    let is_forbidden = |kind: i32| is_refused(map(BYTES, kind)) && errno() == libc::EPERM;
    let private = map(BYTES, libc::MAP_PRIVATE);
    // SAFETY: the pages are those of this mapping, which nothing else uses.
    let is_ignored = |advice: i32| unsafe { libc::madvise(private, BYTES, advice) } != 0;
    [
        tried("private", is_refused(private)),
        tried("shared", is_forbidden(libc::MAP_SHARED)),
        tried("huge", is_forbidden(libc::MAP_PRIVATE | libc::MAP_HUGETLB)),
        tried("pages of zeros", is_refused(map(MANY_BYTES, libc::MAP_PRIVATE))),
        tried("swap space", is_ignored(libc::MADV_PAGEOUT)),
        tried("merged", is_ignored(libc::MADV_MERGEABLE)),
    ]
    .join("; ")
}

/// The processes whose numbers are in the second line of the source.
fn named_processes(source: &str) -> Vec<i64> {
    let line = source.lines().nth(1).unwrap_or_default();
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// More calls than a run may have that are not answered.
const MORE_CALLS: usize = 11_100;

/// Calls whose answers together are too large for any queue, and which fit into the buffer of a connection themselves.
const LARGE_CALLS: usize = 1_000;

/// Queues a call.
fn begun(connection: &Arc<Connection>, name: WireName) -> oneshot::Receiver<Answer> {
    let (waiter, answer) = oneshot::channel();
    let (arguments, terms) = ("{}".to_owned(), WireTerms::default());
    let call = |call| FromWorker::Call { call, name, arguments, terms };
    connection.begin(Waiter::Answer(waiter), call).unwrap();
    answer
}

/// What the executor answers to it.
fn answered(connection: &Arc<Connection>, mut answer: oneshot::Receiver<Answer>) -> String {
    loop {
        match answer.try_recv() {
            Ok(Ok(_value)) => return "ok".to_owned(),
            Ok(Err(error)) => return error.code.as_str().to_owned(),
            Err(TryRecvError::Closed) => return "no answer".to_owned(),
            Err(TryRecvError::Empty) => {
                let _received = connection.receive(true);
            }
        }
    }
}

/// What the executor answers to a call that is sent now.
fn called(connection: &Arc<Connection>, name: WireName) -> String {
    let answer = begun(connection, name);
    connection.flush();
    answered(connection, answer)
}

/// How many connections this process has whose calls wait, such as that to the executor. Those of tokio do not.
fn blocking_sockets() -> usize {
    let is_socket = |descriptor: i32| {
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: no byte is written to the address.
        let received = unsafe { libc::recv(descriptor, std::ptr::null_mut(), 0, flags) };
        let error = std::io::Error::last_os_error();
        received >= 0 || !matches!(error.raw_os_error(), Some(libc::EBADF | libc::ENOTSOCK))
    };
    // SAFETY: the call reads flags of a number that may be no descriptor.
    let waits = |descriptor: i32| unsafe { libc::fcntl(descriptor, libc::F_GETFL) } & libc::O_NONBLOCK == 0;
    (0..1000).filter(|descriptor| is_socket(*descriptor) && waits(*descriptor)).count()
}

fn tried(what: &str, is_refused: bool) -> String {
    format!("{what}: {}", if is_refused { "refused" } else { "possible" })
}

/// Whether the sandbox refuses a call, and not the kernel for its arguments.
fn fails(number: i64, arguments: [i64; 4]) -> bool {
    matches!(error_of(number, arguments), libc::EPERM | libc::EACCES)
}

/// The error of a call; 0 if it succeeds.
fn error_of(number: i64, [a, b, c, d]: [i64; 4]) -> i32 {
    // SAFETY: a refused call has no effect, and none of those that are made here reads memory of this process by an
    // address that is not null.
    let result = unsafe { libc::syscall(number, a, b, c, d) };
    if result < 0 { std::io::Error::last_os_error().raw_os_error().unwrap_or_default() } else { 0 }
}

/// Whether the C library knows the attributes of this thread, such as its stack, which V8 and Rust ask for. For the
/// first thread of a process it reads them from a file.
fn has_attributes() -> bool {
    let mut attributes = std::mem::MaybeUninit::uninit();
    // SAFETY: the attributes are written to this place, and removed if they were.
    unsafe {
        libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0
            && libc::pthread_attr_destroy(attributes.as_mut_ptr()) == 0
    }
}

#[expect(unconditional_recursion, reason = "this is what it is for")]
fn overflow(depth: u64) -> u64 {
    let kept = std::hint::black_box([depth; 512]);
    overflow(depth + 1) + kept[0]
}
