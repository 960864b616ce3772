//! Threads that hold warm isolates: each isolate serves one run, then is dropped and replaced.
//!
//! A thread is ready when its isolate is warm. Runs are handed to ready threads; without one a new
//! thread is started. After a run the thread warms another isolate if there are too few, else it
//! ends. So the number of idle isolates settles at [`PoolOptions::warm`], and that of threads at as
//! many runs as there are at once.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::FutureExt as _;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::isolate::{Isolate, RawOutcome};
use super::loader::export_names;
use super::platform;
use super::report::{self, Evidence};
use super::strip::{Stripped, strip};
use super::watchdog::{CpuMeter, StopReason, Watchdog, Watched};
use crate::context::{ContextOptions, ExecutionContext, Measured};
use crate::error::Error;
use crate::execution::{ErrorCode, ExecuteResult, Outcome, ScriptError};
use crate::tools::names::nearest;

/// With more lost threads than this the engine takes no more runs: each may hold a core and a
/// heap, and only the end of the process frees them.
const MOST_LOST_THREADS: usize = 2;

/// For how many of the watchdog's ticks warm isolates may be missing before another thread is started.
const PATIENT_TICKS: u32 = 3;

/// Priority of a thread that cannot be stopped: the weakest, so that it only takes what is left over.
const LOST_THREAD_NICENESS: i32 = 19;

/// What a pool is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolOptions {
    /// Idle isolates to keep ready.
    pub(crate) warm: usize,
    /// Heap that isolates are made with. A run that may use more gets more.
    pub(crate) memory_bytes: usize,
}

/// A run on its way to a thread.
pub(crate) struct Job {
    pub(crate) source: String,
    pub(crate) context: ContextOptions,
    pub(crate) reply: oneshot::Sender<Result<ExecuteResult, Error>>,
    /// Whatever the run occupies, given back when its reply is sent.
    pub(crate) permit: Box<dyn Any + Send>,
}

/// A pool of isolates. Dropping it ends the idle threads; busy ones end after their run.
pub(crate) struct IsolatePool {
    shared: Arc<Shared>,
}

struct Shared {
    options: PoolOptions,
    state: Mutex<State>,
    /// A job came, or the pool is closed: for threads.
    work: Condvar,
    watchdog: Watchdog,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// Threads that hold a warm isolate and wait.
    ready: usize,
    /// Threads that make an isolate.
    warming: usize,
    /// Threads whose run was answered without them.
    lost: usize,
    /// Ticks in a row at which isolates were missing.
    short_ticks: u32,
    /// Threads that ever were, to name them.
    started: usize,
    closed: bool,
    /// Told when `ready` reaches the wanted number.
    warm_waiters: Vec<oneshot::Sender<()>>,
}

/// The pool's state at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IsolateStats {
    /// Isolates that are warm and idle.
    pub ready: usize,
    /// Threads that were given up because their script cannot be stopped.
    pub lost: usize,
    /// Runs that wait for a thread.
    pub waiting: usize,
}

impl IsolatePool {
    /// Starts the watchdog and as many threads as there shall be warm isolates. Does not wait for
    /// them.
    ///
    /// # Errors
    ///
    /// When the operating system refuses a thread.
    pub(crate) fn new(options: PoolOptions) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            options,
            state: Mutex::default(),
            work: Condvar::new(),
            watchdog: Watchdog::default(),
        });
        let watchdog = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("cx-watchdog".to_owned())
            .spawn(move || watchdog.watchdog.run(|| watchdog.maintain()))?;
        let pool = Self { shared };
        for _ in 0..options.warm {
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

    /// Completes when all isolates that shall be warm are.
    pub(crate) fn warm(&self) -> impl Future<Output = ()> + use<> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.shared.state.lock();
            if state.ready >= self.shared.options.warm {
                let _ = sender.send(());
            } else {
                state.warm_waiters.push(sender);
            }
        }
        receiver.map(drop)
    }

    /// The pool's state now.
    pub(crate) fn stats(&self) -> IsolateStats {
        let state = self.shared.state.lock();
        IsolateStats { ready: state.ready, lost: state.lost, waiting: state.waiting.len() }
    }
}

