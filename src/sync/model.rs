//! A model checker for the real code. It runs a body and its threads many times, one thread at a
//! time, and decides at each lock, wait, notification and counter which thread continues.
//!
//! It is our own because of the code under test. That code depends on waits with a timeout, and
//! neither `loom` 0.7 nor `shuttle` 0.9 lets one time out. It enters tokio runtimes, which are
//! bound to threads, and shuttle's threads are coroutines of one thread; here each is a real
//! thread. Both panic if their types are used outside of a model, so that the ordinary tests of the
//! same modules could not be in the same binary. And loom supports only five threads.
//!
//! It does not detect effects of weak memory orders (each step is visible to all threads). It does
//! not see state that is shared without the types of [`crate::sync`]: a thread that blocks on such
//! state never finishes its step.
//!
//! A failure names its seed. `CX_MODEL_SEED` repeats that one schedule, and `CX_MODEL_ITERATIONS`
//! sets the number of schedules.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

mod polling;
pub(crate) mod types;

pub(crate) use self::polling::{block_on, poll_times};

#[cfg(test)]
mod tests;

/// Maximum number of steps: a longer schedule makes no progress. The models here take some hundred.
const MAX_STEPS: usize = 200_000;

/// If nothing happens for this long in real time, a thread is reported as blocked outside of the
/// model.
const MAX_SILENCE: Duration = Duration::from_secs(120);

/// Number of the last steps of a schedule that a failure shows.
const SHOWN_STEPS: usize = 60;

/// Whether waits with a timeout may time out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timeouts {
    /// At any step, and time advances arbitrarily: what holds here holds however slow each thread
    /// is.
    Random,
    /// Never, and time does not advance: every thread must be woken by another one.
    Never,
}

/// Checks `body` under `schedules` schedules, or as many as `CX_MODEL_ITERATIONS` says. Every
/// second schedule picks a random thread at each step. In the others, threads have priorities that
/// change at a few steps (PCT), which finds defects that need only a few preemptions at the right
/// steps.
///
/// # Panics
///
/// If a thread panics, if all threads wait for each other, or if they make no progress.
pub(crate) fn check(schedules: u64, timeouts: Timeouts, body: impl Fn() + Send + Sync + 'static) {
    if let Err(message) = explore(schedules, timeouts, body) {
        panic!("{message}");
    }
}

/// As [`check`], but returns how it failed.
fn explore(
    schedules: u64,
    timeouts: Timeouts,
    body: impl Fn() + Send + Sync + 'static,
) -> Result<(), String> {
    let body: Arc<dyn Fn() + Send + Sync> = Arc::new(body);
    let seeds = match number("CX_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CX_MODEL_ITERATIONS").unwrap_or(schedules),
    };
    // The known length of a schedule, from which the steps of priority changes are drawn.
    let mut length = 100;
    for seed in seeds {
        match run_once(seed, length, timeouts, Arc::clone(&body)) {
            Ok(steps) => length = length.max(steps),
            Err(failure) => {
                return Err(format!("schedule {seed} (CX_MODEL_SEED={seed}, {timeouts:?}): {failure}"));
            }
        }
    }
    Ok(())
}

/// The number in a variable that says how long a test takes.
///
/// # Panics
///
/// If the text is not a number.
#[expect(clippy::disallowed_methods, reason = "how long a test takes is no configuration of the product")]
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn run_once(
    seed: u64,
    length: usize,
    timeouts: Timeouts,
    body: Arc<dyn Fn() + Send + Sync>,
) -> Result<usize, String> {
    let execution = Arc::new(Execution {
        state: Mutex::new(ExecutionState::new(seed, length, timeouts)),
        ended: Condvar::new(),
    });
    let root = execution.add("root".to_owned());
    start(Arc::clone(&execution), root, move || body()).map_err(|error| format!("no thread: {error}"))?;
    let mut state = execution.state.lock();
    state.running = Some(root);
    state.tasks[root].turn.notify_one();
    let mut steps = 0;
    while state.failure.is_none() && !state.is_over() {
        let is_late = execution.ended.wait_for(&mut state, MAX_SILENCE).timed_out();
        if is_late && state.steps == steps {
            state.failure = Some("a thread blocks outside of the model".to_owned());
        }
        steps = state.steps;
    }
    match state.failure.take() {
        // The threads of this schedule are left blocked: the test has failed, and its process ends
        // soon.
        Some(failure) => {
            let report = format!("{failure}\n{}", state.report());
            state.failure = Some(failure);
            Err(report)
        }
        None => Ok(state.steps),
    }
}

/// One schedule.
struct Execution {
    state: Mutex<ExecutionState>,
    ended: Condvar,
}

