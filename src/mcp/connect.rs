//! Starts server processes and ensures that they end. Of the library, only the `guardian` below and
//! `src/engine/process`, which starts this program as a worker, spawn processes as well.
//!
//! A thread waits for each process, because `tokio::process` waits by reaping, and the id of a reaped
//! process, which is also that of its group, must not be killed. A process descriptor with tokio's
//! `AsyncFd` would save the thread, but needs `unsafe`, and this thread anyway on systems and in
//! sandboxes without `pidfd_open`.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::AsyncRead;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::activity::Activity;
use super::settings::StdioTransport;
use super::stderr::{Tail, drain};

mod guardian;

/// Environment variables that a server inherits. They are enough to find programs, caches and
/// configuration, to use the user's language, and to work with a company's proxy and certificates.
/// All others may hold tokens and are not inherited: a server that needs one gets it by its
/// configuration. `LD_PRELOAD`, `NODE_OPTIONS` and similar variables are not listed either, because
/// they change what a program does.
#[rustfmt::skip]
const INHERITED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
];

/// Prefixes of further inherited variables: locale categories, and the locations of caches and
/// configuration.
const INHERITED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// How often, and with which pause, a killed process is polled until it can be reaped. A killed
/// process ends at once unless it hangs in the kernel, and then nothing can be done.
const REAP_TRIES: u32 = 50;
const REAP_PAUSE: Duration = Duration::from_millis(2);

/// A server's process and its process group, which contains its descendants. They are killed when
/// this value is dropped.
pub(crate) struct Process {
    id: Pid,
    /// `None` once it has been reaped: the system may then reuse its process id.
    child: Mutex<Option<Child>>,
    ended: CancellationToken,
    stderr: Arc<Mutex<Tail>>,
}

/// The three pipes of a new process.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// Starts the server's process.
///
/// # Errors
///
/// If the program does not exist or is not executable, or if the system refuses another process.
pub(crate) async fn spawn(server: &StdioTransport, handle: &Handle) -> io::Result<(Process, Pipes)> {
    let command = command(server)?;
    let handle = handle.clone();
    let (reply, spawned) = oneshot::channel();
    let job = Box::new(move || {
        let _entered = handle.enter();
        // If the receiver was dropped, the process is dropped and thereby killed here.
        let _unwanted = reply.send(spawn_here(command));
    });
    let lost = |problem| io::Error::new(io::ErrorKind::BrokenPipe, problem);
    spawning_thread()?.send(job).map_err(|_| lost("the thread that starts processes has ended"))?;
    spawned.await.map_err(|_| lost("the thread that starts processes has failed"))?
}

type Job = Box<dyn FnOnce() + Send>;

/// The thread that forks. A child's parent-death signal is sent when the *thread* that forked it
/// ends, so this must be a thread that never ends; tokio starts and ends its threads as needed.
///
/// Jobs run one after another. Each takes as long as `exec` does.
static SPAWNING: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);

fn spawning_thread() -> io::Result<mpsc::Sender<Job>> {
    let mut thread = SPAWNING.lock();
    if let Some(sender) = &*thread {
        return Ok(sender.clone());
    }
    let (sender, jobs) = mpsc::channel::<Job>();
    let keep = sender.clone();
    std::thread::Builder::new().name("cx-spawn".to_owned()).spawn(move || {
        // Kept, so that the thread continues when it is abandoned: its children would be killed
        // with it.
        let _keep = keep;
        for job in jobs {
            // A panic ends only its own job; the waiting caller sees that the reply channel is
            // closed.
            let _panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        }
    })?;
    Ok(thread.insert(sender).clone())
}

/// Abandons the spawning thread, because it hangs in the kernel: the program may be on a file
/// system that does not respond. The next process is started by another thread.
pub(crate) fn abandon_spawning_thread() {
    *SPAWNING.lock() = None;
}

fn spawn_here(mut command: Command) -> io::Result<(Process, Pipes)> {
    guardian::start();
    let mut child = command.spawn()?;
    let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    // Only a process that has been reaped has no id.
    let id = id.ok_or(Errno::SRCH)?;
    guardian::watch(id);
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ended = CancellationToken::new();
    let process =
        Process { id, child: Mutex::new(Some(child)), ended: ended.clone(), stderr: Arc::default() };
    announce_end(id, ended)?;
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the new process has no pipes"));
    };
    Ok((process, Pipes { stdin, stdout, stderr }))
}