impl Drop for IsolatePool {
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

impl Shared {
    fn start_thread(self: &Arc<Self>) -> io::Result<()> {
        let number = {
            let mut state = self.state.lock();
            state.warming += 1;
            state.started += 1;
            state.started
        };
        let shared = Arc::clone(self);
        let started = platform::spawn(format!("cx-js-{number}"), Box::new(move || shared.work()));
        if started.is_err() {
            self.state.lock().warming -= 1;
        }
        started
    }

    /// Starts a thread when runs have used up the warm isolates for a while. Called by the watchdog at
    /// each tick while there are runs: a run that is over soon warms the next isolate on its own
    /// thread, and starting another beside it would only get in its way.
    fn maintain(self: &Arc<Self>) {
        let wanting = {
            let mut state = self.state.lock();
            let short = !state.closed && state.ready + state.warming < self.options.warm;
            state.short_ticks = if short { state.short_ticks + 1 } else { 0 };
            state.short_ticks >= PATIENT_TICKS
        };
        if wanting && let Err(error) = self.start_thread() {
            tracing::warn!(%error, "no thread for a warm isolate");
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
            let made = {
                let _entered = runtime.enter();
                catch_unwind(AssertUnwindSafe(|| Isolate::new(self.options.memory_bytes)))
            };
            let mut isolate = match made {
                Ok(Ok(isolate)) => isolate,
                Ok(Err(message)) => return self.isolate_failed(message),
                Err(panic) => return self.isolate_failed(panic_message(&panic)),
            };
            let mut used = false;
            while !used {
                let Some(job) = self.next_job() else {
                    return;
                };
                used = self.perform(&runtime, &mut isolate, job);
            }
            {
                // Dropping an isolate polls nothing, but V8 may post tasks while it is torn down.
                let _entered = runtime.enter();
                drop(isolate);
            }
            if !self.another() {
                return;
            }
        }
    }

    /// No isolate can be made. The run that waits longest is told, so that none waits for ever.
    fn isolate_failed(&self, message: String) {
        tracing::error!(message, "an isolate could not be made");
        self.state.lock().warming -= 1;
        self.fail_one(|| Error::WorkerLost { message });
    }

    fn fail_one(&self, error: impl FnOnce() -> Error) {
        let job = self.state.lock().waiting.pop_front();
        if let Some(job) = job {
            let _ = job.reply.send(Err(error()));
        }
    }

    /// Waits for a run, with a warm isolate in hand. `None` when the thread shall end.
    fn next_job(&self) -> Option<Job> {
        let mut state = self.state.lock();
        state.warming -= 1;
        state.ready += 1;
        if state.ready >= self.options.warm {
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
            if state.closed || state.ready > self.options.warm.max(1) {
                state.ready -= 1;
                return None;
            }
            self.work.wait(&mut state);
        }
    }

    /// After a run: whether this thread shall make another isolate.
    fn another(&self) -> bool {
        let mut state = self.state.lock();
        let idle = state.ready + state.warming;
        let wanted = !state.closed && (idle < self.options.warm || state.waiting.len() > idle);
        if wanted {
            state.warming += 1;
        }
        wanted
    }

