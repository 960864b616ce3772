//! The program of worker processes: this one, or another.

#[cfg(all(feature = "process", target_os = "linux"))]
use std::path::PathBuf;

#[cfg(all(feature = "nats", target_os = "linux"))]
use super::nats_worker;
#[cfg(all(feature = "process", feature = "mcp", target_os = "linux"))]
use super::remote_worker;
use crate::engine::engines::WorkerProgram;
#[cfg(all(feature = "process", target_os = "linux"))]
use crate::engine::process::WorkerRole;
use crate::error::{Error, OptionName};
use crate::machine::SandboxFeatures;
use crate::run::isolation::{NatsWorkers, RemoteWorkers, WorkerProcesses};

/// The program of the workers.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if there is none, or the machine lacks what is required.
pub(super) fn worker_program(
    workers: &WorkerProcesses,
    kernel: &SandboxFeatures,
) -> Result<WorkerProgram, Error> {
    let invalid = |problem: String| Err(Error::InvalidOptions { option: OptionName::Isolation, problem });
    if workers.runs_per_worker == 0 {
        return invalid("a worker must serve at least one run: `runs_per_worker` is 0".to_owned());
    }
    let missing: Vec<&str> = [("Landlock", kernel.landlock_abi.is_some()), ("seccomp", kernel.seccomp)]
        .into_iter()
        .filter_map(|(name, is_there)| (!is_there).then_some(name))
        .collect();
    if workers.require && !missing.is_empty() {
        return invalid(format!("this kernel lacks what confines worker processes: {}", missing.join(", ")));
    }
    program(workers)
}

#[cfg(all(feature = "process", target_os = "linux"))]
fn program(workers: &WorkerProcesses) -> Result<WorkerProgram, Error> {
    let own = || {
        // The kernel's name for this program, which stays right when the file is replaced by
        // another version.
        is_worker_program().then(|| PathBuf::from("/proc/self/exe"))
    };
    let Some(program) = workers.program.clone().or_else(own) else {
        let problem = "no program for worker processes: call `cx::worker_process()` first in `main`, or set \
                           `WorkerProcesses::program` to a program that does";
        return Err(Error::InvalidOptions { option: OptionName::Isolation, problem: problem.to_owned() });
    };
    Ok(WorkerProgram {
        program,
        arguments: vec![ARGUMENT.to_owned()],
        requires_sandbox: workers.require,
        runs: workers.runs_per_worker,
        role: WorkerRole::Worker { forks: true },
    })
}

#[cfg(not(all(feature = "process", target_os = "linux")))]
fn program(_workers: &WorkerProcesses) -> Result<WorkerProgram, Error> {
    let problem = "worker processes are for Linux, in builds with the feature `process`";
    Err(Error::InvalidOptions { option: OptionName::Isolation, problem: problem.to_owned() })
}

/// The program that stands for workers of another machine.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if there is none, or the address cannot be used.
#[cfg(all(feature = "process", feature = "mcp", target_os = "linux"))]
pub(super) fn remote_worker_program(workers: &RemoteWorkers) -> Result<WorkerProgram, Error> {
    let _usable = remote_worker::parse_url(&workers.url, workers.token_file.is_some())?;
    let mut arguments = vec![remote_worker::ARGUMENT.to_owned(), workers.url.clone()];
    if let Some(file) = &workers.token_file {
        arguments.push(absolute(file)?);
    }
    let local = WorkerProcesses { program: workers.program.clone(), ..WorkerProcesses::default() };
    Ok(WorkerProgram { arguments, role: WorkerRole::Remote, ..program(&local)? })
}

/// A path as an argument of a process that runs in another directory.
#[cfg(all(feature = "process", any(feature = "mcp", feature = "nats"), target_os = "linux"))]
fn absolute(file: &std::path::Path) -> Result<String, Error> {
    let file = std::path::absolute(file).ok().and_then(|file| file.into_os_string().into_string().ok());
    file.ok_or_else(|| Error::InvalidOptions {
        option: OptionName::Isolation,
        problem: "the path of a file for other machines is not UTF-8".to_owned(),
    })
}

