//! Which tools a run may call, and which calls need approval. Deny has precedence over ask, ask
//! over allow.

use std::collections::HashMap;

use wildmatch::WildMatch;

use super::approval::{AskAnnotation, AskReason, Effects};
use crate::error::Error;

/// The lists of one layer: the executor's, or one run's. A tool must be permitted by every layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    /// A tool must match each of these lists. No list allows every tool; an empty list allows none.
    allow: Vec<Vec<Pattern>>,
    deny: Vec<Pattern>,
    ask: Vec<Pattern>,
    ask_annotations: Vec<AskAnnotation>,
    /// Tools that count as read-only, whatever their annotations say.
    read_only: Vec<Pattern>,
    /// Per-server lists from the configuration of each server.
    servers: HashMap<String, ServerPolicy>,
}

/// A layer's lists, unparsed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PolicyLists<'a> {
    pub(crate) allow: Option<&'a [String]>,
    pub(crate) deny: &'a [String],
    /// Patterns and [`AskAnnotation`] keywords. No keyword is a pattern, because patterns have a
    /// separator or are `*`.
    pub(crate) ask: &'a [String],
    pub(crate) read_only: &'a [String],
}

/// The lists of one server for its own tools, unparsed: patterns of tool names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerLists<'a> {
    pub(crate) allow: Option<&'a [String]>,
    pub(crate) deny: &'a [String],
    /// Patterns and [`AskAnnotation`] keywords. A keyword also matches the tool of that name: an
    /// unnecessary prompt can be removed by another list, but a call made without a prompt cannot
    /// be undone.
    pub(crate) ask: &'a [String],
    /// The tools that count as read-only. If this list exists, the server's own annotation for that
    /// is ignored.
    pub(crate) read_only: Option<&'a [String]>,
}

/// The lists of one server: patterns of its tools' names.
#[derive(Clone, Debug)]
struct ServerPolicy {
    allow: Option<Vec<WildMatch>>,
    deny: Vec<WildMatch>,
    ask: Vec<WildMatch>,
    ask_annotations: Vec<AskAnnotation>,
    read_only: Option<Vec<WildMatch>>,
}

impl Policy {
    /// Parses the lists.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] with the pattern and the valid forms.
    pub(crate) fn new(lists: PolicyLists<'_>) -> Result<Self, Error> {
        let (ask_annotations, ask) = words_and_patterns(lists.ask);
        let mut policy = Self {
            deny: parse_all("deny", lists.deny)?,
            ask: ask.into_iter().map(|pattern| Pattern::parse("ask", pattern)).collect::<Result<_, _>>()?,
            ask_annotations,
            read_only: parse_all("read_only", lists.read_only)?,
            ..Self::default()
        };
        if let Some(patterns) = lists.allow {
            policy.narrow(patterns)?;
        }
        Ok(policy)
    }

