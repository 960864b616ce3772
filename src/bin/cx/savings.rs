//! Computes what putting servers behind cx saves: tokens of tool definitions in the context of a model.

use bpe_openai::Tokenizer;
use cx::server::{Server, ServerOptions};
use cx::{Executor, KnownServer, Tool};
use serde_json::json;

use crate::progress::ProgressLine;
use crate::setup;
use crate::text::failure;

/// The servers, and what the definitions of their tools cost.
pub(crate) struct Savings {
    pub(crate) servers: Vec<ServerCost>,
    /// Tokens of everything that clients show of cx: its tools and its instructions.
    pub(crate) cx: usize,
}

/// One server's part.
pub(crate) struct ServerCost {
    pub(crate) name: String,
    /// The cost of its tools, or why they are unknown.
    pub(crate) tools: Result<ToolsCost, String>,
}

/// What the definitions of a server's tools cost.
pub(crate) struct ToolsCost {
    /// The number of tools that scripts may use.
    pub(crate) count: usize,
    /// The number of further tools that the rules hide from scripts.
    pub(crate) hidden: usize,
    /// Tokens of the names, descriptions and input schemas of the usable tools.
    pub(crate) tokens: usize,
}

impl Savings {
    /// Tokens of the definitions of these servers' tools.
    pub(crate) fn direct(&self, is_counted: impl Fn(&str) -> bool) -> usize {
        let counted = self.servers.iter().filter(|server| is_counted(&server.name));
        counted.filter_map(|server| Some(server.tools.as_ref().ok()?.tokens)).sum()
    }
}

/// Connects to all servers of the current configuration, and counts.
///
/// # Errors
///
/// Mistakes in the configuration.
pub(crate) fn measure() -> anyhow::Result<Savings> {
    let executor = setup::builder(setup::load(Vec::new())?).warm_instances(0).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(async {
        let asked = ask(&executor).await;
        executor.close().await;
        asked
    });
    let encoding = bpe_openai::o200k_base();
    let cost = |KnownServer { name, tools, hidden, .. }: KnownServer| {
        let failure = asked.iter().find(|(asked, _)| *asked == name).and_then(|(_, failure)| failure.clone());
        let tools = match (failure, tools) {
            (Some(failure), _) => Err(failure),
            (None, None) => Err("it has listed no tools".to_owned()),
            (None, Some(tools)) => {
                Ok(ToolsCost { count: tools.len(), hidden, tokens: definitions(encoding, &tools) })
            }
        };
        ServerCost { name, tools }
    };
    let servers = executor.known_tools().into_iter().map(cost).collect();
    let context = Server::new(executor, ServerOptions::default()).context();
    let definitions: usize = context.definitions.iter().map(|tool| tokens(encoding, &tool.to_string())).sum();
    Ok(Savings { servers, cx: definitions + tokens(encoding, &context.instructions) })
}

/// Requests the tools of all servers. Returns the failures.
async fn ask(executor: &Executor) -> Vec<(String, Option<String>)> {
    let line = ProgressLine::asking(&executor.server_names());
    let refreshed = executor.refresh_tools().await;
    drop(line);
    refreshed.into_iter().map(|(name, result)| (name, result.err().as_ref().map(failure))).collect()
}

/// Tokens of the definitions, as clients show them to models.
fn definitions(encoding: &Tokenizer, tools: &[Tool]) -> usize {
    let of = |tool: &Tool| {
        let definition = &tool.definition;
        let shown = json!({
            "name": definition.name,
            "description": definition.description,
            "inputSchema": definition.input_schema.to_value(),
        });
        tokens(encoding, &shown.to_string())
    };
    tools.iter().map(of).sum()
}

fn tokens(encoding: &Tokenizer, text: &str) -> usize {
    encoding.count(text)
}
