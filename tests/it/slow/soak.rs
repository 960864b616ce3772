//! docs/threats.md, group LD on `cx serve`, by number: many runs of every kind, all with the right answer, and nothing
//! that grows.
//!
//! `CX_SOAK_RUNS=10000` gives the soak the length that docs/threats.md names; `make soak` does that with a release
//! build and prints its table. Without it a short form runs with the other tests.

/// The load, and one server under it.
mod load;
/// Runs that wait, workers that are hung, and executors on other threads.
mod others;

use std::collections::HashMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use cx::{Executor, Script};
use serde_json::{Value, json};

use crate::support::serve::{Client, Start, WATCHDOG};
use crate::support::{WEDGE, chaos, own_name};

/// How many calls are in flight at the same time.
const AT_ONCE: usize = 16;

/// Runs that are not measured: until every kind has run, all threads exist, and the history is full.
const WARM_UP: u64 = 400;

/// The length of the short form.
const SHORT: u64 = 400;

/// How many samples of the process are taken.
const SAMPLES: u64 = 200;

/// With fewer runs a tenth of the samples shows the calls that happen to be in flight, and nothing about growth.
const LONG: u64 = 5_000;

/// The maximum ratio of the last tenth to the first, and of the idle process after everything to the one before.
const GROWTH: f64 = 1.2;

/// The maximum growth of the resident memory of an idle process: one instance of Python more or less is 35 MB.
const MEMORY_SLACK_KB: u64 = 50 << 10;

/// When idle engines have given back the memory that they keep for the next runs: after 30 s.
pub(crate) const IDLE_TRIM: Duration = Duration::from_secs(40);

/// How many more threads, descriptors and children an idle process may have: warm instances, and a server that is
/// being started again.
const SLACK: u64 = 4;

const TYPESCRIPT: &str = "executeTypescript";
const PYTHON: &str = "executePython";

/// A kind of call: its frequency, and its expected answer. Each call gets its own number as `input`.
struct Kind {
    name: &'static str,
    weight: u64,
    tool: &'static str,
    code: &'static str,
    /// The time limit, for a script that uses it up.
    timeout_ms: Option<u64>,
    ends: Ends,
}

/// How a call ends.
enum Ends {
    /// With an answer that passes this check.
    Answered(fn(&Value, u64) -> bool),
    /// The client cancels it, and then no answer may come.
    Cancelled,
}

const fn kind(
    name: &'static str,
    weight: u64,
    tool: &'static str,
    code: &'static str,
    right: fn(&Value, u64) -> bool,
) -> Kind {
    Kind { name, weight, tool, code, timeout_ms: None, ends: Ends::Answered(right) }
}

/// As [`kind`], for a script that uses up its time.
const fn late(name: &'static str, weight: u64, tool: &'static str, code: &'static str) -> Kind {
    let right = |answer: &Value, _| failed(answer, "TIMEOUT");
    Kind { name, weight, tool, code, timeout_ms: Some(150), ends: Ends::Answered(right) }
}

const fn cancelled(name: &'static str, weight: u64, tool: &'static str, code: &'static str) -> Kind {
    Kind { name, weight, tool, code, timeout_ms: None, ends: Ends::Cancelled }
}

/// A call of the tool in which a server's fault shows. Its outcome is a value: the result, or the error's code.
macro_rules! fault {
    ($server:literal, $call:literal, $right:expr) => {
        kind(
            concat!("upstream ", $server),
            1,
            TYPESCRIPT,
            concat!(
                "try { return await tools.",
                $server,
                ".",
                $call,
                " } catch (error) { return error.code }"
            ),
            $right,
        )
    };
}

fn failed(answer: &Value, code: &str) -> bool {
    answer["isError"] == true && answer["structuredContent"]["error"]["code"] == code
}

fn failed_saying(answer: &Value, code: &str, message: &str) -> bool {
    failed(answer, code) && answer["structuredContent"]["error"]["message"] == message
}

fn returned(answer: &Value, value: impl Into<Value>) -> bool {
    answer["isError"] == false && answer["structuredContent"]["value"] == value.into()
}

fn returned_one_of(answer: &Value, values: &[&str]) -> bool {
    values.iter().any(|&value| returned(answer, value))
}

