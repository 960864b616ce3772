//! Threads that hold warm instances of an engine: V8 isolates, or interpreters in WebAssembly. Each
//! serves one run, then is dropped and replaced.
//!
//! A thread is ready when its instance is warm. Runs are handed to ready threads; without one a new
//! thread is started. After a run the thread warms another instance if there are too few, else it
//! ends. So the number of idle instances settles at `warm`, and that of threads at as many runs as
//! there are at once.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::context::{ContextOptions, ExecutionContext, Measured};
use crate::error::Error;
use crate::execution::{ErrorCode, ExecuteResult, Outcome, ScriptError};
use crate::failure;
use crate::watchdog::{CpuMeter, Stop, StopReason, Watchdog, Watched};

/// With more lost threads than this the engine takes no more runs: each may hold a core and a
/// heap, and only the end of the process frees them.
const MOST_LOST_THREADS: usize = 2;

/// For how many of the watchdog's ticks warm isolates may be missing before another thread is started.
const PATIENT_TICKS: u32 = 3;

/// Priority of a thread that cannot be stopped: the weakest, so that it only takes what is left over.
const LOST_THREAD_NICENESS: i32 = 19;

/// What runs scripts of one language.
pub(crate) trait Engine: Send + Sync + Sized + 'static {
    /// What threads are called, with a number behind it.
    const THREAD: &'static str;
    /// Made ahead of time on a thread, used for one run, and dropped there.
    type Instance: Instance<Self>;
    /// A source that is ready to be executed.
    type Prepared;

    /// Runs `task` on a new thread.
    ///
    /// # Errors
    ///
    /// When the operating system refuses it.
    fn spawn(&self, name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        std::thread::Builder::new().name(name).spawn(task).map(drop)
    }

    /// Makes an instance and everything in it that needs no script. The thread's runtime is entered.
    ///
    /// # Errors
    ///
    /// Says in words why there is none.
    fn make(&self) -> impl Future<Output = Result<Self::Instance, String>>;

    /// Does what can be done with a source before it takes an instance.
    ///
    /// # Errors
    ///
    /// The run's error, for a source that cannot be run; the instance serves another run then.
    fn prepare(&self, context: &ExecutionContext, source: &str) -> Result<Self::Prepared, Box<ScriptError>>;

    /// Called every 10 ms while there are runs.
    fn tick(&self) {}
}

/// One use of an engine. Never leaves its thread.
pub(crate) trait Instance<E: Engine> {
    /// How it is stopped.
    fn stop(&self) -> &Arc<Stop>;

    /// Sets how much memory its run may use, in bytes.
    fn set_memory_limit(&mut self, bytes: usize);

    /// Runs a script to its end, or to soon after its context was cancelled.
    fn execute(
        &mut self,
        context: &Arc<ExecutionContext>,
        source: &str,
        prepared: E::Prepared,
    ) -> impl Future<Output = Outcome>;

    /// Bytes of memory that the run uses.
    fn memory_bytes(&self) -> usize;

    /// Called once when no run has come for a while: gives back memory that can be had again, at a cost.
    fn rest(&mut self) {}
}

/// A run on its way to a thread.
pub(crate) struct Job {
    pub(crate) source: String,
    pub(crate) context: ContextOptions,
    pub(crate) reply: oneshot::Sender<Result<ExecuteResult, Error>>,
    /// Whatever the run occupies, given back when its reply is sent.
    pub(crate) permit: Box<dyn Any + Send>,
}

/// A pool of instances. Dropping it ends the idle threads; busy ones end after their run.
pub(crate) struct Pool<E: Engine> {
    shared: Arc<Shared<E>>,
}

struct Shared<E> {
    engine: E,
    /// Idle instances to keep ready.
    warm: usize,
    /// For how long an instance waits for a run before it gives back what it can.
    rest_after: Duration,
    state: Mutex<State>,
    /// A job came, or the pool is closed: for threads.
    work: Condvar,
    watchdog: Watchdog,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// Threads that hold a warm instance and wait.
    ready: usize,
    /// Threads that make an instance.
    warming: usize,
    /// Threads whose run was answered without them.
    lost: usize,
    /// Ticks in a row at which instances were missing.
    short_ticks: u32,
    /// Threads that ever were, to name them.
    started: usize,
    closed: bool,
    /// Told when `ready` reaches the wanted number.
    warm_waiters: Vec<oneshot::Sender<()>>,
}

/// What the instances of one language do at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Instances that are warm and idle.
    pub ready: usize,
    /// Threads that were given up because their script cannot be stopped.
    pub lost: usize,
    /// Runs that wait for a thread.
    pub waiting: usize,
}

