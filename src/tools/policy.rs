//! Which tools a run may call: allow and deny patterns, where denial wins.

use std::collections::HashMap;

use wildmatch::WildMatch;

use crate::error::Error;

/// Allow and deny lists of one layer (the executor's, or one run's). A tool must pass every layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    /// `None` allows everything, an empty list nothing.
    allow: Option<Vec<Pattern>>,
    deny: Vec<Pattern>,
    /// What the configuration of a server says about its own tools.
    servers: HashMap<String, ServerPolicy>,
}

/// Allow and deny lists of one server: patterns of its tools' names.
#[derive(Clone, Debug)]
struct ServerPolicy {
    allow: Option<Vec<WildMatch>>,
    deny: Vec<WildMatch>,
}

impl Policy {
    /// Reads both lists.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] with the pattern and the forms that there are.
    pub(crate) fn new(allow: Option<&[String]>, deny: &[String]) -> Result<Self, Error> {
        let parse_all = |option, patterns: &[String]| {
            patterns.iter().map(|pattern| Pattern::parse(option, pattern)).collect()
        };
        Ok(Self {
            allow: allow.map(|patterns| parse_all("allow", patterns)).transpose()?,
            deny: parse_all("deny", deny)?,
            servers: HashMap::new(),
        })
    }

    /// Adds the lists of one server, whose tools must pass them too. A later call for the same server
    /// replaces what an earlier one said.
    pub(crate) fn set_server(&mut self, server: &str, allow: Option<&[String]>, deny: &[String]) {
        let patterns = |patterns: &[String]| patterns.iter().map(|pattern| WildMatch::new(pattern)).collect();
        self.servers
            .insert(server.to_owned(), ServerPolicy { allow: allow.map(patterns), deny: patterns(deny) });
    }

    /// Whether the tool may be called. Both names are compared as they are, byte for byte.
    pub(crate) fn permits(&self, server: &str, tool: &str) -> bool {
        let matches = |pattern: &Pattern| pattern.matches(server, tool);
        let allowed = self.allow.as_ref().is_none_or(|patterns| patterns.iter().any(matches));
        let permitted = allowed && !self.deny.iter().any(matches);
        permitted && self.servers.get(server).is_none_or(|server| server.permits(tool))
    }

    /// Whether a denial names exactly these names, so that a server need not even be started to find
    /// out which tool is meant.
    pub(crate) fn denies(&self, server: &str, tool: &str) -> bool {
        self.deny.iter().any(|pattern| pattern.matches(server, tool))
            || self.servers.get(server).is_some_and(|server| server.denies(tool))
    }

    /// Whether any tool of `server` can pass, so that a server that is out of reach is not even
    /// started.
    pub(crate) fn may_permit_server(&self, server: &str) -> bool {
        let allowed = self
            .allow
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|pattern| pattern.server.matches(server)));
        let denied = self.deny.iter().any(|pattern| pattern.every_tool && pattern.server.matches(server));
        let permitted = allowed && !denied;
        permitted && self.servers.get(server).is_none_or(ServerPolicy::may_permit)
    }
}

impl ServerPolicy {
    fn permits(&self, tool: &str) -> bool {
        let matches = |pattern: &WildMatch| pattern.matches(tool);
        let allowed = self.allow.as_ref().is_none_or(|patterns| patterns.iter().any(matches));
        allowed && !self.denies(tool)
    }

    fn denies(&self, tool: &str) -> bool {
        self.deny.iter().any(|pattern| pattern.matches(tool))
    }

    fn may_permit(&self) -> bool {
        let allows_any = self.allow.as_ref().is_none_or(|patterns| !patterns.is_empty());
        allows_any && !self.deny.iter().any(|pattern| pattern.pattern() == "*")
    }
}

/// `server.tool` or `mcp__server__tool`, each half with `*` for any run of characters; `*` alone is
/// every tool.
#[derive(Clone, Debug)]
struct Pattern {
    server: WildMatch,
    tool: WildMatch,
    every_tool: bool,
}

impl Pattern {
    fn parse(option: &'static str, text: &str) -> Result<Self, Error> {
        let halves = if text == "*" {
            Some(("*", "*"))
        } else if let Some(full_name) = text.strip_prefix("mcp__") {
            full_name.split_once("__")
        } else {
            text.split_once('.')
        };
        let Some((server, tool)) = halves.filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        else {
            // `fs*` could mean the server `fs`, or `fsx` too. Refusing beats guessing.
            return Err(Error::InvalidOptions {
                option,
                problem: format!("expected `server.tool`, `server.*`, `mcp__server__tool` or `*`: `{text}`"),
            });
        };
        Ok(Self { server: WildMatch::new(server), tool: WildMatch::new(tool), every_tool: tool == "*" })
    }

    fn matches(&self, server: &str, tool: &str) -> bool {
        self.server.matches(server) && self.tool.matches(tool)
    }
}

#[cfg(test)]
mod tests;
