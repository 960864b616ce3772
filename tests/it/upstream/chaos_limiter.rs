//! The limiter of a server: docs/threats.md, UP 226 to 228 and TL 147.

use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;

use cx::{ErrorCode, Limits, RateLimit, Script, ToolRules};
use serde_json::json;

use crate::support::alone;
use crate::support::chaos::{CLOSING_TIME, Stage, builder, entry, runs, stdio};
use crate::support::stopwatch::Stopwatch;

/// Five failures open the circuit; then nothing reaches the server, and the error says for how long.
#[tokio::test]
async fn up_226_a_server_that_keeps_failing_is_not_called() {
    // Also the call that succeeds has this time.
    let stage = Stage::stdio_with(&["hang-call"], |server| server.call_timeout(Duration::from_secs(5)));
    let time_out = async |calls: usize| {
        let source = format!(
            "const targets = Array.from({{ length: {calls} }}, () => tools.faulty.target({{}}));
             return (await Promise.allSettled(targets)).map(({{ reason }}) => reason?.code)"
        );
        assert_eq!(stage.value(&*source).await, json!(vec!["TOOL_TIMEOUT"; calls]));
    };
    stage
        .beside(async {
            // A success in between resets the count: eight failures do not open the circuit.
            for n in [1, 2] {
                time_out(4).await;
                stage.call(&format!("tools.faulty.echo({{ n: {n} }})")).await.returned(json!({ "n": n }));
            }
            time_out(5).await;
            let called = stage.call("tools.faulty.echo({})").await;
            called.failed("CIRCUIT_OPEN", &["faulty"]);
            assert!(called.retry_after_ms.is_some_and(|ms| ms > 0 && ms <= 30_000), "{called:?}");
            let source = "let opened = 0;
                          for (let i = 0; i < 100; i++) opened += call_tool('faulty', 'echo', {}).error?.code === 'CIRCUIT_OPEN';
                          return opened";
            assert_eq!(stage.value(source).await, 100);
        })
        .await;
    assert_eq!((stage.noted("executed target"), stage.noted("executed echo")), (13, 2), "{}", stage.notes());
    stage.close().await;
}

/// Promise 43 of docs/promises.md: rules and the schema are checked first. A call that they refuse is refused for that
/// reason, whatever the server's state.
#[tokio::test]
async fn rules_and_the_schema_are_checked_before_the_circuit_breaker() {
    let stage = Stage::stdio_with(&["hang-call"], |mut server| {
        server.rules = ToolRules::new().deny(["count"]);
        server.call_timeout(Duration::from_secs(1))
    });
    stage
        .beside(async {
            for _ in 0..5 {
                stage.target().await.failed("TOOL_TIMEOUT", &[]);
            }
            stage.call("callMCPTool('mcp__faulty__count', {})").await.failed("TOOL_DENIED", &[]);
            stage.call("tools.faulty.slow({ ms: 'long' })").await.failed("INVALID_ARGUMENTS", &["ms"]);
            stage.call("tools.faulty.slow({ ms: 1 })").await.failed("CIRCUIT_OPEN", &[]);
        })
        .await;
    stage.close().await;
}

