//! Where scripts are executed: in the process of their executor, or in worker processes of it.

use std::path::PathBuf;

/// Where an executor executes its scripts. `docs/isolation.md` says what each promises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// On threads of this process: the fastest. A script that finds a mistake in V8 is in this process.
    #[default]
    InProcess,
    /// In worker processes, which have no files, no network and a filter of system calls. Linux only.
    Process(WorkerProcesses),
    /// In worker processes of a server on another machine, `cx serve --http --compute`. Only the script and what it
    /// is told cross the network: tools, rules, approvals, limits of calls, state and records stay here. Linux only.
    Remote(RemoteWorkers),
    /// In worker processes of the machines that have joined a queue on a NATS server, `cx worker`. The rest is as with
    /// [`Remote`](Self::Remote). Linux only.
    Nats(NatsWorkers),
}

impl Isolation {
    /// The names of the modes, as configurations and arguments have them.
    pub const MODES: [&'static str; 2] = ["in-process", "process"];

    /// The names of the modes that need an address.
    pub const REMOTE: &'static str = "remote";
    /// See [`REMOTE`](Self::REMOTE).
    pub const NATS: &'static str = "nats";

    /// The mode of this name, with its default options.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "in-process" | "none" => Some(Self::InProcess),
            "process" => Some(Self::process()),
            _ => None,
        }
    }

    /// The name of the mode.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Process(_) => "process",
            Self::Remote(_) => Self::REMOTE,
            Self::Nats(_) => Self::NATS,
        }
    }

    /// Worker processes with the default options.
    pub fn process() -> Self {
        Self::Process(WorkerProcesses::default())
    }
}

/// The worker processes of [`Isolation::Process`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerProcesses {
    /// The program that is started as a worker: one that calls [`worker_process`](crate::worker_process),
    /// such as `cx`, of the same version as this crate. `None` for this program itself, which then must call
    /// it first in its `main`.
    pub program: Option<PathBuf>,
    /// How many runs of one client a worker serves, at least one, each in an engine of its own. With one, nothing that a
    /// script leaves behind in a worker can meet another run; each run then costs the start of a process. Workers
    /// never serve two clients.
    pub runs_per_worker: u32,
    /// Whether an executor must not start on a machine that lacks Landlock or system call filters. Otherwise workers
    /// there have a weaker sandbox.
    pub require: bool,
}

/// The server of [`Isolation::Remote`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteWorkers {
    /// Address of the server, such as `https://cx.example.com`.
    pub url: String,
    /// A file with the token that the server expects. It is only sent over TLS, or to this machine.
    pub token_file: Option<PathBuf>,
    /// The program that keeps the connection: one that calls [`worker_process`](crate::worker_process), such as `cx`,
    /// of the same version as this crate. `None` for this program itself, which then must call it first in its `main`.
    pub program: Option<PathBuf>,
}

impl RemoteWorkers {
    /// Workers of this server, without a token.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), token_file: None, program: None }
    }
}

/// The NATS server of [`Isolation::Nats`], and how to speak to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NatsWorkers {
    /// Address of the server, such as `tls://nats.example.com:4222`. The addresses of a cluster have commas
    /// between them.
    pub url: String,
    /// A file with the key that all machines of the queue share, at least 32 characters. Everything that crosses the
    /// server is encrypted with keys that are derived from it.
    pub key_file: PathBuf,
    /// A file with the credentials for the server: as `nsc` writes it, the seed of a user's key, or a JSON object with
    /// `user` and `password` or with a `token`. They are only used over TLS, or on this machine.
    pub credentials_file: Option<PathBuf>,
    /// A file with certificates of authorities, in PEM, that may have signed the server's certificate, beside those of
    /// the system.
    pub ca_file: Option<PathBuf>,
    /// What this executor shares with the others of a tenant; `None`: nothing. [`Executor::work_for_queue`]
    /// does not use it.
    ///
    /// [`Executor::work_for_queue`]: crate::Executor::work_for_queue
    pub shared: Option<SharedTenant>,
    /// The program that keeps the connection: one that calls [`worker_process`](crate::worker_process), such as `cx`,
    /// of the same version as this crate. `None` for this program itself, which then must call it first in its `main`.
    pub program: Option<PathBuf>,
}

/// A tenant whose front ends share the state of scripts, and the records of runs of clients without a session. It is
/// kept by the NATS server, encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedTenant {
    /// The name of the tenant, which is in the names of its buckets: 1 to 32 lower-case letters, digits and hyphens.
    pub name: String,
    /// A file with a key of at least 32 characters. Only front ends of the tenant may have it: no
    /// worker and no other tenant.
    pub key_file: PathBuf,
}

impl NatsWorkers {
    /// The queue on this server, without credentials.
    pub fn new(url: impl Into<String>, key_file: impl Into<PathBuf>) -> Self {
        Self {
            url: url.into(),
            key_file: key_file.into(),
            credentials_file: None,
            ca_file: None,
            shared: None,
            program: None,
        }
    }
}

impl Default for WorkerProcesses {
    fn default() -> Self {
        Self { program: None, runs_per_worker: 1, require: false }
    }
}
