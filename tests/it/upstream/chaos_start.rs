//! Servers that do not start, or start badly: docs/threats.md, UP 206, 207, 210, 211, and the protocol revisions.

use std::time::{Duration, Instant};

use cx::McpServer;
use serde_json::{Value, json};

use crate::support::chaos::{CONNECT_TIME, Stage, builder, program, stdio};
use crate::support::serve::WATCHDOG;
use crate::support::stopwatch::{LATE, Stopwatch};

#[tokio::test]
async fn up_206_a_command_that_is_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let not_executable = directory.path().join("text");
    std::fs::write(&not_executable, "no program").unwrap();
    for (command, part) in [("no-such-program", "`PATH`"), (not_executable.to_str().unwrap(), "executable")] {
        let stage = Stage::stdio_with(&[], |_| McpServer::stdio("faulty", command));
        stage
            .beside(async {
                let called = stage.call("tools.faulty.echo({})").await;
                called.failed("UPSTREAM_UNAVAILABLE", &[command, part]);
            })
            .await;
        stage.close().await;
    }
}

#[tokio::test]
async fn up_206_a_server_that_exits_at_once() {
    for (mode, parts) in [
        ("exits-0", ["exit status 0", ""]),
        ("exits-1-stderr", ["exit status 1", "Traceback: no such database"]),
        ("dies-in-handshake", ["exit status 3", "Traceback: no such database"]),
    ] {
        let stage = Stage::stdio(&[mode]);
        stage
            .beside(async {
                let called = stage.call("tools.faulty.echo({})").await;
                called.failed("UPSTREAM_UNAVAILABLE", &parts);
                assert!(!called.message.contains('\u{1b}'), "{mode}: {called:?}");
            })
            .await;
        stage.close().await;
    }
}

#[tokio::test]
async fn up_206_building_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let notes = directory.path().join("notes");
    let executor = builder().mcp_server(stdio("slow", &["slow-start", "2000"], &notes)).build().unwrap();
    let result = executor.run_ts("return 1").await.unwrap();
    assert_eq!(result.value(), Some(&json!(1)));
    assert!(!notes.exists());
    executor.close().await;
}

/// Promise 155 of docs/promises.md.
#[tokio::test]
async fn a_run_starts_only_the_servers_that_it_needs() {
    let directory = tempfile::tempdir().unwrap();
    let notes = |name: &str| directory.path().join(name);
    let servers = ["used", "other"].map(|name| stdio(name, &["well"], &notes(name)));
    let executor =
        servers.into_iter().fold(builder(), |builder, server| builder.mcp_server(server)).build().unwrap();
    let result = executor.run_ts("return (await tools.used.echo({ n: 1 })).n").await.unwrap();
    assert_eq!(result.value(), Some(&json!(1)), "{}", result.to_json());
    assert!(notes("used").exists() && !notes("other").exists(), "only one is called");
    executor.close().await;
}

