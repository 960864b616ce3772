//! The workers of a pool: how many there are, which one gets a run, and what each does after one.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::job::Job;
use super::run::{ActiveRun, EndedRun};
use crate::engine::allocator::return_freed_memory;
use crate::engine::instance::{Engine, Instance};
use crate::engine::watchdog::Watchdog;
use crate::error::Error;
use crate::machine;
use crate::run::compute::{ComputeSlots, MAX_STALL, OnFreeSlot, Slot, Turn};
use crate::run::context::{ExecutionContext, Measured};
use crate::run::result::{ErrorCode, Outcome, ScriptError};
use crate::sync::{Condvar, Mutex, MutexGuard, now};
use crate::text::panic_message;
use crate::tools::caught::dropped;

/// With more hung workers than this, the engine refuses runs. Each hung worker may hold a core and
/// a heap, and if it never returns, only the end of the process frees them.
pub(super) const MAX_HUNG_WORKERS: usize = 2;

/// Number of consecutive watchdog ticks with too few warm instances before another thread is
/// started.
const PATIENT_TICKS: u32 = 3;

/// How long a surplus worker waits for another run before it ends. Starting a thread and mapping
/// its memory costs more than a short run; a burst of runs is followed by the next one sooner than
/// this, or not at all.
const KEEP_WORKERS: Duration = Duration::from_secs(1);

/// After a run whose thread has touched more new memory than this, in bytes, freed memory is
/// returned to the system at once and not when the pool goes idle. glibc keeps freed memory, and
/// under steady load nothing else would return it. An ordinary run touches less than three quarters
/// of this.
const MUCH_MEMORY: usize = 4 << 20;

/// File descriptors that a worker's runtime opens, and the engine with its first instance.
const RUNTIME_DESCRIPTORS: usize = 8;

/// What the threads of a pool share.
pub(super) struct Shared<E> {
    pub(super) engine: E,
    slots: Arc<ComputeSlots>,
    /// Number of idle instances to keep ready.
    pub(super) warm: usize,
    /// How long an instance waits for a run before its idle trim.
    trim_after: Duration,
    pub(super) state: Mutex<PoolState>,
    /// Signals ready workers that a run may start or that the pool is closed.
    pub(super) work: Condvar,
    /// Signals parked workers that an instance is needed or that the pool is closed.
    pub(super) wanted: Condvar,
    pub(super) watchdog: Watchdog,
}

#[derive(Default)]
pub(super) struct PoolState {
    pub(super) waiting: VecDeque<Job>,
    /// When a run last started, or when the queue last became non-empty, whichever is later.
    pub(super) progressed: Option<Instant>,
    /// Threads that hold a warm instance and wait for a run.
    pub(super) ready: usize,
    /// Threads that make an instance or were told to make one.
    pub(super) warming: usize,
    /// Threads that wait without an instance.
    pub(super) parked: usize,
    /// Threads counted in `warming` that are still parked and have to wake up first.
    pub(super) called: usize,
    /// Hung workers: the watchdog has answered their run in their place.
    pub(super) hung: usize,
    /// All threads, in any state.
    pub(super) workers: usize,
    /// Number of consecutive ticks at which instances were missing.
    pub(super) short_ticks: u32,
    /// Number of threads ever started, used to name them.
    pub(super) started: usize,
    pub(super) closed: bool,
    /// Notified when `ready` reaches `warm`.
    pub(super) warm_waiters: Vec<oneshot::Sender<()>>,
}

impl PoolState {
    /// Whether runs are queued and none has started for [`MAX_STALL`].
    fn is_stalled(&self) -> bool {
        !self.waiting.is_empty()
            && self.progressed.is_some_and(|last| now().duration_since(last) >= MAX_STALL)
    }
}

/// What a worker does after a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Takes the next run: this one did not use the instance.
    TakeAnother,
    /// Makes another instance.
    MakeAnother,
    /// Waits without an instance until one is needed.
    Park,
    /// Ends. Its thread runs at a low priority.
    End,
}