    /// Removes the tools that match none of `patterns`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(crate) fn narrow(&mut self, patterns: &[String]) -> Result<(), Error> {
        self.allow.push(parse_all("allow", patterns)?);
        Ok(())
    }

    /// Adds the lists of one server. The server's tools must be permitted by them too. A later call
    /// for the same server replaces the earlier lists.
    pub(crate) fn set_server(&mut self, server: &str, lists: ServerLists<'_>) {
        let patterns = |patterns: &[String]| patterns.iter().map(|pattern| WildMatch::new(pattern)).collect();
        let policy = ServerPolicy {
            allow: lists.allow.map(patterns),
            deny: patterns(lists.deny),
            ask: patterns(lists.ask),
            ask_annotations: words_and_patterns(lists.ask).0,
            read_only: lists.read_only.map(patterns),
        };
        self.servers.insert(server.to_owned(), policy);
    }

    /// Whether the tool may be called. Names are compared byte for byte.
    pub(crate) fn permits(&self, server: &str, tool: &str) -> bool {
        let matches = |pattern: &Pattern| pattern.matches(server, tool);
        let allowed = self.allow.iter().all(|patterns| patterns.iter().any(matches));
        let permitted = allowed && !self.deny.iter().any(matches);
        permitted && self.servers.get(server).is_none_or(|server| server.permits(tool))
    }

    /// Whether a deny list matches exactly these names. The server need not be started to resolve
    /// the tool in that case.
    pub(crate) fn denies(&self, server: &str, tool: &str) -> bool {
        self.deny.iter().any(|pattern| pattern.matches(server, tool))
            || self.servers.get(server).is_some_and(|server| server.denies(tool))
    }

    /// Whether any tool may need approval.
    pub(crate) fn may_ask(&self) -> bool {
        let asks = |server: &ServerPolicy| !server.ask.is_empty();
        !self.ask.is_empty() || !self.ask_annotations.is_empty() || self.servers.values().any(asks)
    }

    /// Why a call of the tool needs approval; `None` if it does not.
    pub(crate) fn asks(&self, server: &str, tool: &str, effects: Effects) -> Option<AskReason> {
        let own = self.servers.get(server);
        let pattern = self.ask.iter().find(|pattern| pattern.matches(server, tool));
        let pattern = pattern.map(|pattern| pattern.text.clone()).or_else(|| {
            let pattern = own?.ask.iter().find(|pattern| pattern.matches(tool))?;
            Some(format!("{server}.{}", pattern.pattern()))
        });
        let words = self.ask_annotations.iter().chain(own.into_iter().flat_map(|own| &own.ask_annotations));
        pattern.map(AskReason::Pattern).or_else(|| {
            words.copied().find(|annotation| annotation.holds(effects)).map(AskReason::Annotation)
        })
    }

    /// The effects of a call, corrected by the user's read-only lists.
    pub(crate) fn effects(&self, server: &str, tool: &str, effects: Effects) -> Effects {
        let own = self.servers.get(server).and_then(|own| own.read_only.as_ref());
        let is_named = self.read_only.iter().any(|pattern| pattern.matches(server, tool))
            || own.is_some_and(|own| own.iter().any(|pattern| pattern.matches(tool)));
        match own {
            _ if is_named => effects.read_only(),
            Some(_) => effects.not_read_only(),
            None => effects,
        }
    }

    /// Whether any tool of `server` can be permitted. If not, the server is not started.
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

/// `server.tool` or `mcp__server__tool`, where `*` in either half stands for any characters; `*`
/// alone matches every tool. Names may themselves contain dots and `__`: a pattern matches every
/// server and tool whose joined names match its text.
#[derive(Clone, Debug)]
struct Pattern {
    text: String,
    readings: Vec<Reading>,
}

/// Separates the keywords of an `ask` list from its patterns.
fn words_and_patterns(ask: &[String]) -> (Vec<AskAnnotation>, Vec<&String>) {
    let words = ask.iter().filter_map(|word| AskAnnotation::from_word(word)).collect();
    (words, ask.iter().filter(|word| AskAnnotation::from_word(word).is_none()).collect())
}

/// One way to split a pattern into a server and a tool.
#[derive(Clone, Debug)]
struct Reading {
    server: WildMatch,
    tool: WildMatch,
    every_tool: bool,
}

impl Pattern {
    fn parse(option: &'static str, text: &str) -> Result<Self, Error> {
        // Real names do not have more separators than this.
        const MAX_READINGS: usize = 16;
        let readings: Vec<Reading> = if text == "*" {
            vec![Reading::new("*", "*")]
        } else {
            let (names, separator) =
                text.strip_prefix("mcp__").map_or((text, "."), |full_name| (full_name, "__"));
            names
                .match_indices(separator)
                .map(|(at, separator)| (&names[..at], &names[at + separator.len()..]))
                .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
                .take(MAX_READINGS)
                .map(|(server, tool)| Reading::new(server, tool))
                .collect()
        };
        if readings.is_empty() {
            // `fs*` could mean only the server `fs`, or also `fsx`. It is refused because the
            // intent cannot be known.
            let words = match option {
                "ask" => AskAnnotation::ALL.map(|word| format!("`{word}`, ")).concat(),
                _ => String::new(),
            };
            let problem =
                format!("expected {words}`server.tool`, `server.*`, `mcp__server__tool` or `*`: `{text}`");
            return Err(Error::InvalidOptions { option, problem });
        }
        Ok(Self { text: text.to_owned(), readings })
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
