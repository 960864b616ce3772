//! Patterns of rules that match no tool, usually because of a typing error in a name.

use std::fmt;
use std::sync::Arc;

use super::names::{SuggestionBudget, nearest};
use crate::error::RuleList;
use crate::text::one_line;

/// A pattern of a rule that matches nothing that is known.
///
/// A pattern is not reported as long as a server that it names has not listed its tools. Nor is one with `*` in the
/// name of the server, which may be intended for servers of other workspaces. One with `*` in the name of the tool is:
/// `git.delte_*` in a list of what is denied protects nothing, and looks as if it did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmatchedPattern {
    /// The list that it is in.
    pub list: RuleList,
    /// The pattern; a server's own pattern is prefixed with the server's name.
    pub pattern: String,
    /// The server that it names.
    pub server: String,
    /// Whether a server with that name exists but has no such tool.
    pub has_server: bool,
    /// What was probably meant: a server's name, or `server.tool`.
    pub nearest: Option<String>,
}

impl fmt::Display for UnmatchedPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = match self.list {
            RuleList::ReadOnly => "readOnly",
            list => list.as_str(),
        };
        let (pattern, server) = (one_line(&self.pattern), one_line(&self.server));
        if self.has_server {
            write!(formatter, "`{pattern}` of `{list}` matches no tool that server `{server}` lists")?;
        } else {
            write!(formatter, "`{pattern}` of `{list}` matches nothing: there is no server `{server}`")?;
        }
        match &self.nearest {
            Some(nearest) => write!(formatter, "; did you mean `{}`?", one_line(nearest)),
            None => Ok(()),
        }
    }
}

/// What is known of the servers that patterns may name.
pub(crate) struct KnownNames {
    pub(crate) servers: Vec<NamedServer>,
    /// Servers that are configured and not used.
    pub(crate) skipped: Vec<String>,
}

/// A server's name, and the names of its tools if it has listed them.
pub(crate) struct NamedServer {
    pub(crate) name: Arc<str>,
    pub(crate) tools: Option<Vec<Arc<str>>>,
}

impl KnownNames {
    /// The names of a server's tools: `Err` if there is no such server, `Ok(None)` if its tools are unknown.
    pub(super) fn tools(&self, server: &str) -> Result<Option<&[Arc<str>]>, NoServer> {
        match self.servers.iter().find(|known| *known.name == *server) {
            Some(known) => Ok(known.tools.as_deref()),
            None if self.skipped.iter().any(|name| name == server) => Ok(None),
            None => Err(NoServer),
        }
    }

    /// The name of the server that is nearest to a wrong one.
    pub(super) fn nearest_server(&self, wrong: &str, budget: &SuggestionBudget) -> Option<String> {
        let names = self.servers.iter().map(|server| &*server.name);
        let names = names.chain(self.skipped.iter().map(String::as_str));
        nearest(wrong, names, budget).first().map(|&name| name.to_owned())
    }

    /// The tool of a server that is nearest to a wrong name, as `server.tool`.
    pub(super) fn nearest_tool(
        &self,
        server: &str,
        wrong: &str,
        budget: &SuggestionBudget,
    ) -> Option<String> {
        let known = self.servers.iter().find(|known| *known.name == *server)?;
        let names = known.tools.as_deref()?.iter().map(|tool| &**tool);
        nearest(wrong, names, budget).first().map(|tool| format!("{server}.{tool}"))
    }
}

/// The error for a server that does not exist.
pub(super) struct NoServer;
