//! The cost of a queue on a NATS server, and the gain from more workers: warm runs, tool calls and runs per second with
//! one to five workers of one slot each, beside worker processes of this machine. Needs `nats-server`.
//!
//! `cargo bench --bench nats`
#![expect(clippy::print_stdout, reason = "a program that reports")]
#![expect(clippy::disallowed_methods, reason = "starts the server and the workers")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cx::{CancellationToken, Executor, Isolation, Language, Limits, NatsWorkers, QueueOptions, Script};
use futures::executor::block_on;
use serde_json::{Value, json};

/// Runs one after the other, and those at the start that are not counted.
const RUNS: usize = 40;
const UNMEASURED: usize = 5;
/// Calls of one run.
const CALLS: u32 = 2_000;
/// How long each throughput is measured, and how long each run of it computes or waits.
const THROUGHPUT: Duration = Duration::from_secs(8);
const WORK: u64 = 50;
/// Front-end threads: enough that a run always waits for a worker.
const AT_ONCE: usize = 12;
const MAX_WORKERS: usize = 5;
/// A pause before each run that is measured as a warm one: an agent thinks for longer.
const PAUSE: Duration = Duration::from_millis(150);

/// A process that ends with this one.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// The server, its port, and that of its statistics.
struct NatsServer {
    _process: Process,
    url: String,
    statistics: u16,
}

impl NatsServer {
    fn start(directory: &Path) -> Self {
        let child = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-p", "-1", "-m", "-1", "-js", "-sd"])
            .arg(directory.join("jetstream"))
            .arg("--ports_file_dir")
            .arg(directory)
            .stderr(Stdio::null())
            .spawn()
            .expect("`nats-server` is installed");
        let file = directory.join(format!("nats-server_{}.ports", child.id()));
        let ports: Value = loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if let Ok(ports) = serde_json::from_str(&text) {
                break ports;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let port = |name: &str| -> u16 {
            let address = ports[name][0].as_str().expect("an address");
            address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
        };
        let url = format!("nats://127.0.0.1:{}", port("nats"));
        Self { _process: Process(child), url, statistics: port("monitoring") }
    }

    /// Messages and bytes that clients have sent so far.
    fn traffic(&self) -> (f64, f64) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.statistics)).expect("statistics");
        stream.write_all(b"GET /varz HTTP/1.0\r\n\r\n").expect("statistics");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("statistics");
        let body = text.split_once("\r\n\r\n").expect("a body").1;
        let all: Value = serde_json::from_str(body).expect("JSON");
        let number = |name: &str| all[name].as_f64().expect("a number");
        (number("in_msgs"), number("in_bytes"))
    }
}

/// This program again, as a machine that executes one run at a time.
fn worker(url: &str, key: &Path) -> Process {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--as-worker", url])
        .arg(key)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a worker");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "joined\n");
    Process(child)
}

fn work(url: String, key: String) {
    let mut options = QueueOptions::new(NatsWorkers::new(url, key));
    options.concurrency = 1;
    let executor = Executor::builder().languages([]).build().expect("an executor");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let joined = |_event| println!("joined");
    runtime.block_on(executor.work_for_queue(&options, joined, &CancellationToken::new())).expect("a worker");
}

fn executor(isolation: Isolation) -> Executor {
    let executor = Executor::builder()
        .languages([Language::TypeScript])
        .warm_instances(4)
        .isolation(isolation)
        .limits(Limits { tool_calls: 0, ..Limits::default() })
        .tool("native.echo", json!({ "type": "object" }), |arguments: Value| async move {
            Ok::<_, String>(arguments)
        })
        .build()
        .expect("an executor");
    block_on(executor.warm(Language::TypeScript)).expect("a warm engine");
    executor
}

fn run(executor: &Executor, code: &str) -> cx::ExecuteResult {
    let result = executor.run_blocking(Script::typescript(code)).expect("a run");
    assert!(matches!(result.outcome, cx::Outcome::Returned(_)), "{:?}", result.outcome);
    result
}

/// The middle and the 99th of a hundred.
fn distribution(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    format!("{:>10.3?} {:>10.3?}", at(50), at(99))
}

fn latency(name: &str, executor: &Executor) {
    let mut times = Vec::new();
    for number in 0..RUNS + UNMEASURED {
        std::thread::sleep(PAUSE);
        let began = Instant::now();
        run(executor, "return 1");
        if number >= UNMEASURED {
            times.push(began.elapsed());
        }
    }
    let calls = format!(
        "const began = Date.now(); for (let i = 0; i < {CALLS}; i++) await tools.native.echo({{ i }}); \
         return Date.now() - began"
    );
    let milliseconds = run(executor, &calls).value_as::<f64>().unwrap_or(f64::NAN);
    println!("{name:<28} {}  {:>7.1} µs", distribution(times), milliseconds * 1000.0 / f64::from(CALLS));
}

/// Runs of this code per second.
fn throughput(executor: &Arc<Executor>, code: &'static str) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let threads: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (executor, stop) = (Arc::clone(executor), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut count = 0_u32;
                while !stop.load(Ordering::Relaxed) {
                    run(&executor, code);
                    count += 1;
                }
                count
            })
        })
        .collect();
    std::thread::sleep(THROUGHPUT);
    stop.store(true, Ordering::Relaxed);
    let count: u32 = threads.into_iter().map(|thread| thread.join().expect("a thread")).sum();
    f64::from(count) / began.elapsed().as_secs_f64()
}

fn main() {
    // This program is its own worker process, and also stands in for those elsewhere.
    cx::worker_process();
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--as-worker") {
        let (url, key) = (arguments.next(), arguments.next());
        return work(url.expect("an address"), key.expect("a file"));
    }
    let directory = tempfile::tempdir().expect("a directory");
    let server = NatsServer::start(directory.path());
    let key: PathBuf = directory.path().join("key");
    let mut file = File::options().create_new(true).write(true).mode(0o600).open(&key).expect("a key");
    file.write_all(b"a key that all machines of the bench share").expect("a key");
    let queue = || Isolation::Nats(NatsWorkers::new(&server.url, &key));

    println!("where                        warm run: p50        p99   a tool call");
    latency("in this process", &executor(Isolation::InProcess));
    latency("worker process", &executor(Isolation::process()));
    {
        let _worker = worker(&server.url, &key);
        latency("over NATS", &executor(queue()));
    }

    let computes: &'static str =
        Box::leak(format!("const until = Date.now() + {WORK}; while (Date.now() < until); return 1").into());
    let waits: &'static str =
        Box::leak(format!("await new Promise((done) => setTimeout(done, {WORK})); return 1").into());
    println!(
        "\nworkers   runs/s that wait {WORK} ms   that compute {WORK} ms   messages a run   bytes a run"
    );
    let executor = Arc::new(executor(queue()));
    let mut workers = Vec::new();
    for count in 1..=MAX_WORKERS {
        workers.push(worker(&server.url, &key));
        // Its first worker processes are warm.
        std::thread::sleep(Duration::from_secs(2));
        let before = server.traffic();
        let began = Instant::now();
        let waiting = throughput(&executor, waits);
        let (took, after) = (began.elapsed().as_secs_f64(), server.traffic());
        let computing = throughput(&executor, computes);
        let runs = waiting * took;
        println!(
            "{count:>7}   {waiting:>22.1}   {computing:>21.1}   {:>14.1}   {:>11.0}",
            (after.0 - before.0) / runs,
            (after.1 - before.1) / runs
        );
    }
}
