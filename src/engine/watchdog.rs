//! Stops runs at their limits, and replies in place of threads that do not stop.
//!
//! One thread serves all runs of a pool. V8 has built-in functions that do not check for
//! interrupts, and an embedder's listener may block. Such a thread cannot be stopped from outside,
//! so no reply may depend on it. At its limit a run is asked to stop, repeatedly; if it has not
//! stopped after [`GRACE`], the watchdog sends the reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::engine::resident;
use crate::engine::stop::{Stop, StopReason};
use crate::run::context::ExecutionContext;
use crate::sync::{self, Condvar, Mutex};

/// How long a run may take to stop after it was told to. Unwinding takes microseconds; collecting a
/// full heap takes some hundred milliseconds. Together with two ticks, this keeps the reply within
/// the promised half second after the limit.
const GRACE: Duration = Duration::from_millis(400);

/// How often running scripts are checked. This is the resolution of the CPU limit and of
/// cancellation.
const TICK: Duration = Duration::from_millis(5);

/// How many ticks without a run pass before the watchdog sleeps. Waking it costs a system call;
/// back-to-back runs should not pay for it.
const LINGER_TICKS: u32 = 200;

/// CPU time after which the thread of a run, or its worker process, gets a lower priority than others, so that short
/// runs beside it are fast. Its thread then ends with it, because no thread may raise its own priority again; a new
/// one costs a fraction of a millisecond. Lower values gain nothing for short runs.
pub(super) const SHORT_RUN: Duration = Duration::from_millis(12);

/// Niceness of such a run: about a tenth of the CPU time of a thread beside it, and
/// all that is left over.
pub(super) const LONG_RUN_NICENESS: i32 = 10;

/// Niceness of a hung thread: the lowest priority, so that it only gets CPU time that nothing else
/// needs.
const HUNG_THREAD_NICENESS: i32 = 19;

/// A run that the watchdog supervises.
pub(crate) struct Watched {
    pub(crate) context: Arc<ExecutionContext>,
    pub(crate) stop: Arc<Stop>,
    /// CPU time of the run's thread since the run started.
    pub(crate) cpu: CpuMeter,
    /// The run's thread.
    pub(crate) thread: rustix::thread::Pid,
    /// Called once, by the watchdog, when the run's thread is abandoned.
    pub(crate) abandon: Box<dyn Fn(StopReason) + Send + Sync>,
    pub(crate) phase: Mutex<RunPhase>,
    /// Whether the watchdog has lowered the thread's priority.
    pub(crate) has_low_priority: AtomicBool,
}

/// The phase of a run, as the watchdog sees it.
#[derive(Default)]
pub(crate) enum RunPhase {
    #[default]
    Running,
    /// The run was asked to stop.
    Stopping { since: Instant },
    /// The run is done, or its thread is abandoned: the watchdog ignores it.
    Ended,
}

impl Watched {
    /// Called by the run's thread when it is done. From here on the watchdog ignores the run.
    /// Returns whether the thread has a low priority now, which it cannot raise again.
    pub(crate) fn done(&self) -> bool {
        *self.phase.lock() = RunPhase::Ended;
        self.has_low_priority.load(Ordering::Relaxed)
    }

    /// Sets the niceness of the run's thread, unless it is as high already because the whole process
    /// has a low priority. Linux keeps one for each thread, by its id.
    fn lower_priority(&self, niceness: i32) {
        let thread = Some(self.thread);
        if rustix::process::getpriority_process(thread).is_ok_and(|current| current >= niceness) {
            return;
        }
        if let Err(error) = rustix::process::setpriority_process(thread, niceness) {
            tracing::debug!(%error, "a thread keeps its priority");
        }
    }

    /// Checks the run. Returns whether it must be checked again.
    fn check(&self, now: Instant) -> bool {
        let mut phase = self.phase.lock();
        let stopping_since = match *phase {
            RunPhase::Running => None,
            RunPhase::Stopping { since } => Some(since),
            RunPhase::Ended => return false,
        };
        self.context.turn.reclaim(now);
        let limits = self.context.limits();
        self.stop.measure(limits.memory_bytes);
        let cpu_time = self.cpu.elapsed() + self.stop.cpu_time();
        if cpu_time > SHORT_RUN && !self.has_low_priority.swap(true, Ordering::Relaxed) {
            self.lower_priority(LONG_RUN_NICENESS);
        }
        let reason = self.stop.reason().or_else(|| {
            if now >= self.context.deadline() {
                Some(StopReason::Timeout)
            } else if self.context.cancel.is_cancelled() {
                Some(StopReason::Cancelled)
            } else if cpu_time > limits.cpu_time {
                Some(StopReason::Cpu)
            } else {
                None
            }
        });
        let Some(reason) = reason else {
            return true;
        };
        // Formatting an error runs the script's code again after a first termination, so
        // termination is requested until the thread reports that it is done.
        self.stop.request(reason);
        // A script that waits for a tool is woken only by this.
        self.context.cancel.cancel();
        let since = stopping_since.unwrap_or(now);
        *phase = RunPhase::Stopping { since };
        if now.duration_since(since) >= GRACE {
            *phase = RunPhase::Ended;
            self.lower_priority(HUNG_THREAD_NICENESS);
            self.context.turn.abandon();
            self.stop.abandon();
            (self.abandon)(reason);
            return false;
        }
        true
    }
}

