//! Another configuration while scripts run, as an embedder applies it. Tools that the scripts call make the changes, so
//! that each happens at a known moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::{
    Approval, Config, Error, ErrorCode, ExecuteResult, Executor, ExecutorBuilder, Grants, Isolation, Limits,
    OptionName, PrivateAddresses, RunEvent, Script, ToolErrorCode, ToolRules, WorkerProcesses,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::http_host::{HttpHost, Reply};
use crate::support::python_executor::cache;

/// The action of the tool `tools.native.change`.
type Change = Arc<dyn Fn(&Executor) + Send + Sync>;

/// An executor with the native tools `change` and `step`, and a counter of the calls of `step`.
struct Bench {
    executor: Executor,
    steps: Arc<AtomicUsize>,
    change: Arc<Mutex<Option<(Executor, Change)>>>,
    /// Ends a call of `wait`.
    go_on: Arc<Notify>,
}

impl Bench {
    fn new(builder: ExecutorBuilder) -> Self {
        let steps = Arc::<AtomicUsize>::default();
        let change = Arc::<Mutex<Option<(Executor, Change)>>>::default();
        let go_on = Arc::<Notify>::default();
        let (counted, called, waited) = (Arc::clone(&steps), Arc::clone(&change), Arc::clone(&go_on));
        let executor = builder
            .tool("change", Value::Null, move |_: Value| {
                let change = called.lock().clone();
                async move {
                    let (executor, change) = change.expect("a change");
                    change(&executor);
                    Ok::<_, String>(1)
                }
            })
            .tool("step", Value::Null, move |_: Value| {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                async move { Ok::<_, String>(number) }
            })
            .tool("wait", Value::Null, move |_: Value| {
                let waited = Arc::clone(&waited);
                async move {
                    waited.notified().await;
                    Ok::<_, String>(1)
                }
            })
            .build()
            .unwrap();
        Self { executor, steps, change, go_on }
    }

    /// Runs a script whose tool `change` applies `change`.
    async fn run_changing(
        &self,
        script: impl Into<Script>,
        change: impl Fn(&Executor) + Send + Sync + 'static,
    ) -> ExecuteResult {
        *self.change.lock() = Some((self.executor.clone(), Arc::new(change)));
        let result = self.executor.run(script).await.unwrap();
        *self.change.lock() = None;
        result
    }

    fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }
}

fn config(rules: ToolRules) -> Config {
    let mut config = Config::default();
    config.rules = rules;
    config
}

fn apply(rules: ToolRules) -> impl Fn(&Executor) + Send + Sync {
    move |executor| drop(executor.reconfigure(config(rules.clone())).unwrap())
}

/// A call before and a call after the change; returns the code of the second one's error.
const AROUND: &str = "await tools.native.step({}); await tools.native.change({});
    try { await tools.native.step({}) } catch (error) { return error.code }
    return 'called'";

