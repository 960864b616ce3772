//! Pool of worker threads that hold warm engine instances: V8 isolates, or Python interpreters in
//! WebAssembly. Each instance serves one run, then is dropped and replaced.
//!
//! A worker is ready when its instance is warm. A run starts when a compute slot is free
//! ([`crate::run::compute`]) and a worker is ready. If no worker is ready, a parked worker makes an
//! instance, or a new worker is started. After a run, the worker makes another instance if too few
//! are idle; otherwise it parks. So the number of idle instances settles at `warm`. The number of
//! workers settles at those that compute plus those whose runs wait for tools. Surplus workers end
//! after [`KEEP_WORKERS`].

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio::sync::oneshot;

use crate::engine::allocator::return_freed_memory;
use crate::engine::host::RunHost;
use crate::engine::instance::{Engine, Instance, Unprepared};
use crate::engine::resident;
use crate::engine::stop::{Stop, StopReason};
use crate::engine::watchdog::{CpuMeter, Progress, Watchdog, Watched};
use crate::engine::{failure, hints};
use crate::error::Error;
use crate::machine;
use crate::run::compute::{self, ComputeSlots, MAX_STALL, OnFreeSlot, Slot, Turn};
use crate::run::context::{ExecutionContext, Measured, Purpose, RunEnvironment};
use crate::run::result::{ErrorCode, ExecuteResult, Outcome, ScriptError};
use crate::run::script::Script;
use crate::sync::{self, Condvar, Mutex, MutexGuard, now};

/// With more hung workers than this, the engine refuses runs. Each hung worker may hold a core and
/// a heap, and if it never returns, only the end of the process frees them.
const MAX_HUNG_WORKERS: usize = 2;

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

/// A run to be executed by a worker.
pub(crate) struct Job {
    pub(crate) script: Script,
    pub(crate) environment: RunEnvironment,
    pub(crate) reply: oneshot::Sender<Result<ExecuteResult, Error>>,
    /// A resource that the run occupies. It is dropped when the reply is sent.
    pub(crate) permit: Box<dyn Any + Send>,
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

/// A pool of instances. Dropping it ends the idle threads; busy threads end after their run.
pub(crate) struct Pool<E: Engine> {
    shared: Arc<Shared<E>>,
}

struct Shared<E> {
    engine: E,
    slots: Arc<ComputeSlots>,
    /// Number of idle instances to keep ready.
    warm: usize,
    /// How long an instance waits for a run before its idle trim.
    trim_after: Duration,
    state: Mutex<State>,
    /// Signals ready workers that a run may start or that the pool is closed.
    work: Condvar,
    /// Signals parked workers that an instance is needed or that the pool is closed.
    wanted: Condvar,
    watchdog: Watchdog,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// When a run last started, or when the queue last became non-empty, whichever is later.
    progressed: Option<Instant>,
    /// Threads that hold a warm instance and wait for a run.
    ready: usize,
    /// Threads that make an instance or were told to make one.
    warming: usize,
    /// Threads that wait without an instance.
    parked: usize,
    /// Threads counted in `warming` that are still parked and have to wake up first.
    called: usize,
    /// Hung workers: the watchdog has answered their run in their place.
    hung: usize,
    /// All threads, in any state.
    workers: usize,
    /// Number of consecutive ticks at which instances were missing.
    short_ticks: u32,
    /// Number of threads ever started, used to name them.
    started: usize,
    closed: bool,
    /// Notified when `ready` reaches `warm`.
    warm_waiters: Vec<oneshot::Sender<()>>,
}

impl State {
    /// Whether runs are queued and none has started for [`MAX_STALL`].
    fn is_stalled(&self) -> bool {
        !self.waiting.is_empty()
            && self.progressed.is_some_and(|last| now().duration_since(last) >= MAX_STALL)
    }
}

/// The state of one language's instances at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Instances that are warm and idle.
    pub ready: usize,
    /// Hung workers: their script could not be stopped and its run was answered without them. A
    /// worker that returns is no longer counted.
    pub hung: usize,
    /// Runs that wait for a worker.
    pub waiting: usize,
}

impl PoolStats {
    /// Whether the engine accepts runs. It does not while more than two of its workers hang; it
    /// does again when they return.
    pub fn takes_runs(&self) -> bool {
        takes_runs(self.hung)
    }
}

