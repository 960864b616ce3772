//! Your own sandbox: scripts are executed by Node.js in a process for each run, and cx makes every decision about them.
//! A container, a virtual machine or another computer can take the place of Node.js.
#![expect(clippy::disallowed_methods, reason = "it starts a program, which is looked up in `PATH`")]

use std::process::Stdio;
use std::sync::Arc;

use cx::{Backend, BackendRun, BoxFuture, Error, Executor, Json, Outcome};
use futures::stream::{FuturesUnordered, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio_util::codec::{FramedRead, LinesCodec};

/// What the process executes: it reads the script and the answers of tools, and writes what the script wants.
const PROGRAM: &str = include_str!("backend.js");

/// Maximum length of a message of the process, in bytes. What is in a sandbox is hostile, so the length of
/// what it sends is bounded before it is read.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// A message of the process.
#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Call { call: u64, tool: String, arguments: Value },
    Returned { returned: Value },
    Failed { failed: String },
}

struct Node;

impl Backend for Node {
    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            match execute(&run).await {
                Ok(outcome) => outcome,
                Err(error) => run.failed(format!("Node.js does not execute scripts: {error}")),
            }
        })
    }
}

/// Executes a script to its end. If the run has to stop, this future is dropped, which kills the process.
async fn execute(run: &BackendRun) -> Result<Outcome, Box<dyn std::error::Error + Send + Sync>> {
    let memory = format!("--max-old-space-size={}", run.limits().memory_bytes >> 20);
    // `--experimental-permission` grants no file, no process and no thread; from Node.js 23.5 on it is `--permission`.
    // It does not block the network: in production, start a container without a network here.
    let mut process = Command::new("node")
        .args(["--experimental-permission", &memory, "--eval", PROGRAM])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(mut to_process), Some(from_process)) = (process.stdin.take(), process.stdout.take()) else {
        return Err("its pipes are not there".into());
    };
    let mut messages = FramedRead::new(from_process, LinesCodec::new_with_max_length(MAX_MESSAGE_BYTES));
    let script = json!({ "source": run.source() });
    to_process.write_all(format!("{script}\n").as_bytes()).await?;
    let mut answers = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(answer) = answers.next() => {
                let answer: Value = answer;
                to_process.write_all(format!("{answer}\n").as_bytes()).await?;
            }
            message = messages.next() => match message {
                None => return Err("it ended before the script did".into()),
                Some(line) => match serde_json::from_str(&line?)? {
                    Message::Call { call, tool, arguments } => {
                        // The executor's limits of calls also bound how many there are at the same time.
                        let answer = run.call(&tool, &arguments.to_string());
                        answers.push(async move {
                            match answer.await {
                                Ok(value) => json!({ "call": call, "value": value }),
                                Err(error) => json!({ "call": call, "error": error.to_string() }),
                            }
                        });
                    }
                    Message::Returned { returned } => return Ok(Outcome::Returned(Json::from(returned))),
                    Message::Failed { failed } => return Ok(run.failed(failed)),
                },
            },
        }
    }
}

/// Returns what a script of two calls returns, the number of its calls that were recorded, and what a script gets that
/// calls what is denied.
pub(crate) async fn example() -> Result<(Value, usize, String), Error> {
    let executor = Executor::builder()
        .tool("math.double", Value::Null, |number: Value| async move {
            Ok::<_, String>(number["n"].as_f64().unwrap_or_default() * 2.0)
        })
        .tool("disk.erase", Value::Null, |_: Value| async { Ok::<_, String>("erased") })
        .deny(["disk.*"])
        .backend(Arc::new(Node))
        .build()?;
    let sum = r#"
        const doubled = await Promise.all([1, 2].map((n) => callTool("math.double", { n })));
        return doubled[0] + doubled[1];
    "#;
    let result = executor.run_ts(sum).await?;
    let refused = executor.run_ts(r#"return await callTool("disk.erase")"#).await?;
    let message = refused.error().map(|error| error.message.clone()).unwrap_or_default();
    Ok((result.value().cloned().unwrap_or_default(), result.tool_calls.len(), message))
}
