//! The ops' door for one run: text in, [`ExecutionContext`], text out.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::executor::block_on;
use futures::future::{LocalBoxFuture, join_all};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::ops::Door;
use crate::context::{ExecutionContext, ToolName};
use crate::execution::LogLevel;
use crate::tools::names::{typescript_binding, typescript_name};
use crate::tools::{ServerRequest, ToolError, ToolErrorCode};

/// Marks an answer as an error. No JSON text begins so.
const FAILURE: char = '!';

pub(crate) struct RunDoor {
    context: Arc<ExecutionContext>,
}

impl RunDoor {
    pub(crate) fn new(context: Arc<ExecutionContext>) -> Self {
        Self { context }
    }

    fn answer_query(&self, request: &str) -> impl Future<Output = String> + Send + use<> {
        let context = Arc::clone(&self.context);
        let request = serde_json::from_str::<Query>(request);
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
        Arc::clone(&self.context).in_runtime(answer).map(|answer| text(answer.map(|value| value.to_string())))
    }
}

impl Door for RunDoor {
    fn call(&self, server: String, tool: String, arguments: String) -> LocalBoxFuture<'static, String> {
        self.context.call(ToolName::Pair { server, tool }, arguments).map(text).boxed_local()
    }

    fn call_full(&self, name: String, arguments: String) -> LocalBoxFuture<'static, String> {
        self.context.call(tool_name(name), arguments).map(text).boxed_local()
    }

    fn call_blocking(&self, calls: &str) -> String {
        let calls: Vec<Call> = match serde_json::from_str(calls) {
            Ok(calls) => calls,
            Err(error) => {
                let error = ToolError::new(ToolErrorCode::InvalidArguments, error.to_string());
                return text(Err(error));
            }
        };
        let results = join_all(calls.into_iter().map(|Call { server, tool, arguments }| {
            self.context.call(ToolName::Pair { server, tool }, arguments)
        }));
        // Ends at the run's deadline: every call does.
        let results = block_on(results);
        let mut answer = String::from("[");
        for (position, result) in results.into_iter().enumerate() {
            if position > 0 {
                answer.push(',');
            }
            match result {
                // Already JSON text; parsing it to print it again would be waste.
                Ok(value) => {
                    answer.push_str(r#"{"ok":true,"result":"#);
                    answer.push_str(&value);
                    answer.push('}');
                }
                Err(error) => {
                    answer.push_str(&json!({ "ok": false, "error": error.to_wire() }).to_string());
                }
            }
        }
        answer.push(']');
        answer
    }

    fn query(&self, request: &str) -> LocalBoxFuture<'static, String> {
        self.answer_query(request).boxed_local()
    }

    fn query_blocking(&self, request: &str) -> String {
        block_on(self.answer_query(request))
    }

    fn log(&self, level: u32, mut text: String) {
        let level = match level {
            0 => LogLevel::Debug,
            1 => LogLevel::Info,
            2 => LogLevel::Warn,
            _ => LogLevel::Error,
        };
        if text.ends_with('\n') {
            text.pop();
        }
        self.context.log(level, text);
    }

    fn emit(&self, block: &str) -> String {
        let emitted = serde_json::from_str(block)
            .map_err(|error| ToolError::new(ToolErrorCode::InvalidArguments, format!("emit: {error}")))
            .and_then(|value| self.context.emit(value, block.len()));
        text(emitted.map(|()| String::new()))
    }

    fn random(&self, bytes: &mut [u8]) {
        // A system without random numbers cannot run much; zeroes instead would be worse.
        if getrandom::fill(bytes).is_err() {
            self.context.cancel.cancel();
        }
    }
}

/// One call of `call_tools`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    server: String,
    tool: String,
    /// JSON text, so that each call's arguments are parsed, and refused, on their own.
    arguments: String,
}

/// A question of `js/50_tools.js`.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
enum Query {
    /// The names of a server's tools.
    Names {
        server: String,
    },
    /// A server by name; asked only for names that are wrong, for the error.
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
}

async fn perform_query(context: &Arc<ExecutionContext>, query: Query) -> Result<Value, ToolError> {
    match query {
        Query::Names { server } => {
            let tools = context.tools(&server).await?;
            Ok(tools.iter().map(|tool| Value::from(&*tool.tool)).collect())
        }
        Query::Server { server } => {
            context.tools(&server).await?;
            Ok(Value::Null)
        }
        Query::Search { query, server, limit, detail } => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the conversion saturates, which is what a limit should do"
            )]
            let limit = limit.map_or(usize::MAX, |limit| limit as usize);
            let tools = context.search(&query, server.as_deref(), limit).await?;
            let tools = tools.iter();
            match detail.as_str() {
                "full" => Ok(tools.map(|tool| tool.schema()).collect()),
                "descriptions" => Ok(tools.map(|tool| tool.summary()).collect()),
                "names" => Ok(tools.map(|tool| tool.summary()["name"].take()).collect()),
                other => Err(ToolError::new(
                    ToolErrorCode::InvalidArguments,
                    format!("expected detail `names`, `descriptions` or `full`: `{other}`"),
                )),
            }
        }
        Query::Servers => Ok(context.server_names().iter().map(|name| Value::from(&**name)).collect()),
        Query::ListResources { server } => context.request(&server, ServerRequest::ListResources).await,
        Query::ReadResource { server, uri } => {
            context.request(&server, ServerRequest::ReadResource { uri }).await
        }
        Query::ListPrompts { server } => context.request(&server, ServerRequest::ListPrompts).await,
        Query::GetPrompt { server, name, arguments } => {
            context.request(&server, ServerRequest::GetPrompt { name, arguments }).await
        }
        Query::Schema { name } => {
            let tool = context.tool(tool_name(name)).await?;
            Ok(tool.map_or(Value::Null, |tool| tool.schema()))
        }
    }
}

/// `mcp__server__tool`, or `server.tool` as allow and deny patterns write it.
fn tool_name(name: String) -> ToolName {
    match name.split_once('.') {
        Some((server, tool)) if !name.starts_with("mcp__") => {
            ToolName::Pair { server: server.to_owned(), tool: tool.to_owned() }
        }
        _ => ToolName::Full(name),
    }
}

fn text(answer: Result<String, ToolError>) -> String {
    answer.unwrap_or_else(|error| format!("{FAILURE}{}", error.to_wire()))
}

/// What `start` in `js/90_bootstrap.js` takes, as JSON text.
pub(crate) fn start_options(context: &ExecutionContext) -> String {
    let names = context.server_names();
    let servers: Vec<[String; 3]> = names
        .iter()
        .map(|name| [name.to_string(), typescript_name(name), typescript_binding(name)])
        .collect();
    let servers = json!(servers);
    let input = context.input.as_deref().unwrap_or("null");
    format!(r#"{{"servers":{servers},"input":{input}}}"#)
}
