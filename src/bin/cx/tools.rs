//! `cx tools`, `cx types` and `cx cache`: the known tools of the servers.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, anyhow, bail};
use cx::{Executor, KnownServer, Tool, ToolChange};
use serde_json::{Value, json};

use crate::args::{CacheCommand, ToolsCommand, ToolsSource, TypesArguments};
use crate::exit::ExitStatus;
use crate::output::{print_json, print_json_text, print_note, print_text};
use crate::{config, diagnostic};

/// Maximum characters of a description in a list.
const SHOWN: usize = 100;

/// Lists, searches, shows, compares or accepts tools.
///
/// # Errors
///
/// What is wrong with the configuration or the names.
pub(crate) fn run(command: ToolsCommand) -> anyhow::Result<ExitStatus> {
    match command {
        ToolsCommand::List { source, server } => list(&source, server.as_deref()),
        ToolsCommand::Search { source, words, limit } => search(&source, &words.join(" "), limit),
        ToolsCommand::Show { source, name } => show(&source, &name),
        ToolsCommand::Changed { source } => changed(&source),
        ToolsCommand::Accept { source, names, all } => accept(&source, &names, all),
    }
}

/// An executor with the configuration and, with `--refresh`, the current tool lists of the servers.
fn executor(source: &ToolsSource) -> anyhow::Result<Executor> {
    let config = config::load(source.mcp_config.clone())?;
    if !source.json {
        diagnostic::print_warnings(&config.warnings);
    }
    let executor = config::builder(config).warm_instances(0).build()?;
    if source.refresh {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            for (server, result) in executor.refresh_tools().await {
                if let Err(error) = result {
                    diagnostic::print_warning(&format!("`{server}`: {}", error.message));
                }
            }
            executor.close().await;
        });
    }
    Ok(executor)
}

fn list(source: &ToolsSource, server: Option<&str>) -> anyhow::Result<ExitStatus> {
    let mut servers = executor(source)?.known_tools();
    if let Some(name) = server {
        servers.retain(|known| known.name == name);
        if servers.is_empty() {
            bail!("no server `{name}` is configured; see `cx config show`");
        }
    }
    if source.json {
        let tools = servers.iter().flat_map(|server| server.tools.iter().flatten());
        let tools: Vec<_> = tools.map(Tool::to_json).collect();
        print(print_json_text(&serde_json::to_string(&tools)?));
        return Ok(ExitStatus::Success);
    }
    let mut text = String::new();
    for KnownServer { name, tools, .. } in &servers {
        match tools {
            None => {
                let _ = writeln!(text, "{name}: not asked yet; `cx tools list --refresh` asks");
            }
            Some(tools) => {
                let _ = writeln!(text, "{name}: {} tools", tools.len());
                text.push_str(&table(tools));
            }
        }
    }
    if servers.is_empty() {
        text.push_str("no server is configured; see `cx config show`\n");
    }
    print(print_text(&text));
    Ok(ExitStatus::Success)
}

fn search(source: &ToolsSource, query: &str, limit: usize) -> anyhow::Result<ExitStatus> {
    let executor = executor(source)?;
    let tools = executor.search_known_tools(query, limit);
    if source.json {
        let tools: Vec<_> = tools.iter().map(Tool::to_json).collect();
        print(print_json_text(&serde_json::to_string(&tools)?));
    } else if tools.is_empty() {
        let unasked = executor.known_tools().iter().filter(|server| server.tools.is_none()).count();
        let hint = if unasked > 0 {
            format!("; {unasked} servers were not asked yet, `--refresh` asks them")
        } else {
            String::new()
        };
        print_note(&format!("nothing found{hint}"));
    } else {
        print(print_text(&table(&tools)));
    }
    Ok(ExitStatus::Success)
}

