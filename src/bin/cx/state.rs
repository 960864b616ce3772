//! `cx state`: the state that scripts keep between runs.

use std::env;
use std::fmt::Write as _;

use anyhow::Context as _;
use cx::{StateScope, StateStore, StateUsage};
use serde_json::{Value, json};

use crate::args::StateCommand;
use crate::confirm::confirm;
use crate::diagnostic;
use crate::exit::ExitStatus;
use crate::output::{print_json, print_text};
use crate::setup;
use crate::text::{counted, shown_path};

/// Lists or deletes the stored state.
///
/// # Errors
///
/// If the file cannot be used, the handle is not valid, or confirmation cannot be asked for.
pub(crate) fn run(command: StateCommand) -> anyhow::Result<ExitStatus> {
    let store = setup::state_store(&setup::directories()?);
    let used = || format!("failed to use {}", shown_path(store.path()));
    match command {
        StateCommand::List { json } => {
            let usage = store.usage().with_context(used)?;
            if let Some(file) = store.damaged_file() {
                diagnostic::print_warning(&format!(
                    "the state file was damaged and set aside, and scripts started anew: {}; \
                     `cx state clear --all` removes it",
                    shown_path(&file)
                ));
            }
            if json {
                print_json(&usage.iter().map(usage_json).collect::<Value>().to_string())?;
            } else {
                print_text(&render(&store, &usage))?;
            }
        }
        StateCommand::Clear { session, tenant, all, yes } => {
            let (keys, whose) = if all {
                let question = "Delete the state of all workspaces and sessions?";
                if !yes && !confirm(question, "deletes all state")? {
                    print_text("nothing was deleted")?;
                    return Ok(ExitStatus::Failed);
                }
                (store.clear_all().with_context(used)?, "all workspaces and sessions".to_owned())
            } else {
                let scope = match session {
                    Some(handle) => StateScope::session_of(tenant.as_deref(), handle)?,
                    None => StateScope::workspace(
                        &env::current_dir().context("failed to find the working directory")?,
                    ),
                };
                (store.clear(&scope).with_context(used)?, scope.to_string())
            };
            print_text(&format!("deleted {} of {whose}", counted_keys(keys)))?;
        }
    }
    Ok(ExitStatus::Success)
}

fn counted_keys(keys: u64) -> String {
    counted(usize::try_from(keys).unwrap_or(usize::MAX), "key")
}

fn render(store: &StateStore, usage: &[StateUsage]) -> String {
    let mut text = format!("{}\n", shown_path(store.path()));
    for usage in usage {
        let StateUsage { scope, keys, bytes, unused_days, damaged_keys, .. } = usage;
        let keys = counted_keys(*keys);
        let unused = match *unused_days {
            0 => String::new(),
            1 => ", unused for 1 day of use".to_owned(),
            days => format!(", unused for {days} days of use"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {scope}: {keys}, {bytes} bytes{unused}");
        for key in damaged_keys {
            // A key is a script's text, so it is escaped.
            let _ = writeln!(text, "    damaged: {key:?}: set or delete it in a script, or clear the scope");
        }
    }
    if usage.is_empty() {
        text.push_str("  no state\n");
    }
    text
}

fn usage_json(usage: &StateUsage) -> Value {
    json!({
        "workspace": usage.scope.as_workspace().map(|directory| directory.display().to_string()),
        "session": usage.scope.as_session(),
        "tenant": usage.scope.as_tenant(),
        "client": usage.scope.as_client(),
        "keys": usage.keys,
        "bytes": usage.bytes,
        "unusedDays": usage.unused_days,
        "damagedKeys": usage.damaged_keys,
    })
}
