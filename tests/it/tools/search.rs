//! How well tools are found: judged queries over the tools of real servers. See `tests/search/README.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cx::{Executor, Schema, Script, ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList};
use cx::{ToolRequest, ToolResult};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Servers that list what was recorded and call nothing.
struct Recorded(BTreeMap<String, Arc<ToolList>>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedTool {
    server: String,
    name: String,
    description: Option<String>,
    input_schema: Schema,
    output_schema: Option<Schema>,
}

#[derive(Deserialize)]
struct Judged {
    query: String,
    half: String,
    tools: Vec<String>,
}

impl Recorded {
    fn read() -> Self {
        let mut lists: BTreeMap<String, ToolList> = BTreeMap::new();
        for tool in read::<Vec<RecordedTool>>("tools.json") {
            let mut definition = ToolDefinition::new(tool.name);
            definition.description = tool.description;
            definition.input_schema = tool.input_schema;
            definition.output_schema = tool.output_schema;
            lists.entry(tool.server).or_default().tools.push(definition);
        }
        Self(lists.into_iter().map(|(server, list)| (server, Arc::new(list))).collect())
    }
}

impl ToolDispatcher for Recorded {
    fn servers(&self) -> Vec<Arc<str>> {
        self.0.keys().map(|server| server.as_str().into()).collect()
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        futures::future::ready(Ok(Arc::clone(&self.0[server]))).boxed()
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let error = ToolError::new(ToolErrorCode::UpstreamUnavailable, "a recording".to_owned());
        futures::future::ready(Err(error)).boxed()
    }
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/search").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

async fn value(executor: &Executor, source: &str, input: Value) -> Value {
    let result = executor.run(Script::typescript(source).input(input)).await.unwrap();
    result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
}

#[tokio::test]
async fn judged_queries_find_their_tools() {
    let executor = Executor::builder().dispatcher(Recorded::read()).build().unwrap();
    let judged: Vec<Judged> = read("queries.json");
    let mut sums: BTreeMap<&str, (f64, f64, f64)> = BTreeMap::new();
    // As many at a time as one run has time for.
    for part in judged.chunks(10) {
        let queries: Vec<&str> = part.iter().map(|judged| judged.query.as_str()).collect();
        let source = "const found = [];
            for (const query of input) found.push((await searchTools(query, 5)).map((tool) => tool.name));
            return found";
        let found: Vec<Vec<String>> =
            serde_json::from_value(value(&executor, source, json!(queries)).await).unwrap();
        for (judged, found) in part.iter().zip(found) {
            assert!(found.len() <= 5);
            let wanted: Vec<String> =
                judged.tools.iter().map(|tool| format!("mcp__{}", tool.replacen('.', "__", 1))).collect();
            let hits = found.iter().filter(|name| wanted.contains(name)).count();
            let first = found.iter().position(|name| wanted.contains(name));
            let (count, recall, reciprocal) = sums.entry(&judged.half).or_default();
            *count += 1.0;
            *recall += hits as f64 / wanted.len().min(5) as f64;
            *reciprocal += first.map_or(0.0, |place| 1.0 / (place + 1) as f64);
        }
    }
    let figures: BTreeMap<&str, String> = sums
        .iter()
        .map(|(half, (count, recall, mrr))| {
            (*half, format!("recall@5 {:.3}, MRR@5 {:.3} of {count}", recall / count, mrr / count))
        })
        .collect();
    #[expect(clippy::print_stdout, reason = "the figures are what this test is read for")]
    {
        println!("{figures:#?}");
    }
    for half in ["tune", "held-out"] {
        let (count, recall, reciprocal) = sums[half];
        assert!(count >= 50.0, "{figures:?}");
        assert!(recall / count >= 0.86 && reciprocal / count >= 0.80, "{figures:?}");
    }
}

/// PROMISES S0 14.
#[tokio::test]
async fn discovery_finds_tools_with_any_of_the_words() {
    let executor = Executor::builder().dispatcher(Recorded::read()).build().unwrap();
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
