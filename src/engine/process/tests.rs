//! Workers that crash, and workers that a script has taken over. The worker here is this test program itself, which
//! does what a script's first line says (`worker/tests.rs`) after its sandbox is complete.

mod forked;
pub(super) mod impostor;
#[cfg(any(feature = "http", feature = "nats"))]
mod lent;
mod messages;
mod taken_over;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::processes::Processes;
use super::workers::{WorkerOptions, WorkerProgram, WorkerRole, Workers};
use crate::engine::engines;
use crate::engine::pool::Pool;
use crate::engine::pool::job::Job;
use crate::json::Json;
use crate::run::context::RunEnvironment;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult, Outcome, Output};
use crate::run::script::{Language, Script};
use crate::tools::catalog::{Catalog, CatalogOptions};
use crate::tools::in_force::{RunTools, ToolSet};
use crate::tools::native::NativeTools;
use crate::tools::policy::Policy;
use crate::tools::{ToolDefinition, ToolDispatcher, ToolError};

/// Each kind of crash, this many times. `make isolation` sets it to 1,000.
const CRASHES: usize = 20;
const CRASHES_VARIABLE: &str = "CX_CRASHES";

/// Timeout of tests that would otherwise hang.
const WATCHDOG: Duration = Duration::from_secs(120);

/// The name of the test below, which is the worker, and the argument by which it knows that it is one. For the test
/// harness it is a `--skip` that matches no test.
pub(super) const WORKER: &str = "engine::process::tests::worker";
pub(super) const MARK: &str = "--skip=this-is-a-worker-process";

/// Not a test: the worker, if this program was started as one.
#[test]
fn worker() {
    if argument_after(MARK).is_some() {
        engines::work(super::own_socket().unwrap());
    }
}

/// The rest of the argument of this program that begins with `mark`.
fn argument_after(mark: &str) -> Option<String> {
    std::env::args().find_map(|argument| argument.strip_prefix(mark).map(str::to_owned))
}

/// Workers that are the test `worker` of this program, which knows by `mark` that it is one.
pub(super) fn program(worker: &str, mark: &str, runs: u32) -> WorkerProgram {
    WorkerProgram {
        program: "/proc/self/exe".into(),
        arguments: ["--exact", worker, "--nocapture", "--test-threads=1", mark].map(str::to_owned).to_vec(),
        requires_sandbox: true,
        runs,
        // An impostor of the tests is no fork server.
        role: WorkerRole::Worker { forks: mark == MARK },
    }
}

struct Stage {
    pool: Arc<Pool<Processes>>,
    is_python: bool,
    /// The tools of its runs.
    tools: NativeTools,
    policy: Policy,
}

impl Stage {
    fn new(runs: u32, spare: usize) -> Self {
        Self::with_worker(WORKER, MARK, runs, spare)
    }

    /// Workers of [`program`].
    fn with_worker(worker: &str, mark: &str, runs: u32, spare: usize) -> Self {
        Self::with(program(worker, mark, runs), Language::TypeScript, spare, Vec::new())
    }

    fn of_language(language: Language, runs: u32, spare: usize, caches: Vec<PathBuf>) -> Self {
        Self::with(program(WORKER, MARK, runs), language, spare, caches)
    }

    fn with(program: WorkerProgram, language: Language, spare: usize, caches: Vec<PathBuf>) -> Self {
        let is_python = language == Language::Python;
        let workers = Workers::new(WorkerOptions {
            program,
            spare,
            is_python,
            counts_fuel: false,
            memory_bytes: Limits::default().memory_bytes,
            caches,
        });
        let pool = Pool::new(Processes::new(workers.unwrap()), 1, Duration::from_secs(60)).unwrap();
        Self { pool: Arc::new(pool), is_python, tools: NativeTools::default(), policy: Policy::default() }
    }

