//! What `cx setup` has found and what it changes, as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use cx::setup::{FoundProject, FoundServer, Plan, ServerFitness, ServerList, Survey, below_home};
use cx::text::one_line;
use serde_json::{Value, json};

use crate::savings::{Savings, ServerCost, ToolsCost};
use crate::text::number_of_tools;

/// The clients that were found, with their servers.
pub(super) fn render_survey(survey: &Survey) -> String {
    let mut text = String::new();
    if survey.clients.is_empty() {
        text.push_str("no MCP client was found; `cx config show` names the files for servers\n");
    }
    for client in &survey.clients {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}  {}", client.title, shown_below_home(&client.file));
        let _ = match (&client.problem, client.servers.len()) {
            (Some(problem), _) => writeln!(text, "{}", left(problem)),
            (None, 0) if !client.has_file() => writeln!(text, "  (no file yet)"),
            (None, 0) => writeln!(text, "  (no servers)"),
            (None, _) => writeln!(text),
        };
        render_servers(&mut text, &client.servers);
    }
    for project in &survey.projects {
        let is_gone = if project.directory.is_dir() { "" } else { ", which does not exist any more" };
        let (owner, file) = (owner(survey, &project.list()), shown_below_home(&project.file));
        let problem = project.problem.as_deref().map(left).unwrap_or_default();
        let _ = writeln!(text, "{owner}{is_gone}  {file}{problem}");
        render_servers(&mut text, &project.servers);
        if project.is_in_directory && project.file.ends_with(".mcp.json") && project.problem.is_none() {
            text.push_str("  `cx trust .mcp.json` lets cx use them here, and only here\n");
        }
    }
    text
}

/// The note about a file that cannot be read.
fn left(problem: &str) -> String {
    format!("\n  left as it is: {}", problem.replace('\n', "\n  "))
}

fn render_servers(text: &mut String, servers: &[FoundServer]) {
    for server in servers {
        let about = match &server.fitness {
            ServerFitness::Cx => "starts cx already".to_owned(),
            ServerFitness::Executor => "an executor like cx: never behind it".to_owned(),
            ServerFitness::Disabled => format!("switched off: {}", server.summary),
            ServerFitness::Unusable(reason) => format!("left where it is: {}", one_line(reason)),
            _ => server.summary.clone(),
        };
        let _ = writeln!(text, "  {}  {about}", one_line(&server.name));
    }
}

/// The changes, and notes about them.
pub(super) fn render_plan(plan: &Plan) -> String {
    let mut text = String::new();
    for change in &plan.changes {
        let _ = writeln!(text, "{}  {}", change.owner, shown_below_home(&change.path));
        for action in &change.actions {
            let _ = writeln!(text, "  {}", one_line(action));
        }
    }
    if plan.changes.is_empty() {
        text.push_str("nothing to do: what was chosen is there already\n");
    }
    for note in &plan.notes {
        let _ = writeln!(text, "note: {}", one_line(note));
    }
    text
}

/// What the definitions of the servers' tools take in a conversation.
pub(super) fn render_savings(savings: &Savings, plan: &Plan, took_out: bool) -> String {
    let mut text = String::new();
    let width = savings.servers.iter().map(|server| server.name.chars().count()).max().unwrap_or(0);
    for server in &savings.servers {
        let name = one_line(&server.name);
        let _ = match &server.tools {
            Ok(ToolsCost { count, hidden, tokens }) => {
                writeln!(text, "  {name:width$}  {}, {tokens} tokens", number_of_tools(*count, *hidden))
            }
            Err(failure) => writeln!(text, "  {name:width$}  failed: {}", one_line(failure)),
        };
    }
    let before = before(savings, plan);
    let after = savings.cx;
    if before > after {
        let percent = 100 - after * 100 / before;
        let when = if took_out { "" } else { ", once the servers are taken out of the clients (--take-out)" };
        // Not "before": the servers of several clients were never in one conversation.
        let _ = writeln!(
            text,
            "the definitions of all these tools in a conversation: {before} tokens without cx, {after} with it{when}: \
             {percent} % less"
        );
    } else if before > 0 {
        let _ = writeln!(
            text,
            "the definitions of all these tools in a conversation: {before} tokens without cx, {after} with it: \
             with so few tools it saves nothing there"
        );
    }
    text
}

