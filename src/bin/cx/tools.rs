//! `cx tools`: the known tools of the servers.

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::{anyhow, bail};
use cx::text::{one_line, preview};
use cx::{Executor, KnownServer, Tool, ToolError};
use serde_json::Value;

use crate::args::{ToolsCommand, ToolsSource};
use crate::exit::ExitStatus;
use crate::output::{print_json, print_text};
use crate::setup::{Tools, tools, tools_executor};
use crate::terminal;
use crate::text::{counted, number_of_tools, revealed};
use crate::writer::Stream;
use crate::{diagnostic, pins};

/// Maximum characters of a description in a list. On a narrow terminal fewer are shown.
const MAX_DESCRIPTION: usize = 100;
const MIN_DESCRIPTION: usize = 20;

/// Lists, searches, shows, compares or pins tools.
///
/// # Errors
///
/// What is wrong with the configuration or the names.
pub(crate) fn run(command: ToolsCommand) -> anyhow::Result<ExitStatus> {
    match command {
        ToolsCommand::List { source, server } => list(&source, server.as_deref()),
        ToolsCommand::Search { source, words, limit } => search(&source, &words.join(" "), limit),
        ToolsCommand::Show { source, name } => show(&source, &name),
        ToolsCommand::Changed { source } => pins::changed(&source),
        ToolsCommand::Accept { source, names, all } => pins::accept(&source, &names, all),
    }
}

fn list(source: &ToolsSource, server: Option<&str>) -> anyhow::Result<ExitStatus> {
    let Tools { executor, mut refreshed } = tools(source)?;
    if !source.json {
        diagnostic::print_unmatched(&executor);
    }
    let mut servers = executor.known_tools();
    if let Some(name) = server {
        servers.retain(|known| known.name == name);
        if servers.is_empty() {
            bail!("no server `{name}` is configured; see `cx config show`");
        }
        refreshed.retain(|(refreshed, _)| refreshed == name);
    }
    let failed = refreshed.iter().filter_map(|(name, result)| Some((&**name, result.as_ref().err()?)));
    let failed: HashMap<&str, &ToolError> = failed.collect();
    let status = if !failed.is_empty() && failed.len() == refreshed.len() {
        ExitStatus::Failed
    } else {
        ExitStatus::Success
    };
    if source.json {
        let tools = servers.iter().flat_map(|server| server.tools.iter().flatten());
        let tools: Vec<_> = tools.map(Tool::to_json).collect();
        print_json(&serde_json::to_string(&tools)?)?;
        return Ok(status);
    }
    let mut text = String::new();
    for KnownServer { name, tools, hidden, problem, .. } in &servers {
        let failure = failed.get(&**name);
        let name = one_line(name);
        let _ = match (tools, failure) {
            (None, None) => writeln!(text, "{name}: not fetched yet; `cx tools list --refresh` fetches it"),
            // The reason is on stderr.
            (None, Some(_)) => writeln!(text, "{name}: failed, no tools known"),
            (Some(tools), None) => writeln!(text, "{name}: {}", number_of_tools(tools.len(), *hidden)),
            (Some(tools), Some(_)) => {
                let tools = number_of_tools(tools.len(), *hidden);
                writeln!(text, "{name}: failed, {tools} when it was last asked")
            }
        };
        text.push_str(&table(tools.as_deref().unwrap_or_default()));
        if let Some(problem) = problem {
            let _ = writeln!(text, "  ({})", one_line(problem));
        }
    }
    if servers.is_empty() {
        text.push_str("no server is configured; `cx setup` finds those of your MCP clients\n");
    }
    print_text(&text)?;
    Ok(status)
}

/// A tool's path. The server's text in it can neither begin a line nor hide anything.
fn shown_tool(tool: &Tool) -> String {
    one_line(&tool.path())
}

fn search(source: &ToolsSource, query: &str, limit: usize) -> anyhow::Result<ExitStatus> {
    let executor = tools_executor(source)?;
    let tools = executor.search_known_tools(query, limit);
    if source.json {
        let tools: Vec<_> = tools.iter().map(Tool::to_json).collect();
        print_json(&serde_json::to_string(&tools)?)?;
    } else if tools.is_empty() {
        let unfetched = executor.known_tools().iter().filter(|server| server.tools.is_none()).count();
        let hint = if unfetched > 0 {
            let servers = counted(unfetched, "server");
            format!("; the tools of {servers} were not fetched yet, `--refresh` fetches them")
        } else {
            String::new()
        };
        print_text(&format!("nothing found{hint}"))?;
    } else {
        print_text(&table(&tools))?;
    }
    Ok(ExitStatus::Success)
}

/// One line per tool: its path and the first line of its description.
fn table(tools: &[Tool]) -> String {
    let rows: Vec<(String, &str)> = tools
        .iter()
        .map(|tool| {
            let description = tool.definition.description.as_deref().unwrap_or_default();
            (shown_tool(tool), description.lines().next().unwrap_or_default())
        })
        .collect();
    layout(&rows, terminal::width(Stream::Stdout))
}

