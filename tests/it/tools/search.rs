//! How well tools are found: judged queries over the tools of real servers. See `tests/search/README.md`.

use std::collections::BTreeMap;
use std::path::Path;

use cx::{Executor, HistoryLimits, Limits, Output, Schema, Script};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[path = "../../search/recorded.rs"]
mod recorded;

use recorded::{Recorded, RecordedTool};

#[derive(Deserialize)]
struct Judged {
    query: String,
    half: String,
    tools: Vec<String>,
}

fn recorded_tools() -> Recorded {
    Recorded::new(&read::<Vec<RecordedTool>>("tools.json"), true)
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/search").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

async fn value(executor: &Executor, source: &str, input: Value) -> Value {
    let result = executor.run(Script::typescript(source).input(input)).await.unwrap();
    result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
}

/// Sums over the queries of one half.
#[derive(Default)]
struct Sums {
    count: f64,
    at_5: f64,
    at_10: f64,
    reciprocal: f64,
}

#[tokio::test]
async fn judged_queries_find_their_tools() {
    let executor = Executor::builder().dispatcher(recorded_tools()).build().unwrap();
    let judged: Vec<Judged> = read("queries.json");
    let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
    // As many queries at a time as one run has time for.
    for part in judged.chunks(10) {
        let queries: Vec<&str> = part.iter().map(|judged| judged.query.as_str()).collect();
        let source = "const found = [];
            for (const query of input) found.push((await searchTools(query, 10)).map((tool) => tool.name));
            return found";
        let found: Vec<Vec<String>> =
            serde_json::from_value(value(&executor, source, json!(queries)).await).unwrap();
        for (judged, found) in part.iter().zip(found) {
            assert!((1..=10).contains(&found.len()));
            let wanted: Vec<String> =
                judged.tools.iter().map(|tool| format!("mcp__{}", tool.replacen('.', "__", 1))).collect();
            let recall = |limit: usize| {
                let hits = found.iter().take(limit).filter(|name| wanted.contains(name)).count();
                hits as f64 / wanted.len().min(limit) as f64
            };
            let first = found.iter().take(5).position(|name| wanted.contains(name));
            let sums = sums.entry(&judged.half).or_default();
            sums.count += 1.0;
            sums.at_5 += recall(5);
            sums.at_10 += recall(10);
            sums.reciprocal += first.map_or(0.0, |place| 1.0 / (place + 1) as f64);
        }
    }
    let shown = |(half, Sums { count, at_5, at_10, reciprocal }): (&&str, &Sums)| {
        let (at_5, at_10, reciprocal) = (at_5 / count, at_10 / count, reciprocal / count);
        format!("{half}: recall@5 {at_5:.3}, recall@10 {at_10:.3}, MRR@5 {reciprocal:.3} of {count}")
    };
    let figures: Vec<String> = sums.iter().map(shown).collect();
    #[expect(clippy::print_stdout, reason = "the figures are what this test is read for")]
    {
        println!("{figures:#?}");
    }
    for half in ["tune", "held-out"] {
        let Sums { count, at_5, at_10, reciprocal } = &sums[half];
        assert!(*count >= 50.0, "{figures:?}");
        assert!(at_5 / count >= 0.885 && at_10 / count >= 0.91, "{figures:?}");
        assert!(reciprocal / count >= 0.82, "{figures:?}");
    }
}

/// Promise 14 (docs/promises.md).
#[tokio::test]
async fn discovery_finds_tools_with_any_of_the_words() {
    let executor = Executor::builder().dispatcher(recorded_tools()).build().unwrap();
    let source =
        "const names = async (search) => (await discoverMCPTools({search})).map((tool) => tool.name);
        return [await names(['lighthouse', 'emoji']), await names(['LIGHTHOUSE']), await names(['emoji']),
            await names(['xqzzyx']), (await discoverMCPTools({})).length, (await names([])).length]";
    let found = value(&executor, source, Value::Null).await;
    let names = |position: usize| -> Vec<&str> {
        found[position].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
    };
    let both = names(0);
    assert!(names(1).contains(&"mcp__chrome_devtools__lighthouse_audit"), "{found}");
    assert!(names(2).contains(&"mcp__slack__slack_add_reaction"), "{found}");
    for name in names(1).iter().chain(&names(2)) {
        assert!(both.contains(name), "{name} of {both:?}");
    }
    assert!(names(3).is_empty(), "{found}");
    assert_eq!((&found[4], &found[5]), (&json!(629), &json!(629)));
}

/// Promise 15 (docs/promises.md).
#[tokio::test]
async fn a_search_returns_ten_tools_unless_another_number_is_given() {
    let executor = Executor::builder().dispatcher(recorded_tools()).build().unwrap();
    let source = "const counts = [];
        for (const limit of [undefined, 3, 14]) counts.push((await searchTools('list files', limit)).length);
        return counts";
    assert_eq!(value(&executor, source, Value::Null).await, json!([10, 3, 14]));
}

#[tokio::test]
async fn a_search_is_never_empty_and_says_what_it_found() {
    let executor = Executor::builder().dispatcher(recorded_tools()).build().unwrap();
    let nearest = "return (await searchTools(input, 3)).map((tool) => tool.name)";
    let result = executor.run(Script::typescript(nearest).input(json!("screnshooting"))).await.unwrap();
    let found = result.value().unwrap().to_string();
    assert!(found.contains("screenshot"), "{found}");
    let warned = |result: &cx::ExecuteResult| {
        let is_warning =
            |output: &&Output| matches!(output, Output::Log { text, .. } if text.contains("nearest"));
        result.logs.iter().filter(is_warning).count()
    };
    assert_eq!(warned(&result), 1, "{}", result.to_json());
    // Nothing resembles this query: the first tools of servers are returned.
    let all = "return [(await searchTools(input)).length, (await search_tools(input, 'names')).length]";
    let result = executor.run(Script::typescript(all).input(json!("qqqq"))).await.unwrap();
    assert_eq!(result.value(), Some(&json!([5, 5])), "{}", result.to_json());
    assert_eq!(warned(&result), 2, "{}", result.to_json());
    let result = executor.run(Script::typescript(all).input(json!("file"))).await.unwrap();
    assert_eq!(warned(&result), 0, "{}", result.to_json());
}

/// The names of two tools that only their use connects, and a task that names the first.
const TOGETHER: [&str; 2] = ["start_engine", "press_pedal"];
const TASK: &str = "The car is ready for the long journey, so please start its engine now";

fn cars() -> Recorded {
    let tool = |name: &str| RecordedTool {
        server: "shed".to_owned(),
        name: name.to_owned(),
        description: None,
        input_schema: Schema::any_object(),
        output_schema: None,
    };
    Recorded::new(&TOGETHER.map(tool), true)
}

async fn found(executor: &Executor) -> Vec<String> {
    executor.refresh_tools().await;
    executor.search_known_tools(TASK, 10).iter().map(|tool| tool.definition.name.clone()).collect()
}

#[tokio::test]
async fn search_learns_which_tools_runs_call_together() {
    let directory = tempfile::tempdir().unwrap();
    let learning = || {
        let limits = HistoryLimits::default();
        Executor::builder().dispatcher(cars()).cache_directory(directory.path()).keep_runs(limits)
    };
    let calls = "await tools.shed.press_pedal({}); await tools.shed.start_engine({secret: 'a value'})";
    let first = learning().build().unwrap();
    assert_eq!(found(&first).await, TOGETHER[..1]);
    // A dry run does not make the calls, so it teaches nothing.
    for _ in 0..3 {
        first.run(Script::typescript(calls).dry_run()).await.unwrap();
    }
    assert_eq!(found(&first).await, TOGETHER[..1]);
    for _ in 0..2 {
        let result = first.run(calls).await.unwrap();
        assert!(result.error().is_none(), "{}", result.to_json());
    }
    assert_eq!(found(&first).await, TOGETHER);
    first.close().await;

    // A later process knows the use too, unless it keeps no history.
    let later = learning().build().unwrap();
    assert_eq!(found(&later).await, TOGETHER);
    let without = Executor::builder().dispatcher(cars()).cache_directory(directory.path()).build().unwrap();
    assert_eq!(found(&without).await, TOGETHER[..1]);

    // Names and counts are stored, and no values.
    let stored = std::fs::read_to_string(directory.path().join("tool-use.json")).unwrap();
    assert!(stored.contains("start_engine") && !stored.contains("a value"), "{stored}");
    later.clear_cache().unwrap();
    assert_eq!(found(&later).await, TOGETHER[..1]);
}

/// What a model reads of 629 tools of 38 real servers, in o200k tokens.
#[tokio::test]
async fn what_discovery_shows_is_short() {
    let executor = Executor::builder()
        .dispatcher(recorded_tools())
        .limits(Limits { output_bytes: 10 << 20, ..Limits::default() })
        .build()
        .unwrap();
    let tokenizer = bpe_openai::o200k_base();
    let tokens = |text: &str| tokenizer.count(text);
    for (script, source) in [
        (
            Script::typescript as fn(&'static str) -> Script,
            "const found = await discoverMCPTools();
            const servers = [...new Set(found.map((tool) => tool.server))];
            return {
                hits: found.map((tool) => tool.usage),
                servers: servers.map((server) => help(server)),
                tools: found.map((tool) => help(tool.name)),
            }",
        ),
        (
            Script::python,
            "import contextlib, io
def shown(topic):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        help(topic)
    return text.getvalue()
found = await discover_mcp_tools()
servers = sorted({tool['server'] for tool in found})
{'hits': [tool['usage'] for tool in found], 'servers': [shown(server) for server in servers],
    'tools': [shown(tool['name']) for tool in found]}",
        ),
    ] {
        let result = executor.run(script(source)).await.unwrap();
        let shown: BTreeMap<String, Vec<String>> =
            serde_json::from_value(result.value().unwrap_or_else(|| panic!("{}", result.to_json())).clone())
                .unwrap();
        // The median and the maximum.
        let counted = |texts: Vec<&str>| -> (usize, usize, String) {
            let mut counted: Vec<(usize, &str)> =
                texts.into_iter().map(|text| (tokens(text), text)).collect();
            counted.sort_unstable();
            let worst = counted[counted.len() - 1];
            (counted[counted.len() / 2].0, worst.0, worst.1.chars().take(400).collect())
        };
        let hits = counted(shown["hits"].iter().map(String::as_str).collect());
        // The first line is about the server.
        let lines = shown["servers"].iter().flat_map(|text| text.lines().skip(1));
        let servers = counted(lines.filter(|line| !line.starts_with("and ")).collect());
        let tools = counted(shown["tools"].iter().map(|text| text.trim_end()).collect());
        #[expect(clippy::print_stdout, reason = "the figures are what this test is read for")]
        {
            println!("hit {hits:?}\nserver, a tool {servers:?}\ntool {tools:?}");
        }
        assert!(hits.0 <= 30 && hits.1 <= 30, "{hits:?}");
        assert!(servers.0 <= 12 && servers.1 <= 12, "{servers:?}");
        assert!(tools.0 <= 60 && tools.1 <= 60, "{tools:?}");
    }
}

/// The line of a deprecated tool says so, also where there is no space for a summary.
#[tokio::test]
async fn a_deprecated_tool_is_shown_as_such() {
    let executor = Executor::builder().dispatcher(recorded_tools()).build().unwrap();
    let source = "const found = await discoverMCPTools({ server: 'filesystem' });
        return found.find((tool) => tool.name === 'mcp__filesystem__read_file').usage";
    let usage = value(&executor, source, Value::Null).await;
    let usage = usage.as_str().unwrap();
    assert!(usage.starts_with("tools.filesystem.read_file({"), "{usage}");
    assert!(usage.ends_with(" - DEPRECATED: Use read_text_file instead"), "{usage}");
}
