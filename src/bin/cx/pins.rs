//! `cx tools changed` and `cx tools accept`: tools and skills that differ from the pinned ones.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::bail;
use cx::text::one_line;
use cx::{DamagedPins, Executor, SkillChange, ToolChange};
use serde_json::{Value, json};

use crate::args::ToolsSource;
use crate::diagnostic;
use crate::exit::ExitStatus;
use crate::output::{print_json, print_text};
use crate::setup::{self, audited_tools_executor, tools_executor};
use crate::text::{counted, revealed, shown_path};

/// Shows the tools whose definition differs from the pinned one, and the skills whose text does.
///
/// # Errors
///
/// What is wrong with the configuration, or with the pins.
pub(crate) fn changed(source: &ToolsSource) -> anyhow::Result<ExitStatus> {
    let executor = tools_executor(source)?;
    let changes = executor.tool_changes()?;
    let damaged = executor.damaged_pins();
    let skills = executor.skill_changes()?;
    diagnostic::print_damaged_pins(&damaged);
    if source.json {
        let changes = changes.iter().map(change_json).chain(skills.iter().map(skill_json));
        print_json(&changes.collect::<Value>().to_string())?;
        return Ok(ExitStatus::Success);
    }
    let mut text = String::new();
    for DamagedPins { server, file, .. } in &damaged {
        let (server, file) = (one_line(server), shown_path(file));
        let _ =
            writeln!(text, "{server}: its pinned definitions were damaged; the file is set aside as {file}");
        if !changes.iter().any(|change| change.server == *server) {
            let _ = writeln!(text, "  its tools are not known here: add --refresh to see them");
        }
    }
    for change in &changes {
        let path = path(change);
        match (&change.pinned, &change.current) {
            (Some(_), None) => {
                let _ = writeln!(text, "{path}: is gone from the server's list");
            }
            (None, Some(current)) => {
                let _ = writeln!(text, "{path}: is new");
                let _ = writeln!(text, "  + {}", serde_json::to_string(current)?);
            }
            (Some(pinned), Some(current)) => {
                let _ = writeln!(text, "{path}: {} changed", change.changed_parts().join(", "));
                let (pinned, current) = (serde_json::to_value(pinned)?, serde_json::to_value(current)?);
                for part in change.changed_parts() {
                    let _ = writeln!(text, "  - {part}: {}", pinned[part]);
                    let _ = writeln!(text, "  + {part}: {}", current[part]);
                }
            }
            (None, None) => {}
        }
    }
    for SkillChange { server, uri, pinned, current, .. } in &skills {
        let skill = one_line(&format!("{server}: the skill {uri}"));
        if let Some(pinned) = pinned {
            let _ = writeln!(text, "{skill} changed\n  - SHA-256 {pinned}\n  + SHA-256 {current}");
        } else {
            let _ = writeln!(text, "{skill} is new, and too many are pinned\n  + SHA-256 {current}");
        }
    }
    if changes.is_empty() && damaged.is_empty() && skills.is_empty() {
        text.push_str("every definition is the pinned one\n");
    } else {
        text.push_str("pin with `cx tools accept SERVER.TOOL`, `cx tools accept SERVER` or `--all`\n");
    }
    print_text(&revealed(&text))?;
    Ok(ExitStatus::Success)
}

/// The path of a tool. The server's text in it can neither begin a line nor hide anything.
fn path(change: &ToolChange) -> String {
    one_line(&format!("{}.{}", change.server, change.tool))
}

fn change_json(change: &ToolChange) -> Value {
    json!({
        "server": change.server,
        "tool": change.tool,
        "changed": change.changed_parts(),
        "pinned": change.pinned,
        "current": change.current,
    })
}

fn skill_json(change: &SkillChange) -> Value {
    json!({
        "server": change.server,
        "skill": change.uri,
        "pinned": change.pinned,
        "current": change.current,
    })
}

/// Pins the current definitions of tools, and the texts of skills that were read last: all that `names` name, or none.
///
/// # Errors
///
/// What is wrong with the configuration, the pins or the names.
pub(crate) fn accept(source: &ToolsSource, names: &[String], all: bool) -> anyhow::Result<ExitStatus> {
    let executor = audited_tools_executor(source)?;
    let accepted = accept_with(&executor, source.json, names, all);
    // Only now, because a closed executor writes no audit trail.
    setup::close(&executor)?;
    accepted
}

fn accept_with(
    executor: &Executor,
    is_json: bool,
    names: &[String],
    all: bool,
) -> anyhow::Result<ExitStatus> {
    let changes = executor.tool_changes()?;
    let damaged = executor.damaged_pins();
    let skills = match executor.skill_changes() {
        Err(error) if all => return Err(error.into()),
        skills => skills.ok(),
    };
    let configured = executor.server_names();
    let damaged: BTreeSet<&str> = damaged.iter().map(|pins| &*pins.server).collect();
    let mut servers = damaged.clone();
    servers.extend(changes.iter().map(|change| &*change.server));
    match &skills {
        Some(skills) => servers.extend(skills.iter().map(|change| &*change.server)),
        // What cannot be read of the skills of some server is forgotten when that server is accepted.
        None => servers.extend(configured.iter().map(|name| &**name)),
    }
    let mut done = Vec::new();
    if all {
        for server in servers {
            done.push((server, executor.accept_tools(server, None)?));
        }
        if !is_json {
            let count = changes.len() + skills.as_ref().map_or(0, Vec::len);
            print_text(&format!("pinned {}", counted(count, "definition")))?;
        }
    } else {
        let targets: Vec<Target<'_>> =
            names.iter().map(|name| target(name, &changes, &servers)).collect::<anyhow::Result<_>>()?;
        for (name, Target { server, tool }) in names.iter().zip(targets) {
            let pinned = executor.accept_tools(server, tool)?;
            done.push((name.as_str(), pinned));
            match pinned {
                _ if is_json => {}
                0 if damaged.contains(server) => {
                    print_text(&format!("the definitions that {name} lists next are pinned"))?;
                }
                // A server can be named where the skills of another one cannot be read.
                0 => print_text(&format!("every definition of {name} is the pinned one"))?,
                _ => print_text(&format!("pinned {} of {name}", counted(pinned, "definition")))?,
            }
        }
    }
    if is_json {
        print_pinned(&done)?;
    }
    Ok(ExitStatus::Success)
}

/// What a name stands for.
struct Target<'a> {
    server: &'a str,
    /// One of its tools; `None` for all of its tools and skills.
    tool: Option<&'a str>,
}

/// The tool or the server with this name.
///
/// # Errors
///
/// If it does not differ from what is pinned.
fn target<'a>(
    name: &'a str,
    changes: &'a [ToolChange],
    servers: &BTreeSet<&str>,
) -> anyhow::Result<Target<'a>> {
    // Server names may contain dots. The recorded changes show where the tool's name begins.
    let is_named =
        |change: &&ToolChange| path(change) == name || format!("{}.{}", change.server, change.tool) == name;
    if let Some(change) = changes.iter().find(is_named) {
        return Ok(Target { server: &change.server, tool: Some(&change.tool) });
    }
    if servers.contains(name) {
        return Ok(Target { server: name, tool: None });
    }
    bail!("no tool or server `{name}` differs from its pinned definition; see `cx tools changed`")
}

/// Prints how many definitions of each server or tool were pinned.
fn print_pinned(done: &[(&str, usize)]) -> anyhow::Result<()> {
    let pinned = done.iter().map(|(name, definitions)| json!({ "name": name, "definitions": definitions }));
    print_json(&json!({ "pinned": pinned.collect::<Value>() }).to_string())?;
    Ok(())
}
