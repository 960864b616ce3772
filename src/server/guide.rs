//! The guide to writing scripts: as a prompt, and in short as what a client tells its model about the server.

use rmcp::model::{ErrorData, GetPromptResult, Prompt, PromptMessage, Role};

pub(super) use crate::run::guide::GUIDE;

/// What clients put before the model without being asked, so it is short.
pub(super) const INSTRUCTIONS: &str = "cx runs scripts that call the tools of MCP servers. \
Write one script that finds its tools (searchTools), calls them (tools.<server>.<tool>), filters the answers \
where they are, and returns only what is needed. Calls of a script cost no round trip: use loops and \
Promise.all or asyncio.gather. help() in a script, or the resource cx://guide, has more.";

const PROMPT: &str = "code-mode";

/// The prompts that there are.
pub(super) fn prompts() -> Vec<Prompt> {
    vec![Prompt::new(PROMPT, Some("How to write scripts for cx"), None).with_title("Code mode")]
}

/// A prompt by name.
///
/// # Errors
///
/// When there is none.
pub(super) fn prompt(name: &str) -> Result<GetPromptResult, ErrorData> {
    if name != PROMPT {
        return Err(ErrorData::invalid_params(format!("no prompt `{name}`: there is `{PROMPT}`"), None));
    }
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, GUIDE)]))
}