struct ExecutionState {
    tasks: Vec<Task>,
    /// The thread that runs.
    running: Option<usize>,
    random: Random,
    timeouts: Timeouts,
    /// Steps at which the running thread gets the lowest priority; `None` if threads are picked at
    /// random.
    changes: Option<Vec<usize>>,
    /// Lower than all priorities that were given.
    lowest: i64,
    steps: usize,
    now: Instant,
    trace: VecDeque<(usize, &'static str, &'static Location<'static>)>,
    failure: Option<String>,
}

struct Task {
    name: String,
    status: Status,
    /// Notified when the thread may continue.
    turn: Arc<Condvar>,
    priority: i64,
    /// Whether its last wait timed out.
    timed_out: bool,
    /// Whether a future that it polls was woken.
    is_woken: bool,
    /// When a future that it polls wants to be polled again.
    timer: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Ready,
    Waits { on: Reason, until: Option<Instant> },
    Ended,
}

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    /// The lock at this address.
    Lock(usize),
    /// A notification of the condition variable at this address.
    Notification(usize),
    /// The waker of a future.
    Waker,
    /// The end of all other threads.
    Others,
}

impl ExecutionState {
    fn new(seed: u64, length: usize, timeouts: Timeouts) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d);
        let changes = (seed % 2 == 1).then(|| {
            let depth = random.below(5);
            (0..depth).map(|_| random.below(length)).collect()
        });
        Self {
            tasks: Vec::new(),
            running: None,
            random,
            timeouts,
            changes,
            lowest: 0,
            steps: 0,
            now: Instant::now(),
            trace: VecDeque::new(),
            failure: None,
        }
    }

    fn is_over(&self) -> bool {
        self.tasks.iter().all(|task| task.status == Status::Ended)
    }

    fn demote(&mut self, task: usize) {
        self.lowest -= 1;
        self.tasks[task].priority = self.lowest;
    }

    /// Chooses the thread that continues. Returns `None` if none can.
    fn choose(&mut self) -> Option<usize> {
        let others_ended = self.tasks.iter().filter(|task| task.status != Status::Ended).count() == 1;
        let (mut ready, mut timed) = (Vec::new(), Vec::new());
        for (number, task) in self.tasks.iter().enumerate() {
            match task.status {
                Status::Ready => ready.push(number),
                Status::Waits { on: Reason::Others, .. } if others_ended => ready.push(number),
                Status::Waits { until: Some(_), .. } if self.timeouts == Timeouts::Random => {
                    timed.push(number);
                }
                Status::Waits { .. } | Status::Ended => {}
            }
        }
        let times_out = !timed.is_empty() && (ready.is_empty() || self.random.below(12) == 0);
        let chosen = if times_out {
            let chosen = timed[self.random.below(timed.len())];
            if let Status::Waits { until: Some(until), .. } = self.tasks[chosen].status {
                self.now = self.now.max(until);
            }
            self.tasks[chosen].timed_out = true;
            // A thread that only waits and times out must not prevent others from running.
            self.demote(chosen);
            chosen
        } else if ready.is_empty() {
            return None;
        } else if self.changes.is_some() {
            ready.into_iter().max_by_key(|number| self.tasks[*number].priority)?
        } else {
            ready[self.random.below(ready.len())]
        };
        self.tasks[chosen].status = Status::Ready;
        Some(chosen)
    }

    fn report(&self) -> String {
        let mut text = String::new();
        for (number, task) in self.tasks.iter().enumerate() {
            let _ = writeln!(text, "  thread {number} ({}): {:?}", task.name, task.status);
        }
        for (number, what, location) in &self.trace {
            let name = &self.tasks[*number].name;
            let _ = writeln!(text, "  {number} {name}: {what} at {}:{}", location.file(), location.line());
        }
        text
    }
}

impl Execution {
    fn add(&self, name: String) -> usize {
        let mut state = self.state.lock();
        let priority = i64::from(u32::try_from(state.random.below(1 << 20)).unwrap_or(0)) + 1;
        state.tasks.push(Task {
            name,
            status: Status::Ready,
            turn: Arc::default(),
            priority,
            timed_out: false,
            is_woken: false,
            timer: None,
        });
        state.tasks.len() - 1
    }

    /// Lets the chosen thread continue. Returns when `me` is chosen again.
    fn hand_over(&self, mut state: MutexGuard<'_, ExecutionState>, me: usize) {
        if state.failure.is_none() {
            match state.choose() {
                Some(next) if next == me => return,
                Some(next) => {
                    state.running = Some(next);
                    state.tasks[next].turn.notify_one();
                }
                None => {
                    state.failure = Some("no thread can go on".to_owned());
                    self.ended.notify_all();
                }
            }
        }
        let turn = Arc::clone(&state.tasks[me].turn);
        while state.running != Some(me) || state.failure.is_some() {
            turn.wait(&mut state);
        }
    }
}

