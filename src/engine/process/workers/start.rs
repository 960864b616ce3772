//! Starts a worker process and sends it its first message.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::end::Killer;
use super::{Shared, WorkerOptions, WorkerProcess};
use crate::engine::process::frames::{self, Decoder, RunNumber};
use crate::engine::process::group::Group;
use crate::engine::process::wire::{self, Hello, PROTOCOL, ToWorker};

/// Starts a worker. It warms up by itself.
pub(super) fn start(options: &WorkerOptions, shared: &Arc<Shared>) -> io::Result<WorkerProcess> {
    let (own, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(io::Error::from)?;
    rustix::io::ioctl_fionbio(&own, true)?;
    #[expect(clippy::disallowed_methods, reason = "this starts this program itself, as a worker")]
    let mut command = Command::new(&options.program.program);
    command
        .arg0("cx-worker")
        .args(&options.program.arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A process group of its own: it gets no signals of the terminal, and its priority can be
        // lowered with one call.
        .process_group(0);
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    // The child is not reaped before it is dropped, so no other process has its number.
    let process = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
        let _killed = child.kill();
        let _reaped = child.wait();
    })?;
    // The process waits for its first message, so it does nothing outside of its group. A process
    // that stands for a worker elsewhere executes no script here and needs no group.
    let group = if options.program.stands_in { None } else { Group::for_process(pid) };
    let hello = ToWorker::Hello(Hello {
        protocol: PROTOCOL,
        is_python: options.is_python,
        counts_fuel: options.counts_fuel,
        requires_sandbox: options.program.requires_sandbox,
        memory_bytes: options.memory_bytes as u64,
        caches: options.caches.clone(),
        parent: rustix::process::getpid().as_raw_nonzero().get(),
    });
    let mut out = Vec::new();
    frames::append(&mut out, RunNumber::NONE, &hello, wire::MAX_START_BYTES)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    // A new connection has space for it. If not, the rest is sent with the first run.
    let sent = rustix::net::send(&own, &out, SendFlags::NOSIGNAL).unwrap_or(0);
    out.drain(..sent);
    Ok(WorkerProcess {
        child: Some(child),
        pid,
        killer: Arc::new(Killer::new(process, pid, options.program.stands_in)),
        statm: File::open(format!("/proc/{}/statm", pid.as_raw_nonzero())).ok().map(Arc::new),
        socket: Some(own),
        decoder: Decoder::new(wire::MAX_READY_BYTES),
        out,
        is_ready: false,
        was_ready: false,
        runs: 0,
        idle_since: Instant::now(),
        is_elsewhere: options.program.is_elsewhere,
        group: group.map(Arc::new),
        shared: Arc::clone(shared),
    })
}
