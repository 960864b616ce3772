//! A catalogue of 5,000 tools: search, memory, and reading it from disk. The tools are those of
//! `tests/search/tools.json`, repeated under other servers' names.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use cx::{
    Executor, Language, Schema, Script, ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList,
    ToolRequest, ToolResult,
};
use futures::FutureExt as _;
use futures::executor::block_on;
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};

const TOOLS: usize = 5_000;
const PER_SERVER: usize = 50;

/// Servers that offer the recorded tools, or that cannot be reached.
struct Recorded {
    lists: Vec<Arc<ToolList>>,
    is_down: bool,
}

impl ToolDispatcher for Recorded {
    fn servers(&self) -> Vec<Arc<str>> {
        (0..TOOLS / PER_SERVER).map(|number| format!("server{number}").into()).collect()
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        let number: usize = server.trim_start_matches("server").parse().expect("a server's number");
        let down = || ToolError::new(ToolErrorCode::UpstreamUnavailable, "down");
        let list = self.lists.get(number).filter(|_| !self.is_down).cloned();
        ready(list.ok_or_else(down)).boxed()
    }

    fn identity(&self, server: &str) -> Option<String> {
        // As long as a real one.
        Some(format!("{server:0>64}"))
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        ready(Ok(ToolResult::structured(Value::Null))).boxed()
    }
}

fn main() {
    // Memory is measured in a separate process, which has never held anything else.
    if let Some(directory) = std::env::args().skip(1).find(|argument| std::path::Path::new(argument).is_dir())
    {
        return measure(std::path::Path::new(&directory));
    }
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path());
    #[expect(clippy::disallowed_methods, reason = "this very program again")]
    let status = std::process::Command::new(std::env::current_exe().expect("a path"))
        .arg(directory.path())
        .status()
        .expect("it starts");
    assert!(status.success());
}

fn executor(directory: &std::path::Path, lists: Vec<Arc<ToolList>>, is_down: bool) -> Executor {
    Executor::builder()
        .warm_instances(1)
        .cache_directory(directory)
        .dispatcher(Recorded { lists, is_down })
        .build()
        .expect("an executor")
}

/// Writes the lists of all servers to the cache.
fn write(directory: &std::path::Path) {
    let text = include_str!("../tests/search/tools.json");
    let recorded: Vec<Value> = serde_json::from_str(text).expect("the recorded tools");
    let definition = |number: usize| {
        let tool = &recorded[number % recorded.len()];
        let name = tool["name"].as_str().expect("a name");
        let mut definition = ToolDefinition::new(format!("{name}_{}", number / recorded.len()));
        definition.description = tool["description"].as_str().map(str::to_owned);
        definition.input_schema = Schema::from(tool["inputSchema"].clone());
        definition.output_schema = tool.get("outputSchema").cloned().map(Schema::from);
        definition
    };
    let lists: Vec<Arc<ToolList>> = (0..TOOLS / PER_SERVER)
        .map(|server| {
            let tools = (0..PER_SERVER).map(|tool| definition(server * PER_SERVER + tool)).collect();
            Arc::new(ToolList::new(tools))
        })
        .collect();
    let first = executor(directory, lists, false);
    let found = block_on(first.run("return (await discoverMCPTools()).length")).expect("a run");
    assert_eq!(found.value(), Some(&json!(TOOLS)), "{}", found.to_json());
    block_on(first.close());
}

fn measure(directory: &std::path::Path) {
    let queries: Vec<Value> =
        serde_json::from_str(include_str!("../tests/search/queries.json")).expect("the judged queries");
    let queries: Vec<&str> = queries.iter().filter_map(|query| query["query"].as_str()).collect();
    let second = executor(directory, Vec::new(), true);
    block_on(second.warm(Language::TypeScript)).expect("an engine");
    let before = resident_megabytes();
    let began = Instant::now();
    // All lists are read to find out which tool is the first.
    assert_eq!(second.search_known_tools("", 1).len(), 1);
    println!("read from disk: {TOOLS} tools in {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    let began = Instant::now();
    assert!(!second.search_known_tools("list open pull requests", 10).is_empty());
    println!("first search, which indexes: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    println!("memory of catalogue and index: {:.1} MB", resident_megabytes() - before);

    let mut times: Vec<Duration> = Vec::new();
    for query in queries.iter().cycle().take(queries.len() * 20) {
        let began = Instant::now();
        let found = second.search_known_tools(query, 10);
        times.push(began.elapsed());
        std::hint::black_box(found);
    }
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e3;
    println!("search for 10: p50 {:.3} ms, p95 {:.3} ms, p99 {:.3} ms", at(50), at(95), at(99));

    let source = "const times = [];
        for (const query of input) {
            const began = performance.now();
            await searchTools(query, 10);
            times.push(performance.now() - began);
        }
        times.sort((a, b) => a - b);
        return [times[Math.floor(times.length * 0.5)], times[Math.floor(times.length * 0.95)]]";
    let script = Script::typescript(source).input(json!(queries));
    let result = block_on(second.run(script)).expect("a run");
    println!(
        "the same from a script, with the schemas: p50 and p95 in ms: {}",
        result.value().expect("times")
    );
}

fn resident_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line");
    let kilobytes: f64 = line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    kilobytes / 1024.0
}
