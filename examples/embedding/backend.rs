//! Your own sandbox: scripts are executed by Node.js in a process for each run, and cx makes every decision about them.
//! A container, a virtual machine or another computer can take the place of Node.js.
#![expect(clippy::disallowed_methods, reason = "it starts a program, which is looked up in `PATH`")]

use std::io;
use std::process::Stdio;
use std::time::Duration;

use cx::{Backend, BackendRun, BoxFuture, Executor, Grants, Json, Outcome, StateStore, ToolError};
use futures::stream::{FuturesUnordered, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::codec::{FramedRead, LinesCodec};

/// What the process executes: it reads the script and the answers of cx, and writes what the script wants.
const PROGRAM: &str = include_str!("backend.js");

/// Maximum length of a message of the process, in bytes. The content of a sandbox is hostile, so the length of a
/// message is checked before it is read.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// How often the memory of the process is measured from outside.
const MEASURE: Duration = Duration::from_millis(50);

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A message of the process.
#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Call { number: u64, tool: String, arguments: Value },
    Query { number: u64, query: Value },
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
async fn execute(run: &BackendRun) -> Result<Outcome, AnyError> {
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
    let id = process.id();
    let mut messages = FramedRead::new(from_process, LinesCodec::new_with_max_length(MAX_MESSAGE_BYTES));
    let script = json!({ "source": run.source() });
    to_process.write_all(format!("{script}\n").as_bytes()).await?;
    let mut answers = FuturesUnordered::new();
    let mut measure = tokio::time::interval(MEASURE);
    loop {
        tokio::select! {
            Some(answered) = answers.next() => {
                to_process.write_all(format!("{answered}\n").as_bytes()).await?;
            }
            message = messages.next() => match message {
                None => return Err("it ended before the script did".into()),
                Some(line) => match serde_json::from_str(&line?)? {
                    // The executor bounds how many there are, in all and at the same time.
                    Message::Call { number, tool, arguments } => {
                        answers.push(answer(number, run.call(&tool, &arguments.to_string())));
                    }
                    // Passed on unchanged: cx checks all of it.
                    Message::Query { number, query } => {
                        answers.push(answer(number, run.query(&query.to_string())));
                    }
                    Message::Returned { returned } => return Ok(Outcome::Returned(Json::from(returned))),
                    Message::Failed { failed } => return Ok(run.failed(failed)),
                },
            },
            // With more than the limit, cx stops the run.
            _ = measure.tick() => run.report_memory(id.and_then(resident_bytes).unwrap_or_default()),
        }
    }
}

/// The message that answers a request of the process.
async fn answer(number: u64, request: BoxFuture<'static, Result<Json, ToolError>>) -> Value {
    match request.await {
        Ok(value) => json!({ "number": number, "value": value }),
        Err(error) => json!({ "number": number, "error": error.to_string() }),
    }
}

/// Bytes of anonymous memory that a process has in RAM: what it has written, without the program itself.
fn resident_bytes(process: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// A web server that answers each request with the same JSON text. Returns the port.
async fn serve(body: &'static str) -> io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            // The requests of the example are short: one read has them.
            let _length = client.read(&mut [0; 4096]).await;
            let _gone = client.write_all((head + body).as_bytes()).await;
        }
    });
    Ok(port)
}

/// Returns the value of a script with two calls, the number of its recorded calls, the error of a script that makes a
/// denied call, and the value of a script that uses state, search, files and the network.
pub(crate) async fn example() -> Result<(Value, usize, String, Value), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let port = serve(r#"{"rate":2.5}"#).await?;
    let executor = Executor::builder()
        .tool("math.double", Value::Null, |number: Value| async move {
            Ok::<_, String>(number["n"].as_f64().unwrap_or_default() * 2.0)
        })
        .tool("disk.erase", Value::Null, |_: Value| async { Ok::<_, String>("erased") })
        .deny(["disk.*"])
        .state(StateStore::new(directory.path().join("state.sqlite3")), directory.path())
        .grants(Grants { net: vec![format!("127.0.0.1:{port}").parse()?], ..Grants::default() })
        .backend(Node)
        .build()?;
    let sum = r#"
        const doubled = await Promise.all([1, 2].map((n) => callTool("math.double", { n })));
        await state.set("sum", doubled[0] + doubled[1]);
        return doubled[0] + doubled[1];
    "#;
    let result = executor.run_ts(sum).await?;
    let refused = executor.run_ts(r#"return await callTool("disk.erase")"#).await?;
    let message = refused.error().map(|error| error.message.clone()).unwrap_or_default();
    let all = format!(
        r#"
        const [found] = await searchTools("double a number", 1);
        const {{ rate }} = await (await fetch("http://127.0.0.1:{port}/")).json();
        await fs.writeFile("/tmp/rate.txt", String(rate));
        const outside = await fs.readFile("/etc/hostname").catch((error) => error.code);
        return [found.name, await state.get("sum"), await fs.readFile("/tmp/rate.txt"), outside];
        "#
    );
    let all = executor.run_ts(&all).await?;
    let all = all.value().cloned().unwrap_or_else(|| json!(all.error().map(ToString::to_string)));
    Ok((result.value().cloned().unwrap_or_default(), result.tool_calls.len(), message, all))
}
