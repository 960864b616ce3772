//! The MCP clients of this user, and whether they start cx.

use std::env;
use std::path::Path;

use cx::setup::{FoundClient, Survey, below_home};

use super::report::Check;
use crate::text::counted;

const SECTION: &str = "clients";

/// Checks the files of all installed clients.
pub(super) fn check() -> Vec<Check> {
    let Ok(workspace) = env::current_dir() else {
        let hint = "start cx in a directory that exists";
        return vec![Check::problem(SECTION, "working directory", "it does not exist any more", hint)];
    };
    let survey = Survey::read(&workspace);
    if survey.clients.is_empty() {
        return vec![Check::ok(
            SECTION,
            "none",
            "no MCP client was found: docs/clients.md has those that are known",
        )];
    }
    let no_client_has_cx = !survey.clients.iter().any(|client| client.has_cx);
    let check = |client| check_client(client, no_client_has_cx);
    survey.clients.iter().map(check).collect()
}

fn check_client(client: &FoundClient, no_client_has_cx: bool) -> Check {
    let file = below_home(&client.file).display().to_string();
    let (count, title) = (client.servers.len(), client.title);
    let check = if let Some(problem) = &client.problem {
        Check::problem(SECTION, title, format!("{file} cannot be read: {problem}"), format!("correct {file}"))
    } else if let Some(program) = client.program.as_deref().filter(|program| is_gone(program)) {
        let hint = format!("correct the `command` of cx in {file}, or remove that server and run `cx setup`");
        Check::problem(SECTION, title, format!("it starts {program} as cx, which is not a program"), hint)
    } else if client.has_cx {
        let others = count.saturating_sub(1);
        let beside = match others {
            0 => String::new(),
            others => format!(", and {} itself", counted(others, "other server")),
        };
        Check::ok(SECTION, title, format!("starts cx{beside} ({file})"))
    } else {
        let message = format!("does not start cx ({file}, {})", counted(count, "server"));
        if no_client_has_cx && count > 0 {
            Check::warning(SECTION, title, message, "`cx setup` puts its servers behind cx")
        } else {
            Check::ok(SECTION, title, message)
        }
    };
    check.with("client", client.name).with("hasCx", client.has_cx).with("servers", count)
}

/// Whether a client's program is a path without a file. A name is looked up by the client, whose `PATH` is not known
/// here.
fn is_gone(program: &str) -> bool {
    let path = Path::new(program);
    path.is_absolute() && !path.is_file()
}
