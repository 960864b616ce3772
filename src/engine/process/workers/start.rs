//! Starts a worker, as a process of its own or by a fork server, and sends it its first message.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{SendFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::child::WorkerChild;
use super::end::Killer;
use super::forking::ForkServer;
use super::launch::{hello, launch, sockets};
use super::options::{WorkerOptions, WorkerRole};
use super::state::{Shared, WorkerProcess};
use crate::engine::process::frames::Decoder;
use crate::engine::process::group::Group;
use crate::engine::process::wire;

/// Starts a worker as a process of the program. It warms up by itself.
pub(super) fn start(options: &WorkerOptions, shared: &Arc<Shared>) -> io::Result<WorkerProcess> {
    let (own, theirs) = sockets(SocketType::STREAM)?;
    let (mut child, pid) = launch(options, theirs)?;
    // The child is not reaped before it is dropped, so no other process has its number.
    let process = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
        let _killed = child.kill();
        let _reaped = child.wait();
    })?;
    send_hello(
        options,
        shared,
        SpawnedWorker { own, pid, process: Arc::new(process), child: WorkerChild::Started(child) },
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
    send_hello(options, shared, SpawnedWorker { own, pid, process, child })
}

/// A process that waits for its first message.
struct SpawnedWorker {
    own: OwnedFd,
    pid: Pid,
    process: Arc<OwnedFd>,
    child: WorkerChild,
}

/// Sends a worker its first message.
fn send_hello(
    options: &WorkerOptions,
    shared: &Arc<Shared>,
    spawned: SpawnedWorker,
) -> io::Result<WorkerProcess> {
    let SpawnedWorker { own, pid, process, child } = spawned;
    let parent = match &child {
        WorkerChild::Started(_) => getpid(),
        WorkerChild::Forked { server, .. } => server.pid,
    };
    let role = options.program.role;
    let is_queued = role == WorkerRole::Queued;
    // The process waits for its first message, so it does nothing outside of its group. A process
    // that stands for a worker elsewhere executes no script here and needs no group.
    let group = if is_queued { None } else { Group::for_process(pid) };
    let mut worker = WorkerProcess {
        child: Some(child),
        pid,
        killer: Arc::new(Killer::new(process, pid, is_queued)),
        statm: File::open(format!("/proc/{}/statm", pid.as_raw_nonzero())).ok().map(Arc::new),
        socket: None,
        decoder: Decoder::new(wire::MAX_READY_BYTES),
        out: hello(options, parent, false)?,
        is_ready: false,
        was_ready: false,
        runs: 0,
        warm_bytes: None,
        idle_since: Instant::now(),
        is_elsewhere: role.is_elsewhere(),
        group: group.map(Arc::new),
        shared: Arc::clone(shared),
    };
    // A new connection has space for it. If not, the rest is sent with the first run.
    let sent = rustix::net::send(&own, &worker.out, SendFlags::NOSIGNAL).unwrap_or(0);
    worker.out.drain(..sent);
    worker.socket = Some(own);
    Ok(worker)
}
