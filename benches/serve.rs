//! What `cx serve` costs a client: latency as its distribution, a tool call beside the same call without cx, the start
//! of a process, many runs at once, throughput over the number of runs at once, and idle memory. Drives the command
//! over its pipes, with lines written by hand.
//!
//! Needs the command and the example server (`cargo build --release --bin cx --example chaos`). Arguments name what to
//! measure: `start`, `latency`, `calls`, `many`, `curve`, `memory`; without any it is all of these. `typescript` and
//! `python` are for a profiler: only such runs, one after another, and the process's number.
#![expect(clippy::print_stdout, reason = "a program that reports")]
#![expect(
    clippy::disallowed_methods,
    reason = "the command and its servers are started as a client starts them"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const RUNS: usize = 1_000;
const UNMEASURED: usize = 50;
/// Processes that are started, one after the other.
const STARTS: usize = 20;
/// Runs in flight at the same time, and how many in all.
const AT_ONCE: usize = 50;
const MANY: usize = 2_000;
/// The curve: how many runs are in flight, for how long each number is measured, and in how many rounds, by
/// turns, so that a machine whose speed changes does so for all of them.
const IN_FLIGHT: [usize; 7] = [1, 2, 4, 8, 16, 64, 100];
const CURVE_RUNS: usize = 600;
const CURVE_ROUNDS: usize = 5;
/// After this time without runs, memory is back at its earlier level.
const SETTLED: Duration = Duration::from_secs(4);
/// Runs of the mode for a profiler.
const PROFILED: usize = 20_000;
/// How long a process idles before its memory is read.
const QUIET: Duration = Duration::from_secs(33);

const TYPESCRIPT: &str = "executeTypescript";
const PYTHON: &str = "executePython";

/// The directory of what is built for release.
fn built() -> PathBuf {
    let mut path = std::env::current_exe().expect("a path");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path
}

fn program(name: &str) -> PathBuf {
    let path = built().join(name);
    assert!(path.exists(), "build it first: cargo build --release --bin cx --example chaos");
    path
}

/// A client of a process, which speaks in lines.
struct Client {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
    line: String,
}

impl Client {
    fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, stdin, stdout, last_id: 0, line: String::new() }
    }

    /// `cx serve` with one server, after the handshake.
    fn of_cx(home: &Path) -> Self {
        let mut client = Self::start(&mut serve(home));
        client.shake();
        client
    }

    fn shake(&mut self) {
        let client = json!({ "name": "bench", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.request("initialize", &params);
        self.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is open");
        stdin.write_all(line.as_bytes()).expect("the process reads");
    }

    fn line(&mut self, method: &str, params: &Value) -> String {
        self.last_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        format!("{message}\n")
    }

    /// Sends a request and reads its answer. Returns the time from before the request is written, in one piece, until
    /// the last byte of the answer is read, and the result.
    fn timed(&mut self, method: &str, params: &Value) -> (Duration, Value) {
        let line = self.line(method, params);
        let started = Instant::now();
        self.write(&line);
        self.line.clear();
        self.stdout.read_line(&mut self.line).expect("an answer");
        let took = started.elapsed();
        (took, self.result())
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.timed(method, params).1
    }

    /// The result in the line that was read last.
    fn result(&self) -> Value {
        let mut answer: Value = serde_json::from_str(&self.line).expect("JSON");
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].take()
    }

    fn run(&mut self, tool: &str, code: &str) -> Duration {
        let (took, result) =
            self.timed("tools/call", &json!({ "name": tool, "arguments": { "code": code } }));
        assert_eq!(result["structuredContent"]["success"], true, "{result}");
        took
    }

    /// Waits until an engine has its warm instances, as after the pause of an agent.
    fn wait_until_warm(&mut self, tool: &str) {
        let engine = if tool == PYTHON { "python" } else { "typescript" };
        let health = json!({ "name": "health", "arguments": {} });
        loop {
            let engines = &self.request("tools/call", &health)["structuredContent"]["engines"];
            if engines[engine]["ready"].as_u64() >= Some(2) {
                return;
            }
        }
    }

    /// Closes its stdin and waits for its end.
    fn end(mut self) {
        drop(self.stdin.take());
        self.process.wait().expect("it ends");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // After a panic; else it has ended.
        let _gone = self.process.kill();
    }
}

fn chaos() -> Command {
    let mut command = Command::new(program("examples/chaos"));
    command.args(["stdio", "well"]);
    command
}

fn serve(home: &Path) -> Command {
    let config = home.join("mcp.json");
    let server = json!({ "command": program("examples/chaos"), "args": ["stdio", "well"] });
    std::fs::write(&config, json!({ "mcpServers": { "chaos": server } }).to_string()).expect("a file");
    let mut command = Command::new(program("cx"));
    command
        .args(["serve", "--mcp-config"])
        .arg(config)
        .current_dir(home)
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("XDG_STATE_HOME", home)
        // Compiled code is loaded only from directories that no other user can write to.
        .env("XDG_CACHE_HOME", built().join("python-cache"));
    command
}

