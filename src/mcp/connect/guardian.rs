//! A process that kills the descendants of servers when this process dies.
//!
//! A server's process ends with this one, because the kernel kills it (`end_with_parent`), but the processes that it
//! has started do not: `npx` starts `node`. So one small process for all servers, a shell, knows their process groups
//! and waits for the end of its stdin, which comes with the death of this process, whatever the cause. Then it kills
//! the groups. It is not the parent of any server, so servers run as they would without it.
//!
//! Not killed are processes that have left their server's process group, as daemons do. Without `/bin/sh`, no
//! descendants of servers are killed, unless they end when their stdin closes.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use parking_lot::Mutex;
use rustix::process::Pid;

/// Reads lines: `+` and a process group to add, or `-` and a group whose processes have all ended. At the end it kills
/// the remaining groups. It ignores the signals that a terminal or a supervisor may send to all processes. `kill` takes
/// a group as a negative number.
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
static GUARDIAN: Mutex<GuardianState> = Mutex::new(GuardianState::NotStarted);

enum GuardianState {
    NotStarted,
    Running {
        child: Child,
        stdin: ChildStdin,
    },
    /// The guardian could not be started, or was ended from outside.
    Unavailable,
}

/// Starts the guardian, if that was not attempted before. Takes about a millisecond.
pub(super) fn start() {
    let mut state = GUARDIAN.lock();
    if matches!(*state, GuardianState::NotStarted) {
        *state = spawn().unwrap_or_else(|error| {
            tracing::debug!(%error, "what servers start may outlive this process if it is killed");
            GuardianState::Unavailable
        });
    }
}

/// Makes the guardian kill this process group if this process dies.
pub(super) fn watch(group: Pid) {
    tell('+', group);
}

/// Removes a group that has ended. Its number may be reused.
pub(super) fn forget(group: Pid) {
    tell('-', group);
}

fn tell(change: char, group: Pid) {
    let mut state = GUARDIAN.lock();
    let GuardianState::Running { child, stdin } = &mut *state else { return };
    let line = format!("{change} {}\n", group.as_raw_nonzero());
    // One write of a few bytes to a pipe either writes all of them or fails.
    if let Err(error) = stdin.write_all(line.as_bytes()) {
        tracing::warn!(%error, "what servers start may outlive this process if it is killed");
        // The guardian is stopped or has ended. It is killed in either case, so that it can be reaped.
        let _ended_already = child.kill();
        let _reaped = child.wait();
        *state = GuardianState::Unavailable;
    }
}

fn spawn() -> io::Result<GuardianState> {
    #[expect(clippy::disallowed_methods, reason = "it starts no server")]
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", SCRIPT])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C in a terminal is meant for this process's group.
        .process_group(0);
    let mut child = command.spawn()?;
    let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    // A guardian that is stopped must not stop this process.
    rustix::io::ioctl_fionbio(&stdin, true)?;
    Ok(GuardianState::Running { child, stdin })
}

#[cfg(test)]
mod tests;