    /// The same with a tool of this name, which counts its calls.
    fn with_tool(mut self, name: &str) -> (Self, Arc<AtomicUsize>) {
        let calls = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&calls);
        let function = move |_arguments: Value| -> BoxFuture<'static, Result<Json, ToolError>> {
            counted.fetch_add(1, Ordering::SeqCst);
            futures::future::ready(Ok(Value::from(7).into())).boxed()
        };
        self.tools.add(name, ToolDefinition::new(""), Arc::new(function));
        (self, calls)
    }

    fn run_tools(&self) -> RunTools {
        if self.tools.is_empty() {
            return RunTools::empty();
        }
        let dispatcher = Arc::new(self.tools.clone()) as Arc<dyn ToolDispatcher>;
        let set = ToolSet {
            version: 0,
            catalog: Arc::new(Catalog::new(&[dispatcher], &CatalogOptions::default())),
            policy: Arc::new(self.policy.clone()),
            configured: Arc::default(),
        };
        // A closed channel keeps its last value.
        RunTools::new(set.clone(), Policy::default(), watch::Sender::new(set).subscribe())
    }

    async fn run_for(&self, client: Option<&str>, source: &str, limits: Limits) -> ExecuteResult {
        let mut script = if self.is_python { Script::python(source) } else { Script::typescript(source) };
        script.client = client.map(str::to_owned);
        if source.starts_with("// hostile: kill") {
            script.on_output = Some(Arc::new(|entry, _cancel| {
                let Output::Log { text, .. } = entry else { return };
                let pid = text.parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            }));
        }
        let environment = RunEnvironment {
            tools: self.run_tools(),
            ..RunEnvironment::empty(limits, tokio::runtime::Handle::current())
        };
        self.run_in(environment, script).await
    }

    async fn run_in(&self, environment: RunEnvironment, script: Script) -> ExecuteResult {
        let (reply, answer) = oneshot::channel();
        self.pool.submit(Job { script, environment, reply, permit: Box::new(()) });
        answer.await.unwrap().unwrap()
    }

    async fn run(&self, source: &str) -> ExecuteResult {
        self.run_for(None, source, short()).await
    }
}

/// Long enough for a worker of a test build to start beside others on a busy machine.
fn short() -> Limits {
    Limits { wall_time: Duration::from_secs(100), ..Limits::default() }
}

fn code(result: &ExecuteResult) -> Option<ErrorCode> {
    match &result.outcome {
        Outcome::Failed(error) => Some(error.code),
        Outcome::Returned(_) => None,
    }
}

#[track_caller]
fn text(result: &ExecuteResult) -> String {
    match &result.outcome {
        Outcome::Returned(value) => value.text().to_owned(),
        Outcome::Failed(error) => panic!("{error:?}"),
    }
}

