//! The guide to writing scripts, as a prompt, and its short form: the server's `instructions`,
//! which a client shows to its model.

use rmcp::model::{ErrorData, GetPromptResult, Prompt, PromptMessage, Role};

use super::shown::Shown;
pub(crate) use crate::run::guide::GUIDE;
use crate::text::{MAX_SHOWN_NAME, preview};

/// The server's `instructions`, with the index of tools and what to do about files that are not
/// trusted. They are short, because clients add them to the model's context without being asked.
pub(crate) fn instructions(index: Option<String>, shown: Shown, untrusted_hint: Option<&str>) -> String {
    let direct = match shown {
        Shown::None => String::new(),
        Shown::Some(count) => format!(" {count} of the tools are shown to you too, as server__tool."),
        Shown::All(count) => format!(
            " The {count} tools are few, so all are shown to you too, as server__tool: call one directly, and \
             several in one script."
        ),
    };
    let hint = untrusted_hint.map(|hint| format!(" Tell the user: {hint}."));
    format!("{INSTRUCTIONS}{direct}{}{}", index.unwrap_or_default(), hint.unwrap_or_default())
}

const INSTRUCTIONS: &str = "cx runs scripts that call the tools of MCP servers. \
Write one script that finds its tools (searchTools), calls them (tools.<server>.<tool>), filters the answers \
where they are, and returns only what is needed. Calls of a script cost no round trip: use loops and \
Promise.all or asyncio.gather. help() in a script, or the resource cx://guide, has more.";

const PROMPT: &str = "code-mode";

/// The list of prompts.
pub(crate) fn prompts() -> Vec<Prompt> {
    vec![Prompt::new(PROMPT, Some("How to write scripts for cx"), None).with_title("Code mode")]
}

/// Returns a prompt by name.
///
/// # Errors
///
/// If there is no prompt of this name.
pub(crate) fn prompt(name: &str) -> Result<GetPromptResult, ErrorData> {
    if name != PROMPT {
        let shown = preview(name, MAX_SHOWN_NAME);
        return Err(ErrorData::invalid_params(format!("no prompt `{shown}`: there is `{PROMPT}`"), None));
    }
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, GUIDE)]))
}
