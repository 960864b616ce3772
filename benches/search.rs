//! How well search finds tools, on judged queries: `benches/agents/search.py` makes the file that this reads.
//! `benches/README.md` says what is counted.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::collections::BTreeMap;
use std::path::Path;

use cx::{Executor, HistoryLimits, Script};
use futures::executor::block_on;
use serde::Deserialize;
use serde_json::json;

#[path = "../tests/search/recorded.rs"]
mod recorded;

use recorded::{Recorded, RecordedTool};

#[derive(Deserialize)]
struct Judged {
    tools: Vec<RecordedTool>,
    queries: Vec<Query>,
}

#[derive(Deserialize)]
struct Query {
    query: String,
    half: String,
    /// As `server.tool`.
    tools: Vec<String>,
}

fn main() {
    let read = |path: &Path| std::fs::read_to_string(path).expect("a readable file");
    let judged = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/search");
    let judged = Judged {
        tools: serde_json::from_str(&read(&judged.join("tools.json"))).expect("the recorded tools"),
        queries: serde_json::from_str(&read(&judged.join("queries.json"))).expect("the judged queries"),
    };
    // An agent that describes a tool sees five; more than five acceptable ones cannot be among them.
    report("judged queries", &judged.tools, judged.queries.iter(), None, usize::min);
    let Some(file) = std::env::args().skip(1).find(|argument| Path::new(argument).is_file()) else {
        return println!("the benchmarks: `make bench-search` says where they are");
    };
    let benchmarks: BTreeMap<String, Judged> =
        serde_json::from_str(&read(Path::new(&file))).expect("the judged turns and tasks");
    for (name, Judged { tools, queries }) in &benchmarks {
        report(name, tools, queries.iter(), None, |wanted, _| wanted);
        for half in ["tune", "held-out"] {
            // What this half is searched with has learned from the other one's calls only.
            let past = queries.iter().filter(|query| query.half != half);
            let directory = tempfile::tempdir().expect("a directory");
            run(directory.path(), tools, past);
            let own = queries.iter().filter(|query| query.half == half);
            let name = format!("{name} after the other half's runs");
            report(&name, tools, own, Some(directory.path()), |wanted, _| wanted);
        }
    }
}

/// Makes the calls of each query's tools as one run, in an executor that remembers them in `directory`.
fn run<'a>(directory: &Path, tools: &[RecordedTool], queries: impl Iterator<Item = &'a Query>) {
    let executor = Executor::builder()
        .cache_directory(directory)
        .keep_runs(HistoryLimits::default())
        .dispatcher(Recorded::new(tools, false))
        .build()
        .expect("an executor");
    for query in queries {
        let called: Vec<_> = query.tools.iter().map(|tool| tool.split_once('.')).collect();
        let source = "for (const [server, tool] of input) await tools[server][tool]({})";
        let result = block_on(executor.run(Script::typescript(source).input(json!(called)))).expect("a run");
        assert!(result.error().is_none(), "{}", result.to_json());
    }
    block_on(executor.close());
}

/// Prints the recall of each half, with the usage that the runs in `past` recorded. `of` is how many of the wanted
/// tools could be among the first ones.
fn report<'a>(
    name: &str,
    tools: &[RecordedTool],
    queries: impl Iterator<Item = &'a Query>,
    past: Option<&Path>,
    of: impl Fn(usize, usize) -> usize,
) {
    let mut executor = Executor::builder().dispatcher(Recorded::new(tools, true));
    if let Some(directory) = past {
        executor = executor.cache_directory(directory).keep_runs(HistoryLimits::default());
    }
    let executor = executor.build().expect("an executor");
    block_on(executor.refresh_tools());
    let mut halves: BTreeMap<&str, Sums> = BTreeMap::new();
    for query in queries {
        let found: Vec<String> =
            executor.search_known_tools(&query.query, 10).iter().map(cx::Tool::path).collect();
        let among = |limit: usize| {
            let hits = found.iter().take(limit).filter(|found| query.tools.contains(found)).count();
            hits as f64 / of(query.tools.len(), limit) as f64
        };
        let first = found.iter().position(|found| query.tools.contains(found));
        let sums = halves.entry(&query.half).or_default();
        sums.queries += 1.0;
        sums.at_5 += among(5);
        sums.at_10 += among(10);
        sums.reciprocal += first.map_or(0.0, |place| 1.0 / (place + 1) as f64);
        sums.empty += usize::from(found.is_empty());
    }
    for (half, sums) in halves {
        let mean = |sum: f64| sum / sums.queries;
        println!(
            "{name}, {half} ({}): recall@5 {:.3}, recall@10 {:.3}, MRR {:.3}, empty {}",
            sums.queries,
            mean(sums.at_5),
            mean(sums.at_10),
            mean(sums.reciprocal),
            sums.empty
        );
    }
}

#[derive(Default)]
struct Sums {
    queries: f64,
    at_5: f64,
    at_10: f64,
    reciprocal: f64,
    empty: usize,
}