fn takes_runs(hung: usize) -> bool {
    hung <= MAX_HUNG_WORKERS
}

impl<E: Engine> Pool<E> {
    /// Starts the watchdog and `warm` worker threads. Does not wait for their instances.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub(crate) fn new(engine: E, warm: usize, trim_after: Duration) -> io::Result<Self> {
        Self::with_slots(engine, warm, trim_after, Arc::clone(compute::slots()))
    }

    fn with_slots(
        engine: E,
        warm: usize,
        trim_after: Duration,
        slots: Arc<ComputeSlots>,
    ) -> io::Result<Self> {
        // The watchdog, the root of the workers and the workers.
        machine::check_machine(warm + 2, 0, 0)?;
        let shared = Shared::new(engine, warm, trim_after, slots);
        let watchdog = Arc::clone(&shared);
        sync::spawn("cx-watchdog".to_owned(), move || {
            watchdog.watchdog.run(
                || {
                    watchdog.engine.tick();
                    watchdog.maintain();
                },
                || {
                    // Replies are freed after their workers have made this check, so it is made
                    // again here.
                    resident::guard().idle(return_freed_memory);
                },
            );
        })?;
        let pool = Self { shared };
        for _ in 0..warm {
            pool.shared.start_thread()?;
        }
        Ok(pool)
    }

    /// Queues a run for a worker. The result is sent through the job's reply channel.
    pub(crate) fn submit(&self, job: Job) {
        {
            let mut state = self.shared.state.lock();
            if !takes_runs(state.hung) {
                drop(state);
                return self.shared.refuse(job);
            }
            if state.waiting.is_empty() {
                state.progressed = Some(now());
            }
            state.waiting.push_back(job);
        }
        if let Err(source) = self.shared.dispatch() {
            // Runs that wait for workers that are busy now are still served.
            let newest = self.shared.state.lock().waiting.pop_back();
            if let Some(job) = newest {
                let _ = job.reply.send(Err(Error::Start { what: "a thread for the script", source }));
            }
            // Runs queued meanwhile relied on the thread that was refused.
            self.shared.dispatch_or_warn();
        }
    }

    /// Completes when `warm` instances are ready, or when one could not be made.
    pub(crate) fn warm(&self) -> impl Future<Output = ()> + use<E> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.shared.state.lock();
            if state.ready >= self.shared.warm {
                let _ = sender.send(());
            } else {
                state.warm_waiters.push(sender);
            }
        }
        receiver.map(drop)
    }

    /// The engine of its instances.
    #[cfg(all(feature = "process", target_os = "linux"))]
    pub(crate) fn engine(&self) -> &E {
        &self.shared.engine
    }

    /// The pool's state now.
    pub(crate) fn stats(&self) -> PoolStats {
        let state = self.shared.state.lock();
        PoolStats { ready: state.ready, hung: state.hung, waiting: state.waiting.len() }
    }
}

impl<E: Engine> Drop for Pool<E> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.shared.state.lock();
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        for job in waiting {
            let _ = job.reply.send(Err(Error::Closed));
        }
        self.shared.work.notify_all();
        self.shared.wanted.notify_all();
        self.shared.watchdog.close();
    }
}

impl<E: Engine> OnFreeSlot for Shared<E> {
    fn slot_is_free(self: Arc<Self>) {
        self.dispatch_or_warn();
    }
}

