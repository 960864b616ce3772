//! Patterns of rules that match no tool, usually because of a typing error in a name.

use std::fmt;
use std::sync::Arc;

use crate::error::RuleList;
use crate::text::one_line;

/// A pattern of a rule that matches nothing that is known.
///
/// A pattern is not reported as long as a server that it names has not listed its tools. Nor is one with `*` in the
/// name of the server, which may be intended for servers of other workspaces.
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
}

/// The error for a server that does not exist.
pub(super) struct NoServer;
