//! The message of a search about servers that could not list their tools.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::text::{one_line, preview};
use crate::tools::error::ToolError;

/// Maximum number of servers that the line names. The others are counted: a model only has to know that tools are
/// missing, and can ask one server for the reason.
const MAX_NAMED: usize = 10;

/// Maximum characters of a server's name in the line, and of the reason of one server.
const MAX_NAME: usize = 40;
const MAX_REASON: usize = 200;

/// A server whose current list a search did not get.
#[derive(Debug)]
pub(crate) struct ListFailure {
    pub(crate) server: Arc<str>,
    pub(crate) error: ToolError,
    /// Whether an earlier list was searched instead. Otherwise the server's tools are missing.
    pub(crate) is_stale: bool,
}

/// One line for all failures of a search, however many there are; `None` if there is none.
pub(crate) fn describe_failures(failures: &[ListFailure]) -> Option<String> {
    let parts =
        [(false, "are missing"), (true, "may be out of date")].into_iter().filter_map(|(stale, what)| {
            let failed: Vec<_> = failures.iter().filter(|failure| failure.is_stale == stale).collect();
            describe(&failed, what)
        });
    let line = parts.collect::<Vec<_>>().join("; ");
    (!line.is_empty()).then_some(line)
}

fn describe(failed: &[&ListFailure], what: &str) -> Option<String> {
    let first = failed.first()?;
    let name = |failure: &&ListFailure| format!("`{}`", preview(&one_line(&failure.server), MAX_NAME));
    // The lines after the first have the end of the server's stderr. The error of a call contains them.
    let reason = preview(&one_line(first.error.message.lines().next().unwrap_or_default()), MAX_REASON);
    let code = first.error.code;
    let mut line = match failed.len() {
        1 => format!("the tools of {} {what}: {code}: {reason}", name(first)),
        count => {
            let names = failed.iter().take(MAX_NAMED).map(name).collect::<Vec<_>>().join(", ");
            format!("the tools of {count} servers {what}: {names}")
        }
    };
    if let Some(more @ 1..) = failed.len().checked_sub(MAX_NAMED) {
        let _ = write!(line, " and {more} more");
    }
    if failed.len() > 1 {
        let _ = write!(line, " (the first: {code}: {reason})");
    }
    Some(line)
}
