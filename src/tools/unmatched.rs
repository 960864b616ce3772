//! Patterns of rules that match no tool: usually a name with a mistake in it.

use std::fmt;
use std::sync::Arc;

use crate::error::RuleList;
use crate::text::one_line;

/// A pattern of a rule that matches nothing, as far as that is known.
///
/// It is not reported as long as a server that it names has not listed its tools, nor if it has `*`
/// in the name of the server: then it may be for servers that other workspaces have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmatchedPattern {
    /// The list that it is in.
    pub list: RuleList,
    /// The pattern; one of a server's own rules has the server's name before it.
    pub pattern: String,
    /// The server that it names.
    pub server: String,
    /// Whether there is a server of that name, which has no such tool.
    pub has_server: bool,
}

impl fmt::Display for UnmatchedPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = match self.list {
            RuleList::ReadOnly => "readOnly",
            list => list.as_str(),
        };
        let (pattern, server) = (one_line(&self.pattern), one_line(&self.server));
        if self.has_server {
            write!(formatter, "`{pattern}` of `{list}` matches no tool that server `{server}` lists")
        } else {
            write!(formatter, "`{pattern}` of `{list}` matches nothing: there is no server `{server}`")
        }
    }
}

/// What is known of the servers that patterns may name.
pub(crate) struct KnownNames {
    pub(crate) servers: Vec<NamedServer>,
    /// Servers that are configured and not used.
    pub(crate) skipped: Vec<String>,
}

/// A server's name, and those of its tools if it has listed them.
pub(crate) struct NamedServer {
    pub(crate) name: Arc<str>,
    pub(crate) tools: Option<Vec<Arc<str>>>,
}

impl KnownNames {
    /// What a server's tools are called: `Err` if there is no such server, `Ok(None)` if its tools
    /// are unknown.
    pub(super) fn tools(&self, server: &str) -> Result<Option<&[Arc<str>]>, NoServer> {
        match self.servers.iter().find(|known| *known.name == *server) {
            Some(known) => Ok(known.tools.as_deref()),
            None if self.skipped.iter().any(|name| name == server) => Ok(None),
            None => Err(NoServer),
        }
    }
}

/// There is no server of that name.
pub(super) struct NoServer;