/// Paths and descriptions in two columns, which fit a terminal of this width.
fn layout(rows: &[(String, &str)], columns: Option<usize>) -> String {
    let width = rows.iter().map(|(path, _)| path.chars().count()).max().unwrap_or(0).min(40);
    let max = match columns {
        // Two spaces before the path, two after it, and the ellipsis.
        Some(columns) => columns.saturating_sub(width + 5).clamp(MIN_DESCRIPTION, MAX_DESCRIPTION),
        None => MAX_DESCRIPTION,
    };
    let mut text = String::new();
    for (path, line) in rows {
        // A path that is wider than the column takes from its own line.
        let max = max.saturating_sub(path.chars().count().saturating_sub(width)).max(MIN_DESCRIPTION);
        let _ = writeln!(text, "  {path:width$}  {}", one_line(&preview(line, max)));
    }
    text
}

/// What to do about a name that no known tool has.
fn unknown_tool_hint(executor: &Executor, name: &str) -> String {
    for KnownServer { name: server, tools, .. } in executor.known_tools() {
        let shown = one_line(&server);
        match name.strip_prefix(server.as_str()) {
            Some("") => {
                return format!("`{shown}` is a server: `cx tools list --server {shown}` lists its tools");
            }
            Some(rest) if rest.starts_with('.') && tools.is_none() => {
                return format!("the tools of `{shown}` were not fetched yet, `--refresh` fetches them");
            }
            _ => {}
        }
    }
    let near = executor.search_known_tools(name, 3);
    let near: Vec<String> = near.iter().map(|tool| format!("`{}`", shown_tool(tool))).collect();
    if near.is_empty() {
        "see `cx tools list`".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    }
}

fn show(source: &ToolsSource, name: &str) -> anyhow::Result<ExitStatus> {
    let executor = tools_executor(source)?;
    let tools: Vec<Tool> =
        executor.known_tools().into_iter().flat_map(|server| server.tools.unwrap_or_default()).collect();
    let matches: Vec<&Tool> = tools
        .iter()
        .filter(|tool| [tool.path(), tool.full_name(), shown_tool(tool)].iter().any(|known| known == name))
        .collect();
    // As a script has it, `tools.files.readFile`.
    let written = match matches[..] {
        [_] => None,
        _ => executor.known_tool(name.strip_prefix("tools.").unwrap_or(name)),
    };
    let found = if let [tool] = matches[..] { Some(tool) } else { written.as_ref() };
    let Some(tool) = found else {
        let hint = unknown_tool_hint(&executor, name);
        return Err(anyhow!("no tool `{name}` is known, by `server.tool` or `mcp__server__tool`; {hint}"));
    };
    if source.json {
        print_json(tool.to_json().text())?;
        return Ok(ExitStatus::Success);
    }
    let mut text = format!("{}\n\n  {}\n", shown_tool(tool), tool.signature);
    if let Some(description) = &tool.definition.description {
        text.push('\n');
        for line in description.lines() {
            // Indented, so that no line of the server's text looks like the title of a section.
            let _ = writeln!(text, "  {line}");
        }
    }
    section(&mut text, "parameters", &tool.definition.input_schema.to_value());
    if let Some(problem) = tool.unchecked() {
        let _ = writeln!(text, "(arguments are not checked before a call: {problem})");
    }
    match (&tool.definition.output_schema, &tool.inferred_output_schema) {
        (Some(schema), _) => section(&mut text, "result", &schema.to_value()),
        (None, Some(inferred)) => {
            let calls = inferred["x-inferred"]["calls"].as_u64().unwrap_or(0);
            section(&mut text, &format!("result, inferred from {calls} calls"), inferred);
        }
        (None, None) => text.push_str("\nresult: no output schema was declared or inferred yet\n"),
    }
    if let Some(annotations) = &tool.definition.annotations {
        section(&mut text, "annotations, as the server declares them", annotations);
    }
    print_text(&revealed(&text))?;
    Ok(ExitStatus::Success)
}

fn section(text: &mut String, title: &str, value: &Value) {
    let _ = write!(text, "\n{title}:\n{value:#}\n");
}

#[cfg(test)]
mod tests {
    use super::layout;

    #[test]
    fn a_path_wider_than_its_column_shortens_its_own_description() {
        let long = "word ".repeat(30);
        let rows = [("s.short".to_owned(), &*long), (format!("s.{}", "x".repeat(43)), &*long)];
        let text = layout(&rows, Some(80));
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [80, 80], "{text}");
        assert!(
            text.lines().next().unwrap().starts_with(&format!("  s.short{}word", " ".repeat(35))),
            "{text}"
        );
    }
}
