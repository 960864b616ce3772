//! The time that cx adds to a call over a pipe, and how servers are started and listed side by side. Needs the example
//! binary `chaos`, which answers at once without a fault.
#![expect(clippy::print_stdout, reason = "a program that reports")]
#![expect(clippy::disallowed_methods, reason = "the bare client starts its server itself")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use cx::{Executor, Language, Limits, McpServer, Script};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::json;

#[path = "support/chaos.rs"]
mod chaos;

use chaos::chaos;

/// Calls in one round, and rounds of each side, one after the other so that both see the same machine.
const CALLS: usize = 1_000;
const ROUNDS: usize = 15;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        overhead().await;
        concurrency().await;
        start().await;
    });
}

fn executor(servers: impl IntoIterator<Item = McpServer>) -> Executor {
    let limits = Limits { tool_calls: 0, ..Limits::default() };
    servers
        .into_iter()
        .fold(Executor::builder().limits(limits), |builder, server| builder.mcp_server(server))
        .build()
        .expect("an executor")
}

/// Sequential calls from a script, against the same calls of rmcp's unmodified client.
async fn overhead() {
    let mut child = tokio::process::Command::new(chaos())
        .args(["stdio", "well"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let bare = ().serve(AsyncRwTransport::new_client(stdout, stdin)).await.expect("a handshake");
    let executor = executor([McpServer::stdio("chaos", chaos()).args(["stdio", "well"])]);
    let source = format!("for (let i = 0; i < {CALLS}; i++) await tools.chaos.echo({{ text: 'x' }})");
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    // The first round of each is not counted.
    for round in 0..=ROUNDS {
        let began = Instant::now();
        for _ in 0..CALLS {
            let arguments = json!({ "text": "x" }).as_object().cloned().unwrap_or_default();
            let parameters = CallToolRequestParams::new("echo").with_arguments(arguments);
            bare.call_tool(parameters).await.expect("an answer");
        }
        let bare_time = began.elapsed();
        executor.warm(Language::TypeScript).await.expect("an engine");
        let began = Instant::now();
        let result = executor.run(Script::typescript(&*source)).await.expect("the executor works");
        assert!(result.error().is_none(), "{}", result.to_json());
        if round > 0 {
            direct.push(bare_time / CALLS as u32);
            through.push(began.elapsed() / CALLS as u32);
        }
    }
    let (direct, through) = (median(direct), median(through));
    println!(
        "a call over a pipe, sequentially: bare rmcp client {direct:.1} µs, from a script {through:.1} µs, cx adds {:.1} µs",
        through - direct
    );
    drop(bare);
    executor.close().await;
}

/// 64 calls at once to a tool that takes 50 ms.
async fn concurrency() {
    let executor = executor([McpServer::stdio("chaos", chaos()).args(["stdio", "well"])]);
    let source = "await Promise.all(Array.from({ length: 64 }, () => tools.chaos.slow({ ms: 50 })))";
    let mut times = Vec::new();
    for _ in 0..=ROUNDS {
        executor.warm(Language::TypeScript).await.expect("an engine");
        let began = Instant::now();
        let result = executor.run(Script::typescript(source)).await.expect("the executor works");
        assert!(result.error().is_none(), "{}", result.to_json());
        times.push(began.elapsed());
    }
    times.remove(0);
    println!("64 calls of 50 ms at once: {:.1} ms", median(times) / 1e3);
    executor.close().await;
}

/// Ten servers that take 300 ms to start, listed for the first time.
async fn start() {
    let mut times = Vec::new();
    for _ in 0..5 {
        let servers = (0..10).map(|number| {
            McpServer::stdio(format!("s{number}"), chaos()).args(["stdio", "slow-start", "300"])
        });
        let executor = executor(servers);
        executor.warm(Language::TypeScript).await.expect("an engine");
        let began = Instant::now();
        let result = executor
            .run(Script::typescript(
                "return new Set((await discoverMCPTools()).map((tool) => tool.server)).size",
            ))
            .await
            .expect("the executor works");
        times.push(began.elapsed());
        assert_eq!(result.value(), Some(&json!(10)), "{}", result.to_json());
        executor.close().await;
    }
    println!("ten servers that take 300 ms to start, listed: {:.1} ms", median(times) / 1e3);
}

/// The median in microseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}