/// The runs that the watchdog supervises.
#[derive(Default)]
pub(crate) struct Watchdog {
    runs: Mutex<Runs>,
    changed: Condvar,
}

#[derive(Default)]
struct Runs {
    watched: Vec<Arc<Watched>>,
    asleep: bool,
    closed: bool,
}

impl Watchdog {
    /// Starts to supervise a run.
    pub(crate) fn watch(&self, run: Arc<Watched>) {
        let mut runs = self.runs.lock();
        runs.watched.push(run);
        if runs.asleep {
            runs.asleep = false;
            self.changed.notify_one();
        }
    }

    /// Ends the watchdog's thread when no run is left.
    pub(crate) fn close(&self) {
        self.runs.lock().closed = true;
        self.changed.notify_one();
    }

    /// Drops all runs, for pools without a watchdog thread: each run holds the pool that holds it.
    #[cfg(test)]
    pub(crate) fn clear(&self) {
        self.runs.lock().watched.clear();
    }

    /// The main loop of the watchdog's thread. `maintain` is called at each tick while there are
    /// runs, `idle` when there have been none for a second.
    pub(crate) fn run(&self, maintain: impl Fn(), idle: impl Fn()) {
        let mut idle_ticks = 0;
        let mut current: Vec<Arc<Watched>> = Vec::new();
        loop {
            if idle_ticks > LINGER_TICKS {
                idle();
            }
            {
                let mut runs = self.runs.lock();
                if runs.watched.is_empty() && runs.closed {
                    return;
                }
                if runs.watched.is_empty() && idle_ticks > LINGER_TICKS {
                    runs.asleep = true;
                    while runs.asleep && !runs.closed {
                        self.changed.wait(&mut runs);
                    }
                    idle_ticks = 0;
                }
                let nearest = runs.watched.iter().map(|run| run.context.deadline()).min();
                let now = sync::now();
                let until = nearest.map_or(TICK, |deadline| {
                    // A deadline in the past belongs to a run that is being stopped.
                    deadline.checked_duration_since(now).map_or(TICK, |left| left.min(TICK))
                });
                self.changed.wait_for(&mut runs, until);
                current.clone_from(&runs.watched);
            }
            idle_ticks = if current.is_empty() { idle_ticks + 1 } else { 0 };
            resident::guard().check(Instant::now());
            let now = sync::now();
            current.retain(|run| !run.check(now));
            if !current.is_empty() {
                let mut runs = self.runs.lock();
                runs.watched.retain(|run| !current.iter().any(|gone| Arc::ptr_eq(run, gone)));
            }
            current.clear();
            maintain();
        }
    }
}

/// A thread's CPU time since a moment, readable from other threads.
#[derive(Clone, Copy)]
pub(crate) struct CpuMeter {
    clock: libc::clockid_t,
    before: Duration,
}

impl CpuMeter {
    /// Starts to measure the current thread's CPU time.
    #[expect(unsafe_code, reason = "no safe crate reads another thread's clock")]
    pub(crate) fn start() -> Self {
        let mut clock = 0;
        // SAFETY: the current thread is alive, and `clock` is valid for the write.
        let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        // It fails only where the system has no such clocks; then the CPU limit measures wall-clock
        // time.
        let clock = if failed == 0 { clock } else { libc::CLOCK_MONOTONIC };
        Self { clock, before: read_clock(clock) }
    }

    /// Starts to measure the CPU time of another process, which must not have been reaped.
    #[cfg(all(feature = "process", target_os = "linux"))]
    #[expect(unsafe_code, reason = "no safe crate reads another process's clock")]
    pub(crate) fn of_process(process: rustix::process::Pid) -> Self {
        let mut clock = 0;
        // SAFETY: `clock` is valid for the write.
        let failed = unsafe { libc::clock_getcpuclockid(process.as_raw_nonzero().get(), &raw mut clock) };
        let clock = if failed == 0 { clock } else { libc::CLOCK_MONOTONIC };
        Self { clock, before: read_clock(clock) }
    }

    /// Starts to measure the CPU time of this process.
    #[cfg(all(feature = "process", target_os = "linux"))]
    pub(crate) fn of_this_process() -> Self {
        let clock = libc::CLOCK_PROCESS_CPUTIME_ID;
        Self { clock, before: read_clock(clock) }
    }

    /// CPU time since the start; zero once the thread has ended.
    pub(crate) fn elapsed(self) -> Duration {
        read_clock(self.clock).saturating_sub(self.before)
    }
}

#[expect(unsafe_code, reason = "no safe crate reads another thread's clock")]
fn read_clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock id is a number; for a thread that has ended the call fails and the time stays
    // zero.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}
