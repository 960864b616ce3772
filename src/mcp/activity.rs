//! Detects whether a process that does not answer yet is still working: `npx` and `uvx` download a server before they
//! start it, which takes as long as the network needs.
//!
//! Output on stderr counts as activity however old it is: npm prints what it is going to install, and then waits up to
//! a minute for a registry that does not answer, without a byte of I/O or a tick of CPU time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::time::sleep_until;

use super::connect::Process;
use crate::machine::probe;

/// How long a process may be inactive at the end of the time for connecting. Downloads pause for less.
const MAX_QUIET: Duration = Duration::from_secs(5);

/// Samples in that time.
const SAMPLES: u32 = 5;

/// Maximum number of processes of one server that are examined. Package managers start a few.
const MAX_PROCESSES: usize = 256;

/// Minimum activity that counts: 20 ms of CPU time, which are two of Linux's clock ticks, or this many bytes. A process
/// that waits in a loop does less.
const MIN_TICKS: u64 = 2;
const MIN_BYTES: u64 = 1024;

/// The activity of a process and its descendants so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Bytes that were written to stderr.
    pub(crate) stderr_bytes: u64,
    /// The process ids, in the order of the tree.
    processes: Vec<i32>,
    /// CPU time in clock ticks, including that of descendants which have ended.
    ticks: u64,
    /// Bytes that were read and written, of files, pipes and sockets alike.
    bytes: u64,
}

impl Activity {
    /// The activity of the process `root` and its descendants. Reads a few files of `/proc`; on systems without it only
    /// the output to stderr is known.
    pub(crate) fn read(root: i32, stderr_bytes: u64) -> Self {
        let mut activity = Self { stderr_bytes, processes: vec![root], ..Self::default() };
        let mut next = 0;
        while let Some(&process) = activity.processes.get(next) {
            next += 1;
            activity.ticks += ticks(process).unwrap_or(0);
            activity.bytes += bytes(process).unwrap_or(0);
            let room = MAX_PROCESSES.saturating_sub(activity.processes.len());
            activity.processes.extend(children(process).into_iter().take(room));
        }
        activity
    }

    /// Whether the process has written to stderr.
    fn has_written_stderr(&self) -> bool {
        self.stderr_bytes > 0
    }

    /// Whether the process was active between `earlier` and now.
    fn differs(&self, earlier: &Self) -> bool {
        self.stderr_bytes != earlier.stderr_bytes
            || self.processes != earlier.processes
            || self.ticks >= earlier.ticks + MIN_TICKS
            || self.bytes >= earlier.bytes + MIN_BYTES
    }
}

fn ticks(process: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may contain anything. The fields after it begin with the third one of `proc(5)`:
    // 14 to 17 are the times of the process and of those of its children that have ended.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().ok()).sum()
}

fn bytes(process: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let counted =
        |line: &str| line.strip_prefix("rchar:").or(line.strip_prefix("wchar:"))?.trim().parse::<u64>().ok();
    Some(text.lines().filter_map(counted).sum::<u64>())
}

fn children(process: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let mut children = Vec::new();
    for thread in threads.flatten().take(MAX_PROCESSES) {
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(text.split_whitespace().filter_map(|id| id.parse::<i32>().ok()));
    }
    children
}

/// How long a server may take to connect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectTime {
    pub(crate) since: Instant,
    /// The time for every server.
    pub(crate) plain: Duration,
    /// The time for a server that shows activity, if it is longer.
    pub(crate) busy: Duration,
}

/// The time for connecting has passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elapsed {
    pub(crate) after: Duration,
    /// Whether the server showed activity until the end.
    pub(crate) was_alive: bool,
}

impl ConnectTime {
    /// The latest time at which connecting fails.
    pub(crate) fn latest(&self) -> Instant {
        self.since + self.busy.max(self.plain)
    }

    /// The time for a second attempt. It ends no later than that of the first.
    pub(crate) fn again(&self) -> Self {
        let since = Instant::now();
        let left = self.latest().saturating_duration_since(since);
        Self { since, plain: self.plain.min(left), busy: left }
    }

    /// Waits until the time of a server without a process has passed.
    pub(crate) async fn elapsed(self) -> Elapsed {
        sleep_until((self.since + self.plain).into()).await;
        Elapsed { after: self.plain, was_alive: false }
    }

    /// Waits until the time of a server has passed: after the plain time once its process has written nothing to stderr
    /// and was inactive for a while, and at the latest after the busy time.
    pub(crate) async fn elapsed_for(self, process: &Arc<Process>) -> Elapsed {
        if self.busy <= self.plain {
            return self.elapsed().await;
        }
        let max_quiet = MAX_QUIET.min(self.plain / 2);
        // Most servers connect before their activity is examined.
        sleep_until((self.since + self.plain - max_quiet).into()).await;
        let mut last = activity(process).await;
        let mut busy_at = None;
        loop {
            let (plain, next) = (self.since + self.plain, Instant::now() + max_quiet / SAMPLES);
            let next = if Instant::now() < plain { next.min(plain) } else { next.min(self.latest()) };
            sleep_until(next.into()).await;
            let (activity, now) = (activity(process).await, Instant::now());
            if activity.differs(&last) {
                busy_at = Some(now);
                last = activity;
            }
            let was_alive =
                last.has_written_stderr() || busy_at.is_some_and(|at| now.duration_since(at) < max_quiet);
            if now >= self.latest() || (now >= self.since + self.plain && !was_alive) {
                return Elapsed { after: now.duration_since(self.since), was_alive };
            }
        }
    }
}

async fn activity(process: &Arc<Process>) -> Activity {
    let process = Arc::clone(process);
    // Reading `/proc` takes some microseconds, but it can wait for a lock of the process.
    match probe::spawn_blocking(&Handle::current(), move || process.activity()) {
        Ok(looking) => looking.await.unwrap_or_default(),
        // The system provides no thread, so the activity is unknown and counts as none.
        Err(_) => Activity::default(),
    }
}

#[cfg(test)]
mod tests;