impl<E: Engine> Shared<E> {
    fn new(engine: E, warm: usize, trim_after: Duration, slots: Arc<ComputeSlots>) -> Arc<Self> {
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
    fn dispatch(self: &Arc<Self>) -> io::Result<()> {
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
    fn dispatch_or_warn(self: &Arc<Self>) {
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

    fn start_thread(self: &Arc<Self>) -> io::Result<()> {
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
        if let Err(error) = self.start_thread() {
            tracing::warn!(%error, "no thread for a warm instance");
            // Runs queued meanwhile relied on this thread.
            self.dispatch_or_warn();
        }
    }

    /// Starts a thread when warm instances have been missing for [`PATIENT_TICKS`]. Called by the
    /// watchdog at each tick while there are runs. A short run makes the next instance on its own
    /// thread when it ends, and another thread started beside it would only compete with it.
    fn maintain(self: &Arc<Self>) {
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

    fn refuse(&self, job: Job) {
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
                self.state.lock().warming -= 1;
                return self.fail_one(|| Error::Start { what: "a runtime for the script", source });
            }
        };
        loop {
            let made = catch_unwind(AssertUnwindSafe(|| runtime.block_on(self.engine.make())));
            let mut instance = match made {
                Ok(Ok(instance)) => instance,
                Ok(Err(message)) => return self.making_failed(message),
                Err(panic) => return self.making_failed(panic_message(&panic)),
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
            {
                // Dropping an instance polls nothing, but V8 may post tasks while it is torn down.
                let _entered = runtime.enter();
                drop(instance);
                if touched_bytes > MUCH_MEMORY {
                    self.engine.release_kept_memory();
                    return_freed_memory();
                }
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
    fn making_failed(&self, message: String) {
        tracing::error!(message, threads = E::THREAD, "an instance could not be made");
        {
            let mut state = self.state.lock();
            state.warming -= 1;
            // Callers of `warm` get no instance, but must not wait forever.
            state.warm_waiters.clear();
        }
        self.fail_one(|| Error::WorkerLost { message });
    }

    fn fail_one(&self, error: impl FnOnce() -> Error) {
        let oldest = self.state.lock().waiting.pop_front();
        if let Some(job) = oldest {
            let _ = job.reply.send(Err(error()));
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

    /// Decides what this worker does after a run. Called before the reply is sent and the slot is
    /// freed: the client may start the next run at once, which would start a thread if this worker
    /// were not counted yet.
    fn after_run(&self) -> Next {
        let mut state = self.state.lock();
        if self.lacks_instance(&state) {
            state.warming += 1;
            Next::MakeAnother
        } else {
            Next::Park
        }
    }

    fn lacks_instance(&self, state: &State) -> bool {
        let idle = state.ready + state.warming;
        !state.closed && (idle < self.warm || state.waiting.len() > idle)
    }

    /// Runs a job on this worker. Returns what the worker does next, and how many bytes of new
    /// memory the run has touched.
    fn perform(
        self: &Arc<Self>,
        runtime: &tokio::runtime::Runtime,
        instance: &mut E::Instance,
        job: Job,
        slot: Option<Slot>,
    ) -> (Next, usize) {
        let Job { script, environment, reply, permit } = job;
        let cpu = CpuMeter::start();
        let mut context = ExecutionContext::new(script, environment);
        context.turn = Turn::begun(Arc::clone(&self.slots), slot);
        let context = Arc::new(context);
        let source = &context.script.source;
        instance.set_memory_limit(context.limits().memory_bytes);
        let reply = Arc::new(Mutex::new(Some((reply, permit))));
        let stop = Arc::clone(instance.stop());
        let resident = resident::guard().enter(context.limits().memory_bytes, Arc::clone(&stop));
        let watched = Arc::new(Watched {
            context: Arc::clone(&context),
            stop,
            cpu,
            thread: rustix::thread::gettid(),
            abandon: self.abandon(
                Arc::clone(&context),
                Arc::clone(&reply),
                Arc::downgrade(instance.stop()),
                cpu,
            ),
            progress: Mutex::new(Progress::default()),
            has_low_priority: AtomicBool::new(false),
        });
        // The deadline applies from here on, before the source is processed.
        self.watchdog.watch(Arc::clone(&watched));
        let mut is_prepared = false;
        let check_time = Cell::new(Duration::ZERO);
        let run = catch_unwind(AssertUnwindSafe(|| {
            // The client may have gone while the run was queued; then nothing of the run may
            // happen.
            if context.cancel.is_cancelled() {
                return Outcome::Failed(failure::stopped(watched.stop.reason(), &*context));
            }
            match self.engine.prepare(&*context, source) {
                Ok(mut prepared) => {
                    is_prepared = true;
                    let host: Arc<dyn RunHost> = Arc::clone(&context) as Arc<dyn RunHost>;
                    runtime.block_on(context.turn.compute(async {
                        let asking = Arc::clone(&context);
                        let survey = match instance.survey(&host, source, &mut prepared).await {
                            Ok(survey) => survey,
                            Err(outcome) => return outcome,
                        };
                        match context.purpose() {
                            Purpose::Run => {
                                let began = Instant::now();
                                let refusal = Arc::clone(&context)
                                    .in_runtime(async { asking.preflight(&survey).await })
                                    .await;
                                check_time.set(survey.took + began.elapsed());
                                match refusal {
                                    Some(_) if context.cancel.is_cancelled() => {
                                        Outcome::Failed(failure::stopped(watched.stop.reason(), &*context))
                                    }
                                    Some(error) => Outcome::Failed(error),
                                    None => {
                                        let mut outcome = instance.execute(&host, source, prepared).await;
                                        hints::add(&mut outcome, &context);
                                        context.add_problems(&mut outcome, &survey);
                                        outcome
                                    }
                                }
                            }
                            Purpose::Check { .. } => {
                                let outcome = instance.check(&host, source, prepared).await;
                                context.keep_findings(&survey, &outcome).await;
                                outcome
                            }
                        }
                    }))
                }
                // An error in a source that was not processed to its end says nothing about the
                // source.
                Err(_) if watched.stop.reason().is_some() => {
                    Outcome::Failed(failure::stopped(watched.stop.reason(), &*context))
                }
                Err(unprepared) => {
                    let Unprepared { error, survey } = *unprepared;
                    let mut outcome = Outcome::Failed(error);
                    check_time.set(survey.took);
                    runtime.block_on(context.turn.compute(async {
                        match context.purpose() {
                            Purpose::Run => context.add_problems(&mut outcome, &survey),
                            Purpose::Check { .. } => context.keep_findings(&survey, &outcome).await,
                        }
                        outcome
                    }))
                }
            }
        }));
        let memory_bytes = instance.memory_bytes();
        let (cpu_time, check_time) = (cpu.elapsed() + watched.stop.cpu_time(), check_time.get());
        let measured = Measured { cpu_time, check_time, fuel: instance.fuel_used(), memory_bytes };
        let has_low_priority = watched.done();
        let touched_bytes = resident.faulted_bytes();
        drop(resident);
        let answered = reply.lock().take();
        let is_hung = answered.is_none();
        let next = if is_hung {
            // The watchdog has sent the reply. The worker has returned, but its thread cannot raise
            // its priority again.
            self.state.lock().hung -= 1;
            Next::End
        } else if has_low_priority {
            let is_missed = self.lacks_instance(&self.state.lock());
            if is_missed {
                self.replace();
            }
            Next::End
        } else if run.is_ok() && !is_prepared && watched.stop.reason().is_none() {
            self.state.lock().warming += 1;
            Next::TakeAnother
        } else {
            self.after_run()
        };
        context.turn.end();
        if let Some((reply, permit)) = answered {
            let result = match run {
                Ok(outcome) => {
                    hints::warn_of_null(&outcome, &context);
                    Ok(context.finish(outcome, measured))
                }
                Err(panic) => {
                    context.cancel.cancel();
                    Err(Error::WorkerLost { message: panic_message(&panic) })
                }
            };
            drop(permit);
            let _ = reply.send(result);
            // The receiver of the reply should run first: making the next instance takes two
            // milliseconds, and the scheduler often wakes the receiver on this core.
            std::thread::yield_now();
        }
        (next, touched_bytes)
    }

    /// Returns what the watchdog calls to abandon a run whose thread does not stop.
    fn abandon(
        self: &Arc<Self>,
        context: Arc<ExecutionContext>,
        reply: SharedReply,
        stop: Weak<Stop>,
        cpu: CpuMeter,
    ) -> Box<dyn Fn(StopReason) + Send + Sync> {
        let shared = Arc::clone(self);
        Box::new(move |reason| {
            let Some((reply, permit)) = reply.lock().take() else {
                return;
            };
            shared.state.lock().hung += 1;
            tracing::error!(?reason, "a script cannot be stopped; its worker is abandoned");
            let outcome = Outcome::Failed(failure::stopped(Some(reason), &*context));
            let elsewhere = stop.upgrade().map_or(Duration::ZERO, |stop| stop.cpu_time());
            let measured = Measured { cpu_time: cpu.elapsed() + elsewhere, ..Measured::default() };
            drop(permit);
            let _ = reply.send(Ok(context.finish(outcome, measured)));
        })
    }
}

type SharedReply = Arc<Mutex<Option<(oneshot::Sender<Result<ExecuteResult, Error>>, Box<dyn Any + Send>)>>>;

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
