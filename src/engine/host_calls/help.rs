//! The text that `help()` shows: the guide, one of its sections, a server's tools, or one tool.

use std::fmt::Write as _;
use std::sync::Arc;

use super::notation;
use crate::run::calls::resolve::ToolName;
use crate::run::context::ExecutionContext;
use crate::run::guide;
use crate::run::script::Language;
use crate::text::{preview, visible};
use crate::tools::catalog::ResolvedTool;
use crate::tools::names::{python_name, typescript_name};
use crate::tools::usage::{access, estimate};
use crate::tools::{ToolError, ToolErrorCode};

/// Characters of a name that an error shows.
const MAX_SHOWN: usize = 100;

/// Maximum number of a server's tools to list.
const MAX_TOOLS: usize = 100;

/// Maximum tokens of the line about each, two less than promised, because they are estimated; and the lengths in
/// characters that are tried. A name is never cut, however many tokens it has.
const MAX_LINE_TOKENS: usize = 10;
const LINES: [usize; 7] = [52, 46, 40, 34, 28, 22, 16];

/// Minimum characters of the beginning of a description: a shorter one says nothing.
const MIN_SUMMARY: usize = 8;

/// Maximum characters of what one tool does and of what a parameter of it is.
const MAX_SUMMARY: usize = 90;
const MAX_DESCRIPTION: usize = 50;

/// Maximum tokens about one tool. A few less than promised, because they are estimated.
const MAX_TOOL_TOKENS: usize = 54;

/// Returns the help text for `topic`: a tool by any of its names, a server's name, or words from
/// the guide. Without a topic, returns the whole guide.
///
/// # Errors
///
/// `ToolNotFound` if nothing matches; the message says how to find valid topics.
pub(super) async fn text(context: &Arc<ExecutionContext>, topic: Option<&str>) -> Result<String, ToolError> {
    let language = context.script.language;
    let Some(topic) = topic.map(str::trim).filter(|topic| !topic.is_empty()) else {
        return Ok(guide::whole(language, context.may_ask_models()));
    };
    let name = topic.strip_prefix("tools.").unwrap_or(topic);
    let servers = context.server_names();
    let is_server = |server: &&Arc<str>| {
        ***server == *name || typescript_name(server) == name || python_name(server) == name
    };
    if let Some(server) = servers.iter().find(is_server) {
        return Ok(server_text(server, &context.tools(server).await?, language));
    }
    if ["llm", "language model", "language models"].contains(&&*name.to_lowercase())
        || name.starts_with("llm.")
    {
        return Ok(guide::language_models(language));
    }
    if name.contains('.') || name.starts_with("mcp__") {
        if let Some(tool) = context.tool(ToolName::of_text(name)).await? {
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
    let mut text = format!("await {}", tool.call(notation(language)));
    let mut room = MAX_TOOL_TOKENS.saturating_sub(estimate(&text));
    let summary = Some(tool.summary_line(MAX_SUMMARY)).filter(|summary| !summary.is_empty());
    let descriptions = tool.parameter_descriptions(MAX_DESCRIPTION);
    let descriptions = descriptions.iter().map(|(name, description)| format!("{name}: {description}"));
    for line in summary.into_iter().chain(descriptions) {
        // The 1 is for the line break.
        let Some(left) = room.checked_sub(estimate(&line) + 1) else { break };
        room = left;
        text.push('\n');
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
        let _ = write!(text, "\n{}", tool_line(tool));
    }
    if tools.len() > MAX_TOOLS {
        let _ = write!(text, "\nand {} more", tools.len() - MAX_TOOLS);
    }
    text
}

/// A tool with the names of its parameters and what it does, as far as there is room.
fn tool_line(tool: &ResolvedTool) -> String {
    let mut line = String::new();
    for max in LINES {
        line = tool.name_and_parameters(max);
        let summary = tool.summary_line(max.saturating_sub(line.chars().count() + 2));
        if summary.chars().count() >= MIN_SUMMARY {
            // Writing to a string cannot fail.
            let _ = write!(line, ": {summary}");
        }
        // Tokenizers hardly ever join the ellipsis with the mark beside it, so it counts as one
        // more token.
        if estimate(&line) + line.matches('…').count() <= MAX_LINE_TOKENS {
            break;
        }
    }
    line
}