    /// Runs a job. Returns whether the isolate is used up: a script that cannot be stripped leaves
    /// it untouched.
    fn perform(self: &Arc<Self>, runtime: &tokio::runtime::Runtime, isolate: &mut Isolate, job: Job) -> bool {
        let Job { source, context, reply, permit } = job;
        let cpu = CpuMeter::start();
        let context = Arc::new(ExecutionContext::new(context));
        // Whoever asked may have gone while the run waited; then nothing of it must happen.
        let stripped = if context.cancel.is_cancelled() {
            Err(report::stopped(None, &context))
        } else {
            strip(&source, context.limits.source_bytes).map_err(|error| report::strip_failed(error, &source))
        };
        let stripped = match stripped {
            Ok(stripped) => stripped,
            Err(error) => {
                let outcome = Outcome::Failed(error);
                drop(permit);
                let _ = reply.send(Ok(context.finish(outcome, Measured::default())));
                // The next job's turn; this thread is ready again.
                self.state.lock().warming += 1;
                return false;
            }
        };
        isolate.meter.set_limit(context.limits.memory_bytes);
        let reply = Arc::new(Mutex::new(Some((reply, permit))));
        let watched = Arc::new(Watched {
            context: Arc::clone(&context),
            stop: Arc::clone(&isolate.stop),
            cpu,
            give_up: self.give_up(Arc::clone(&context), Arc::clone(&reply), cpu),
            state: Mutex::default(),
        });
        self.watchdog.watch(Arc::clone(&watched));
        let run = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(execute(isolate, &context, &source, stripped))
        }));
        let memory_bytes = isolate.meter.used();
        let measured = Measured { cpu_time: cpu.elapsed(), memory_bytes };
        watched.done();
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
                // Whoever waits for the reply comes first: making the next isolate takes two
                // milliseconds, and the scheduler often wakes the waiter on this very core.
                std::thread::yield_now();
            }
            // The watchdog has answered. The thread is not lost after all.
            None => self.state.lock().lost -= 1,
        }
        true
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
            let outcome = Outcome::Failed(report::stopped(Some(reason), &context));
            let measured = Measured { cpu_time: cpu.elapsed(), memory_bytes: 0 };
            drop(permit);
            let _ = reply.send(Ok(context.finish(outcome, measured)));
        })
    }
}

type SharedReply = Arc<Mutex<Option<(oneshot::Sender<Result<ExecuteResult, Error>>, Box<dyn Any + Send>)>>>;

/// Runs a stripped script in an isolate.
async fn execute(
    isolate: &mut Isolate,
    context: &Arc<ExecutionContext>,
    source: &str,
    stripped: Stripped,
) -> Outcome {
    if let Err(error) = check_imports(context, source, &stripped).await {
        return Outcome::Failed(error);
    }
    let Stripped { code, positions, .. } = stripped;
    let raw = isolate.execute(context, code).await;
    if !matches!(raw, RawOutcome::Stopped) {
        isolate.memory_bytes();
    }
    let evidence = Evidence {
        context,
        source,
        positions: &positions,
        stopped: isolate.stop.reason(),
        buffer_refused: isolate.meter.has_refused(),
    };
    evidence.outcome(raw)
}

/// Checks the static imports before anything runs, as linking a module would.
async fn check_imports(
    context: &Arc<ExecutionContext>,
    source: &str,
    stripped: &Stripped,
) -> Result<(), ScriptError> {
    for import in &stripped.imports {
        let server = import.specifier.strip_prefix("mcp:").unwrap_or_default();
        let listing = Arc::clone(context).in_runtime(async { context.tools(server).await });
        let tools = tokio::select! {
            biased;
            tools = listing => tools,
            () = context.cancel.cancelled() => return Err(report::stopped(None, context)),
        };
        let tools = tools.map_err(|error| {
            let mut failed = ScriptError::new(ErrorCode::SyntaxError, error.message);
            failed.tool_code = Some(error.code);
            report::set_place(&mut failed, source, Some(import.place));
            failed
        })?;
        let exports: Vec<String> = tools.iter().flat_map(export_names).collect();
        for name in &import.names {
            if name.name == "default" || exports.contains(&name.name) {
                continue;
            }
            let near = nearest(&name.name, exports.iter().map(String::as_str));
            let mut failed = ScriptError::new(
                ErrorCode::SyntaxError,
                format!("server `{server}` has no tool `{}`", name.name),
            );
            failed.hint = (!near.is_empty()).then(|| format!("did you mean `{}`?", near.join("`, `")));
            report::set_place(&mut failed, source, Some(name.place));
            return Err(failed);
        }
    }
    Ok(())
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