/// One thing to measure, with its home directory.
type Part = fn(&Path);

fn main() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let named: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for (name, tool) in [("typescript", TYPESCRIPT), ("python", PYTHON)] {
        if named.iter().any(|named| named == name) {
            return profiled(home, tool);
        }
    }
    // Python is compiled before anything is measured.
    let mut first = Client::of_cx(home);
    first.wait_until_warm(PYTHON);
    first.end();

    println!("{:<46} {:>8} {:>8} {:>8}", "milliseconds", "p50", "p95", "p99");
    let parts: [(&str, Part); 6] = [
        ("start", start),
        ("latency", latency),
        ("calls", calls),
        ("many", many),
        ("curve", curve),
        ("memory", memory),
    ];
    for (name, measure) in parts {
        if named.is_empty() || named.iter().any(|named| named == name) {
            measure(home);
        }
    }
}

fn profiled(home: &Path, tool: &str) {
    let mut client = Client::of_cx(home);
    client.wait_until_warm(tool);
    println!("process {}", client.process.id());
    for _ in 0..PROFILED {
        client.run(tool, "1 + 1");
    }
    client.end();
}

/// From before a process is started until its tools are listed, beside one that does nothing.
fn start(home: &Path) {
    let mut listed = Vec::new();
    let mut nothing = Vec::new();
    for _ in 0..STARTS {
        let started = Instant::now();
        let mut client = Client::of_cx(home);
        let list = client.request("tools/list", &json!({}));
        listed.push(started.elapsed());
        assert_eq!(list["tools"].as_array().map(Vec::len), Some(3), "{list}");
        client.end();
        let started = Instant::now();
        let version = Command::new(program("cx")).arg("--version").output().expect("it starts");
        nothing.push(started.elapsed());
        assert!(version.status.success());
    }
    row("start to the answered tools/list (15)", &mut listed);
    row("`cx --version`, start to exit", &mut nothing);
}

fn latency(home: &Path) {
    let mut client = Client::of_cx(home);
    let mut pings: Vec<_> =
        (0..RUNS + UNMEASURED).map(|_| client.timed("ping", &json!({})).0).skip(UNMEASURED).collect();
    row("ping", &mut pings);
    for (name, tool, code) in [
        ("TypeScript, `return 1 + 1` (0.4)", TYPESCRIPT, "return 1 + 1"),
        ("Python, `1 + 1` (1.2)", PYTHON, "1 + 1"),
    ] {
        let mut once = |warm: bool| {
            if warm {
                client.wait_until_warm(tool);
            }
            client.run(tool, code)
        };
        let mut times: Vec<_> = (0..RUNS + UNMEASURED).map(|_| once(true)).skip(UNMEASURED).collect();
        row(name, &mut times);
        let mut times: Vec<_> = (0..RUNS + UNMEASURED).map(|_| once(false)).skip(UNMEASURED).collect();
        row("  without a pause", &mut times);
    }
    client.end();
}