impl<E: Engine> Pool<E> {
    /// Starts the watchdog and as many threads as there shall be warm instances. Does not wait for
    /// them.
    ///
    /// # Errors
    ///
    /// When the operating system refuses a thread.
    pub(crate) fn new(engine: E, warm: usize, rest_after: Duration) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            engine,
            warm,
            rest_after,
            state: Mutex::default(),
            work: Condvar::new(),
            watchdog: Watchdog::default(),
        });
        let watchdog = Arc::clone(&shared);
        std::thread::Builder::new().name("cx-watchdog".to_owned()).spawn(move || {
            watchdog.watchdog.run(|| {
                watchdog.engine.tick();
                watchdog.maintain();
            });
        })?;
        let pool = Self { shared };
        for _ in 0..warm {
            pool.shared.start_thread()?;
        }
        Ok(pool)
    }

    /// Hands a run to a thread. The answer comes through the job's reply.
    pub(crate) fn submit(&self, job: Job) {
        let needs_thread = {
            let mut state = self.shared.state.lock();
            if state.lost > MOST_LOST_THREADS {
                drop(state);
                return self.shared.refuse(job);
            }
            state.waiting.push_back(job);
            let served = state.ready + state.warming;
            if state.ready > 0 {
                self.shared.work.notify_one();
            }
            state.waiting.len() > served
        };
        if needs_thread && let Err(source) = self.shared.start_thread() {
            // Runs that wait for threads which are busy now still get theirs.
            let job = self.shared.state.lock().waiting.pop_back();
            if let Some(job) = job {
                let _ = job.reply.send(Err(Error::Start { what: "a thread for the script", source }));
            }
        }
    }

    /// Completes when all instances that shall be warm are, or when one could not be made.
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

    /// The pool's state now.
    pub(crate) fn stats(&self) -> PoolStats {
        let state = self.shared.state.lock();
        PoolStats { ready: state.ready, lost: state.lost, waiting: state.waiting.len() }
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
        self.shared.watchdog.close();
    }
}

impl<E: Engine> Shared<E> {
    fn start_thread(self: &Arc<Self>) -> io::Result<()> {
        let number = {
            let mut state = self.state.lock();
            state.warming += 1;
            state.started += 1;
            state.started
        };
        let shared = Arc::clone(self);
        let name = format!("{}-{number}", E::THREAD);
        let started = self.engine.spawn(name, Box::new(move || shared.work()));
        if started.is_err() {
            self.state.lock().warming -= 1;
        }
        started
    }

    /// Starts a thread when runs have used up the warm instances for a while. Called by the watchdog at
    /// each tick while there are runs: a run that is over soon warms the next instance on its own
    /// thread, and starting another beside it would only get in its way.
    fn maintain(self: &Arc<Self>) {
        let wanting = {
            let mut state = self.state.lock();
            let short = !state.closed && state.ready + state.warming < self.warm;
            state.short_ticks = if short { state.short_ticks + 1 } else { 0 };
            state.short_ticks >= PATIENT_TICKS
        };
        if wanting && let Err(error) = self.start_thread() {
            tracing::warn!(%error, "no thread for a warm instance");
        }
    }

    fn refuse(&self, job: Job) {
        let context = ExecutionContext::new(job.context);
        let error = ScriptError::new(
            ErrorCode::EngineUnavailable,
            "too many threads were lost to scripts that cannot be stopped",
        )
        .with_hint("restart the process");
        let result = context.finish(Outcome::Failed(error), Measured::default());
        let _ = job.reply.send(Ok(result));
    }