/// Promise 16 of docs/promises.md: null would say that there is no such tool.
#[tokio::test]
async fn a_schema_of_a_server_that_cannot_be_reached_is_an_error() {
    let stage = Stage::stdio(&["exits-1-stderr"]);
    stage
        .beside(async {
            let called = stage.call("getToolSchema('mcp__faulty__echo')").await;
            called.failed("UPSTREAM_UNAVAILABLE", &["faulty", "exit status 1"]);
            stage.call("getToolSchema('mcp__well__nothing')").await.returned(Value::Null);
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn up_207_a_server_that_does_not_answer_its_handshake() {
    let stage = Stage::stdio_with(&["silent"], |server| server.connect_timeout(CONNECT_TIME));
    stage
        .beside(async {
            let called = stage.call("tools.faulty.echo({})").await;
            called.failed("UPSTREAM_UNAVAILABLE", &["handshake", "1.5 s"]);
            called.within(CONNECT_TIME + LATE);
        })
        .await;
    for process in stage.processes("started") {
        crate::support::wait_until(|| !crate::support::chaos::runs(&process)).await;
    }
    stage.close().await;
}

#[tokio::test]
async fn up_207_a_server_that_starts_slowly_but_in_time() {
    let stage = Stage::stdio_with(&["slow-start", "6000"], |server| {
        // The time of a call begins when the call is sent.
        server.connect_timeout(Duration::from_secs(60)).call_timeout(Duration::from_secs(5))
    });
    stage.beside(stage.target()).await.returned("well");
    stage.close().await;
}

#[tokio::test]
async fn up_210_a_crash_loop_is_broken() {
    let stage = Stage::stdio(&["crash-loop"]);
    stage
        .beside(async {
            for _ in 0..5 {
                stage.call("tools.faulty.echo({})").await.failed("UPSTREAM_UNAVAILABLE", &["faulty"]);
            }
            let starts = stage.noted("started");
            // From here on calls are refused without a start.
            let source = "const times = [];
                for (let i = 0; i < 20; i++) {
                    const started = performance.now();
                    const { error } = call_tool('faulty', 'echo', {});
                    times.push(performance.now() - started);
                    if (!(error.retryAfterMs > 0)) return error;
                }
                return times.sort((a, b) => a - b)[10]";
            let median = stage.value(source).await;
            // The least pause before a start is half a second.
            assert!(median.as_f64().is_some_and(|median| median < 250.0), "{median}");
            assert!(stage.noted("started") <= starts + 1, "{}", stage.notes());
            // Two starts for each attempt: the second with the other kind of protocol revision.
            assert!(starts <= 10, "{}", stage.notes());
        })
        .await;
    stage.close().await;
}

/// Also DI 166, without strict mode.
#[tokio::test]
async fn up_211_a_restart_with_other_tools_is_seen() {
    let stage = Stage::stdio(&["rug-pull", "restart"]);
    stage
        .beside(async {
            let description = "return (await getToolSchema('mcp__faulty__pulled'))?.description";
            assert_eq!(stage.value(description).await, "Adds numbers");
            let process = stage.processes("started").remove(0);
            kill(&process);
            crate::support::wait_until(|| !crate::support::chaos::runs(&process)).await;
            stage.call("tools.faulty.echo({ n: 1 })").await;
            let started = Instant::now();
            while stage.value(description).await == "Adds numbers" {
                assert!(started.elapsed() < WATCHDOG, "it never changed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            assert_eq!(stage.noted("started"), 2);
        })
        .await;
    stage.close().await;
}

fn kill(process: &str) {
    std::process::Command::new("kill").args(["-9", process]).status().unwrap();
}

#[tokio::test]
async fn both_kinds_of_protocol_revisions_work() {
    for mode in ["legacy-only", "modern-only", "discover-ignored"] {
        let time = Duration::from_secs(20);
        let stage = Stage::stdio_with(&[mode], |server| server.connect_timeout(time));
        stage
            .beside(async {
                stage.target().await.returned("well").within(time + LATE);
                stage.call("tools.faulty.count({})").await.returned(serde_json::json!({ "count": 1 }));
            })
            .await;
        assert_eq!(stage.noted("executed target"), 1, "{mode}");
        stage.close().await;
    }
}

/// The server of these tests refuses unknown modes, so that a misspelled one fails its test.
#[test]
fn the_server_refuses_modes_that_it_does_not_have() {
    let output = std::process::Command::new(program()).args(["stdio", "no-such-mode"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown mode `no-such-mode`"));
}

/// A server that a shell starts after five seconds of work, as `npx` does, or after five seconds without any.
fn started_late(doing: &str, directory: &std::path::Path) -> McpServer {
    let notes = directory.join("notes");
    let script = format!(
        "{doing}; exec {} stdio well --notes {}",
        program().to_str().unwrap(),
        notes.to_str().unwrap()
    );
    McpServer::stdio("faulty", "sh").args(["-c", &script])
}

/// Threat 699. The time for connecting is longer for a process that shows signs of life, and only for that one.
#[tokio::test]
async fn v_699_a_server_that_downloads_first_has_more_time() {
    let directory = tempfile::tempdir().unwrap();
    let works = |doing: &str| format!("for i in 1 2 3 4 5 6 7 8 9 10; do {doing}; sleep 0.5; done");
    let call = async |server: McpServer| {
        let executor = builder().mcp_server(server).build().unwrap();
        let result = executor.run_ts("return await call_tool('faulty', 'count', {})").await.unwrap();
        executor.close().await;
        result.value().unwrap().clone()
    };
    let patient = |doing: &str| {
        let mut server = started_late(doing, directory.path());
        server.connect_timeout = Duration::from_millis(2_500);
        server
    };
    for doing in [
        works("echo downloading >&2"),
        // Prints a line at once, and then waits for the network.
        "echo downloading >&2; sleep 5".to_owned(),
        works("head -c 100000 /dev/zero > /dev/null"),
        // A descendant works: it only uses CPU time.
        "timeout 5 sh -c 'while :; do :; done' > /dev/null".to_owned(),
    ] {
        let answer = call(patient(&doing)).await;
        assert_eq!(answer["ok"], true, "{doing}: {answer}");
    }
    let answer = call(patient("sleep 20")).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("2.5 s") && message.contains("`connectTimeoutMs`"), "{answer}");
    // A configured time is not extended.
    let stopwatch = Stopwatch::start();
    let set = started_late(&works("echo downloading >&2"), directory.path());
    let answer = call(set.connect_timeout(Duration::from_millis(1_500))).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("within 1.5 s;") && message.contains("`connectTimeoutMs`"), "{answer}");
    stopwatch.promise(Duration::from_millis(1_500) + LATE, "the end of a start");
}
