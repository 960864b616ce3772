//! The text that `help()` shows: the guide, one of its sections, a server's tools, or one tool.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{notation, tool_name};
use crate::run::context::ExecutionContext;
use crate::run::guide;
use crate::run::script::Language;
use crate::text::{preview, visible};
use crate::tools::catalog::ResolvedTool;
use crate::tools::names::{python_name, typescript_name};
use crate::tools::usage::access;
use crate::tools::{ToolError, ToolErrorCode};

/// Characters of a name that an error shows.
const MAX_SHOWN: usize = 100;

/// Maximum number of a server's tools to list, and of characters of a line: about twelve tokens.
const MAX_TOOLS: usize = 100;
const MAX_LINE: usize = 52;

/// Characters below which the beginning of a description says nothing.
const MIN_SUMMARY: usize = 8;

/// Maximum characters about one tool, about each of its parameters, and about all of them.
const MAX_SUMMARY: usize = 120;
const MAX_DESCRIPTION: usize = 60;
const MAX_PARAMETERS: usize = 160;

/// Returns the help text for `topic`: a tool by any of its names, a server's name, or words from
/// the guide. Without a topic, returns the whole guide.
///
/// # Errors
///
/// `ToolNotFound` if nothing matches; the message says how to find valid topics.
pub(super) async fn text(context: &Arc<ExecutionContext>, topic: Option<&str>) -> Result<String, ToolError> {
    let language = context.script.language;
    let Some(topic) = topic.map(str::trim).filter(|topic| !topic.is_empty()) else {
        return Ok(guide::whole(language));
    };
    let name = topic.strip_prefix("tools.").unwrap_or(topic);
    let servers = context.server_names();
    let is_server = |server: &&Arc<str>| {
        ***server == *name || typescript_name(server) == name || python_name(server) == name
    };
    if let Some(server) = servers.iter().find(is_server) {
        return Ok(server_text(server, &context.tools(server).await?, language));
    }
    if name.contains('.') || name.starts_with("mcp__") {
        if let Some(tool) = context.tool(tool_name(name.to_owned())).await? {
            return Ok(tool_text(&tool, language));
        }
        let problem = format!(
            "there is no tool `{}`; {}(\"words\") finds one",
            preview(name, MAX_SHOWN),
            if language == Language::Python { "search_tools" } else { "searchTools" }
        );
        return Err(ToolError::new(ToolErrorCode::ToolNotFound, problem));
    }
    guide::section(topic, language).ok_or_else(|| {
        let headings: Vec<_> = guide::headings().map(|heading| format!("`{heading}`")).collect();
        let problem = format!(
            "there is no help about `{}`: ask for a tool as `server.tool`, for a server, or for {}",
            preview(topic, MAX_SHOWN),
            headings.join(", ")
        );
        ToolError::new(ToolErrorCode::ToolNotFound, problem)
    })
}

/// One tool: how it is called, what it does, and what its parameters are. `getToolSchema` has the
/// rest.
fn tool_text(tool: &ResolvedTool, language: Language) -> String {
    let notation = notation(language);
    let mut text = format!("await {}{}", tool.expression(notation), tool.line(notation));
    let summary = tool.summary_line(MAX_SUMMARY);
    if !summary.is_empty() {
        let _ = write!(text, "\n{summary}");
    }
    let mut room = MAX_PARAMETERS;
    for (name, description) in tool.parameter_descriptions(MAX_DESCRIPTION) {
        let line = format!("\n{name}: {description}");
        let Some(left) = room.checked_sub(line.len()) else { break };
        room = left;
        text.push_str(&line);
    }
    text
}

/// A server's tools: what all of them have in common, then a line for each.
fn server_text(server: &str, tools: &[ResolvedTool], language: Language) -> String {
    let notation = notation(language);
    let many = if tools.len() == 1 { "" } else { "s" };
    let call = match language {
        Language::TypeScript => "<tool>({…})",
        Language::Python => "<tool>(…)",
    };
    let access = access(server, notation);
    let mut text = format!("{}: {} tool{many}, await tools{access}.{call}", visible(server), tools.len());
    for tool in tools.iter().take(MAX_TOOLS) {
        let name = tool.name_and_parameters();
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{}", preview(&name, MAX_LINE));
        let summary = tool.summary_line(MAX_LINE.saturating_sub(name.chars().count() + 2));
        if summary.chars().count() >= MIN_SUMMARY {
            let _ = write!(text, ": {summary}");
        }
    }
    if tools.len() > MAX_TOOLS {
        let _ = write!(text, "\nand {} more", tools.len() - MAX_TOOLS);
    }
    text
}