    /// A thread's life.
    fn work(self: Arc<Self>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
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
            let goes_on = loop {
                let Some(job) = self.next_job(&mut instance) else {
                    return;
                };
                if let Some(goes_on) = self.perform(&runtime, &mut instance, job) {
                    break goes_on;
                }
            };
            {
                // Dropping an instance polls nothing, but V8 may post tasks while it is torn down.
                let _entered = runtime.enter();
                drop(instance);
            }
            if !goes_on {
                return;
            }
        }
    }

    /// No instance can be made. The run that waits longest is told, so that none waits for ever.
    fn making_failed(&self, message: String) {
        tracing::error!(message, threads = E::THREAD, "an instance could not be made");
        {
            let mut state = self.state.lock();
            state.warming -= 1;
            // Who waits for warm instances gets none, but must not wait for ever.
            state.warm_waiters.clear();
        }
        self.fail_one(|| Error::WorkerLost { message });
    }

    fn fail_one(&self, error: impl FnOnce() -> Error) {
        let job = self.state.lock().waiting.pop_front();
        if let Some(job) = job {
            let _ = job.reply.send(Err(error()));
        }
    }

    /// Waits for a run, with a warm instance in hand. `None` when the thread shall end.
    fn next_job(&self, instance: &mut E::Instance) -> Option<Job> {
        let mut rested = false;
        let mut state = self.state.lock();
        state.warming -= 1;
        state.ready += 1;
        if state.ready >= self.warm {
            for waiter in state.warm_waiters.drain(..) {
                let _ = waiter.send(());
            }
        }
        loop {
            if let Some(job) = state.waiting.pop_front() {
                state.ready -= 1;
                return Some(job);
            }
            // More threads than wanted are left over from a time with more runs at once.
            if state.closed || state.ready > self.warm.max(1) {
                state.ready -= 1;
                return None;
            }
            if rested {
                self.work.wait(&mut state);
            } else if self.work.wait_for(&mut state, self.rest_after).timed_out() && state.waiting.is_empty()
            {
                // A job that comes meanwhile is seen above.
                rested = true;
                MutexGuard::unlocked(&mut state, || {
                    instance.rest();
                    return_freed_memory();
                });
            }
        }
    }

    /// After a run: whether this thread shall make another instance. Asked before the reply is sent: whoever gets it
    /// may ask for the next run at once, which would start a thread if this one did not count already.
    fn another(&self) -> bool {
        let mut state = self.state.lock();
        let idle = state.ready + state.warming;
        let wanted = !state.closed && (idle < self.warm || state.waiting.len() > idle);
        if wanted {
            state.warming += 1;
        }
        wanted
    }

    /// Runs a job. Returns whether this thread shall make another instance, or nothing if this one is not used up: a
    /// script that cannot be prepared leaves it untouched.
    fn perform(
        self: &Arc<Self>,
        runtime: &tokio::runtime::Runtime,
        instance: &mut E::Instance,
        job: Job,
    ) -> Option<bool> {
        let Job { source, context, reply, permit } = job;
        let cpu = CpuMeter::start();
        let context = Arc::new(ExecutionContext::new(context));
        // Whoever asked may have gone while the run waited; then nothing of it must happen.
        let prepared = if context.cancel.is_cancelled() {
            Err(Box::new(failure::stopped(None, &context)))
        } else {
            self.engine.prepare(&context, &source)
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let outcome = Outcome::Failed(*error);
                drop(permit);
                // The next job's turn; this thread is ready again.
                self.state.lock().warming += 1;
                let _ = reply.send(Ok(context.finish(outcome, Measured::default())));
                return None;
            }
        };
        instance.set_memory_limit(context.limits.memory_bytes);
        let reply = Arc::new(Mutex::new(Some((reply, permit))));
        let watched = Arc::new(Watched {
            context: Arc::clone(&context),
            stop: Arc::clone(instance.stop()),
            cpu,
            give_up: self.give_up(Arc::clone(&context), Arc::clone(&reply), cpu),
            state: Mutex::default(),
        });
        self.watchdog.watch(Arc::clone(&watched));
        let run = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(instance.execute(&context, &source, prepared))
        }));
        let memory_bytes = instance.memory_bytes();
        let measured = Measured { cpu_time: cpu.elapsed(), memory_bytes };
        watched.done();
        let goes_on = self.another();
        match reply.lock().take() {
            Some((reply, permit)) => {
                let result = match run {
                    Ok(outcome) => Ok(context.finish(outcome, measured)),
                    Err(panic) => {
                        context.cancel.cancel();
                        Err(Error::WorkerLost { message: panic_message(&panic) })
                    }
                };
                drop(permit);
                let _ = reply.send(result);
                // Whoever waits for the reply comes first: making the next instance takes two
                // milliseconds, and the scheduler often wakes the waiter on this very core.
                std::thread::yield_now();
            }
            // The watchdog has answered. The thread is not lost after all.
            None => self.state.lock().lost -= 1,
        }
        Some(goes_on)
    }

    /// What the watchdog does with a run whose thread does not stop.
    fn give_up(
        self: &Arc<Self>,
        context: Arc<ExecutionContext>,
        reply: SharedReply,
        cpu: CpuMeter,
    ) -> Box<dyn Fn(StopReason) + Send + Sync> {
        let shared = Arc::clone(self);
        let thread = rustix::thread::gettid();
        Box::new(move |reason| {
            let Some((reply, permit)) = reply.lock().take() else {
                return;
            };
            shared.state.lock().lost += 1;
            // Linux keeps a niceness for each thread, by its id.
            if let Err(error) = rustix::process::setpriority_process(Some(thread), LOST_THREAD_NICENESS) {
                tracing::debug!(%error, "a lost thread keeps its priority");
            }
            tracing::error!(?reason, "a script cannot be stopped; its thread is given up");
            let outcome = Outcome::Failed(failure::stopped(Some(reason), &context));
            let measured = Measured { cpu_time: cpu.elapsed(), memory_bytes: 0 };
            drop(permit);
            let _ = reply.send(Ok(context.finish(outcome, measured)));
        })
    }
}

/// Gives the system back what was freed. glibc would keep it for as long as the process lives.
pub(crate) fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "no safe crate has this call")]
        // SAFETY: it takes no pointer, and may be called by any thread at any time.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

type SharedReply = Arc<Mutex<Option<(oneshot::Sender<Result<ExecuteResult, Error>>, Box<dyn Any + Send>)>>>;

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
