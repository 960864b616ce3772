//! The time that telemetry adds to a call over a pipe: rounds of the same calls without it, with traces, with the audit
//! trail, and with everything that `cx serve` can write, one after the other in an order that rotates. The calls go to
//! the example `chaos`, which returns its arguments and costs as little as a server can, and, if `CX_INTEROP_DIR` says
//! where `make interop` has installed it, to the official server of files, which reads one. Needs the example `chaos`.
//! Words in the arguments select the cases whose names contain one of them; `off` is always included.
//!
//! Each figure is the median of the ratios within a round, because the machine's speed changes from round to round. The
//! second case without telemetry is the control: its difference is noise. `clock` is the time of a call by the clock;
//! on one core (`taskset -c 0`) it includes the work of the upstream server and the collector. `CPU` is the CPU time of
//! all threads of this process, including those that export and write files, until they are done. The collector is a
//! separate process. It counts spans, because dropped spans cost little.
#![expect(clippy::print_stdout, reason = "a program that reports")]
#![expect(clippy::disallowed_methods, reason = "the bench starts its collector itself")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cx::audit::AuditOptions;
use cx::{
    Executor, Language, Limits, MCP_DURATION_BUCKETS, McpServer, OpenTelemetry, OpenTelemetryOptions, Script,
};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::PrometheusBuilder;

#[path = "support/chaos.rs"]
mod chaos;

use chaos::chaos;

/// Calls in one round. The exporter takes 512 spans at once, so most of its work falls within the round.
const CALLS: u32 = 2_048;

/// The server of the calls, and the call as a script writes it.
struct Upstream {
    name: &'static str,
    server: McpServer,
    call: String,
}

/// Rounds that count, after one that does not.
const ROUNDS: usize = 25;

/// How long the threads that export and write have after a round.
const REST: Duration = Duration::from_millis(100);

/// The argument with which this program is the collector.
const COLLECTOR: &str = "--collector";

/// Whether metrics are recorded: the whole process has one recorder.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// One kind of telemetry.
struct Case {
    name: &'static str,
    executor: Executor,
    counts: bool,
    clock: Vec<f64>,
    cpu: Vec<f64>,
}

fn main() {
    if std::env::args().any(|argument| argument == COLLECTOR) {
        return collect();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let (collector, endpoint) = start_collector();
    let started = |with_metrics: bool| {
        let mut options = OpenTelemetryOptions::default();
        options.endpoint = Some(endpoint.clone());
        options.metrics = with_metrics;
        OpenTelemetry::start(&options).expect("an exporter")
    };
    let (traces, everything) = (started(false), started(true));
    let prometheus =
        PrometheusBuilder::new().set_buckets(MCP_DURATION_BUCKETS).expect("buckets").build_recorder();
    let recorder = Switch(everything.recorder(Some(Box::new(prometheus))));
    assert!(metrics::set_global_recorder(recorder).is_ok(), "there is no recorder yet");
    let directory = tempfile::tempdir().expect("a directory");
    let echo = Upstream {
        name: "echo",
        server: McpServer::stdio("chaos", chaos()).args(["stdio", "well"]),
        call: "tools.chaos.echo({ text: 'x' })".to_owned(),
    };
    let upstreams: Vec<Upstream> = [Some(echo), filesystem(directory.path())].into_iter().flatten().collect();
    let mut measured = 0;
    runtime.block_on(async {
        for upstream in &upstreams {
            let trail = |name: &str| AuditOptions::new(directory.path().join(upstream.name).join(name));
            let case = |name, telemetry: Option<&OpenTelemetry>, audit: Option<AuditOptions>, counts| {
                let mut builder = Executor::builder()
                    .limits(Limits { tool_calls: 0, ..Limits::default() })
                    .mcp_server(upstream.server.clone());
                if let Some(telemetry) = telemetry {
                    builder = builder.open_telemetry(telemetry);
                }
                if let Some(audit) = audit {
                    builder = builder.audit(audit);
                }
                let executor = builder.build().expect("an executor");
                Case { name, executor, counts, clock: Vec::new(), cpu: Vec::new() }
            };
            let mut cases = vec![
                case("off", None, None, false),
                case("off, again", None, None, false),
                case("traces", Some(&traces), None, false),
                case("audit", None, Some(trail("audit")), false),
                case("audit, metrics and traces", Some(&everything), Some(trail("everything")), true),
            ];
            cases.retain(|case| case.name == "off" || is_chosen(case.name));
            measured += cases.iter().filter(|case| case.name.contains("traces")).count();
            let count = cases.len();
            for round in 0..=ROUNDS {
                for step in 0..count {
                    measure(&mut cases[(round + step) % count], &upstream.call, round > 0).await;
                }
            }
            println!("{}", upstream.name);
            report(&cases);
            for case in cases {
                case.executor.close().await;
            }
        }
    });
    for telemetry in [&traces, &everything] {
        telemetry.shutdown(Duration::from_secs(5));
        assert_eq!(telemetry.export_failures(), 0);
    }
    let expected = measured * (ROUNDS + 1) * CALLS as usize;
    println!("spans that the collector has received: {} of {expected}", end_collector(collector));
}

/// The official server of files, and a file that it reads.
fn filesystem(directory: &Path) -> Option<Upstream> {
    let packages = PathBuf::from(std::env::var_os("CX_INTEROP_DIR")?);
    let program = packages.join("node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    if !program.exists() {
        return None;
    }
    let files = directory.join("files");
    std::fs::create_dir(&files).expect("a directory");
    std::fs::write(files.join("notes.txt"), "one line\n".repeat(20)).expect("a file");
    let path = files.join("notes.txt").display().to_string();
    Some(Upstream {
        name: "filesystem",
        server: McpServer::stdio("filesystem", "node")
            .args([program.display().to_string(), files.display().to_string()]),
        call: format!("tools.filesystem.read_text_file({{ path: '{path}' }})"),
    })
}

/// Whether the arguments choose this case.
fn is_chosen(name: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--")).peekable();
    words.peek().is_none() || words.any(|word| name.contains(&word))
}

/// One round of one case.
async fn measure(case: &mut Case, call: &str, is_counted: bool) {
    case.executor.warm(Language::TypeScript).await.expect("an engine");
    let source = format!("for (let i = 0; i < {CALLS}; i++) await {call}");
    COUNTS.store(case.counts, Ordering::Relaxed);
    let (began, cpu) = (Instant::now(), cpu_time());
    let result = case.executor.run(Script::typescript(&*source)).await.expect("the executor works");
    let clock = began.elapsed();
    tokio::time::sleep(REST).await;
    let cpu = cpu_time() - cpu;
    COUNTS.store(false, Ordering::Relaxed);
    assert!(result.error().is_none(), "{}", result.to_json());
    if is_counted {
        let of_a_call = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(CALLS);
        case.clock.push(of_a_call(clock));
        case.cpu.push(of_a_call(cpu));
    }
}

fn report(cases: &[Case]) {
    let Some((off, others)) = cases.split_first() else { return };
    println!(
        "{CALLS} calls, {ROUNDS} rounds; the median of a call, and of what is added with the quartiles of the rounds"
    );
    println!("{:<26} clock {:6.1} µs  CPU {:6.1} µs", off.name, median(&off.clock), median(&off.cpu));
    for case in others {
        let added = |times: &[f64], base: &[f64]| {
            let mut ratios: Vec<f64> =
                times.iter().zip(base).map(|(time, base)| (time / base - 1.0) * 100.0).collect();
            ratios.sort_by(f64::total_cmp);
            let at = |part: usize| ratios[(ratios.len() - 1) * part / 4];
            format!("{:+6.1} % ({:+.1} to {:+.1})", at(2), at(1), at(3))
        };
        println!(
            "{:<26} clock {:6.1} µs {:<26} CPU {:6.1} µs {}",
            case.name,
            median(&case.clock),
            added(&case.clock, &off.clock),
            median(&case.cpu),
            added(&case.cpu, &off.cpu),
        );
    }
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// CPU time of this process: all its threads, also those that have ended.
#[expect(unsafe_code, reason = "a clock of the system that the standard library does not read")]
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a `timespec` to the address of one.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "Linux");
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("nanoseconds"))
}

