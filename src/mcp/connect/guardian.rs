//! A process that kills what servers have started when this process dies.
//!
//! A server's process ends with this one, because the kernel kills it (`end_with_parent`), but the
//! processes that it has started do not: `npx` starts `node`. So one small process for all servers, a
//! shell, knows their process groups and waits for the end of its stdin, which comes with the death of
//! this process, whatever the cause. Then it kills the groups. It is the parent of nothing, so it
//! changes nothing for the servers.
//!
//! What is not killed: a process that has left its server's process group, as a daemon does. Where
//! there is no `/bin/sh`, nothing that a server has started, unless it ends with its stdin.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use parking_lot::Mutex;
use rustix::process::Pid;

/// Reads lines: `+` and a process group, or `-` and one whose processes have all ended. At the end it
/// kills the groups that are left. The signals are those that a terminal or a supervisor may send to
/// all processes. `kill` takes a group as a negative number.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=' '
while read -r change group; do
    case $change in
        +) groups="$groups$group " ;;
        -) groups="${groups%% $group *} ${groups#* $group }" ;;
    esac
done
for group in $groups; do kill -9 "-$group"; done
"#;

/// The guardian of this process, once a server was started.
static GUARDIAN: Mutex<State> = Mutex::new(State::NotStarted);

enum State {
    NotStarted,
    Running {
        child: Child,
        stdin: ChildStdin,
    },
    /// It could not be started, or was ended from outside.
    Unavailable,
}

/// Starts the guardian, if that has not been tried yet. Takes about a millisecond.
pub(super) fn start() {
    let mut state = GUARDIAN.lock();
    if matches!(*state, State::NotStarted) {
        *state = spawn().unwrap_or_else(|error| {
            tracing::debug!(%error, "what servers start may outlive this process if it is killed");
            State::Unavailable
        });
    }
}

/// The guardian kills this process group if this process dies.
pub(super) fn watch(group: Pid) {
    tell('+', group);
}

/// The group has ended. Its number may be reused.
pub(super) fn forget(group: Pid) {
    tell('-', group);
}

fn tell(change: char, group: Pid) {
    let mut state = GUARDIAN.lock();
    let State::Running { child, stdin } = &mut *state else { return };
    let line = format!("{change} {}\n", group.as_raw_nonzero());
    // One write of a few bytes to a pipe: all of it or an error.
    if let Err(error) = stdin.write_all(line.as_bytes()) {
        tracing::warn!(%error, "what servers start may outlive this process if it is killed");
        // It is stopped, or has ended. Killed either way, so that it can be reaped.
        let _ended_already = child.kill();
        let _reaped = child.wait();
        *state = State::Unavailable;
    }
}

fn spawn() -> io::Result<State> {
    #[expect(clippy::disallowed_methods, reason = "it starts no server")]
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", SCRIPT])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C in a terminal is for this process's group.
        .process_group(0);
    let mut child = command.spawn()?;
    let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    // A guardian that is stopped must not stop this process.
    rustix::io::ioctl_fionbio(&stdin, true)?;
    Ok(State::Running { child, stdin })
}

#[cfg(test)]
mod tests;