/// Runs with short deadlines of their own must not open the circuit of a slow server for the others.
#[tokio::test]
async fn up_226_an_impatient_run_is_no_failure_of_the_server() {
    let stage = Stage::stdio_with(&["hang-call"], |server| server.call_timeout(Duration::from_secs(20)));
    stage
        .beside(async {
            // Started, so that its start does not count.
            stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            let limits = Limits { wall_time: Duration::from_millis(300), ..Limits::default() };
            // On a busy machine a run may end before it has called.
            while stage.noted("executed target") < 6 {
                let script = Script::typescript("await tools.faulty.target({})").limits(limits);
                let result = stage.executor.run(script).await.unwrap();
                assert_eq!(result.error().unwrap().code, ErrorCode::Timeout, "{}", result.to_json());
            }
            stage.call("tools.faulty.echo({ n: 2 })").await.returned(json!({ "n": 2 }));
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn up_226_a_tools_own_failure_is_no_failure_of_the_server() {
    let stage = Stage::stdio(&["well"]);
    stage
        .beside(async {
            for _ in 0..10 {
                stage.call("tools.faulty.fail({})").await.failed("TOOL_ERROR", &["it did not work"]);
            }
            stage.call("tools.faulty.nothing({})").await.failed("TOOL_NOT_FOUND", &[]);
            stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn up_227_a_slow_server_has_a_queue_of_its_own() {
    let stage = Stage::stdio_with(&["well"], |mut server| {
        server.max_concurrent = 2;
        server.max_queued = 3;
        server.queue_timeout = Duration::from_secs(20);
        server.call_timeout(Duration::from_secs(20))
    });
    stage
        .beside(async {
            stage.call("tools.faulty.echo({})").await;
            let source = "const calls = Array.from({ length: 20 }, () => tools.faulty.slow({ ms: 4000 }));
                          const results = await Promise.allSettled(calls);
                          return results.map(({ value, reason }) => value ?? [reason.code, reason.retryAfterMs > 0])";
            let seen = stage.value(source).await;
            let seen = seen.as_array().unwrap();
            let served = seen.iter().filter(|seen| **seen == "slow").count();
            let refused = seen.iter().filter(|seen| **seen == json!(["QUEUE_FULL", true])).count();
            assert_eq!((served, refused), (5, 15), "{seen:?}");
        })
        .await;
    assert_eq!(stage.noted("executed slow"), 5);
    stage.close().await;
}

#[tokio::test]
async fn up_227_no_call_waits_in_the_queue_for_ever() {
    let stage = Stage::stdio_with(&["well"], |mut server| {
        server.max_concurrent = 1;
        server.queue_timeout = Duration::from_millis(200);
        server.call_timeout(Duration::from_secs(20))
    });
    stage
        .beside(async {
            stage.call("tools.faulty.echo({})").await;
            let long = stage.call("tools.faulty.slow({ ms: 8000 })");
            let short = async {
                // The order of calls within one script is not that of their arrival.
                crate::support::wait_until(|| stage.noted("executed slow") == 1).await;
                stage.call("tools.faulty.echo({})").await
            };
            let (long, short) = futures::future::join(long, short).await;
            short.failed("QUEUE_FULL", &[]);
            long.returned("slow");
            stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn tl_147_a_rate_is_exact_over_runs_in_parallel() {
    let stage = Stage::stdio_with(&["well"], |mut server| {
        let calls = NonZeroU32::new(10).unwrap();
        server.rate_limit = Some(RateLimit { calls, period: Duration::from_secs(600) });
        server
    });
    stage
        .beside(async {
            let source = "const results = await Promise.allSettled([1, 2, 3, 4].map(() => tools.faulty.count({})));
                          return results.map(({ reason }) => reason ? [reason.code, reason.retryAfterMs > 0] : null)";
            let runs = futures::future::join_all((0..10).map(|_| stage.value(source))).await;
            let seen: Vec<_> = runs.iter().flat_map(|run| run.as_array().unwrap()).collect();
            let refused = seen.iter().filter(|seen| ***seen == json!(["RATE_LIMITED", true])).count();
            assert_eq!((seen.len(), refused), (40, 30), "{seen:?}");
        })
        .await;
    assert_eq!(stage.noted("executed count"), 10);
    stage.close().await;
}

/// An idle process ends, and is started again by the next call.
#[tokio::test]
async fn an_idle_server_is_stopped_and_started_again() {
    let stage = Stage::stdio_with(&["well"], |server| server.idle_timeout(Duration::from_millis(300)));
    stage
        .beside(async {
            stage.target().await.returned("well");
            let process = stage.processes("started").pop().unwrap();
            crate::support::wait_until(|| !runs(&process)).await;
            stage.target().await.returned("well");
            assert_ne!(stage.processes("started").pop().unwrap(), process);
        })
        .await;
    // On a busy machine it may be idle for too long between its list and the call, and is started once more.
    assert_eq!(stage.noted("executed target"), 2);
    stage.close().await;
}

/// Many servers at once, with one of each fault among them: requests to the others are answered.
#[tokio::test]
async fn up_228_many_servers_in_every_condition() {
    let directory = tempfile::tempdir().unwrap();
    let mut builder = builder();
    let faults = ["silent", "exits-0", "crash-loop", "hang-list", "hang-call", "garbage", "ignores-stdin"];
    for (number, mode) in faults.iter().enumerate() {
        let name = format!("faulty{number}");
        let server = stdio(&name, &[mode], &directory.path().join(&name));
        builder = builder
            .mcp_server(server.connect_timeout(Duration::from_secs(1)).call_timeout(Duration::from_secs(1)));
    }
    for number in 0..8 {
        let name = format!("well{number}");
        builder = builder.mcp_server(stdio(&name, &["well"], &directory.path().join(&name)));
    }
    let executor = builder.build().unwrap();
    let source = "const numbers = Array.from({ length: 8 }, (_, number) => number);
                  const faulty = numbers.slice(1).map((number) => tools[`faulty${number - 1}`].target({}).catch(() => null));
                  const seen = await Promise.all(numbers.map((number) => tools[`well${number}`].echo({ number })));
                  await Promise.race([Promise.all(faulty), new Promise((resolve) => setTimeout(resolve, 3_000))]);
                  return seen.map(({ number }) => number)";
    let result = executor.run_ts(source).await.unwrap();
    let value = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
    assert_eq!(*value, json!([0, 1, 2, 3, 4, 5, 6, 7]));
    let stopwatch = Stopwatch::start();
    executor.close().await;
    stopwatch.promise(CLOSING_TIME, "closing");
}

/// Forty servers need a hundred and twenty pipes, and there are fewer descriptors: a server that gets none is an error,
/// the others keep theirs.
#[test]
fn up_228_no_descriptors_are_left() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("mcp.json");
    let servers: serde_json::Map<_, _> =
        (0..40).map(|number| (format!("server{number}"), entry(&["well"]))).collect();
    std::fs::write(&config, json!({ "mcpServers": servers }).to_string()).unwrap();
    let source = "const seen = await Promise.all(Array.from({ length: 40 }, (_, n) =>
                      tools[`server${n}`].echo({ n }).then(() => n, (error) => `${error.code} ${error.message}`)));
                  const well = seen.filter((seen) => typeof seen === 'number');
                  const again = await Promise.all(well.map((n) => tools[`server${n}`].echo({ n })));
                  return { failed: seen.filter((seen) => typeof seen === 'string'), again: again.length, well: well.length };";
    let output = alone(&mut Command::new("sh"), directory.path())
        .args([
            "-c",
            "ulimit -n 64 && exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_cx"),
            "run",
            "--timeout",
            "120s",
        ])
        .arg("--mcp-config")
        .arg(&config)
        .args(["-e", source])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(seen["well"].as_u64().unwrap() > 0 && seen["well"] == seen["again"], "{seen}");
    let failed = seen["failed"].as_array().unwrap();
    assert!(!failed.is_empty(), "the limit is too high for this test: {seen}");
    for failed in failed {
        let failed = failed.as_str().unwrap();
        assert!(failed.starts_with("UPSTREAM_UNAVAILABLE") && failed.contains("open files"), "{failed}");
    }
}
