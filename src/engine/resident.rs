//! The last line of memory limits: what no meter of an engine sees is still resident memory of the process.
//!
//! Engines count what they know of: heaps, buffers, linear memories. A library below them can allocate what nobody
//! counts. So while there are runs, the process's resident memory is compared with what it was without runs and with what
//! all runs together may use. When it is more, the run whose thread has touched the most new memory is stopped: the
//! kernel counts page faults for each thread. What a program that embeds this library allocates while scripts run is not
//! blamed on them: a run that cannot have touched more than its own limit is never stopped here.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::engine::watchdog::{Stop, StopReason};

/// What runs may use together beyond their limits before one is stopped: code, stacks, the engines' own structures, and
/// the copies of values on their way through the host.
const SLACK_BYTES: usize = 112 << 20;

/// How often resident memory is read, however many watchdogs ask. It costs a system call.
const INTERVAL: Duration = Duration::from_millis(5);

/// The most pages that one page fault brings in: kernels map small allocations in pieces of up to 64 KiB. Where whole huge
/// pages are always used, a fault brings in more, and this guard sees less.
const PAGES_OF_A_FAULT: usize = 16;

/// How much more resident memory there may be than when runs last ended, before what is freed is asked back. Below it,
/// asking costs more than it gives.
const LEFT_BEHIND_BYTES: usize = 16 << 20;

/// Watches the process. Shared by all executors, because resident memory is.
pub(crate) struct ResidentGuard {
    statm: Option<File>,
    page_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    runs: Vec<Arc<Entry>>,
    /// Resident bytes without the runs' share: the least since there were none.
    baseline: usize,
    looked: Option<Instant>,
    /// Resident bytes when there had been no runs for a while, the last time.
    settled: usize,
}

/// A run as this guard sees it.
struct Entry {
    limit: usize,
    stop: Arc<Stop>,
    thread: rustix::process::Pid,
    /// Pages that the thread had touched when the run began.
    faults_before: usize,
}

/// A run that is looked at until this is dropped.
pub(crate) struct ResidentRun {
    entry: Option<Arc<Entry>>,
    guard: &'static ResidentGuard,
}

/// The process's guard.
pub(crate) fn guard() -> &'static ResidentGuard {
    static GUARD: LazyLock<ResidentGuard> = LazyLock::new(|| ResidentGuard {
        statm: File::open("/proc/self/statm").ok(),
        page_bytes: rustix::param::page_size(),
        state: Mutex::default(),
    });
    &GUARD
}

impl ResidentGuard {
    /// Looks after the run that begins on the current thread and may use `limit` bytes.
    pub(crate) fn enter(&'static self, limit: usize, stop: Arc<Stop>) -> ResidentRun {
        let thread = rustix::thread::gettid();
        let entry = self
            .statm
            .is_some()
            .then(|| Arc::new(Entry { limit, stop, thread, faults_before: own_faults() }));
        if let Some(entry) = &entry {
            let mut state = self.state.lock();
            if state.runs.is_empty() {
                state.baseline = self.resident_bytes().unwrap_or(usize::MAX);
            }
            state.runs.push(Arc::clone(entry));
        }
        ResidentRun { entry, guard: self }
    }

    /// Stops a run if the process has more memory than all runs together may use.
    pub(crate) fn check(&self, now: Instant) {
        let mut state = self.state.lock();
        if state.runs.is_empty()
            || state.looked.is_some_and(|looked| now.saturating_duration_since(looked) < INTERVAL)
        {
            return;
        }
        state.looked = Some(now);
        let Some(resident) = self.resident_bytes() else { return };
        state.baseline = state.baseline.min(resident);
        let allowed = state.runs.iter().fold(SLACK_BYTES, |sum, run| sum.saturating_add(run.limit));
        if resident - state.baseline <= allowed {
            return;
        }
        let faults = |run: &Entry| thread_faults(run.thread).unwrap_or(0).saturating_sub(run.faults_before);
        // Of equals the last: the newest.
        let largest = state.runs.iter().map(|run| (faults(run), run)).max_by_key(|(faults, _)| *faults);
        if let Some((faults, run)) = largest
            && faults.saturating_mul(PAGES_OF_A_FAULT * self.page_bytes) > run.limit
        {
            tracing::warn!(resident, allowed, faults, "a run uses memory that its engine does not count");
            run.stop.request(StopReason::Memory);
        }
    }

    /// Called when there have been no runs for a while: calls `give_back` if the last ones have left much memory behind.
    pub(crate) fn settle(&self, give_back: impl FnOnce()) {
        let Some(resident) = self.resident_bytes() else { return };
        let settled = self.state.lock().settled;
        let left = if resident > settled + LEFT_BEHIND_BYTES {
            give_back();
            self.resident_bytes().unwrap_or(resident)
        } else {
            resident
        };
        self.state.lock().settled = left;
    }

    fn resident_bytes(&self) -> Option<usize> {
        // Seven numbers in pages, the second of them resident: `man 5 proc_pid_statm`.
        let mut text = [0; 128];
        let length = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let pages = str::from_utf8(&text[..length]).ok()?.split(' ').nth(1)?.parse::<usize>().ok()?;
        pages.checked_mul(self.page_bytes)
    }
}

impl ResidentRun {
    /// Bytes of memory, at least, that the run's thread has touched for the first time since it began. Called on that
    /// thread.
    pub(crate) fn faulted_bytes(&self) -> usize {
        let Some(entry) = &self.entry else { return 0 };
        own_faults().saturating_sub(entry.faults_before).saturating_mul(self.guard.page_bytes)
    }
}

impl Drop for ResidentRun {
    fn drop(&mut self) {
        if let Some(entry) = &self.entry {
            self.guard.state.lock().runs.retain(|run| !Arc::ptr_eq(run, entry));
        }
    }
}

/// The minor page faults of the current thread.
#[expect(unsafe_code, reason = "no safe crate asks for one thread's usage")]
fn own_faults() -> usize {
    // SAFETY: plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place for the answer.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    if failed == 0 { usize::try_from(usage.ru_minflt).unwrap_or(0) } else { 0 }
}

/// The minor page faults of another thread of this process.
fn thread_faults(thread: rustix::process::Pid) -> Option<usize> {
    // The tenth field; the second is a name in parentheses that may have spaces: `man 5 proc_pid_stat`.
    let text = fs::read_to_string(format!("/proc/self/task/{}/stat", thread.as_raw_nonzero())).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests;
