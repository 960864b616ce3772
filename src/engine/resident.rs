//! Backstop for memory limits: compares the process's resident memory with what its runs may use.
//!
//! Engines count the memory they know of: heaps, buffers, linear memories. A library below them can
//! allocate memory that no engine counts. So while there are runs, the process's resident memory is
//! compared with its size without runs plus what all runs together may use. If it is larger, the
//! run whose thread has touched the most new memory is stopped; the kernel counts page faults for
//! each thread. Memory that the embedding program allocates while scripts run is not attributed to
//! them: a run that cannot have touched more than its own limit is never stopped here. Neither is a run for what the
//! thread of an abandoned one holds, which may be a gigabyte (`typescript/memory.rs`) until the process ends.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::engine::stop::{Stop, StopReason};

/// Memory that all runs together may use beyond their limits before one is stopped: code, stacks,
/// the engines' own structures, and copies of values in transit through the host.
const SLACK_BYTES: usize = 112 << 20;

/// Minimum interval between reads of resident memory, however many watchdogs call. A read costs a
/// system call.
const INTERVAL: Duration = Duration::from_millis(5);

/// Maximum number of pages that one page fault maps, where the kernel does not say.
const PAGES_OF_A_FAULT: usize = 16;

/// Where Linux says which sizes of pages it maps at a fault, and for whom:
/// `Documentation/admin-guide/mm/transhuge.rst`.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

/// Growth of resident memory since runs last ended above which freed memory is returned to the
/// system. Below it, returning it costs more than it gains.
const LEFT_BEHIND_BYTES: usize = 16 << 20;

/// Monitors the process's resident memory. Shared by all executors, because resident memory is too.
pub(crate) struct ResidentGuard {
    statm: Option<File>,
    page_bytes: usize,
    /// Maximum bytes that one page fault maps.
    fault_bytes: usize,
    state: Mutex<ResidentState>,
}

#[derive(Default)]
struct ResidentState {
    runs: Vec<Arc<Entry>>,
    /// Resident bytes without the runs' share: the minimum since there were no runs.
    baseline: usize,
    looked: Option<Instant>,
    /// Resident bytes when there had last been no runs for a while.
    idle_bytes: usize,
}

/// A run that this guard monitors.
struct Entry {
    limit: usize,
    stop: Arc<Stop>,
    thread: rustix::process::Pid,
    /// Page faults of the thread when the run started.
    faults_before: usize,
}

/// A run that is monitored until this is dropped.
pub(crate) struct ResidentRun {
    entry: Option<Arc<Entry>>,
    guard: &'static ResidentGuard,
}

/// The process's guard.
pub(crate) fn guard() -> &'static ResidentGuard {
    static GUARD: LazyLock<ResidentGuard> = LazyLock::new(|| ResidentGuard {
        statm: File::open("/proc/self/statm").ok(),
        page_bytes: rustix::param::page_size(),
        fault_bytes: max_fault_bytes(Path::new(HUGE_PAGES)),
        state: Mutex::default(),
    });
    &GUARD
}