/// A script with one call and one without, and the same call over a pipe without cx, by turns.
fn calls(home: &Path) {
    let mut client = Client::of_cx(home);
    let mut direct = Client::start(&mut chaos());
    direct.shake();
    let call = json!({ "name": "echo", "arguments": { "text": "x" } });
    let source = "return (await tools.chaos.echo({ text: 'x' })).text";
    let (mut with, mut without, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..RUNS + UNMEASURED {
        client.wait_until_warm(TYPESCRIPT);
        let time_with = client.run(TYPESCRIPT, source);
        client.wait_until_warm(TYPESCRIPT);
        let time_without = client.run(TYPESCRIPT, "return 'x'");
        let (time_bare, result) = direct.timed("tools/call", &call);
        assert_eq!(result["structuredContent"]["text"], "x");
        if round >= UNMEASURED {
            with.push(time_with);
            without.push(time_without);
            bare.push(time_bare);
        }
    }
    direct.end();
    client.end();
    let with = row("TypeScript with one tool call", &mut with);
    let without = row("TypeScript without", &mut without);
    let bare = row("the tool call alone, without cx", &mut bare);
    println!("{:<46} {:>8.3}", "a tool call over the upstream's own time (0.15)", with - without - bare);
}

/// Many runs in flight over one pipe, in both languages. None may fail.
fn many(home: &Path) {
    let mut client = Client::of_cx(home);
    client.wait_until_warm(TYPESCRIPT);
    client.wait_until_warm(PYTHON);
    let (mut times, runs_a_second) = at_once(&mut client, AT_ONCE, MANY, both);
    row(&format!("{AT_ONCE} runs at once, half of them Python"), &mut times);
    println!("{:<46} {runs_a_second:>8.0}", "  runs a second, none of which failed");
    client.end();
}

/// A tool, and a script that doubles its input.
type Script = (&'static str, &'static str);

fn typescript(_number: usize) -> Script {
    (TYPESCRIPT, "return input * 2")
}

fn python(_number: usize) -> Script {
    (PYTHON, "inputs * 2")
}

fn both(number: usize) -> Script {
    if number.is_multiple_of(2) { typescript(number) } else { python(number) }
}

/// Keeps `in_flight` runs in flight until there were `count`. Returns how long each took, and runs a second.
fn at_once(
    client: &mut Client,
    in_flight: usize,
    count: usize,
    script: fn(usize) -> Script,
) -> (Vec<Duration>, f64) {
    let mut begun = vec![Instant::now(); count];
    let mut times = Vec::new();
    let first = client.last_id + 1;
    let mut next = 0;
    let started = Instant::now();
    while times.len() < count {
        while next < count && next - times.len() < in_flight {
            let (tool, code) = script(next);
            let arguments = json!({ "code": code, "input": next });
            let line = client.line("tools/call", &json!({ "name": tool, "arguments": arguments }));
            begun[next] = Instant::now();
            client.write(&line);
            next += 1;
        }
        client.line.clear();
        client.stdout.read_line(&mut client.line).expect("an answer");
        let answer: Value = serde_json::from_str(&client.line).expect("JSON");
        let number = answer["id"].as_u64().and_then(|id| usize::try_from(id - first).ok()).expect("an id");
        assert_eq!(answer["result"]["structuredContent"]["value"], number * 2, "{answer}");
        times.push(begun[number].elapsed());
    }
    (times, count as f64 / started.elapsed().as_secs_f64())
}

/// Runs a second for each number of runs in flight, as a share of the best, and the memory afterwards.
fn curve(home: &Path) {
    let mut client = Client::of_cx(home);
    for tool in [TYPESCRIPT, PYTHON] {
        client.wait_until_warm(tool);
    }
    let (before, _) = resident(&client);
    for (name, script) in
        [("TypeScript", typescript as fn(usize) -> Script), ("Python", python), ("half and half", both)]
    {
        let mut rates: [Vec<f64>; IN_FLIGHT.len()] = std::array::from_fn(|_| Vec::new());
        for _ in 0..CURVE_ROUNDS {
            for (in_flight, rates) in IN_FLIGHT.iter().zip(&mut rates) {
                rates.push(at_once(&mut client, *in_flight, CURVE_RUNS, script).1);
            }
        }
        let medians = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        });
        let best = medians.iter().copied().fold(0.0, f64::max);
        for (in_flight, rate) in IN_FLIGHT.iter().zip(medians) {
            println!(
                "{:<46} {rate:>8.0} {:>8.2}",
                format!("{name}, {in_flight} at once: a second, of the best"),
                rate / best
            );
        }
    }
    let (loaded, _) = resident(&client);
    std::thread::sleep(SETTLED);
    let (settled, _) = resident(&client);
    println!("{:<46} {before:>8.1} {loaded:>8.1} {settled:>8.1}", "megabytes before, under load, 4 s later");
    client.end();
}

/// What an idle process holds: both engines are warm, and it has had runs.
fn memory(home: &Path) {
    let mut client = Client::of_cx(home);
    for tool in [TYPESCRIPT, PYTHON] {
        client.wait_until_warm(tool);
    }
    let fresh = resident(&client);
    std::thread::sleep(QUIET);
    let idle = resident(&client);
    for _ in 0..RUNS / 10 {
        client.run(TYPESCRIPT, "return 1");
        client.run(PYTHON, "1");
    }
    for tool in [TYPESCRIPT, PYTHON] {
        client.wait_until_warm(tool);
    }
    std::thread::sleep(QUIET);
    let used = resident(&client);
    println!("{:<46} {:>8} {:>8}", "megabytes, idle (60)", "Rss", "Pss");
    for (what, (rss, pss)) in [
        ("  both engines just warm", fresh),
        ("  idle for 33 s", idle),
        ("  the same after 100 runs in each language", used),
    ] {
        println!("{what:<46} {rss:>8.1} {pss:>8.1}");
    }
    client.end();
}

/// Resident memory in megabytes: as the kernel counts it, and with shared pages by their share.
fn resident(client: &Client) -> (f64, f64) {
    let path = format!("/proc/{}/smaps_rollup", client.process.id());
    let rollup = std::fs::read_to_string(path).expect("Linux");
    let megabytes = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)).expect("a line for it");
        let kilobytes = line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
        kilobytes.expect("a number") / 1024.0
    };
    (megabytes("Rss:"), megabytes("Pss:"))
}

/// Prints a distribution and returns its median in milliseconds.
fn row(name: &str, times: &mut [Duration]) -> f64 {
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e3;
    println!("{name:<46} {:>8.3} {:>8.3} {:>8.3}", at(50), at(95), at(99));
    at(50)
}
