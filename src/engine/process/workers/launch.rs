//! Starts a process of the program, as a worker or as a fork server, and what it is told first.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;

use super::options::WorkerOptions;
use crate::engine::process::frames::{self, RunNumber};
use crate::engine::process::wire::{self, Hello, PROTOCOL, ToWorker};

/// The first message of a process whose parent is `parent`.
pub(super) fn hello(options: &WorkerOptions, parent: Pid, forks: bool) -> io::Result<Vec<u8>> {
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
pub(super) fn sockets(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    let (own, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    rustix::io::ioctl_fionbio(&own, true)?;
    Ok((own, theirs))
}

/// Starts a process of the program.
pub(super) fn launch(options: &WorkerOptions, connection: OwnedFd) -> io::Result<(Child, Pid)> {
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