impl ResidentGuard {
    /// Monitors the run that starts on the current thread and may use `limit` bytes.
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
        let faults = |run: &Entry| thread_faults(run.thread).unwrap_or(0).saturating_sub(run.faults_before);
        // What an abandoned run holds may never be free. It was asked to stop, and no other run is stopped for it.
        let held = |run: &Entry| {
            let is_abandoned = run.stop.is_abandoned();
            if is_abandoned { faults(run).saturating_mul(self.fault_bytes).max(run.limit) } else { run.limit }
        };
        let allowed = state.runs.iter().fold(SLACK_BYTES, |sum, run| sum.saturating_add(held(run)));
        if resident - state.baseline <= allowed {
            return;
        }
        let running = state.runs.iter().filter(|run| !run.stop.is_abandoned());
        // Of equals this takes the last one, which is the newest.
        let largest = running.map(|run| (faults(run), run)).max_by_key(|(faults, _)| *faults);
        if let Some((faults, run)) = largest
            && faults.saturating_mul(self.fault_bytes) > run.limit
        {
            tracing::warn!(resident, allowed, faults, "a run uses memory that its engine does not count");
            run.stop.request(StopReason::Memory);
        }
    }

    /// Called when there have been no runs for a while. Calls `give_back` if resident memory has
    /// grown by more than [`LEFT_BEHIND_BYTES`].
    pub(crate) fn idle(&self, give_back: impl FnOnce()) {
        let Some(resident) = self.resident_bytes() else { return };
        let before = self.state.lock().idle_bytes;
        let left = if resident > before + LEFT_BEHIND_BYTES {
            give_back();
            self.resident_bytes().unwrap_or(resident)
        } else {
            resident
        };
        self.state.lock().idle_bytes = left;
    }

    /// Resident memory of this process in bytes. `None` where there is no `/proc`.
    pub(crate) fn resident_bytes(&self) -> Option<usize> {
        resident_bytes(self.statm.as_ref()?)
    }
}

/// Resident memory of the process whose `/proc/PID/statm` this is, in bytes. It is 0 only if the process has ended and
/// is not reaped, or if its first thread has ended: the kernel tells nothing of the memory of the others then. `None`
/// if the process was reaped.
pub(super) fn resident_bytes(statm: &File) -> Option<usize> {
    // Seven numbers in pages, the first of them mapped, and the second resident: `man 5 proc_pid_statm`.
    let mut text = [0; 128];
    let length = statm.read_at(&mut text, 0).ok()?;
    let mut numbers = str::from_utf8(text.get(..length)?).ok()?.split(' ');
    let mut pages = || numbers.next()?.parse::<usize>().ok();
    let (mapped, resident) = (pages()?, pages()?);
    // Before Linux 6.16 resident pages are counted late: a process that has just started may seem to have none.
    let resident = if mapped == 0 { 0 } else { resident.max(1) };
    resident.checked_mul(rustix::param::page_size())
}

impl ResidentRun {
    /// Lower bound of the memory, in bytes, that the run's thread has touched for the first time
    /// since the run started. Called on that thread.
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

/// Maximum bytes that one page fault maps in memory for which huge pages were not requested, as for
/// the engines. `directory` is [`HUGE_PAGES`]; it has a directory for each size.
fn max_fault_bytes(directory: &Path) -> usize {
    let page = rustix::param::page_size();
    let chosen = |path: &Path| {
        let text = fs::read_to_string(path.join("enabled")).ok()?;
        text.split_ascii_whitespace().find(|word| word.starts_with('[')).map(str::to_owned)
    };
    let general = chosen(directory);
    let Ok(sizes) = fs::read_dir(directory) else { return PAGES_OF_A_FAULT * page };
    let always = sizes.flatten().filter_map(|size| {
        let kilobytes = size.file_name().to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse();
        let kilobytes: usize = kilobytes.ok()?;
        let of_size = chosen(&size.path())?;
        let is_always =
            of_size == "[always]" || of_size == "[inherit]" && general.as_deref() == Some("[always]");
        is_always.then(|| kilobytes.saturating_mul(1024))
    });
    let is_old = general.as_deref() == Some("[always]");
    // Kernels before 6.8 have one size and no directories.
    always.max().unwrap_or(if is_old { PAGES_OF_A_FAULT * page } else { page })
}

/// The minor page faults of the current thread.
#[expect(unsafe_code, reason = "no safe crate asks for one thread's usage")]
fn own_faults() -> usize {
    // SAFETY: the struct holds plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for the write.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    if failed == 0 { usize::try_from(usage.ru_minflt).unwrap_or(0) } else { 0 }
}

/// The minor page faults of another thread of this process.
fn thread_faults(thread: rustix::process::Pid) -> Option<usize> {
    // The tenth field. The second is a name in parentheses that may contain spaces:
    // `man 5 proc_pid_stat`.
    let text = fs::read_to_string(format!("/proc/self/task/{}/stat", thread.as_raw_nonzero())).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests;