const KINDS: &[Kind] = &[
    kind("value", 24, TYPESCRIPT, "const twice = (n: number) => n * 2; return twice(input)", |answer, n| {
        returned(answer, n * 2)
    }),
    kind("value", 16, PYTHON, "inputs * 2", |answer, n| returned(answer, n * 2)),
    kind("calls", 10, TYPESCRIPT, CALLS, |answer, n| returned(answer, n * 3 + 3)),
    kind("calls", 6, PYTHON, CALLS_IN_PYTHON, |answer, n| returned(answer, n * 3 + 3)),
    kind("discovery", 2, TYPESCRIPT, DISCOVERY, |answer, _| returned(answer, "mcp__well__echo")),
    kind("slow call", 2, TYPESCRIPT, "return tools.well.slow({ ms: 60 })", |answer, _| {
        returned(answer, "slow")
    }),
    kind("throws", 6, TYPESCRIPT, "throw new Error(`no ${input}`)", |answer, n| {
        failed_saying(answer, "RUNTIME_ERROR", &format!("no {n}"))
    }),
    kind("raises", 4, PYTHON, "raise ValueError(f'no {inputs}')", |answer, n| {
        failed_saying(answer, "RUNTIME_ERROR", &format!("ValueError: no {n}"))
            || failed_saying(answer, "RUNTIME_ERROR", &format!("no {n}"))
    }),
    kind("no syntax", 3, TYPESCRIPT, "const x: = 1", |answer, _| failed(answer, "SYNTAX_ERROR")),
    kind("no syntax", 2, PYTHON, "def f(:", |answer, _| failed(answer, "SYNTAX_ERROR")),
    kind("a tool's error", 3, TYPESCRIPT, "await tools.well.fail({})", |answer, _| {
        failed_saying(answer, "RUNTIME_ERROR", "it did not work")
            && answer["structuredContent"]["error"]["toolCode"] == "TOOL_ERROR"
    }),
    kind("no such tool", 1, PYTHON, "await tools.well.nothing()", |answer, _| {
        answer["structuredContent"]["error"]["toolCode"] == "TOOL_NOT_FOUND"
    }),
    kind("flood of output", 2, TYPESCRIPT, FLOOD, |answer, n| is_cut(answer) && returned(answer, n)),
    kind("flood of output", 1, PYTHON, FLOOD_IN_PYTHON, |answer, n| is_cut(answer) && returned(answer, n)),
    kind("long value", 1, TYPESCRIPT, "return 'x'.repeat(300_000)", |answer, _| {
        answer["structuredContent"]["valueTruncated"].is_object()
    }),
    kind("image", 1, TYPESCRIPT, IMAGE, |answer, n| {
        returned(answer, n) && answer["content"][1]["data"] == "iVBORw0KGgo="
    }),
    late("spins", 1, TYPESCRIPT, "for (;;) {}"),
    late("spins", 1, PYTHON, "while True: pass"),
    late("sleeps", 1, TYPESCRIPT, "await new Promise((done) => setTimeout(done, 20_000))"),
    late("sleeps", 1, PYTHON, "import asyncio\nawait asyncio.sleep(20)"),
    kind(
        "memory",
        1,
        TYPESCRIPT,
        "const all = []; for (;;) all.push(new Array(10_000).fill(1.5))",
        |answer, _| failed(answer, "MEMORY_LIMIT"),
    ),
    kind("memory", 1, PYTHON, "'x' * (1 << 30)", |answer, _| failed(answer, "MEMORY_LIMIT")),
    kind(
        "wants out",
        1,
        TYPESCRIPT,
        "return [typeof process, typeof Deno, typeof fetch].join()",
        |answer, _| answer["isError"] == true || returned(answer, "undefined,undefined,undefined"),
    ),
    kind("wants out", 1, PYTHON, "import os\nos.fork()", |answer, _| failed(answer, "RUNTIME_ERROR")),
    cancelled("cancelled", 2, TYPESCRIPT, "await new Promise((done) => setTimeout(done, 25_000))"),
    cancelled("cancelled", 1, PYTHON, "while True: pass"),
    cancelled("cancelled in a call", 1, TYPESCRIPT, "await tools.stalls.target({})"),
    // It answers before it crashes, so that its breaker stays closed.
    kind("upstream crashes", 2, TYPESCRIPT, CRASH, |answer, _| {
        returned_one_of(answer, &["UPSTREAM_UNAVAILABLE", "CIRCUIT_OPEN"])
    }),
    kind("upstream hangs", 1, TYPESCRIPT, HANG, |answer, _| {
        failed(answer, "TIMEOUT") || returned_one_of(answer, &["TOOL_TIMEOUT", "CIRCUIT_OPEN"])
    }),
    fault!("garbled", "target({})", |answer, _| returned(answer, "well")),
    fault!("half", "target({})", |answer, _| {
        returned_one_of(answer, &["UPSTREAM_UNAVAILABLE", "UPSTREAM_PROTOCOL", "CIRCUIT_OPEN"])
    }),
    fault!("mistaken", "target({ kind: 'content-is-text' })", |answer, _| {
        returned_one_of(answer, &["UPSTREAM_PROTOCOL", "CIRCUIT_OPEN"])
    }),
    fault!("astray", "target({})", |answer, _| returned(answer, "well")),
    fault!("twice", "target({})", |answer, _| returned(answer, "well")),
    fault!("chatty", "target({ count: 300 })", |answer, _| returned(answer, "well")),
    fault!("pinging", "target({ count: 300 })", |answer, _| returned(answer, "well")),
    fault!("changing", "target({ count: 300 })", |answer, _| returned(answer, "well")),
    fault!("loud", "echo({ n: 1 }).then(({ n }) => n)", |answer, _| returned(answer, 1)),
    fault!("gone", "target({})", |answer, _| returned_one_of(
        answer,
        &["UPSTREAM_UNAVAILABLE", "CIRCUIT_OPEN"]
    )),
];