fn printed(result: &ExecuteResult) -> String {
    let lines = result.logs.iter().filter_map(|entry| match entry {
        Output::Log { text, .. } => Some(text.as_str()),
        Output::Emit(_) => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_runs_in_another_process() {
    let stage = Stage::new(1, 1);
    let result = stage.run("console.log('there'); return 1 + 1").await;
    assert_eq!((text(&result).as_str(), printed(&result).as_str()), ("2", "there"));
}

/// Crashes of every kind between honest runs: each costs its own run `ENGINE_CRASHED`, and no other anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_costs_its_own_run_only() {
    #[expect(clippy::disallowed_methods, reason = "a test is told how long it may take")]
    let count = std::env::var(CRASHES_VARIABLE).ok().and_then(|count| count.parse().ok()).unwrap_or(CRASHES);
    let stage = Arc::new(Stage::new(1, 2));
    for kind in
        ["abort", "illegal", "overflow", "fault", "kill", "corrupt", "oversize", "other-run", "exit", "deaf"]
    {
        let mut runs = tokio::task::JoinSet::new();
        for number in 0..count {
            let crashing = Arc::clone(&stage);
            runs.spawn(async move {
                let limits = match kind {
                    // It sends nothing more: only its deadline ends it.
                    "deaf" => Limits { wall_time: Duration::from_secs(5), ..short() },
                    _ => short(),
                };
                let result = crashing.run_for(None, &format!("// hostile: {kind}\nreturn 1"), limits).await;
                let expected = if kind == "deaf" { ErrorCode::Timeout } else { ErrorCode::EngineCrashed };
                assert_eq!(code(&result), Some(expected), "{kind} {number}: {result:?}");
            });
            let honest = Arc::clone(&stage);
            runs.spawn(async move {
                let result = honest.run(&format!("return {number} + 1")).await;
                assert_eq!(text(&result), (number + 1).to_string());
            });
            if number % 4 == 3 {
                while let Some(done) = runs.join_next().await {
                    done.unwrap();
                }
            }
        }
        while let Some(done) = runs.join_next().await {
            done.unwrap();
        }
    }
    assert_eq!(text(&stage.run("return 'after'").await), "\"after\"");
}

/// A run that is stopped for its memory, and does not end, takes its worker along. The worker has not crashed.
#[tokio::test(flavor = "multi_thread")]
async fn v_644_a_run_over_its_memory_that_does_not_end_has_its_own_code() {
    let stage = Stage::new(1, 1);
    let result = stage.run("// hostile: stuck\nreturn 1").await;
    assert_eq!(code(&result), Some(ErrorCode::MemoryLimit), "{result:?}");
    assert_eq!(text(&stage.run("return 'after'").await), "\"after\"");
}

/// The same while the run waits for its executor, and so holds the connection: the worker's exit status says it.
#[tokio::test(flavor = "multi_thread")]
async fn v_650_a_run_over_its_memory_that_waits_for_its_executor_has_its_own_code() {
    let stage = Stage::new(1, 1);
    let result = stage.run("// hostile: stuck-waiting\nreturn 1").await;
    assert_eq!(code(&result), Some(ErrorCode::MemoryLimit), "{result:?}");
    assert_eq!(text(&stage.run("return 'after'").await), "\"after\"");
}

/// Waits until something holds.
async fn wait_until(mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < WATCHDOG, "it did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The children of a process.
pub(super) fn children(pid: &str) -> Vec<String> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let files = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")));
    files
        .flat_map(|text| text.unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// This process, and the fork servers and workers of all tests, with spaces between. Waits until there are some of both.
async fn processes() -> String {
    let mut all = Vec::new();
    wait_until(async || {
        let servers = children("self");
        let workers: Vec<_> = servers.iter().flat_map(|server| children(server)).collect();
        all = [vec![std::process::id().to_string()], servers, workers.clone()].concat();
        !workers.is_empty()
    })
    .await;
    all.join(" ")
}

/// What a worker that has been taken over tries after its sandbox is complete. It reports what it
/// could do.
async fn reaches_nothing(language: Language) {
    // As another library leaves them: open in every process that is started.
    let null = std::fs::File::open("/dev/null").unwrap();
    let inherited: Vec<_> = (0..32).map(|_| rustix::io::dup(&null).unwrap()).collect();
    let cache = tempfile::tempdir().unwrap();
    let stage = Stage::of_language(language, 1, 2, vec![cache.path().to_owned()]);
    let mark = if stage.is_python { "#" } else { "//" };
    let long = Duration::from_secs(100);
    let limits = Limits { wall_time: long, cpu_time: long, ..short() };
    for (attack, refused) in [
        (
            "open",
            "open /etc/passwd: refused; create /tmp/cx-escape: refused; stat: refused; readdir /proc: refused",
        ),
        ("connect", "socket inet: refused; socket unix: refused; pair: refused"),
        ("signal", "kill parent: refused; kill others: refused; kill 1: refused; pidfd: refused"),
        ("memory", "read: refused; write: refused; ptrace: refused; mem: refused"),
        ("spawn", "fork: refused; exec: refused; unshare: refused; privileges: refused; bpf: refused"),
        ("environment", "environment: 0; descriptors: only its own"),
    ] {
        let source = format!("{mark} hostile: {attack}\n{mark} {}\nreturn 1", processes().await);
        let result = stage.run_for(None, &source, limits).await;
        assert_eq!(printed(&result), refused, "{attack}: {result:?}");
    }
    drop(inherited);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_was_taken_over_reaches_nothing() {
    reaches_nothing(Language::TypeScript).await;
}

#[cfg(feature = "python")]
#[tokio::test(flavor = "multi_thread")]
async fn a_python_worker_that_was_taken_over_reaches_nothing() {
    reaches_nothing(Language::Python).await;
}

/// What the kernel says of a worker whose script runs.
#[derive(Default)]
struct Seen {
    /// Of each thread.
    statuses: Vec<String>,
    limits: String,
}

impl Seen {
    async fn of_a_worker() -> Self {
        let seen = Arc::<parking_lot::Mutex<Self>>::default();
        let mut script = Script::typescript("// hostile: pid\nreturn 1");
        let kept = Arc::clone(&seen);
        // The worker cannot end before its line was heard.
        script.on_output = Some(Arc::new(move |entry, _cancel| {
            let Output::Log { text, .. } = entry else { return };
            let process = PathBuf::from(format!("/proc/{text}"));
            let threads = std::fs::read_dir(process.join("task")).unwrap();
            let status = |thread: std::io::Result<std::fs::DirEntry>| {
                std::fs::read_to_string(thread.unwrap().path().join("status")).ok()
            };
            *kept.lock() = Self {
                statuses: threads.filter_map(status).collect(),
                limits: std::fs::read_to_string(process.join("limits")).unwrap(),
            };
        }));
        let environment = RunEnvironment::empty(short(), tokio::runtime::Handle::current());
        let stage = Stage::new(1, 1);
        assert_eq!(text(&stage.run_in(environment, script).await), "1");
        std::mem::take(&mut *seen.lock())
    }

    /// The limit of this name, soft and hard.
    fn limit(&self, name: &str) -> Vec<&str> {
        let values = self.limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        values.split_whitespace().take(2).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v_553_the_kernel_restricts_every_thread_of_a_worker() {
    let seen = Seen::of_a_worker().await;
    assert!(seen.statuses.len() > 1, "{:?}", seen.statuses);
    for status in &seen.statuses {
        for expected in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
            assert!(status.lines().any(|line| line == expected), "{expected}: {status}");
        }
    }
    for (name, most) in [("Max file size", "0"), ("Max locked memory", "0"), ("Max open files", "64")] {
        assert_eq!(seen.limit(name), [most, most], "{name}: {}", seen.limits);
    }
}

/// A worker serves runs of one tenant only, one after the other, and each in an isolate of its own.
#[tokio::test(flavor = "multi_thread")]
async fn tenants_never_share_a_worker() {
    let stage = Stage::new(100, 1);
    let process = "// hostile: pid\nreturn 1";
    let mut of_tenants: Vec<Vec<String>> = Vec::new();
    for tenant in [Some("a"), Some("b"), None] {
        let mut seen = Vec::new();
        // A worker whose run took long, as on a busy machine, is not used again.
        wait_until(async || {
            let result = stage.run_for(tenant, process, short()).await;
            seen.push(printed(&result));
            let left = stage.run_for(
                tenant,
                "const had = globalThis.left; globalThis.left = 1; return had ?? null",
                short(),
            );
            assert_eq!(text(&left.await), "null");
            seen.len() >= 4 && seen.windows(2).any(|two| two[0] == two[1])
        })
        .await;
        of_tenants.push(seen);
    }
    for (number, seen) in of_tenants.iter().enumerate() {
        for other in &of_tenants[number + 1..] {
            assert!(seen.iter().all(|process| !other.contains(process)), "{of_tenants:?}");
        }
    }
}

/// With one run each, no process is met twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_one_run_is_not_met_again() {
    let stage = Stage::new(1, 1);
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(printed(&stage.run("// hostile: pid\nreturn 1").await));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4);
}

/// With several, it ends after the last of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_three_runs_serves_three() {
    let stage = Stage::new(3, 1);
    let mut served = BTreeMap::<String, u32>::new();
    let mut runs = 0;
    // One whose run took long, as on a busy machine, serves fewer.
    wait_until(async || {
        *served.entry(printed(&stage.run("// hostile: pid\nreturn 1").await)).or_default() += 1;
        runs += 1;
        let most = served.values().max().copied();
        assert!(most <= Some(3), "{served:?}");
        runs >= 40 && most == Some(3)
    })
    .await;
}

/// A priority that was lowered cannot be raised again, so a worker with a low one serves no other run.
#[tokio::test(flavor = "multi_thread")]
async fn v_481_a_worker_of_low_priority_is_not_given_back() {
    let stage = Stage::new(100, 1);
    // It is the processor's time that counts, of which a busy machine may give it little in the half second.
    let long = "// hostile: pid\nconst end = Date.now() + 500; while (Date.now() < end); \
                for (let n = 0; n < 1e8; n++); return 1";
    let result = stage.run(long).await;
    assert_eq!(text(&result), "1");
    let slow = printed(&result);
    for _ in 0..2 {
        assert_ne!(printed(&stage.run("// hostile: pid\nreturn 1").await), slow);
    }
}

/// Every process ends with its pool.
#[tokio::test(flavor = "multi_thread")]
async fn no_worker_outlives_its_pool() {
    let stage = Stage::new(100, 1);
    let mut pid = 0;
    let mut process = PathBuf::new();
    // A worker whose run took long, as on a busy machine, ends after it.
    wait_until(async || {
        pid = printed(&stage.run("// hostile: pid\nreturn 1").await).parse::<u32>().unwrap();
        process = PathBuf::from(format!("/proc/{pid}"));
        process.exists()
    })
    .await;
    drop(stage);
    let began = Instant::now();
    while process.exists() {
        assert!(began.elapsed() < WATCHDOG, "the worker {pid} is still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