/// Forwards everything while [`COUNTS`] is set, and nothing otherwise, as if there were no recorder.
struct Switch(Box<dyn Recorder + Send + Sync>);

impl Recorder for Switch {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.describe_counter(key, unit, description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.describe_gauge(key, unit, description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.describe_histogram(key, unit, description);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        if COUNTS.load(Ordering::Relaxed) { self.0.register_counter(key, metadata) } else { Counter::noop() }
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        if COUNTS.load(Ordering::Relaxed) { self.0.register_gauge(key, metadata) } else { Gauge::noop() }
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        if COUNTS.load(Ordering::Relaxed) {
            self.0.register_histogram(key, metadata)
        } else {
            Histogram::noop()
        }
    }
}

/// Starts this program as the collector. Returns it and its address.
fn start_collector() -> (Child, String) {
    let mut collector = Command::new(std::env::current_exe().expect("a path"))
        .arg(COLLECTOR)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the collector starts");
    let address = first_line(&mut collector);
    (collector, format!("http://{address}"))
}

/// Ends the collector. Returns how many spans it has received.
fn end_collector(mut collector: Child) -> String {
    drop(collector.stdin.take());
    let count = first_line(&mut collector);
    collector.wait().expect("it ends");
    count
}

/// The next line of a collector, which writes no more than that at a time.
fn first_line(collector: &mut Child) -> String {
    let stdout = collector.stdout.as_mut().expect("a pipe");
    let mut line = Vec::new();
    let mut byte = [0];
    while stdout.read_exact(&mut byte).is_ok() && byte != *b"\n" {
        line.extend(byte);
    }
    String::from_utf8(line).expect("text")
}

/// The collector: prints its address, answers every request with 200, and prints how many spans of calls there were
/// when its input ends.
fn collect() {
    static SPANS: AtomicUsize = AtomicUsize::new(0);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || take_exports(stream, &SPANS));
        }
    });
    let mut input = Vec::new();
    let _ended = std::io::stdin().read_to_end(&mut input);
    println!("{}", SPANS.load(Ordering::Relaxed));
}

fn take_exports(stream: TcpStream, spans: &AtomicUsize) {
    const NAME: &[u8] = b"tools/call ";
    let mut answers = stream.try_clone().expect("a stream");
    let mut requests = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if requests.read_exact(&mut body).is_err()
            || answers.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err()
        {
            return;
        }
        let mut rest = &body[..];
        while let Some(start) = rest.iter().position(|byte| *byte == NAME[0]) {
            rest = &rest[start..];
            let is_name = rest.starts_with(NAME);
            spans.fetch_add(usize::from(is_name), Ordering::Relaxed);
            rest = &rest[if is_name { NAME.len() } else { 1 }..];
        }
    }
}
