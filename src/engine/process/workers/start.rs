//! Starts a worker, as a process of its own or by a fork server, and sends it its first message.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::child::WorkerChild;
use super::end::Killer;
use super::forking::ForkServer;
use super::{Shared, WorkerOptions, WorkerProcess};
use crate::engine::process::frames::{self, Decoder, RunNumber};
use crate::engine::process::group::Group;
use crate::engine::process::wire::{self, Hello, PROTOCOL, ToWorker};

/// Starts a worker as a process of the program. It warms up by itself.
pub(super) fn start(options: &WorkerOptions, shared: &Arc<Shared>) -> io::Result<WorkerProcess> {
    let (own, theirs) = sockets(SocketType::STREAM)?;
    let (mut child, pid) = launch(options, theirs)?;
    // The child is not reaped before it is dropped, so no other process has its number.
    let process = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
        let _killed = child.kill();
        let _reaped = child.wait();
    })?;
    greeted(
        options,
        shared,
        Born { own, pid, process: Arc::new(process), child: WorkerChild::Started(child) },
    )
}

/// Lets a fork server make a worker, which is warm.
pub(super) fn fork(
    server: &Arc<ForkServer>,
    options: &WorkerOptions,
    shared: &Arc<Shared>,
) -> io::Result<WorkerProcess> {
    let (own, theirs) = sockets(SocketType::STREAM)?;
    let (pid, process) = server.fork(&theirs)?;
    drop(theirs);
    let process = Arc::new(process);
    let server = Arc::clone(server);
    let child = WorkerChild::Forked { pid, process: Arc::clone(&process), server, status: None };
    greeted(options, shared, Born { own, pid, process, child })
}

/// A process that waits for its first message.
struct Born {
    own: OwnedFd,
    pid: Pid,
    process: Arc<OwnedFd>,
    child: WorkerChild,
}

/// Sends a worker its first message.
fn greeted(options: &WorkerOptions, shared: &Arc<Shared>, born: Born) -> io::Result<WorkerProcess> {
    let Born { own, pid, process, child } = born;
    let parent = match &child {
        WorkerChild::Started(_) => getpid(),
        WorkerChild::Forked { server, .. } => server.pid,
    };
    let program = &options.program;
    // The process waits for its first message, so it does nothing outside of its group. A process
    // that stands for a worker elsewhere executes no script here and needs no group.
    let group = if program.stands_in { None } else { Group::for_process(pid) };
    let mut worker = WorkerProcess {
        child: Some(child),
        pid,
        killer: Arc::new(Killer::new(process, pid, program.stands_in)),
        statm: File::open(format!("/proc/{}/statm", pid.as_raw_nonzero())).ok().map(Arc::new),
        socket: None,
        decoder: Decoder::new(wire::MAX_READY_BYTES),
        out: hello(options, parent, false)?,
        is_ready: false,
        was_ready: false,
        runs: 0,
        idle_since: Instant::now(),
        is_elsewhere: program.is_elsewhere,
        group: group.map(Arc::new),
        shared: Arc::clone(shared),
    };
    // A new connection has space for it. If not, the rest is sent with the first run.
    let sent = rustix::net::send(&own, &worker.out, SendFlags::NOSIGNAL).unwrap_or(0);
    worker.out.drain(..sent);
    worker.socket = Some(own);
    Ok(worker)
}

/// Starts a fork server. Returns its process and the connection to it.
pub(super) fn start_fork_server(options: &WorkerOptions) -> io::Result<(Child, Pid, OwnedFd)> {
    let (own, theirs) = sockets(SocketType::SEQPACKET)?;
    let (mut child, pid) = launch(options, theirs)?;
    let sent = hello(options, getpid(), true)
        .and_then(|hello| Ok(rustix::net::send(&own, &hello, SendFlags::NOSIGNAL)?))
        .inspect_err(|_| {
            let _killed = child.kill();
            let _reaped = child.wait();
        });
    sent.map(|_bytes| (child, pid, own))
}

/// The first message of a process whose parent is `parent`.
fn hello(options: &WorkerOptions, parent: Pid, forks: bool) -> io::Result<Vec<u8>> {
    let hello = ToWorker::Hello(Hello {
        protocol: PROTOCOL,
        is_python: options.is_python,
        counts_fuel: options.counts_fuel,
        requires_sandbox: options.program.requires_sandbox,
        memory_bytes: options.memory_bytes as u64,
        caches: options.caches.clone(),
        parent: parent.as_raw_nonzero().get(),
        forks,
    });
    let mut out = Vec::new();
    frames::append(&mut out, RunNumber::NONE, &hello, wire::MAX_START_BYTES)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok(out)
}

/// Both ends of a connection. This process's end does not block.
fn sockets(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    let (own, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    rustix::io::ioctl_fionbio(&own, true)?;
    Ok((own, theirs))
}

/// Starts a process of the program.
fn launch(options: &WorkerOptions, connection: OwnedFd) -> io::Result<(Child, Pid)> {
    #[expect(clippy::disallowed_methods, reason = "this starts this program itself, as a worker")]
    let mut command = Command::new(&options.program.program);
    command
        .arg0("cx-worker")
        .args(&options.program.arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(connection))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A process group of its own: it gets no signals of the terminal, and its priority can be
        // lowered with one call.
        .process_group(0);
    let child = command.spawn()?;
    let pid = Pid::from_child(&child);
    Ok((child, pid))
}
