//! The host functions of one run, shared by all engines: they take text, call [`ExecutionContext`],
//! and return text.
//!
//! An answer is JSON text, or [`FAILURE`] followed by an error as a JSON object.

mod documentation;
mod help;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::json::{self, Json};
use crate::run::calls::ToolName;
use crate::run::compute::Turn;
use crate::run::context::ExecutionContext;
use crate::run::result::LogLevel;
use crate::run::script::Language;
use crate::storage::state::StateCall;
use crate::tools::usage::Notation;
use crate::tools::{ServerRequest, ToolError, ToolErrorCode};

/// Prefix that marks an answer as an error. No JSON text begins with it.
const FAILURE: char = '!';

pub(crate) struct HostCalls {
    context: Arc<ExecutionContext>,
}

impl HostCalls {
    pub(crate) fn new(context: Arc<ExecutionContext>) -> Self {
        Self { context }
    }

    /// The run's use of compute slots, for host calls that block the script's thread.
    pub(crate) fn turn(&self) -> &Turn {
        &self.context.turn
    }

    /// Calls a tool. Checks that need no waiting are made before this returns.
    pub(crate) fn call(
        &self,
        name: ToolName,
        arguments: String,
    ) -> impl Future<Output = Result<String, ToolError>> + Send + use<> {
        self.context.call(name, arguments)
    }

    /// Answers a query about servers and tools, or reads and changes the script's persistent state.
    /// Engines poll the future once immediately, so that checks that need no waiting are made at
    /// once.
    pub(crate) fn query(
        &self,
        request: &str,
    ) -> impl Future<Output = Result<String, ToolError>> + Send + use<> {
        let context = Arc::clone(&self.context);
        let request = json::check(request, json::budget(request.len()))
            .and_then(|_cost| Ok(serde_json::from_str::<Query>(request)?));
        let answer = async move {
            let request = request
                .map_err(|error| ToolError::new(ToolErrorCode::InvalidArguments, error.to_string()))?;
            tokio::select! {
                biased;
                answer = perform_query(&context, request) => answer,
                () = context.cancel.cancelled() => {
                    Err(ToolError::new(ToolErrorCode::Cancelled, "the run is over"))
                }
            }
        };
        Arc::clone(&self.context).in_runtime(answer)
    }

    /// Logs text. One trailing newline is removed.
    pub(crate) fn log(&self, level: LogLevel, mut text: String) {
        if text.ends_with('\n') {
            text.pop();
        }
        self.log_line(level, text);
    }

    /// Logs text without a trailing newline added by the print function.
    pub(crate) fn log_line(&self, level: LogLevel, text: String) {
        self.context.log(level, text);
    }

    /// Emits a content block. An empty answer means success.
    pub(crate) fn emit(&self, block: &str) -> Result<String, ToolError> {
        let most = self.context.limits.result_bytes;
        if block.len() > most {
            // Checked before the block is parsed.
            let message = format!("a script may emit {most} bytes in all");
            return Err(ToolError::new(ToolErrorCode::ResultTooLarge, message));
        }
        let block = Json::parse(block)
            .map_err(|error| ToolError::new(ToolErrorCode::InvalidArguments, format!("emit: {error}")))?;
        self.context.emit(block)?;
        Ok(String::new())
    }

    /// Cancels the run.
    pub(crate) fn cancel(&self) {
        self.context.cancel.cancel();
    }
}

/// A query from a script.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
enum Query {
    /// The names of a server's tools.
    Names {
        server: String,
    },
    /// The exact name of a server. Engines send it only for names that they do not know: most are
    /// wrong, and get the error.
    Server {
        server: String,
    },
    Search {
        query: String,
        server: Option<String>,
        limit: Option<f64>,
        detail: String,
    },
    Schema {
        name: String,
    },
    /// The names of all servers.
    Servers,
    /// A server without its tools: alias, description and working directory.
    Describe {
        server: String,
    },
    /// Documentation of tools: one of a server's, all of a server's, or those that match a query.
    Documentation(documentation::Wanted),
    ListResources {
        server: String,
    },
    ReadResource {
        server: String,
        uri: String,
    },
    ListPrompts {
        server: String,
    },
    GetPrompt {
        server: String,
        name: String,
        #[serde(default)]
        arguments: Map<String, Value>,
    },
    /// Returns the guide, one of its sections, or the description of a server or a tool.
    Help {
        topic: Option<String>,
    },
    /// Returns the record of an earlier run.
    Run {
        id: String,
    },
    /// Reads or changes the state that the script keeps between runs.
    State {
        call: StateCall,
    },
}

