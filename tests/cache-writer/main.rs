//! Writes lists, pinned definitions and inferred schemas to directories that another such process
//! writes to as well, until it is killed. `tests/it/upstream/cache.rs` starts it, kills it and reads what is left.
//!
//! Arguments: the cache directory, the state directory, this writer's name (`a` or `b`) and the number
//! of the round. Prints `listed N` when the N-th list is on disk and `closed FIELD` when the inferred
//! schema of its tools' results is, which has that field.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cx::{
    Executor, Schema, Script, ToolDefinition, ToolDispatcher, ToolError, ToolList, ToolRequest, ToolResult,
};
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde_json::json;

/// How long it runs if it is not killed.
const MAX_LIFE: Duration = Duration::from_secs(60);

/// With the length of the descriptions this makes 60 KB: long enough that writing can be interrupted.
const TOOLS: usize = 60;

/// The number of different fields that results have over time. It is below the number at which an object counts as a
/// map.
const FIELDS: u64 = 24;

/// One version of the tools of the server `versions`.
struct Versions {
    /// `round.writer.number`, in the description of every tool.
    version: String,
    list: Arc<ToolList>,
    number: u64,
    /// The field in its tools' results.
    field: String,
}

impl Versions {
    fn new(round: &str, writer: &str, number: u64) -> Self {
        let version = format!("{round}.{writer}.{number}");
        let filling = "x".repeat(1_000);
        let tool = |name: String, output_schema: Option<Schema>| {
            let mut definition = ToolDefinition::new(name);
            definition.description = Some(format!("{version} {filling}"));
            definition.output_schema = output_schema;
            definition
        };
        let mut tools: Vec<_> = (1..TOOLS).map(|position| tool(format!("tool_{position}"), None)).collect();
        // With an output schema, so that none is inferred for each of these.
        tools.push(tool(only(&version), Some(Schema::any_object())));
        let list = Arc::new(ToolList::new(tools));
        // A round ends after a few versions, so each begins with another field.
        let round: u64 = round.parse().expect("a number");
        let field = format!("{writer}{}", (round * 5 + number) % FIELDS);
        Self { version, list, number, field }
    }
}

/// The tool that no other version has. A call of it waits for the list of this version.
fn only(version: &str) -> String {
    format!("only_{}", version.replace('.', "_"))
}

impl ToolDispatcher for Versions {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["versions".into()]
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        ready(Ok(Arc::clone(&self.list))).boxed()
    }

    fn identity(&self, _server: &str) -> Option<String> {
        Some("versions".to_owned())
    }

    fn generation(&self, _server: &str) -> u64 {
        self.number
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let field = self.field.clone();
        ready(Ok(ToolResult::structured(json!({ field: true })))).boxed()
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cache, state, writer, round] = arguments.as_slice() else { panic!("expected four arguments") };
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut number = 0;
    while started.elapsed() < MAX_LIFE {
        number += 1;
        let versions = Versions::new(round, writer, number);
        let (tool, field) = (only(&versions.version), versions.field.clone());
        let executor = Executor::builder()
            .warm_instances(0)
            .cache_directory(cache)
            .state_directory(state)
            .dispatcher(versions)
            .build()
            .expect("an executor");
        // A name that the list on disk does not have makes the executor ask for the current list.
        let source = "await tools.versions[input]({}); await tools.versions.tool_1({}); return true";
        runtime.block_on(async {
            let result = executor.run(Script::typescript(source).input(json!(tool))).await.expect("it runs");
            assert!(result.value().is_some(), "{}", result.to_json());
            say(&format!("listed {number}"));
            executor.close().await;
            say(&format!("closed {field}"));
        });
    }
}

/// Writes a line and flushes it. Ends the process when stdout is closed.
fn say(what: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{what}").and_then(|()| out.flush()).expect("stdout is open");
}