const CALLS: &str = "
    const all = await Promise.all([0, 1, 2].map((more) => tools.well.echo({ n: input + more })));
    return all.reduce((sum, { n }) => sum + n, 0)";

const CALLS_IN_PYTHON: &str = "
import asyncio
all = await asyncio.gather(*(tools.well.echo(n=inputs + more) for more in range(3)))
sum(each['n'] for each in all)";

/// The call is there because discovery leaves out servers that have not connected soon.
const DISCOVERY: &str = "await tools.well.echo({ n: 0 });
    return (await discoverMCPTools({ search: ['echo'], server: 'well' }))[0].name";

const FLOOD: &str = "for (let i = 0; i < 5_000; i++) console.log('line', i); return input";

const FLOOD_IN_PYTHON: &str = "for i in range(5_000): print('line', i)\ninputs";

const IMAGE: &str = "emit({ type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' }); return input";

const CRASH: &str = "
    try { await tools.crashes.echo({}); return await tools.crashes.target({}) } catch (error) { return error.code }";

const HANG: &str = "try { return await tools.hangs.target({}) } catch (error) { return error.code }";

/// Whether an answer has the head and the tail of a flood of output, and says where the rest is.
fn is_cut(answer: &Value) -> bool {
    let answer = &answer["structuredContent"];
    let output = answer["output"].as_str().unwrap_or_default();
    output.starts_with("line 0\n") && output.ends_with("line 4999") && answer["runId"].is_string()
}

/// The process at one moment.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sample {
    pub(crate) resident_kb: u64,
    threads: u64,
    descriptors: u64,
    children: u64,
}

impl Sample {
    pub(crate) fn read(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        Self {
            resident_kb: number("VmRSS:"),
            threads: number("Threads:"),
            descriptors: fs::read_dir(format!("/proc/{process}/fd")).unwrap().count() as u64,
            children: children(process),
        }
    }

    /// Whether no figure is more than this many times as high as in `before`, with `slack` more threads, descriptors
    /// and children where that is less.
    fn is_within(&self, before: &Self, times: f64, slack: u64) -> bool {
        let counts = |sample: &Self| [sample.threads, sample.descriptors, sample.children];
        let grew = |now: u64, then: u64| now as f64 > then as f64 * times;
        let counts_are_within = counts(self)
            .into_iter()
            .zip(counts(before))
            .all(|(now, then)| if slack == 0 { !grew(now, then) } else { now <= then + slack });
        let memory_is_within = !grew(self.resident_kb, before.resident_kb)
            || (slack > 0 && self.resident_kb <= before.resident_kb + MEMORY_SLACK_KB);
        counts_are_within && memory_is_within
    }

    /// The median of each figure.
    fn median(samples: &[Self]) -> Self {
        let middle = |figure: fn(&Self) -> u64| {
            let mut figures: Vec<_> = samples.iter().map(figure).collect();
            figures.sort_unstable();
            figures[figures.len() / 2]
        };
        Self {
            resident_kb: middle(|sample| sample.resident_kb),
            threads: middle(|sample| sample.threads),
            descriptors: middle(|sample| sample.descriptors),
            children: middle(|sample| sample.children),
        }
    }
}

/// The number of child processes and of theirs, such as workers, including zombies.
fn children(parent: u32) -> u64 {
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let entry = entry.unwrap();
        // Other processes start and end meanwhile.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let parent = after_name.split_whitespace().nth(1).unwrap_or_default();
        parents.insert(entry.file_name().to_string_lossy().into_owned(), parent.to_owned());
    }
    let process = parent.to_string();
    let descends = |parent: &&String| **parent == process || parents.get(*parent) == Some(&process);
    parents.values().filter(descends).count() as u64
}

/// The process after the threads for many runs at once have ended, which is when its figures have stayed the same for a
/// while.
fn settled(client: &mut Client) -> Sample {
    let mut last = Sample::read(client.process());
    let mut since = Instant::now();
    let start = since;
    while since.elapsed() < Duration::from_millis(500) && start.elapsed() < Duration::from_secs(20) {
        client.ping();
        let now = Sample::read(client.process());
        if (now.threads, now.descriptors, now.children) != (last.threads, last.descriptors, last.children) {
            since = Instant::now();
        }
        last = now;
        std::thread::sleep(Duration::from_millis(10));
    }
    last
}