async fn perform_query(context: &Arc<ExecutionContext>, query: Query) -> Result<String, ToolError> {
    let answer = match query {
        // These return JSON text.
        Query::Run { id } => return context.earlier_run(&id),
        Query::State { call } => return context.state(call).await,
        Query::Describe { server } => return documentation::server(context, &server),
        Query::Documentation(wanted) => return documentation::tools(context, wanted).await,
        Query::ListResources { server } => {
            return context.request(&server, ServerRequest::ListResources).await;
        }
        Query::ReadResource { server, uri } => {
            return context.request(&server, ServerRequest::ReadResource { uri }).await;
        }
        Query::ListPrompts { server } => return context.request(&server, ServerRequest::ListPrompts).await,
        Query::GetPrompt { server, name, arguments } => {
            return context.request(&server, ServerRequest::GetPrompt { name, arguments }).await;
        }
        Query::Schema { name } => {
            let tool = context.tool(tool_name(name)).await?;
            return Ok(tool.map_or_else(|| "null".to_owned(), |tool| tool.schema(None).into_text()));
        }
        Query::Help { topic } => help::text(context, topic.as_deref()).await.map(Value::from),
        Query::Names { server } => {
            let tools = context.tools(&server).await?;
            Ok(tools.iter().map(|tool| Value::from(&*tool.tool)).collect())
        }
        Query::Server { server } => {
            let (name, _details) = context.server_details(&server)?;
            Ok(Value::from(&*name))
        }
        Query::Search { query, server, limit, detail } => {
            let tools = context.search(&query, server.as_deref(), documentation::saturated(limit)).await?;
            let tools = tools.iter();
            match detail.as_str() {
                // Schemas are kept as text. Parsed trees would take about 12 times the memory.
                "usage" | "full" => {
                    let notation = (detail == "usage").then(|| notation(context.script.language));
                    let schemas: Vec<_> = tools.map(|tool| tool.schema(notation)).collect();
                    return serde_json::to_string(&schemas)
                        .map_err(|error| ToolError::new(ToolErrorCode::UpstreamProtocol, error.to_string()));
                }
                "descriptions" => Ok(tools.map(|tool| tool.summary()).collect()),
                "names" => Ok(tools.map(|tool| tool.name_and_server()).collect()),
                other => Err(ToolError::new(
                    ToolErrorCode::InvalidArguments,
                    format!("expected detail `names`, `descriptions`, `usage` or `full`: `{other}`"),
                )),
            }
        }
        Query::Servers => Ok(context.server_names().iter().map(|name| Value::from(&**name)).collect()),
    };
    answer.map(|value| value.to_string())
}

/// How tools are written for scripts of a language.
fn notation(language: Language) -> Notation {
    match language {
        Language::TypeScript => Notation::TypeScript,
        Language::Python => Notation::Python,
    }
}

/// Parses `mcp__server__tool`, or `server.tool` as in allow and deny patterns.
pub(crate) fn tool_name(name: String) -> ToolName {
    match name.split_once('.') {
        Some((server, tool)) if !name.starts_with("mcp__") => {
            ToolName::Pair { server: server.to_owned(), tool: tool.to_owned() }
        }
        _ => ToolName::Full(name),
    }
}

/// Encodes an answer for the guest.
pub(crate) fn text(answer: Result<String, ToolError>) -> String {
    answer.unwrap_or_else(|error| format!("{FAILURE}{}", error.to_guest_json()))
}
