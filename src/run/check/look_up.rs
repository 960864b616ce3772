//! What is known of the targets of a script's calls.

use super::survey::Target;
use crate::run::calls::resolve::ToolName;
use crate::tools::catalog::{Catalog, LookUp};
use crate::tools::names::SuggestionBudget;

/// What is known of a target without asking a server; `None` if it is not known to be one.
pub(super) fn look_up(catalog: &Catalog, target: &Target, budget: &SuggestionBudget) -> Option<LookUp> {
    Some(match target {
        Target::Unknown => return None,
        Target::Server(server) => match catalog.server_name(server) {
            Some(_known) => return None,
            None => LookUp::NoServer(catalog.unknown_server(server, budget)),
        },
        Target::Tool { server, tool } => catalog.look_up(server, tool, budget),
        Target::ToolOfGlobal { server, tool } => {
            // A variable that is not a server is not checked.
            catalog.server_name(server)?;
            catalog.look_up(server, tool, budget)
        }
        Target::Full(name) => match ToolName::of_text(name) {
            ToolName::Pair { server, tool } => catalog.look_up(&server, &tool, budget),
            ToolName::Full(name) => catalog.look_up_full_name(&name, budget),
        },
    })
}

/// Whether it is `list_tools` of a server, which Python's servers have beside their tools.
pub(super) fn is_list_of_tools(target: &Target) -> bool {
    matches!(target, Target::Tool { tool, .. } | Target::ToolOfGlobal { tool, .. } if tool == "list_tools")
}