/// One line per tool: its path and the first line of its description.
fn table(tools: &[Tool]) -> String {
    let width = tools.iter().map(|tool| tool.path().chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for tool in tools {
        let description = tool.definition.description.as_deref().unwrap_or_default();
        let line = description.lines().next().unwrap_or_default();
        let mut shown: String = line.chars().take(SHOWN).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        let _ = writeln!(text, "  {:width$}  {shown}", tool.path());
    }
    text
}

fn show(source: &ToolsSource, name: &str) -> anyhow::Result<ExitStatus> {
    let executor = executor(source)?;
    let tools: Vec<Tool> =
        executor.known_tools().into_iter().flat_map(|server| server.tools.unwrap_or_default()).collect();
    let matches: Vec<&Tool> =
        tools.iter().filter(|tool| tool.path() == name || tool.full_name() == name).collect();
    let [tool] = matches[..] else {
        let near = executor.search_known_tools(name, 3);
        let near: Vec<String> = near.iter().map(|tool| format!("`{}`", tool.path())).collect();
        let hint = if near.is_empty() {
            "see `cx tools list`".to_owned()
        } else {
            format!("did you mean {}?", near.join(", "))
        };
        return Err(anyhow!("no tool `{name}` is known, by `server.tool` or `mcp__server__tool`; {hint}"));
    };
    if source.json {
        print(print_json_text(tool.to_json().text()));
        return Ok(ExitStatus::Success);
    }
    let mut text = format!("{}\n\n  {}\n", tool.path(), tool.signature);
    if let Some(description) = &tool.definition.description {
        let _ = write!(text, "\n{description}\n");
    }
    section(&mut text, "parameters", &tool.definition.input_schema.to_value());
    if let Some(problem) = tool.unchecked() {
        let _ = writeln!(text, "(arguments are not checked before a call: {problem})");
    }
    match (&tool.definition.output_schema, &tool.observed) {
        (Some(schema), _) => section(&mut text, "result", &schema.to_value()),
        (None, Some(observed)) => {
            let calls = observed["x-observed"]["calls"].as_u64().unwrap_or(0);
            section(&mut text, &format!("result, as observed in {calls} calls"), observed);
        }
        (None, None) => text.push_str("\nresult: the server does not say, and no call has shown it yet\n"),
    }
    if let Some(annotations) = &tool.definition.annotations {
        section(&mut text, "annotations, as the server claims", annotations);
    }
    print(print_text(&text));
    Ok(ExitStatus::Success)
}

fn section(text: &mut String, title: &str, value: &Value) {
    let _ = write!(text, "\n{title}:\n{value:#}\n");
}

fn changed(source: &ToolsSource) -> anyhow::Result<ExitStatus> {
    let changes = executor(source)?.tool_changes()?;
    if source.json {
        print(print_json(&changes.iter().map(change_json).collect()));
        return Ok(ExitStatus::Success);
    }
    let mut text = String::new();
    for change in &changes {
        let path = format!("{}.{}", change.server, change.tool);
        match (&change.accepted, &change.current) {
            (Some(_), None) => {
                let _ = writeln!(text, "{path}: is gone");
            }
            (None, Some(current)) => {
                let _ = writeln!(text, "{path}: is new");
                let _ = writeln!(text, "  + {}", serde_json::to_string(current)?);
            }
            (Some(accepted), Some(current)) => {
                let _ = writeln!(text, "{path}: {} changed", change.changed_parts().join(", "));
                let (accepted, current) = (serde_json::to_value(accepted)?, serde_json::to_value(current)?);
                for part in change.changed_parts() {
                    let _ = writeln!(text, "  - {part}: {}", accepted[part]);
                    let _ = writeln!(text, "  + {part}: {}", current[part]);
                }
            }
            (None, None) => {}
        }
    }
    if changes.is_empty() {
        text.push_str("every tool is as it was accepted\n");
    } else {
        text.push_str("accept with `cx tools accept SERVER.TOOL`, `cx tools accept SERVER` or `--all`\n");
    }
    print(print_text(&text));
    Ok(ExitStatus::Success)
}

fn change_json(change: &ToolChange) -> Value {
    json!({
        "server": change.server,
        "tool": change.tool,
        "changed": change.changed_parts(),
        "accepted": change.accepted,
        "current": change.current,
    })
}

fn accept(source: &ToolsSource, names: &[String], all: bool) -> anyhow::Result<ExitStatus> {
    let executor = executor(source)?;
    let changes = executor.tool_changes()?;
    if all {
        let mut servers: Vec<&str> = changes.iter().map(|change| &*change.server).collect();
        servers.dedup();
        for server in servers {
            executor.accept_tools(server, None)?;
        }
        print_note(&format!("accepted {} changes", changes.len()));
        return Ok(ExitStatus::Success);
    }
    for name in names {
        // Server names may contain dots. The recorded changes show where the tool's name begins.
        let change = changes.iter().find(|change| format!("{}.{}", change.server, change.tool) == *name);
        let accepted = match change {
            Some(change) => executor.accept_tools(&change.server, Some(&change.tool))?,
            None => executor.accept_tools(name, None)?,
        };
        if accepted == 0 {
            bail!("`{name}` has no change to accept, as a tool or as a server; see `cx tools changed`");
        }
        print_note(&format!("accepted {accepted} changes of {name}"));
    }
    Ok(ExitStatus::Success)
}

/// Writes the declarations of the tools that scripts can call.
///
/// # Errors
///
/// What is wrong with the configuration, or with the file.
pub(crate) fn types(arguments: &TypesArguments) -> anyhow::Result<ExitStatus> {
    let declarations = executor(&arguments.source)?.declarations();
    match &arguments.out {
        None => print(print_text(&declarations)),
        Some(path) => {
            fs::write(path, declarations).with_context(|| format!("failed to write `{}`", path.display()))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// Clears the cache.
///
/// # Errors
///
/// What is wrong with the configuration, or with the files.
pub(crate) fn cache(command: &CacheCommand) -> anyhow::Result<ExitStatus> {
    let CacheCommand::Clear = command;
    let files = config::builder(config::load(Vec::new())?).warm_instances(0).build()?.clear_cache()?;
    print_note(&format!("removed what {files} files knew of servers and their results"));
    Ok(ExitStatus::Success)
}

/// A closed stdout is the reader's decision, not a failure.
fn print(result: std::io::Result<()>) {
    let _closed = result;
}
