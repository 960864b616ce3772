use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::workers::MAX_HUNG_WORKERS;
use super::*;
use crate::engine::failure;
use crate::engine::host::RunHost;
use crate::engine::instance::{Instance, Unprepared};
use crate::engine::stop::Stop;
use crate::engine::thread_root::ThreadRoot;
use crate::json::Json;
use crate::run::check::survey::Survey;
use crate::run::context::RunEnvironment;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult, Outcome, ScriptError};
use crate::run::script::Script;
use crate::sync::{Condvar, Mutex};

/// Timeout of tests that would otherwise hang.
const TOO_LONG: Duration = Duration::from_secs(120);

/// An engine whose sources name its behavior:
///
/// - `block` blocks in `prepare` until `released`;
/// - `hang` blocks in `execute` until `released`;
/// - `panic` panics in `prepare`;
/// - `refuse` is refused by `prepare`;
/// - `leave` panics when its instance is dropped;
/// - `wait` waits for a future that never completes;
/// - `compute` computes until its thread's priority changes;
/// - `tool` waits twice for a future that completes at once;
/// - `polite`, in models only, releases its slot and waits until it is cancelled;
/// - `deaf`, in models only, releases its slot and waits until `released`;
/// - `relapse`, in models only, releases its slot until `relapsed`, then hangs.
///
/// Any other source returns at once.
#[derive(Clone, Default)]
pub(super) struct Fake {
    pub(super) shared: Arc<FakeShared>,
}

#[derive(Default)]
pub(super) struct FakeShared {
    released: Mutex<bool>,
    changed: Condvar,
    made: AtomicUsize,
    pub(super) relapsed: AtomicUsize,
    /// Whether threads are started by a root, as those of real engines are.
    has_root: AtomicBool,
    /// Number of times that memory kept for workers was released.
    trimmed: AtomicUsize,
    /// The niceness of the thread at the end of each run.
    niceness: Mutex<Vec<i32>>,
    /// Number of times that a run blocked until `released`.
    pub(super) blocked: AtomicUsize,
    /// Number of runs that hung and found at their end that they had been abandoned.
    abandoned: AtomicUsize,
    /// Number of instances whose creation fails, and of threads that are refused.
    pub(super) failing_instances: AtomicUsize,
    pub(super) failing_threads: AtomicUsize,
}