pub(super) fn takes_runs(hung: usize) -> bool {
    hung <= MAX_HUNG_WORKERS
}

impl<E: Engine> OnFreeSlot for Shared<E> {
    fn slot_is_free(self: Arc<Self>) {
        self.dispatch_or_warn();
    }
}

impl<E: Engine> Shared<E> {
    pub(super) fn new(engine: E, warm: usize, trim_after: Duration, slots: Arc<ComputeSlots>) -> Arc<Self> {
        let shared = Arc::new(Self {
            engine,
            slots,
            warm,
            trim_after,
            state: Mutex::default(),
            work: Condvar::new(),
            wanted: Condvar::new(),
            watchdog: Watchdog::default(),
        });
        let listener: Weak<Self> = Arc::downgrade(&shared);
        shared.slots.listen(listener);
        shared
    }

    /// Ensures that runs which may start now have workers.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub(super) fn dispatch(self: &Arc<Self>) -> io::Result<()> {
        let missing = {
            let mut state = self.state.lock();
            if state.closed || state.waiting.is_empty() {
                return Ok(());
            }
            let startable = self.slots.free().max(state.is_stalled().into()).min(state.waiting.len());
            for _ in 0..startable.min(state.ready) {
                self.work.notify_one();
            }
            let missing = startable.saturating_sub(state.ready + state.warming);
            let called = missing.min(state.parked);
            state.parked -= called;
            state.called += called;
            state.warming += called;
            for _ in 0..called {
                self.wanted.notify_one();
            }
            missing - called
        };
        (0..missing).try_for_each(|_| self.start_thread())
    }

    /// Calls [`dispatch`](Self::dispatch) so that a refused thread does not fail a run: the
    /// existing workers serve the queue. If there are none, the run that has waited longest fails,
    /// so that no run waits forever.
    pub(super) fn dispatch_or_warn(self: &Arc<Self>) {
        while let Err(source) = self.dispatch() {
            tracing::warn!(error = %source, "no thread for a run that waits");
            let oldest = {
                let mut state = self.state.lock();
                if state.workers > state.hung {
                    return;
                }
                state.waiting.pop_front()
            };
            if let Some(job) = oldest {
                let _ = job.reply.send(Err(Error::Start { what: "a thread for the script", source }));
            }
        }
    }

    pub(super) fn start_thread(self: &Arc<Self>) -> io::Result<()> {
        let number = {
            let mut state = self.state.lock();
            state.warming += 1;
            state.workers += 1;
            state.started += 1;
            state.started
        };
        let shared = Arc::clone(self);
        let name = format!("{}-{number}", E::THREAD);
        let worker = move || {
            shared.work();
            shared.state.lock().workers -= 1;
            // Queued runs may have waited for this worker, which made no instance or whose thread
            // was hung.
            shared.dispatch_or_warn();
        };
        let started = self.engine.spawn(name, Box::new(worker));
        if started.is_err() {
            let mut state = self.state.lock();
            state.warming -= 1;
            state.workers -= 1;
        }
        started
    }

    /// Starts a thread in place of one that ends after its run.
    fn replace(self: &Arc<Self>) {
        self.start_warm_threads(1);
    }

    /// Starts threads for warm instances, for which no run waits. If the system refuses one, only a warning says so.
    pub(super) fn start_warm_threads(self: &Arc<Self>, count: usize) {
        if let Err(error) = (0..count).try_for_each(|_| self.start_thread()) {
            tracing::warn!(%error, "no thread for a warm instance");
            // Callers of `warm` get fewer instances, but must not wait forever.
            self.state.lock().warm_waiters.clear();
            // Runs queued meanwhile relied on this thread.
            self.dispatch_or_warn();
        }
    }

    /// Starts a thread when warm instances have been missing for [`PATIENT_TICKS`]. Called by the
    /// watchdog at each tick while there are runs. A short run makes the next instance on its own
    /// thread when it ends, and another thread started beside it would only compete with it.
    pub(super) fn maintain(self: &Arc<Self>) {
        self.dispatch_or_warn();
        let wanting = {
            let mut state = self.state.lock();
            let short = !state.closed && state.ready + state.warming < self.warm;
            state.short_ticks = if short { state.short_ticks + 1 } else { 0 };
            state.short_ticks >= PATIENT_TICKS
        };
        if wanting {
            self.replace();
        }
    }

    pub(super) fn refuse(&self, job: Job) {
        let context = ExecutionContext::new(job.script, job.environment);
        let error = ScriptError::new(
            ErrorCode::EngineUnavailable,
            format!(
                "no more runs for now: more than {MAX_HUNG_WORKERS} earlier scripts are in built-in functions that \
                 cannot be interrupted"
            ),
        )
        .with_hint("try again in some seconds; if it stays so, restart the process");
        let result = context.finish(Outcome::Failed(error), Measured::default());
        let _ = job.reply.send(Ok(result));
    }

    /// The main loop of a worker thread.
    fn work(self: &Arc<Self>) {
        let runtime = machine::probe::descriptors(RUNTIME_DESCRIPTORS)
            .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build());
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(source) => {
                return self.making_failed(Error::Start { what: "a runtime for the script", source });
            }
        };
        loop {
            let made = catch_unwind(AssertUnwindSafe(|| runtime.block_on(self.engine.make())));
            let mut instance = match made {
                Ok(Ok(instance)) => instance,
                Ok(Err(message)) => return self.making_failed(Error::WorkerLost { message }),
                Err(panic) => {
                    return self.making_failed(Error::WorkerLost { message: panic_message(&*panic) });
                }
            };
            let (next, touched_bytes) = loop {
                let Some((job, slot)) = self.next_job(&mut instance) else {
                    return;
                };
                match self.perform(&runtime, &mut instance, job, slot) {
                    (Next::TakeAnother, _) => {}
                    used => break used,
                }
            };
            let is_dropped = {
                // Dropping an instance polls nothing, but V8 may post tasks while it is torn down.
                let _entered = runtime.enter();
                let is_dropped = dropped("an instance", instance);
                if touched_bytes > MUCH_MEMORY {
                    self.engine.release_kept_memory();
                    return_freed_memory();
                }
                is_dropped
            };
            if !is_dropped {
                // What is left of it stays with this thread, which must not make another one.
                if next == Next::MakeAnother {
                    self.state.lock().warming -= 1;
                    self.replace();
                } else {
                    self.trim_if_idle();
                }
                return;
            }
            let goes_on = match next {
                Next::TakeAnother | Next::MakeAnother => true,
                Next::Park => self.park(),
                Next::End => {
                    self.trim_if_idle();
                    false
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Waits without an instance until one is needed. Returns `false` if the worker shall end
    /// instead.
    fn park(&self) -> bool {
        let until = now() + KEEP_WORKERS;
        let is_last = {
            let mut state = self.state.lock();
            state.parked += 1;
            loop {
                if state.called > 0 {
                    state.called -= 1;
                    return true;
                }
                if state.closed || self.wanted.wait_until(&mut state, until).timed_out() && state.called == 0
                {
                    break;
                }
            }
            state.parked -= 1;
            state.parked == 0
        };
        if is_last {
            self.trim();
        }
        false
    }

    /// Releases what was kept for other workers if this one, which ends, was the last that had a
    /// run. Otherwise another one that ends or parks does it.
    fn trim_if_idle(&self) {
        let is_idle = {
            let state = self.state.lock();
            let idle = state.ready + state.warming;
            state.parked == 0 && state.waiting.is_empty() && state.workers <= idle + state.hung + 1
        };
        if is_idle {
            self.trim();
        }
    }

    /// Releases what was kept for workers that are gone.
    fn trim(&self) {
        self.engine.trim();
        return_freed_memory();
    }

    /// Handles an instance that cannot be made. The run that has waited longest fails, so that no
    /// run waits forever.
    fn making_failed(&self, error: Error) {
        tracing::error!(?error, threads = E::THREAD, "an instance could not be made");
        let oldest = {
            let mut state = self.state.lock();
            state.warming -= 1;
            // Callers of `warm` get no instance, but must not wait forever.
            state.warm_waiters.clear();
            state.waiting.pop_front()
        };
        if let Some(job) = oldest {
            let _ = job.reply.send(Err(error));
        }
    }

    /// Waits for a run and a compute slot while holding a warm instance. Returns `None` if the
    /// worker shall end.
    fn next_job(&self, instance: &mut E::Instance) -> Option<(Job, Option<Slot>)> {
        let mut is_trimmed = false;
        let mut state = self.state.lock();
        state.warming -= 1;
        state.ready += 1;
        if state.ready >= self.warm {
            for waiter in state.warm_waiters.drain(..) {
                let _ = waiter.send(());
            }
        }
        loop {
            if !state.waiting.is_empty() {
                let slot = self.slots.try_take();
                if (slot.is_some() || state.is_stalled())
                    && let Some(job) = state.waiting.pop_front()
                {
                    state.progressed = Some(now());
                    state.ready -= 1;
                    return Some((job, slot));
                }
            }
            if state.closed {
                state.ready -= 1;
                return None;
            }
            // Surplus workers remain from a time with more concurrent runs.
            let is_surplus = state.ready > self.warm.max(1);
            let patience = match (is_surplus, is_trimmed) {
                // A free slot is signalled. If none becomes free, a run starts after this time.
                _ if !state.waiting.is_empty() => MAX_STALL,
                (true, _) => KEEP_WORKERS,
                (false, false) => self.trim_after,
                (false, true) => {
                    self.work.wait(&mut state);
                    continue;
                }
            };
            let is_idle = self.work.wait_for(&mut state, patience).timed_out() && state.waiting.is_empty();
            if is_idle && is_surplus && state.ready > self.warm.max(1) {
                state.ready -= 1;
                return None;
            }
            if is_idle && !is_surplus && !is_trimmed {
                // A job that is queued meanwhile is found by the next iteration.
                is_trimmed = true;
                MutexGuard::unlocked(&mut state, || {
                    instance.trim();
                    return_freed_memory();
                });
            }
        }
    }

    /// Runs a job on this worker. Returns what the worker does next, and how many bytes of new
    /// memory the run has touched.
    fn perform(
        self: &Arc<Self>,
        runtime: &Runtime,
        instance: &mut E::Instance,
        job: Job,
        slot: Option<Slot>,
    ) -> (Next, usize) {
        let turn = Turn::begun(Arc::clone(&self.slots), slot);
        let shared = Arc::clone(self);
        let run = ActiveRun::begin::<E>(job, turn, instance, move || shared.state.lock().hung += 1);
        // The deadline applies from here on, before the source is processed.
        self.watchdog.watch(Arc::clone(run.watched()));
        let run = run.execute(&self.engine, runtime, instance);
        let used = (self.after_run(&run), run.touched_bytes);
        run.answer();
        used
    }

    /// Decides what this worker does after a run. Called before the reply is sent and the slot is
    /// freed: the client may start the next run at once, which would start a thread if this worker
    /// were not counted yet.
    fn after_run(self: &Arc<Self>, run: &EndedRun) -> Next {
        if run.is_hung() {
            // The worker has returned, but its thread cannot raise its priority again.
            self.state.lock().hung -= 1;
            return Next::End;
        }
        if run.has_low_priority {
            let is_missed = self.lacks_instance(&self.state.lock());
            if is_missed {
                self.replace();
            }
            return Next::End;
        }
        let mut state = self.state.lock();
        if run.is_instance_fresh {
            state.warming += 1;
            Next::TakeAnother
        } else if self.lacks_instance(&state) {
            state.warming += 1;
            Next::MakeAnother
        } else {
            Next::Park
        }
    }

    fn lacks_instance(&self, state: &PoolState) -> bool {
        let idle = state.ready + state.warming;
        !state.closed && (idle < self.warm || state.waiting.len() > idle)
    }
}