/// A thread of a model.
#[derive(Clone)]
struct Current {
    execution: Arc<Execution>,
    task: usize,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The current thread's place in a model, if it belongs to one.
fn current() -> Option<Current> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

impl Current {
    /// A point where another thread may be chosen before this one continues.
    fn step(&self, what: &'static str, location: &'static Location<'static>) {
        let mut state = self.execution.state.lock();
        state.steps += 1;
        if state.trace.len() == SHOWN_STEPS {
            state.trace.pop_front();
        }
        state.trace.push_back((self.task, what, location));
        if state.steps > MAX_STEPS {
            state.failure.get_or_insert_with(|| format!("no end after {MAX_STEPS} steps"));
            self.execution.ended.notify_all();
        }
        let steps = state.steps;
        if state.changes.as_ref().is_some_and(|changes| changes.contains(&steps)) {
            state.demote(self.task);
        }
        self.execution.hand_over(state, self.task);
    }

    /// Waits. Returns whether the wait timed out.
    fn wait(&self, on: Reason, until: Option<Instant>) -> bool {
        let mut state = self.execution.state.lock();
        state.tasks[self.task].timed_out = false;
        state.tasks[self.task].status = Status::Waits { on, until };
        self.execution.hand_over(state, self.task);
        self.execution.state.lock().tasks[self.task].timed_out
    }

    /// Wakes up to `most` arbitrary threads that wait for `on`.
    fn wake(&self, on: Reason, most: usize) {
        let mut state = self.execution.state.lock();
        let waits = |task: &Task| matches!(task.status, Status::Waits { on: other, .. } if other == on);
        let mut waiting: Vec<_> = (0..state.tasks.len()).filter(|task| waits(&state.tasks[*task])).collect();
        for _ in 0..most.min(waiting.len()) {
            let woken = waiting.swap_remove(state.random.below(waiting.len()));
            state.tasks[woken].status = Status::Ready;
        }
    }
}

/// Starts the thread of a task, which waits until it is chosen.
fn start(execution: Arc<Execution>, task: usize, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(format!("model-{task}")).spawn(move || {
        {
            let mut state = execution.state.lock();
            let turn = Arc::clone(&state.tasks[task].turn);
            while state.running != Some(task) || state.failure.is_some() {
                turn.wait(&mut state);
            }
        }
        let me = Current { execution: Arc::clone(&execution), task };
        CURRENT.with(|current| *current.borrow_mut() = Some(me));
        let ended = catch_unwind(AssertUnwindSafe(run));
        CURRENT.with(|current| *current.borrow_mut() = None);
        let mut state = execution.state.lock();
        state.tasks[task].status = Status::Ended;
        if let Err(panic) = ended {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let text = format!("a panic: {}", text.as_deref().unwrap_or("without a message"));
            state.failure.get_or_insert(text);
        }
        if state.failure.is_some() || state.is_over() {
            execution.ended.notify_all();
        } else if let Some(next) = state.choose() {
            state.running = Some(next);
            state.tasks[next].turn.notify_one();
        } else {
            state.failure = Some("no thread can go on".to_owned());
            execution.ended.notify_all();
        }
    })?;
    Ok(())
}

/// Adds a thread to the current thread's model.
#[track_caller]
pub(crate) fn thread(name: &str, run: impl FnOnce() + Send + 'static) {
    let me = current().expect("in a model");
    let task = me.execution.add(name.to_owned());
    start(Arc::clone(&me.execution), task, run).expect("a thread");
    me.step("spawn", Location::caller());
}

/// Waits for the end of all other threads of the model.
pub(crate) fn join_others() {
    let me = current().expect("in a model");
    me.wait(Reason::Others, None);
}

/// A number below `bound`, chosen by the schedule.
pub(crate) fn any(bound: usize) -> usize {
    current().expect("in a model").execution.state.lock().random.below(bound)
}

/// Lets all other threads continue first.
#[track_caller]
pub(crate) fn yield_now() {
    let me = current().expect("in a model");
    me.execution.state.lock().demote(me.task);
    me.step("yield", Location::caller());
}

/// The model's time. Reading it does not advance it.
pub(crate) fn time() -> Instant {
    current().expect("in a model").execution.state.lock().now
}

/// Advances the model's time.
pub(crate) fn advance(duration: Duration) {
    current().expect("in a model").execution.state.lock().now += duration;
}

/// SplitMix64: small, and sufficient for choosing threads.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }
}