fn command(server: &StdioTransport) -> io::Result<Command> {
    let program = match &server.cwd {
        // As in a shell that has changed to the directory. The standard library leaves open whether
        // the program or the directory comes first.
        Some(cwd) if server.command.contains('/') => {
            std::path::absolute(cwd.join(&server.command))?.into_os_string()
        }
        _ => OsString::from(&server.command),
    };
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts servers")]
    let mut command = Command::new(program);
    command
        .args(&server.args)
        .env_clear()
        .envs(inherited(std::env::vars_os()))
        .envs(&server.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(directory) = &server.cwd {
        command.current_dir(directory);
    }
    end_with_parent(&mut command);
    Ok(command)
}

/// Selects the variables that a server inherits. They are only passed on: this process does not
/// read their values.
fn inherited(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            INHERITED.contains(&name) || INHERITED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
    })
}

/// Makes the kernel kill the child when this process dies without running destructors.
#[cfg(target_os = "linux")]
fn end_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died between the fork and the line above.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()));
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe functions may run, because other threads
    // of the parent may have held locks. `prepare` makes two system calls, allocates nothing
    // (`from_raw_os_error` only stores the number) and captures one integer.
    #[expect(unsafe_code, reason = "a parent-death signal can only be set in the child")]
    unsafe {
        command.pre_exec(prepare);
    }
}

/// On other systems a server ends because its stdin is closed.
#[cfg(not(target_os = "linux"))]
fn end_with_parent(_command: &mut Command) {}

impl Process {
    /// The process id, for logs.
    pub(crate) fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// Reads the server's stderr to its end and keeps its tail. A server whose stderr is not read
    /// would block when the pipe is full.
    pub(crate) fn drain(
        &self,
        stderr: impl AsyncRead + Send + Unpin + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        drain(stderr, Arc::clone(&self.stderr))
    }

    /// The stderr tail without control characters; empty if there is none.
    pub(crate) fn stderr_tail(&self) -> String {
        self.stderr.lock().render()
    }

    /// What the process and its descendants have done so far. Blocks for some microseconds.
    pub(crate) fn activity(&self) -> Activity {
        let stderr_bytes = self.stderr.lock().total;
        Activity::read(self.id(), stderr_bytes)
    }

    /// Waits until the process has ended. Does not reap it.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Sends SIGTERM to the process and its descendants.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGKILL to the process and its descendants. Does not wait.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills the rest of the process group, and reaps the process if it has ended.
    pub(crate) fn reap(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock();
        // Only while the process is not reaped is its id not reused.
        child.as_ref()?;
        let _gone_already = rustix::process::kill_process_group(self.id, Signal::KILL);
        let status = child.as_mut()?.try_wait().ok()??;
        *child = None;
        guardian::forget(self.id);
        Some(status)
    }

    /// Reaps a process that was killed. Blocks for a few milliseconds; stops waiting if the process
    /// hangs.
    pub(crate) fn reap_killed(&self) {
        for _ in 0..REAP_TRIES {
            if self.child.lock().is_none() || self.reap().is_some() {
                return;
            }
            std::thread::sleep(REAP_PAUSE);
        }
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.lock();
        if child.is_some() {
            let _gone_already = rustix::process::kill_process_group(self.id, signal);
        }
    }
}

impl Drop for Process {
    /// Synchronous, because the runtime may be shutting down, and a task would never run.
    fn drop(&mut self) {
        self.kill();
        self.reap_killed();
    }
}

/// Waits for the end of a process without reaping it, then cancels `ended`. The thread ends with the
/// process.
fn announce_end(id: Pid, ended: CancellationToken) -> io::Result<()> {
    // The thread only calls the kernel.
    const STACK_BYTES: usize = 64 * 1024;
    std::thread::Builder::new().name("cx-wait".to_owned()).stack_size(STACK_BYTES).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(id), options) {}
        ended.cancel();
    })?;
    Ok(())
}

/// The [`ConnectionEnd::status`] of a connection whose end has no other explanation.
pub(crate) const CLOSED: &str = "closed the connection";

/// How a connection ended.
pub(crate) struct ConnectionEnd {
    /// The rest of a sentence after the server: `ended with exit status 1`.
    pub(crate) status: String,
    /// The stderr tail of its process; empty if there is none.
    pub(crate) stderr_tail: String,
}

/// Describes how a process ended, as the rest of a sentence after its subject.
pub(crate) fn describe(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "was stopped".to_owned() };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests;