/// Tokens of the definitions of the servers that are behind cx now.
fn before(savings: &Savings, plan: &Plan) -> usize {
    let is_behind = |name: &str| plan.servers.iter().any(|server| server.name_in_cx.as_deref() == Some(name));
    savings.direct(is_behind)
}

/// All of it as JSON.
pub(super) fn report(
    survey: &Survey,
    plan: &Plan,
    copies: Option<&Path>,
    savings: Option<&Savings>,
) -> Value {
    let clients = survey.clients.iter().map(|client| {
        json!({
            "client": client.name,
            "file": client.file.to_string_lossy(),
            "hasCx": client.has_cx,
            "problem": client.problem,
            "servers": servers_json(&client.servers),
        })
    });
    let projects = survey.projects.iter().map(|project: &FoundProject| {
        json!({
            "client": project.client,
            "directory": project.directory.to_string_lossy(),
            "file": project.file.to_string_lossy(),
            "hasCx": project.has_cx,
            "problem": project.problem,
            "servers": servers_json(&project.servers),
        })
    });
    let changes = plan.changes.iter().map(|change| {
        json!({ "file": change.path.to_string_lossy(), "owner": change.owner, "actions": change.actions })
    });
    json!({
        "clients": clients.collect::<Vec<_>>(),
        "projects": projects.collect::<Vec<_>>(),
        "changes": changes.collect::<Vec<_>>(),
        "notes": plan.notes,
        "copies": copies.map(|path| path.to_string_lossy()),
        "servers": savings.map(costs_json),
        "tokensBefore": savings.map(|savings| before(savings, plan)),
        "tokensAfter": savings.map(|savings| savings.cx),
    })
}

fn servers_json(servers: &[FoundServer]) -> Vec<Value> {
    let server = |server: &FoundServer| {
        json!({
            "name": server.name,
            "summary": server.summary,
            "fitness": match &server.fitness {
                ServerFitness::Usable => "usable",
                ServerFitness::Disabled => "disabled",
                ServerFitness::Cx => "cx",
                ServerFitness::Executor => "executor",
                _ => "unusable",
            },
            "reason": match &server.fitness {
                ServerFitness::Unusable(reason) => Some(reason),
                _ => None,
            },
        })
    };
    servers.iter().map(server).collect()
}

fn costs_json(savings: &Savings) -> Vec<Value> {
    let server = |server: &ServerCost| match &server.tools {
        Ok(ToolsCost { count, hidden, tokens }) => {
            json!({ "name": server.name, "tools": count, "hiddenTools": hidden, "tokens": tokens })
        }
        Err(failure) => json!({ "name": server.name, "failure": failure }),
    };
    savings.servers.iter().map(server).collect()
}

/// The client's name as users know it, and the directory for which the list applies, if it does not apply everywhere.
pub(super) fn owner(survey: &Survey, list: &ServerList) -> String {
    let of_client = survey.clients.iter().map(|client| (client.name, client.title));
    let mut titles = of_client.chain(survey.projects.iter().map(|project| (project.client, project.title)));
    let title = titles.find(|(name, _)| *name == list.client).map_or(list.client, |(_, title)| title);
    match &list.directory {
        Some(directory) => format!("{title}, in {} only", shown_below_home(directory)),
        None => title.to_owned(),
    }
}

/// A path, with `~` for the home directory.
pub(super) fn shown_below_home(path: &Path) -> String {
    one_line(&below_home(path).display().to_string())
}