fn value(result: &ExecuteResult) -> &str {
    result.value_json().map_or_else(|| panic!("{result:?}"), |value| value.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_flight_obeys_what_restricts_at_its_next_call() {
    let rules = ToolRules::new;
    for (after, expected) in [
        (rules().deny(["native.step"]), r#""TOOL_DENIED""#),
        (rules().allow(["native.change"]), r#""TOOL_DENIED""#),
        // No user can be asked.
        (rules().ask(["native.step"]), r#""TOOL_DENIED""#),
        (rules().deny(["native.other"]), r#""called""#),
    ] {
        let bench = Bench::new(Executor::builder().config(Config::default()));
        let result = bench.run_changing(AROUND, apply(after.clone())).await;
        assert_eq!(value(&result), expected, "{after:?}");
        assert_eq!(bench.steps(), if expected.contains("called") { 2 } else { 1 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_widens_counts_for_later_runs() {
    let rules = ToolRules::new;
    for before in [rules().deny(["native.step"]), rules().allow(["native.change"])] {
        let bench = Bench::new(Executor::builder().config(config(before)));
        let script = AROUND.replacen("await tools.native.step({});", "", 1);
        let result = bench.run_changing(script.as_str(), apply(rules())).await;
        assert_eq!(value(&result), r#""TOOL_DENIED""#);
        let result = bench.run_changing(script.as_str(), |_| {}).await;
        assert_eq!(value(&result), r#""called""#);
    }
}

/// A dry run makes the calls of tools that are declared read-only, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_read_only_no_more_is_not_called_in_a_dry_run() {
    let all = ["native.step", "native.change"];
    let bench = Bench::new(Executor::builder().config(config(ToolRules::new().read_only(all))));
    let dry = || Script::typescript(AROUND).dry_run();
    bench.run_changing(dry(), |_| {}).await;
    assert_eq!(bench.steps(), 2);
    let result = bench.run_changing(dry(), apply(ToolRules::new().read_only(["native.change"]))).await;
    assert_eq!(bench.steps(), 3);
    assert_eq!(result.planned_calls.unwrap().len(), 1);
}

/// The decision about a call is made again if the rules have changed while it waited for its turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_a_slot_obeys_too() {
    let limits = Limits { calls_in_flight: 1, ..Limits::default() };
    for rules in [
        ToolRules::new().deny(["native.step"]),
        ToolRules::new().ask(["native.step"]),
        ToolRules::new().private_addresses(PrivateAddresses::Deny),
        ToolRules::new().private_addresses(PrivateAddresses::Ask),
    ] {
        let bench = Bench::new(Executor::builder().config(Config::default()).limits(limits));
        let script = "const first = tools.native.wait({});
            const second = tools.native.step({ to: 'http://10.0.0.1/' }).then(() => 'called', (error) => error.code);
            console.log('both'); await first; return await second";
        let mut run = bench.executor.start(script);
        let mut events = run.events().unwrap();
        events.next().await.unwrap();
        bench.executor.reconfigure(config(rules)).unwrap();
        bench.go_on.notify_one();
        assert_eq!(value(&run.await.unwrap()), r#""TOOL_DENIED""#);
        assert_eq!(bench.steps(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_does_not_outlive_a_denial() {
    let change: Arc<Mutex<Option<Executor>>> = Arc::default();
    let asked = Arc::clone(&change);
    let builder =
        Executor::builder().config(config(ToolRules::new().ask(["native.step"]))).approver(move |_| {
            if let Some(executor) = asked.lock().take() {
                executor.reconfigure(config(ToolRules::new().deny(["native.step"]))).unwrap();
            }
            async { Approval::Approve }
        });
    let bench = Bench::new(builder);
    *change.lock() = Some(bench.executor.clone());
    let result = bench.executor.run_ts("await tools.native.step({})").await.unwrap();
    assert_eq!(result.error().unwrap().tool_code, Some(ToolErrorCode::ToolDenied));
    assert_eq!(bench.steps(), 0);
}

/// A rule about a host holds for each of its ports, also a rule that comes while a person is asked about a request.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_a_request_does_not_outlive_the_denial_of_its_host() {
    let host = HttpHost::start(|_| Reply::text("hello"));
    let change: Arc<Mutex<Option<Executor>>> = Arc::default();
    let asked = Arc::clone(&change);
    let grants = Grants { net: vec!["127.0.0.1".parse().unwrap()], ..Grants::default() };
    let executor = Executor::builder()
        .grants(grants)
        .config(config(ToolRules::new().ask(["fetch.*"])))
        .approver(move |_| {
            if let Some(executor) = asked.lock().take() {
                executor.reconfigure(config(ToolRules::new().deny(["fetch.127.0.0.1"]))).unwrap();
            }
            async { Approval::Approve }
        })
        .build()
        .unwrap();
    *change.lock() = Some(executor.clone());
    let source = "try { return await (await fetch(input)).text() } catch (error) { return error.cause.code }";
    let result = executor.run(Script::typescript(source).input(json!(host.url("/")))).await.unwrap();
    assert_eq!(value(&result), r#""TOOL_DENIED""#);
    assert_eq!(host.asked().len(), 0);
}

fn lower(change: impl Fn(&mut Limits) + Send + Sync + 'static) -> impl Fn(&Executor) + Send + Sync {
    move |executor| {
        let mut config = Config::default();
        change(&mut config.limits);
        change(&mut config.max_limits);
        assert!(executor.reconfigure(config).unwrap().settings);
    }
}

/// Executes scripts in this process, and in worker processes.
fn isolations() -> [Isolation; 2] {
    let workers =
        WorkerProcesses { program: Some(env!("CARGO_BIN_EXE_cx").into()), ..WorkerProcesses::default() };
    [Isolation::InProcess, Isolation::Process(workers)]
}

/// Runs a script that would go on for a minute and whose tool `change` lowers the maximum.
async fn run_lowering(
    isolation: Isolation,
    script: Script,
    fuel: Option<u64>,
    change: fn(&mut Limits),
) -> ExecuteResult {
    let minute = Duration::from_secs(60);
    let mut before = Config::default();
    before.limits =
        Limits { wall_time: minute, cpu_time: minute, memory_bytes: 512 << 20, fuel, ..Limits::default() };
    let builder = Executor::builder().config(before).isolation(isolation).cache_directory(cache());
    Bench::new(builder).run_changing(script, lower(change)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maximum_that_is_lowered_counts_for_runs_in_flight() {
    let endless = "await tools.native.change({}); for (;;) {}";
    let waits = "await tools.native.change({}); await tools.native.wait({})";
    // A global variable, because V8 collects objects that the loop does not need.
    let grows = "globalThis.all = new Uint8Array(300e6).fill(1); await tools.native.change({}); for (;;) {}";
    let calls = "await tools.native.change({}); await tools.native.step({}); await tools.native.step({})";
    let prints = "await tools.native.change({}); console.log('x'.repeat(100)); return 'kept'";
    type Case = (&'static str, fn(&mut Limits), Option<ErrorCode>, &'static str);
    let cases: [Case; 6] = [
        (endless, |limits| limits.wall_time = Duration::from_millis(300), Some(ErrorCode::Timeout), "300ms"),
        (waits, |limits| limits.wall_time = Duration::from_millis(300), Some(ErrorCode::Timeout), "300ms"),
        (endless, |limits| limits.cpu_time = Duration::from_millis(200), Some(ErrorCode::CpuLimit), "200ms"),
        (grows, |limits| limits.memory_bytes = 16 << 20, Some(ErrorCode::MemoryLimit), "16 MiB"),
        (calls, |limits| limits.tool_calls = 2, Some(ErrorCode::MaxToolCallsExceeded), "2 tool calls"),
        (prints, |limits| limits.output_bytes = 10, None, ""),
    ];
    for isolation in isolations() {
        for (script, change, code, message) in &cases {
            let result = run_lowering(isolation.clone(), Script::typescript(*script), None, *change).await;
            let context = format!("{isolation:?} {script}: {result:?}");
            assert_eq!(result.error().map(|error| error.code), *code, "{context}");
            assert!(result.error().is_none_or(|error| error.message.contains(message)), "{context}");
            assert_eq!(result.usage.output_bytes_dropped > 0, code.is_none(), "{context}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maximum_that_is_lowered_counts_for_python_in_flight() {
    let endless = "await tools.native.change()\nwhile True: pass";
    let grows = "all = bytearray(b'x') * 300_000_000\nawait tools.native.change()\nwhile True: pass";
    type Case = (&'static str, fn(&mut Limits), ErrorCode, &'static str);
    // Only a run that has a limit of fuel counts it.
    let fuel = |code| (code == ErrorCode::FuelLimit).then_some(1 << 50);
    let cases: [Case; 4] = [
        (endless, |limits| limits.fuel = Some(1_000_000), ErrorCode::FuelLimit, "1000000 units"),
        (endless, |limits| limits.wall_time = Duration::from_millis(300), ErrorCode::Timeout, "300ms"),
        (endless, |limits| limits.cpu_time = Duration::from_millis(200), ErrorCode::CpuLimit, "200ms"),
        (grows, |limits| limits.memory_bytes = 16 << 20, ErrorCode::MemoryLimit, "16 MiB"),
    ];
    for isolation in isolations() {
        for (script, change, code, message) in &cases {
            let result = run_lowering(isolation.clone(), Script::python(*script), fuel(*code), *change).await;
            let context = format!("{isolation:?} {script}: {result:?}");
            assert_eq!(result.error().map(|error| error.code), Some(*code), "{context}");
            assert!(result.error().is_some_and(|error| error.message.contains(message)), "{context}");
        }
    }
}

/// Calls that are in flight go on, and the next one begins when there are fewer than the lower limit.
#[tokio::test(flavor = "multi_thread")]
async fn fewer_calls_in_flight_count_for_runs_in_flight() {
    let bench = Bench::new(Executor::builder().config(Config::default()));
    let change: Change = Arc::new(lower(|limits| limits.calls_in_flight = 2));
    *bench.change.lock() = Some((bench.executor.clone(), change));
    let script = "let ended = 0
        const waits = [1, 2, 3].map(() => tools.native.wait({}).then(() => { ended += 1; console.log('ended') }));
        await tools.native.change({});
        const late = tools.native.step({}).then(() => { console.log('stepped'); return ended });
        await new Promise((resolve) => setTimeout(resolve, 200));
        console.log('waited'); await Promise.all(waits); return await late";
    let mut run = bench.executor.start(script);
    let mut events = run.events().unwrap();
    // Three are in flight, and two until a second one has ended: only then is the late one sent. The third one ends
    // after that, so that the order of the two is the same in every run.
    for (outputs, steps) in [(1, 0), (1, 0), (2, 1)] {
        for _ in 0..outputs {
            while !matches!(events.next().await.unwrap(), RunEvent::Output(_)) {}
        }
        assert_eq!(bench.steps(), steps);
        bench.go_on.notify_one();
    }
    let result = run.await.unwrap();
    assert_eq!(value(&result), "2", "{result:?}");
    assert_eq!(bench.steps(), 1);
}

/// A lowered default holds for later scripts that ask for nothing. So does a raised maximum.
#[tokio::test(flavor = "multi_thread")]
async fn other_limits_count_for_later_runs() {
    let bench = Bench::new(Executor::builder().config(Config::default()));
    let few = |executor: &Executor| {
        let mut config = Config::default();
        config.limits.tool_calls = 2;
        config.max_limits.wall_time = Limits::CEILING.wall_time;
        assert!(executor.reconfigure(config).unwrap().settings);
    };
    let script = "await tools.native.change({}); await tools.native.step({}); await tools.native.step({})";
    let result = bench.run_changing(script, few).await;
    assert!(result.error().is_none(), "{result:?}");
    assert_eq!(bench.executor.limits().tool_calls, 2);
    let result = bench.run_changing(script, |_| {}).await;
    let error = result.error().unwrap();
    assert!(error.message.contains("may make 2 tool calls"), "{error:?}");
}

/// The embedder's own rules are no part of the configuration.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_embedder_has_set_stays() {
    let builder =
        Executor::builder().deny(["native.step"]).config(config(ToolRules::new().deny(["native.wait"])));
    let bench = Bench::new(builder);
    let changes = bench.executor.reconfigure(Config::default()).unwrap();
    assert!(changes.rules && changes.added.is_empty(), "{changes}");
    let result = bench.executor.run_ts("await tools.native.step({})").await.unwrap();
    assert_eq!(result.error().unwrap().tool_code, Some(ToolErrorCode::ToolDenied));
    assert!(bench.executor.reconfigure(Config::default()).unwrap().is_empty());
}

/// A lowered bound lets runs in flight end, and admits no others until enough of them have ended.
#[tokio::test(flavor = "multi_thread")]
async fn the_bounds_of_all_runs_count_at_once() {
    let config = |max_runs, total_memory_bytes| {
        let mut config = Config::default();
        config.limits =
            Limits { memory_bytes: 64 << 20, wall_time: Duration::from_secs(100), ..Limits::default() };
        config.max_runs = Some(max_runs);
        config.total_memory_bytes = Some(total_memory_bytes);
        config
    };
    let bench = Bench::new(Executor::builder().config(config(3, 1 << 30)));
    let executor = &bench.executor;
    let begin = || executor.start("await tools.native.wait({})");
    // Runs that have a permit, and runs that wait for one.
    let counts = async |running, queued| {
        let is_so = || (executor.run_stats().running, executor.run_stats().queued) == (running, queued);
        for _ in 0..6_000 {
            if is_so() {
                // The counts stay the same.
                tokio::time::sleep(Duration::from_millis(30)).await;
                assert!(is_so(), "{:?}", executor.run_stats());
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", executor.run_stats());
    };
    let mut runs: Vec<_> = (0..4).map(|_| begin()).collect();
    counts(3, 1).await;
    assert!(executor.reconfigure(config(1, 1 << 30)).unwrap().settings);
    assert_eq!(executor.run_stats().max_running, 1);
    counts(3, 1).await;
    for left in [(2, 1), (1, 1), (1, 0)] {
        bench.go_on.notify_one();
        counts(left.0, left.1).await;
    }
    runs.extend((0..3).map(|_| begin()));
    counts(1, 3).await;
    executor.reconfigure(config(4, 1 << 30)).unwrap();
    counts(4, 0).await;
    // Four have 256 MB.
    executor.reconfigure(config(4, 128 << 20)).unwrap();
    assert_eq!(executor.run_stats().max_memory_bytes, 128 << 20);
    runs.push(begin());
    for left in [(3, 1), (2, 1), (2, 0)] {
        bench.go_on.notify_one();
        counts(left.0, left.1).await;
    }
    runs.push(begin());
    counts(2, 1).await;
    executor.reconfigure(config(4, 192 << 20)).unwrap();
    counts(3, 0).await;
    // A wrong value changes nothing, and the embedder's own value counts where none is configured.
    let refused = executor.reconfigure(config(0, 192 << 20)).err();
    let is_about_runs =
        matches!(refused, Some(Error::InvalidOptions { option: OptionName::MaxConcurrentRuns, .. }));
    assert!(is_about_runs, "{refused:?}");
    let refused = executor.reconfigure(config(4, 32 << 20)).err();
    assert!(matches!(refused, Some(Error::TotalMemoryTooSmall { .. })), "{refused:?}");
    assert_eq!((executor.run_stats().max_running, executor.run_stats().max_memory_bytes), (4, 192 << 20));
    executor.reconfigure(Config::default()).unwrap();
    assert_eq!(executor.run_stats().max_running, 100);
    assert!(executor.config_status().unwrap().needs_restart.is_empty());
    // One after the other: a notification that no run waits for yet is kept, but only one.
    for left in [2, 1, 0] {
        bench.go_on.notify_one();
        counts(left, 0).await;
    }
    drop(runs);
    let own = Executor::builder().max_concurrent_runs(7).config(config(3, 1 << 30)).build().unwrap();
    assert_eq!(own.run_stats().max_running, 3);
    own.reconfigure(Config::default()).unwrap();
    assert_eq!(own.run_stats().max_running, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_be_used_changes_nothing() {
    let bench = Bench::new(Executor::builder().config(config(ToolRules::new().deny(["native.step"]))));
    let executor = &bench.executor;
    let before = executor.config_status().unwrap();
    let wrong = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        config
    };
    for wrong in [
        wrong(|config| config.limits.wall_time = Duration::ZERO),
        wrong(|config| config.rules = ToolRules::new().allow(["no pattern"])),
        wrong(|config| config.clock_resolution = Some(Duration::from_secs(2))),
        // There is no directory for pinned definitions.
        wrong(|config| config.strict = true),
        wrong(|config| config.limits.memory_bytes = usize::MAX),
    ] {
        let error = executor.reconfigure(wrong).unwrap_err().to_string();
        let status = executor.config_status().unwrap();
        assert_eq!(status.failure.unwrap().message, error);
        assert_eq!((status.loaded, status.count), (before.loaded, before.count));
        let result = executor.run_ts("await tools.native.step({})").await.unwrap();
        assert_eq!(result.error().unwrap().tool_code, Some(ToolErrorCode::ToolDenied), "{error}");
    }
    executor.reconfigure(Config::default()).unwrap();
    let status = executor.config_status().unwrap();
    assert_eq!((status.failure, status.count), (None, 2));
    executor.close().await;
    assert!(matches!(executor.reconfigure(Config::default()), Err(Error::Closed)));
}

#[tokio::test(flavor = "multi_thread")]
async fn unmatched_patterns_are_those_of_all_rules() {
    let builder =
        Executor::builder().deny(["native.nothing"]).config(config(ToolRules::new().ask(["gone.tool"])));
    let bench = Bench::new(builder);
    let unmatched = |executor: &Executor| -> Vec<String> {
        executor.unmatched_patterns().iter().map(|pattern| pattern.pattern.clone()).collect()
    };
    // Native tools are listed when they are first needed, as those of any server.
    assert_eq!(unmatched(&bench.executor), ["gone.tool"]);
    bench.executor.refresh_tools().await;
    assert_eq!(unmatched(&bench.executor), ["native.nothing", "gone.tool"]);
}
