//! Starts server processes and makes sure that they end. The only place that spawns anything.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::settings::StdioTransport;

/// What a server inherits. Enough to find programs, caches and configuration of its own, to speak
/// the person's language, and to get through a company's proxy and certificates. Tokens live in
/// variables of any other name, so what is not listed stays here: a server that needs one is given
/// it by name. `LD_PRELOAD`, `NODE_OPTIONS` and the like are not listed either, because they change
/// what a program does.
#[rustfmt::skip]
const INHERITED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
];

/// Families of such variables: locale categories, and where caches and configuration live.
const INHERITED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// How much of a server's stderr is kept: its last words, with room for a long stack trace.
const STDERR_KEPT: usize = 64 * 1024;

/// How much of that goes into an error.
const STDERR_SHOWN: usize = 4 * 1024;

/// How long a thread that kills a process waits for the killed process to be gone. A killed process
/// goes at once unless it hangs in the kernel, and then nothing can be done.
const REAP_TRIES: u32 = 50;
const REAP_PAUSE: Duration = Duration::from_millis(2);

/// A server's process and, through its group, that process's descendants. Ends with this value.
pub(super) struct Process {
    id: Pid,
    /// `None` once it has been reaped: its number may then belong to somebody else.
    child: Mutex<Option<Child>>,
    ended: CancellationToken,
    stderr: Arc<Mutex<Tail>>,
}

/// The three pipes of a new process.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// Starts the server's process.
///
/// # Errors
///
/// When the program is not there, is not executable, or the system refuses one more process.
pub(super) async fn spawn(server: &StdioTransport, handle: &Handle) -> io::Result<(Process, Pipes)> {
    let command = command(server)?;
    let handle = handle.clone();
    let (reply, spawned) = oneshot::channel();
    let job = Box::new(move || {
        let _entered = handle.enter();
        // If nobody waits any more, the process is dropped and so killed right here.
        let _unwanted = reply.send(spawn_here(command));
    });
    spawning_thread()?
        .send(job)
        .map_err(|_| io::Error::other("the thread that starts processes has ended"))?;
    spawned.await.map_err(|_| io::Error::other("the thread that starts processes has failed"))?
}

type Job = Box<dyn FnOnce() + Send>;

/// The thread that forks. A child's parent-death signal fires when the *thread* that forked it ends,
/// so this must be a thread that never ends; tokio's come and go.
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
        // Kept, so that the thread lives on when it is given up: its children live with it.
        let _keep = keep;
        for job in jobs {
            // A panic costs its own job; who waits for that sees that the reply is gone.
            let _panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        }
    })?;
    Ok(thread.insert(sender).clone())
}

/// Has another thread start the next process, because this one hangs in the kernel: the program may
/// be on a file system that does not answer.
pub(super) fn give_up_spawning() {
    *SPAWNING.lock() = None;
}

fn spawn_here(mut command: Command) -> io::Result<(Process, Pipes)> {
    let mut child = command.spawn()?;
    let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let id = id.ok_or_else(|| io::Error::other("the new process has no number"))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ended = CancellationToken::new();
    let process =
        Process { id, child: Mutex::new(Some(child)), ended: ended.clone(), stderr: Arc::default() };
    announce_end(id, ended)?;
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("the new process has no pipes"));
    };
    Ok((process, Pipes { stdin, stdout, stderr }))
}

fn command(server: &StdioTransport) -> io::Result<Command> {
    let program = if server.cwd.is_some() && server.command.contains('/') {
        // Else it would be looked for in the server's working directory.
        std::path::absolute(&server.command)?.into_os_string()
    } else {
        OsString::from(&server.command)
    };
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
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

/// Those of our variables that a server gets. This is inheritance, not configuration: nothing in
/// this process depends on what they say.
fn inherited(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            INHERITED.contains(&name) || INHERITED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
    })
}

/// Has the kernel kill the child when this process dies in a way that runs no destructors.
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

/// Elsewhere a server ends because its stdin does.
#[cfg(not(target_os = "linux"))]
fn end_with_parent(_command: &mut Command) {}

impl Process {
    /// The process's number, for logs.
    pub(super) fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// Reads the server's stderr to its end and keeps the last of it. A server whose stderr is not
    /// read stops when the pipe is full.
    pub(super) fn drain(
        &self,
        stderr: impl AsyncRead + Send + Unpin + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        drain(stderr, Arc::clone(&self.stderr))
    }

    /// The last lines of stderr without control characters; empty if there are none.
    pub(super) fn last_words(&self) -> String {
        self.stderr.lock().shown()
    }

    /// Waits until the process has ended. Does not reap it.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Asks the process and its descendants to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills the process and its descendants now. Does not wait.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills what is left of the group and reaps the process if it has ended.
    pub(super) fn reap(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock();
        // Only a process that is not reaped keeps its number from being given away.
        child.as_ref()?;
        let _gone_already = rustix::process::kill_process_group(self.id, Signal::KILL);
        let status = child.as_mut()?.try_wait().ok()??;
        *child = None;
        Some(status)
    }

    /// Reaps a process that was killed. Blocks for a few milliseconds; gives up on one that hangs.
    pub(super) fn reap_killed(&self) {
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
    /// Synchronous, because the runtime may be shutting down: a task would never run.
    fn drop(&mut self) {
        self.kill();
        self.reap_killed();
    }
}

/// Waits for the end of a process without reaping it, and says so. On a thread of its own: there is
/// no safe way to wait for one process on a runtime without reaping it there, and the number of a
/// process that was reaped is no longer safe to kill. Ends with the process.
fn announce_end(id: Pid, ended: CancellationToken) -> io::Result<()> {
    // It calls the kernel and nothing else.
    const STACK_BYTES: usize = 64 * 1024;
    std::thread::Builder::new().name("cx-wait".to_owned()).stack_size(STACK_BYTES).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(id), options) {}
        ended.cancel();
    })?;
    Ok(())
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    fn push(&mut self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(STDERR_KEPT)..];
        let surplus = (self.bytes.len() + piece.len()).saturating_sub(STDERR_KEPT);
        self.bytes.drain(..surplus);
        self.bytes.extend(piece);
    }

    /// The end of it as text for a terminal: no escape sequences, no other control characters, and
    /// no part of a line at the start.
    fn shown(&self) -> String {
        let skipped = self.bytes.len().saturating_sub(STDERR_SHOWN);
        let bytes: Vec<u8> = self.bytes.iter().skip(skipped).copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = if skipped > 0 { text.split_once('\n').map_or(&*text, |(_, rest)| rest) } else { &*text };
        without_controls(text).trim().to_owned()
    }
}

fn without_controls(text: &str) -> String {
    let is_final = |next: &char| ('@'..='~').contains(next);
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // Colours and cursor movements: `ESC [`, parameters, one final letter or sign.
            if characters.next_if_eq(&'[').is_some() {
                while characters.next_if(|next| !is_final(next) && !next.is_control()).is_some() {}
                characters.next_if(is_final);
            }
        } else if !character.is_control() || character == '\n' || character == '\t' {
            clean.push(character);
        }
    }
    clean
}

async fn drain(mut stderr: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        tail.lock().push(&buffer[..length]);
    }
}

/// What is known of how a process ended, as a sentence goes on after its subject.
pub(super) fn describe(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "was stopped".to_owned() };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests;