/// The program that stands for workers that have joined a queue on a NATS server.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if there is none, or the address or the key cannot be used.
#[cfg(all(feature = "nats", target_os = "linux"))]
pub(super) fn nats_worker_program(workers: &NatsWorkers) -> Result<WorkerProgram, Error> {
    nats_worker::check(workers)?;
    let mut arguments =
        vec![nats_worker::ARGUMENT.to_owned(), workers.url.clone(), absolute(&workers.key_file)?];
    for file in [&workers.credentials_file, &workers.ca_file] {
        arguments.push(file.as_deref().map_or(Ok(String::new()), absolute)?);
    }
    let local = WorkerProcesses { program: workers.program.clone(), ..WorkerProcesses::default() };
    Ok(WorkerProgram { arguments, role: WorkerRole::Queued, ..program(&local)? })
}

/// Refuses, in a build without such workers.
///
/// # Errors
///
/// Always.
#[cfg(not(all(feature = "nats", target_os = "linux")))]
pub(super) fn nats_worker_program(_workers: &NatsWorkers) -> Result<WorkerProgram, Error> {
    let problem = "workers over NATS are for Linux, in builds with the feature `nats`";
    Err(Error::InvalidOptions { option: OptionName::Isolation, problem: problem.to_owned() })
}

/// Refuses, in a build without such workers.
///
/// # Errors
///
/// Always.
#[cfg(not(all(feature = "process", feature = "mcp", target_os = "linux")))]
pub(super) fn remote_worker_program(_workers: &RemoteWorkers) -> Result<WorkerProgram, Error> {
    let problem = "workers of other machines are for Linux, in builds with the features `process` and `mcp`";
    Err(Error::InvalidOptions { option: OptionName::Isolation, problem: problem.to_owned() })
}

#[cfg(all(feature = "process", target_os = "linux"))]
mod worker {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::engine::{engines, process};
    #[cfg(feature = "nats")]
    use crate::executor::nats_worker;
    #[cfg(feature = "mcp")]
    use crate::executor::remote_worker;

    /// The argument with which a program is started as a worker.
    pub(super) const ARGUMENT: &str = "cx-worker-process";

    /// Whether this program becomes a worker when it is started as one.
    static IS_WORKER_PROGRAM: AtomicBool = AtomicBool::new(false);

    pub(super) fn is_worker_program() -> bool {
        IS_WORKER_PROGRAM.load(Ordering::Relaxed)
    }

    /// Makes this process a worker if it was started as one, and does not return then. Otherwise it only notes that
    /// this program can be started as one, and returns at once.
    ///
    /// Call it first in the `main` of a program that uses [`Isolation::Process`](crate::Isolation::Process), before it
    /// starts threads or opens files:
    ///
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), cx::Error> {
    /// cx::worker_process();
    /// let executor = cx::Executor::builder().isolation(cx::Isolation::process()).build()?;
    /// assert_eq!(executor.run_ts("return 1 + 1").await?.value_as::<u32>().ok(), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn worker_process() {
        IS_WORKER_PROGRAM.store(true, Ordering::Relaxed);
        let Some(first) = std::env::args_os().nth(1) else { return };
        // What stands for a worker elsewhere is not confined, because it communicates with another machine.
        #[cfg(feature = "mcp")]
        if first == remote_worker::ARGUMENT {
            remote_worker::run(socket().0, arguments());
        }
        #[cfg(feature = "nats")]
        if first == nats_worker::ARGUMENT {
            nats_worker::run(socket().0, arguments());
        }
        if first == ARGUMENT {
            engines::work(socket());
        }
    }

    /// The connection to the executor, and whether everything else that was inherited is closed. Ends the process if
    /// there is none: a user has started it by hand.
    fn socket() -> (OwnedFd, io::Result<()>) {
        process::own_socket().unwrap_or_else(|_none| process::end_process())
    }

    /// What follows the argument that says what this process is.
    #[cfg(any(feature = "mcp", feature = "nats"))]
    fn arguments() -> impl Iterator<Item = String> {
        std::env::args_os().skip(2).filter_map(|argument| argument.into_string().ok())
    }
}

#[cfg(all(feature = "process", target_os = "linux"))]
pub use self::worker::worker_process;
#[cfg(all(feature = "process", target_os = "linux"))]
use self::worker::{ARGUMENT, is_worker_program};

/// Returns at once: this build has no worker processes.
#[cfg(not(all(feature = "process", target_os = "linux")))]
pub fn worker_process() {}

#[cfg(test)]
#[cfg(all(feature = "process", target_os = "linux"))]
mod tests;
