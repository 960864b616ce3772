//! Which tools a run may call: allow and deny patterns, where denial wins.

use std::collections::HashMap;

use wildmatch::WildMatch;

use crate::error::Error;

/// Allow and deny lists of one layer (the executor's, or one run's). A tool must pass every layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    /// A tool must be on each of these lists. No list allows everything, an empty one nothing.
    allow: Vec<Vec<Pattern>>,
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
        let mut policy = Self { deny: parse_all("deny", deny)?, ..Self::default() };
        if let Some(patterns) = allow {
            policy.narrow(patterns)?;
        }
        Ok(policy)
    }

    /// Takes away the tools that match none of `patterns`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(crate) fn narrow(&mut self, patterns: &[String]) -> Result<(), Error> {
        self.allow.push(parse_all("allow", patterns)?);
        Ok(())
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
        let allowed = self.allow.iter().all(|patterns| patterns.iter().any(matches));
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
        let reaches = |patterns: &Vec<Pattern>| patterns.iter().any(|pattern| pattern.matches_server(server));
        let allowed = self.allow.iter().all(reaches);
        let denied = self.deny.iter().any(|pattern| pattern.matches_all_of(server));
        let permitted = allowed && !denied;
        permitted && self.servers.get(server).is_none_or(ServerPolicy::may_permit)
    }
}

fn parse_all(option: &'static str, patterns: &[String]) -> Result<Vec<Pattern>, Error> {
    patterns.iter().map(|pattern| Pattern::parse(option, pattern)).collect()
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
/// every tool. Names may have dots and `__` themselves: a pattern means every server and tool whose
/// names put together read as it does.
#[derive(Clone, Debug)]
struct Pattern {
    readings: Vec<Reading>,
}

/// One way to tell a pattern's server from its tool.
#[derive(Clone, Debug)]
struct Reading {
    server: WildMatch,
    tool: WildMatch,
    every_tool: bool,
}

impl Pattern {
    fn parse(option: &'static str, text: &str) -> Result<Self, Error> {
        // More separators than this are nobody's names.
        const MOST_READINGS: usize = 16;
        let readings: Vec<Reading> = if text == "*" {
            vec![Reading::new("*", "*")]
        } else {
            let (names, separator) =
                text.strip_prefix("mcp__").map_or((text, "."), |full_name| (full_name, "__"));
            names
                .match_indices(separator)
                .map(|(at, separator)| (&names[..at], &names[at + separator.len()..]))
                .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
                .take(MOST_READINGS)
                .map(|(server, tool)| Reading::new(server, tool))
                .collect()
        };
        if readings.is_empty() {
            // `fs*` could mean the server `fs`, or `fsx` too. Refusing beats guessing.
            return Err(Error::InvalidOptions {
                option,
                problem: format!("expected `server.tool`, `server.*`, `mcp__server__tool` or `*`: `{text}`"),
            });
        }
        Ok(Self { readings })
    }

    fn matches(&self, server: &str, tool: &str) -> bool {
        self.readings.iter().any(|reading| reading.server.matches(server) && reading.tool.matches(tool))
    }

    fn matches_server(&self, server: &str) -> bool {
        self.readings.iter().any(|reading| reading.server.matches(server))
    }

    fn matches_all_of(&self, server: &str) -> bool {
        self.readings.iter().any(|reading| reading.every_tool && reading.server.matches(server))
    }
}

impl Reading {
    fn new(server: &str, tool: &str) -> Self {
        Self { server: WildMatch::new(server), tool: WildMatch::new(tool), every_tool: tool == "*" }
    }
}

#[cfg(test)]
mod tests;
