//! Documentation of servers and tools for Python's `mcp.runtime`. Scripts that were written for
//! other hosts use its functions, so the names of the fields are theirs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::run::calls::resolve::ToolName;
use crate::run::context::ExecutionContext;
use crate::tools::catalog::ResolvedTool;
use crate::tools::{Schema, ToolError, ToolErrorCode};

/// Which tools to document, and how much of each.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// The words to search for. If it is empty, all tools of the server, in its order.
    #[serde(default)]
    query: String,
    /// The only server whose tools are wanted.
    server: Option<String>,
    /// The only tool that is wanted, of `server`.
    tool: Option<String>,
    /// Maximum number of tools that a search finds.
    limit: Option<f64>,
    /// Whether the schemas of the arguments are wanted too.
    #[serde(default)]
    schemas: bool,
}

#[derive(Serialize)]
struct ServerDocument<'a> {
    name: &'a str,
    alias: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolDocument<'a> {
    server: &'a str,
    server_alias: String,
    tool: &'a str,
    tool_alias: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<&'a Schema>,
}

/// Returns what is known of a server without asking it, as JSON text.
///
/// # Errors
///
/// `ToolNotFound` with the nearest valid names, or `ToolDenied` for a server that the run may not
/// use.
pub(super) fn server(context: &Arc<ExecutionContext>, server: &str) -> Result<String, ToolError> {
    let (name, details) = context.server_details(server)?;
    text(&ServerDocument {
        name: &name,
        alias: context.python_alias(&name),
        description: details.description,
        cwd: details.directory.map(|directory| directory.to_string_lossy().into_owned()),
    })
}

/// Returns the documentation of the permitted tools that are wanted, as JSON text: an array.
///
/// # Errors
///
/// `ToolNotFound` with the nearest valid names, `ToolDenied`, or the error that prevented the
/// server from listing its tools. A search leaves out servers that fail, with a warning in the
/// output.
pub(super) async fn tools(context: &Arc<ExecutionContext>, wanted: Wanted) -> Result<String, ToolError> {
    let Wanted { query, server, tool, limit, schemas } = wanted;
    let tools = match (server, tool) {
        (Some(server), Some(tool)) => vec![context.permitted_tool(ToolName::Pair { server, tool }).await?],
        (Some(server), None) if query.is_empty() => context.tools(&server).await?,
        (server, _) => context.search(&query, server.as_deref(), saturated(limit), false).await?,
    };
    text(&context.describe_each(&tools, |tool| document(context, tool, schemas))?)
}

/// The limit that a script gave for a number of tools; no limit if it gave none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, which is what a limit should do"
)]
pub(super) fn saturated(limit: Option<f64>) -> usize {
    limit.map_or(usize::MAX, |limit| limit as usize)
}

fn document<'a>(context: &ExecutionContext, tool: &'a ResolvedTool, schemas: bool) -> ToolDocument<'a> {
    let definition = tool.definition();
    ToolDocument {
        server: &tool.server,
        server_alias: context.python_alias(&tool.server),
        tool: &tool.tool,
        tool_alias: tool.python_alias(),
        description: definition.description.as_deref().unwrap_or_default(),
        input_schema: schemas.then_some(&definition.input_schema),
    }
}

fn text(document: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(document)
        .map_err(|error| ToolError::new(ToolErrorCode::UpstreamProtocol, error.to_string()))
}
