//! The text that `help()` shows: the guide, one of its sections, a server's tools, or one tool.

use std::fmt::Write as _;
use std::sync::Arc;

use super::tool_name;
use crate::run::context::ExecutionContext;
use crate::run::guide;
use crate::run::script::Language;
use crate::text::{preview, visible};
use crate::tools::catalog::ResolvedTool;
use crate::tools::names::{python_name, typescript_name};
use crate::tools::{ToolError, ToolErrorCode};

/// Characters of a name that an error shows.
const MAX_SHOWN: usize = 100;

/// Maximum number of a server's tools to list, and of characters of each description.
const MAX_TOOLS: usize = 100;
const MAX_DESCRIPTION: usize = 100;

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

/// The expression that calls a tool in the script's language.
fn call_form(tool: &ResolvedTool, language: Language) -> String {
    let form = match language {
        Language::TypeScript => typescript_name,
        Language::Python => python_name,
    };
    format!("tools.{}.{}", form(&tool.server), form(&tool.tool))
}

fn tool_text(tool: &ResolvedTool, language: Language) -> String {
    let call = call_form(tool, language);
    let written = match language {
        Language::TypeScript => format!("await {call}({{…}})"),
        Language::Python => format!("await {call}(…), the fields of args as keyword arguments"),
    };
    let declaration = tool.declaration();
    // The declaration is indented as a member of an interface; the interface itself is not shown.
    let lines = declaration.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
    format!("{written}\n\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn server_text(server: &str, tools: &[ResolvedTool], language: Language) -> String {
    let many = if tools.len() == 1 { "" } else { "s" };
    let mut text = format!("{}: {} tool{many}", visible(server), tools.len());
    for tool in tools.iter().take(MAX_TOOLS) {
        let description = tool.definition().description.as_deref().unwrap_or_default();
        let line = description.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(MAX_DESCRIPTION).collect();
        let ending = if shown.len() < line.len() { "…" } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{}: {}{ending}", call_form(tool, language), visible(&shown));
    }
    if tools.len() > MAX_TOOLS {
        let _ = write!(text, "\nand {} more", tools.len() - MAX_TOOLS);
    }
    text
}