/// Decrements `left` and returns `true`, or returns `false` if it is zero.
fn is_next(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// Of the current thread.
fn niceness() -> i32 {
    rustix::process::getpriority_process(None).unwrap()
}

impl Fake {
    pub(super) fn release(&self) {
        *self.shared.released.lock() = true;
        self.shared.changed.notify_all();
    }

    fn block(&self) {
        self.shared.blocked.fetch_add(1, Ordering::Relaxed);
        let mut released = self.shared.released.lock();
        while !*released {
            self.shared.changed.wait(&mut released);
        }
    }
}

pub(super) struct FakeInstance {
    fake: Fake,
    stop: Arc<Stop>,
    panics: bool,
}

impl Drop for FakeInstance {
    fn drop(&mut self) {
        if self.panics {
            std::panic::resume_unwind(Box::new("while it is dropped"));
        }
    }
}

impl Engine for Fake {
    const THREAD: &'static str = "cx-fake";
    type Instance = FakeInstance;
    type Prepared = ();

    fn spawn(&self, name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        if is_next(&self.shared.failing_threads) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        static ROOT: ThreadRoot = ThreadRoot::new("cx-fake-root", || Ok(()), 1 << 20);
        if self.shared.has_root.load(Ordering::Relaxed) {
            return ROOT.spawn(name, task);
        }
        sync::spawn(name, task)
    }

    async fn make(&self) -> Result<FakeInstance, String> {
        if is_next(&self.shared.failing_instances) {
            return Err("no memory".to_owned());
        }
        self.shared.made.fetch_add(1, Ordering::Relaxed);
        Ok(FakeInstance { fake: self.clone(), stop: Arc::default(), panics: false })
    }

    fn prepare(&self, _host: &dyn RunHost, source: &str) -> Result<(), Box<Unprepared>> {
        match source {
            "block" => self.block(),
            // Not `panic!`, which would print its message for each schedule of a model.
            "panic" => std::panic::resume_unwind(Box::new("while it is prepared")),
            "refuse" => return Err(ScriptError::new(ErrorCode::SyntaxError, "refused").into()),
            _ => {}
        }
        Ok(())
    }

    fn trim(&self) {
        self.shared.trimmed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Instance<Fake> for FakeInstance {
    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    fn set_memory_limit(&mut self, _bytes: usize) {}

    async fn survey(
        &mut self,
        _host: &Arc<dyn RunHost>,
        _source: &str,
        (): &mut (),
    ) -> Result<Survey, Outcome> {
        Ok(Survey::default())
    }

    async fn execute(&mut self, host: &Arc<dyn RunHost>, source: &str, (): ()) -> Outcome {
        match source {
            "hang" => {
                self.fake.block();
                if self.stop.is_abandoned() {
                    self.fake.shared.abandoned.fetch_add(1, Ordering::Relaxed);
                }
            }
            "leave" => self.panics = true,
            "compute" => {
                let (before, until) = (niceness(), Instant::now() + TOO_LONG);
                while niceness() == before && Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
            "wait" => host.cancelled().cancelled().await,
            "tool" => {
                for _ in 0..2 {
                    tokio::task::yield_now().await;
                }
            }
            "polite" | "deaf" | "relapse" => {
                let is_over = || match source {
                    "polite" => host.cancelled().is_cancelled(),
                    "relapse" => self.fake.shared.relapsed.load(Ordering::Relaxed) > 0,
                    _ => *self.fake.shared.released.lock(),
                };
                while !is_over() {
                    sync::model::yield_now();
                    tokio::task::yield_now().await;
                }
                if source == "relapse" {
                    self.fake.block();
                }
            }
            _ => {}
        }
        if self.fake.shared.has_root.load(Ordering::Relaxed) {
            self.fake.shared.niceness.lock().push(niceness());
        }
        match self.stop.reason() {
            Some(reason) => Outcome::Failed(failure::stopped(Some(reason), &**host)),
            None => Outcome::Returned(Json::parse("1").unwrap()),
        }
    }

    async fn check(&mut self, host: &Arc<dyn RunHost>, source: &str, (): ()) -> Outcome {
        self.execute(host, source, ()).await
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

pub(super) type Answer = oneshot::Receiver<Result<ExecuteResult, Error>>;

pub(super) fn job(source: &str, wall_time: Duration, runtime: tokio::runtime::Handle) -> (Job, Answer) {
    let (reply, answer) = oneshot::channel();
    let job = Job {
        script: Script::typescript(source),
        environment: RunEnvironment::empty(Limits { wall_time, ..Limits::default() }, runtime),
        reply,
        permit: Box::new(()),
    };
    (job, answer)
}

struct Stage {
    fake: Fake,
    pool: Pool<Fake>,
}

impl Stage {
    fn new() -> Self {
        let fake = Fake::default();
        let pool = Pool::new(fake.clone(), 2, Duration::from_secs(30)).unwrap();
        Self { fake, pool }
    }

    /// Submits a run with this wall-clock limit. Returns its reply channel and its cancellation
    /// token.
    fn submit(&self, source: &str, wall_time: Duration) -> (Answer, CancellationToken) {
        let (job, answer) = job(source, wall_time, tokio::runtime::Handle::current());
        let cancel = job.environment.cancel.clone();
        self.pool.submit(job);
        (answer, cancel)
    }

    async fn run(&self, source: &str, wall_time: Duration) -> Result<ExecuteResult, Error> {
        answer(self.submit(source, wall_time).0).await
    }

    /// Waits for a condition that another thread makes true.
    async fn until(&self, condition: impl Fn(PoolStats) -> bool) {
        let waiting = async {
            while !condition(self.pool.stats()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(TOO_LONG, waiting).await.expect("it happens");
    }
}

async fn answer(reply: oneshot::Receiver<Result<ExecuteResult, Error>>) -> Result<ExecuteResult, Error> {
    tokio::time::timeout(TOO_LONG, reply).await.expect("a reply").expect("a reply")
}

fn code(result: &Result<ExecuteResult, Error>) -> Option<ErrorCode> {
    result.as_ref().unwrap().error().map(|error| error.code)
}

/// A limit that is reached while a script hangs. A thread that is not scheduled for that long has not begun to hang.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn v_261_the_deadline_holds_while_a_source_is_prepared() {
    let stage = Stage::new();
    let result = stage.run("block", SOON).await;
    assert_eq!(code(&result), Some(ErrorCode::Timeout));
    assert_eq!(stage.pool.stats().hung, 1);
    stage.fake.release();
    stage.until(|stats| stats.hung == 0).await;
    assert_eq!(code(&stage.run("1", TOO_LONG).await), None);
}

#[tokio::test]
async fn v_261_a_run_can_be_cancelled_before_and_while_its_source_is_prepared() {
    let stage = Stage::new();
    let blocked = || stage.fake.shared.blocked.load(Ordering::Relaxed);
    let (job, reply) = job("block", TOO_LONG, tokio::runtime::Handle::current());
    job.environment.cancel.cancel();
    stage.pool.submit(job);
    assert_eq!(code(&answer(reply).await), Some(ErrorCode::Cancelled));
    assert_eq!(blocked(), 0, "a source was prepared whose run had been cancelled");
    let (reply, cancel) = stage.submit("block", TOO_LONG);
    stage.until(|_| blocked() == 1).await;
    cancel.cancel();
    assert_eq!(code(&answer(reply).await), Some(ErrorCode::Cancelled));
    stage.fake.release();
}

#[tokio::test]
async fn v_261_a_panic_while_a_source_is_prepared_is_its_runs_error() {
    let stage = Stage::new();
    let result = stage.run("panic", TOO_LONG).await;
    let Err(Error::WorkerLost { message }) = result else { panic!("{result:?}") };
    assert_eq!(message, "while it is prepared");
    assert_eq!(code(&stage.run("1", TOO_LONG).await), None);
}

/// The runs that come later do not wait for what such a worker would have made.
#[tokio::test]
async fn v_638_a_panic_while_an_instance_is_dropped_costs_its_worker() {
    let stage = Stage::new();
    stage.pool.warm().await;
    for _ in 0..10 {
        assert_eq!(code(&stage.run("leave", TOO_LONG).await), None);
        tokio::time::timeout(TOO_LONG, stage.pool.warm()).await.expect("another one takes its place");
    }
    assert_eq!(code(&stage.run("1", TOO_LONG).await), None);
    assert_eq!(stage.pool.stats().hung, 0);
}

#[tokio::test]
async fn instances_that_could_not_be_made_are_made_when_a_caller_waits_for_them() {
    let (fake, slots) = (Fake::default(), Arc::new(ComputeSlots::new(1)));
    fake.shared.failing_instances.store(1, Ordering::Relaxed);
    let shared = Shared::new(fake.clone(), 1, Duration::from_secs(30), slots);
    shared.start_thread().unwrap();
    let stage = Stage { fake, pool: Pool { shared } };
    stage.until(|_| stage.pool.shared.state.lock().workers == 0).await;
    // No caller waits for a thread that the system refuses.
    stage.fake.shared.failing_threads.store(1, Ordering::Relaxed);
    for ready in [0, 1] {
        tokio::time::timeout(TOO_LONG, stage.pool.warm()).await.expect("it completes");
        assert_eq!(stage.pool.stats().ready, ready);
    }
}

/// It does not wait for the watchdog, which would find out some ticks later, and which this pool does not have.
#[tokio::test]
async fn v_638_a_worker_whose_instance_panics_when_it_is_dropped_starts_another_one() {
    let (fake, slots) = (Fake::default(), Arc::new(ComputeSlots::new(1)));
    let shared = Shared::new(fake.clone(), 1, Duration::from_secs(30), slots);
    shared.start_thread().unwrap();
    let stage = Stage { fake, pool: Pool { shared } };
    stage.pool.warm().await;
    for _ in 0..10 {
        assert_eq!(code(&stage.run("leave", TOO_LONG).await), None);
        tokio::time::timeout(TOO_LONG, stage.pool.warm()).await.expect("another one takes its place");
    }
    stage.pool.shared.watchdog.clear();
}

#[tokio::test]
async fn a_source_that_is_refused_uses_up_no_instance() {
    let stage = Stage::new();
    stage.pool.warm().await;
    let made = stage.fake.shared.made.load(Ordering::Relaxed);
    for _ in 0..10 {
        assert_eq!(code(&stage.run("refuse", TOO_LONG).await), Some(ErrorCode::SyntaxError));
    }
    assert_eq!(stage.fake.shared.made.load(Ordering::Relaxed), made);
}

#[tokio::test]
async fn v_262_hung_workers_that_come_back_are_workers() {
    let stage = Stage::new();
    let hung = (0..MAX_HUNG_WORKERS).map(|_| stage.run("hang", SOON));
    for result in futures::future::join_all(hung).await {
        assert_eq!(code(&result), Some(ErrorCode::Timeout));
    }
    assert!(stage.pool.stats().takes_runs());
    assert_eq!(code(&stage.run("1", TOO_LONG).await), None);
    assert_eq!(code(&stage.run("hang", SOON).await), Some(ErrorCode::Timeout));
    assert!(!stage.pool.stats().takes_runs());
    assert_eq!(code(&stage.run("1", TOO_LONG).await), Some(ErrorCode::EngineUnavailable));
    stage.fake.release();
    stage.until(|stats| stats.hung == 0).await;
    // Their guards of memory know that, too (threat 652).
    assert_eq!(stage.fake.shared.abandoned.load(Ordering::Relaxed), MAX_HUNG_WORKERS + 1);
    assert!(stage.pool.stats().takes_runs());
    assert_eq!(code(&stage.run("1", TOO_LONG).await), None);
}

/// Many concurrent runs are served by the existing workers, because starting more takes longer than
/// the runs.
#[tokio::test]
async fn v_263_workers_are_kept_and_used_again() {
    let stage = Stage::new();
    stage.pool.warm().await;
    for _ in 0..10 {
        let runs = (0..100).map(|_| stage.run("1", TOO_LONG));
        for result in futures::future::join_all(runs).await {
            assert_eq!(code(&result), None);
        }
    }
    let started = stage.pool.shared.state.lock().started;
    assert!(started <= 200, "{started} threads for 1,000 runs");
}

/// Runs that wait do not delay other runs, however many there are.
#[tokio::test]
async fn v_263_runs_that_wait_have_no_slot() {
    let stage = Stage::new();
    let waiting: Vec<_> = (0..50).map(|_| stage.submit("wait", TOO_LONG)).collect();
    assert_eq!(code(&stage.run("1", TOO_LONG).await), None);
    for (reply, cancel) in waiting {
        cancel.cancel();
        assert!(answer(reply).await.is_ok());
    }
}

/// A run that computes without end loses its slot soon.
#[tokio::test]
async fn v_263_runs_that_hang_hold_nobody_up() {
    let stage = Stage::new();
    let hanging: Vec<_> = (0..8).map(|_| stage.submit("hang", TOO_LONG)).collect();
    assert_eq!(code(&stage.run("1", TOO_LONG).await), None);
    stage.fake.release();
    for (reply, _) in hanging {
        assert_eq!(code(&answer(reply).await), None);
    }
}

#[tokio::test]
async fn workers_that_load_has_left_over_end() {
    let stage = Stage::new();
    let waiting: Vec<_> = (0..20).map(|_| stage.submit("wait", TOO_LONG)).collect();
    assert_eq!(code(&stage.run("1", TOO_LONG).await), None);
    for (reply, cancel) in waiting {
        cancel.cancel();
        assert!(answer(reply).await.is_ok());
    }
    let idle = |shared: &Shared<Fake>| {
        let state = shared.state.lock();
        state.ready + state.warming + state.parked
    };
    let ended = async {
        while idle(&stage.pool.shared) > 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TOO_LONG, ended).await.expect("they end");
}

/// Short runs do not wait behind a long one, and a run gets no other run's low priority.
#[tokio::test]
async fn v_374_a_long_run_takes_its_priority_with_it() {
    let fake = Fake::default();
    fake.shared.has_root.store(true, Ordering::Relaxed);
    let pool = Pool::new(fake.clone(), 2, Duration::from_secs(30)).unwrap();
    let stage = Stage { fake, pool };
    for source in ["short", "compute", "short", "short", "short", "short"] {
        assert_eq!(code(&stage.run(source, TOO_LONG).await), None, "{source}");
    }
    let usual = niceness();
    let expected = [usual, 10.max(usual), usual, usual, usual, usual];
    assert_eq!(*stage.fake.shared.niceness.lock(), expected);
    // The worker that ended has a successor.
    stage.until(|stats| stats.ready == 2).await;
}

/// A worker that ends after a long run does not park, and only the last one that parks releases what
/// was kept.
#[tokio::test]
async fn v_263_the_last_long_run_releases_what_was_kept() {
    let fake = Fake::default();
    fake.shared.has_root.store(true, Ordering::Relaxed);
    let pool = Pool::new(fake.clone(), 1, Duration::from_secs(30)).unwrap();
    let stage = Stage { fake, pool };
    let trimmed = || stage.fake.shared.trimmed.load(Ordering::Relaxed);
    let ended = |left: usize| {
        let shared = Arc::clone(&stage.pool.shared);
        async move {
            let ended = async {
                while shared.state.lock().workers > left {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(TOO_LONG, ended).await.expect("workers end");
        }
    };
    let (reply, cancel) = stage.submit("wait", TOO_LONG);
    assert_eq!(code(&stage.run("compute", TOO_LONG).await), None);
    ended(2).await;
    assert_eq!(trimmed(), 0, "another run goes on");
    cancel.cancel();
    assert!(answer(reply).await.is_ok());
    // The worker of that run parks, and ends after a while.
    ended(1).await;
    let before = trimmed();
    assert_eq!(code(&stage.run("compute", TOO_LONG).await), None);
    ended(1).await;
    assert_eq!(trimmed(), before + 1);
}
