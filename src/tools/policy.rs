//! Which tools a run may call, and which calls need approval. Deny has precedence over ask, ask
//! over allow.

mod glob;

use std::collections::HashMap;
use std::sync::Arc;

use self::glob::Glob;
use super::approval::{AskAnnotation, AskReason, Effects};
use super::names::SuggestionBudget;
use super::private_addresses::PrivateAddresses;
use super::rules::ToolRules;
use super::server_request::ServerRequest;
use super::stored_script::SCRIPTS_SERVER;
use super::unmatched::{KnownNames, NoServer, UnmatchedPattern};
use crate::error::{Error, RuleList};

/// The server name under which requests of `fetch` are made, recorded and matched by rules. The host is the tool's
/// name.
pub(crate) const FETCH_SERVER: &str = "fetch";

/// Maximum number of patterns that are reported because they match nothing. More add no information.
const MAX_UNMATCHED: usize = 50;

/// The rules of one layer: the executor's, or one run's. A tool must be permitted by every layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    rules: RuleSet,
    /// The rules of each server for its own tools. The server's tools must be permitted by both.
    servers: HashMap<String, RuleSet>,
}

impl Policy {
    /// Parses the rules.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPattern`] with the pattern and the valid forms.
    pub(crate) fn new(rules: &ToolRules) -> Result<Self, Error> {
        Ok(Self { rules: RuleSet::parse(rules)?, servers: HashMap::new() })
    }

    /// Sets the rules of one server, whose patterns are names of its tools. A later call for the
    /// same server replaces the earlier rules.
    pub(crate) fn set_server(&mut self, server: &str, rules: &ToolRules) {
        self.servers.insert(server.to_owned(), RuleSet::of_server(server, rules));
    }

    /// Removes the rules of a server, so that a later server of the same name does not get them.
    pub(crate) fn remove_server(&mut self, server: &str) {
        self.servers.remove(server);
    }

    /// Whether the tool may be called. Names are compared byte for byte.
    pub(crate) fn permits(&self, server: &str, tool: &str) -> bool {
        self.layers(server).all(|rules| rules.permits(server, tool))
    }

    /// Whether a deny list matches exactly these names. The server need not be started to resolve
    /// the tool in that case.
    pub(crate) fn denies(&self, server: &str, tool: &str) -> bool {
        self.layers(server).any(|rules| rules.denies(server, tool))
    }

    /// The patterns of allow lists that permit the tool, one of each list. Empty if no list restricts it.
    pub(crate) fn allowing<'a>(&'a self, server: &'a str, tool: &'a str) -> impl Iterator<Item = &'a str> {
        let lists = self.layers(server).flat_map(|rules| &rules.allow);
        lists.filter_map(move |list| first_match(list, server, tool)).map(|pattern| &*pattern.text)
    }

    /// The pattern of a deny list that matches the tool.
    pub(crate) fn denying(&self, server: &str, tool: &str) -> Option<&str> {
        let mut patterns = self.layers(server).filter_map(|rules| first_match(&rules.deny, server, tool));
        patterns.next().map(|pattern| &*pattern.text)
    }

    /// Whether any tool may need approval.
    pub(crate) fn may_ask(&self) -> bool {
        self.rules.may_ask() || self.servers.values().any(RuleSet::may_ask)
    }

    /// Why a call of the tool needs approval; `None` if it does not.
    pub(crate) fn asks(&self, server: &str, tool: &str, effects: Effects) -> Option<AskReason> {
        let pattern = self.layers(server).find_map(|rules| first_match(&rules.ask, server, tool));
        let mut annotations = self.layers(server).flat_map(|rules| &rules.ask_annotations);
        pattern.map(|pattern| AskReason::Pattern(pattern.text.clone())).or_else(|| {
            annotations.find(|annotation| annotation.holds(effects)).copied().map(AskReason::Annotation)
        })
    }

    /// The effects of a call, corrected by the user's read-only lists.
    pub(crate) fn effects(&self, server: &str, tool: &str, effects: Effects) -> Effects {
        let has_own_list = self.servers.get(server).is_some_and(|own| !own.read_only.is_empty());
        if self.layers(server).any(|rules| rules.is_read_only(server, tool)) {
            effects.read_only()
        } else if has_own_list {
            effects.not_read_only()
        } else {
            effects
        }
    }

    /// The treatment of calls of the server's tools that have private addresses in their arguments.
    pub(crate) fn private_addresses(&self, server: &str) -> PrivateAddresses {
        self.layers(server).map(|rules| rules.private_addresses).max().unwrap_or_default()
    }

    /// Whether any tool of `server` can be permitted. If not, the server is not started.
    pub(crate) fn may_permit_server(&self, server: &str) -> bool {
        self.layers(server).all(|rules| rules.may_permit_server(server))
    }

    /// The patterns that match no known name, at most [`MAX_UNMATCHED`].
    pub(crate) fn unmatched(&self, known: &KnownNames) -> Vec<UnmatchedPattern> {
        let mut servers: Vec<_> = self.servers.iter().collect();
        servers.sort_by_key(|(name, _)| name.as_str());
        let sets = std::iter::once(&self.rules).chain(servers.into_iter().map(|(_, rules)| rules));
        let patterns = sets.flat_map(RuleSet::patterns);
        let budget = SuggestionBudget::of_message();
        let unmatched = patterns.filter_map(|(list, pattern)| pattern.unmatched(list, known, &budget));
        unmatched.take(MAX_UNMATCHED).collect()
    }

    /// The rules that apply to the tools of `server`.
    fn layers(&self, server: &str) -> impl Iterator<Item = &RuleSet> {
        std::iter::once(&self.rules).chain(self.servers.get(server))
    }
}

/// [`ToolRules`] with parsed patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleSet {
    /// A tool must match each of these lists. No list allows every tool; an empty list allows none.
    allow: Vec<Vec<Pattern>>,
    deny: Vec<Pattern>,
    ask: Vec<Pattern>,
    ask_annotations: Vec<AskAnnotation>,
    /// A tool that matches each of these lists counts as read-only, whatever its annotations say.
    read_only: Vec<Vec<Pattern>>,
    private_addresses: PrivateAddresses,
}

impl RuleSet {
    /// Parses rules whose patterns name servers and tools.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPattern`] with the pattern and the valid forms.
    pub(super) fn parse(rules: &ToolRules) -> Result<Self, Error> {
        let (annotations, ask): (Vec<_>, Vec<_>) =
            rules.ask.iter().partition(|word| AskAnnotation::from_word(word).is_some());
        let parse = |list, patterns: &[String]| {
            patterns.iter().map(|pattern| Pattern::parse(list, pattern)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            allow: rules
                .allow
                .iter()
                .map(|patterns| parse(RuleList::Allow, patterns))
                .collect::<Result<_, _>>()?,
            deny: parse(RuleList::Deny, &rules.deny)?,
            ask: ask
                .into_iter()
                .map(|pattern| Pattern::parse(RuleList::Ask, pattern))
                .collect::<Result<_, _>>()?,
            ask_annotations: annotations.iter().filter_map(|word| AskAnnotation::from_word(word)).collect(),
            read_only: rules
                .read_only
                .iter()
                .map(|patterns| parse(RuleList::ReadOnly, patterns))
                .collect::<Result<_, _>>()?,
            private_addresses: rules.private_addresses,
        })
    }

    /// The rules of one server, whose patterns name its tools. A word of an `ask` list also matches
    /// the tool of that name: an unnecessary prompt can be removed by another list, but a call made
    /// without a prompt cannot be undone.
    fn of_server(server: &str, rules: &ToolRules) -> Self {
        let list = |patterns: &Vec<String>| -> Vec<Pattern> {
            patterns.iter().map(|tool| Pattern::of_server(server, tool)).collect()
        };
        Self {
            allow: rules.allow.iter().map(list).collect(),
            deny: list(&rules.deny),
            ask: list(&rules.ask),
            ask_annotations: rules.ask.iter().filter_map(|word| AskAnnotation::from_word(word)).collect(),
            read_only: rules.read_only.iter().map(list).collect(),
            private_addresses: rules.private_addresses,
        }
    }

    /// All patterns, with their lists.
    fn patterns(&self) -> impl Iterator<Item = (RuleList, &Pattern)> {
        let of = |list| move |pattern| (list, pattern);
        let allow = self.allow.iter().flatten().map(of(RuleList::Allow));
        let deny = self.deny.iter().map(of(RuleList::Deny));
        let ask = self.ask.iter().map(of(RuleList::Ask));
        let read_only = self.read_only.iter().flatten().map(of(RuleList::ReadOnly));
        allow.chain(deny).chain(ask).chain(read_only)
    }

    fn permits(&self, server: &str, tool: &str) -> bool {
        let is_allowed = |patterns: &Vec<Pattern>| first_match(patterns, server, tool).is_some();
        self.allow.iter().all(is_allowed) && !self.denies(server, tool)
    }

    fn denies(&self, server: &str, tool: &str) -> bool {
        first_match(&self.deny, server, tool).is_some()
    }

    fn may_ask(&self) -> bool {
        let asks_about_addresses = self.private_addresses == PrivateAddresses::Ask;
        asks_about_addresses || !self.ask.is_empty() || !self.ask_annotations.is_empty()
    }

    fn is_read_only(&self, server: &str, tool: &str) -> bool {
        let is_named = |patterns: &Vec<Pattern>| first_match(patterns, server, tool).is_some();
        !self.read_only.is_empty() && self.read_only.iter().all(is_named)
    }

    fn may_permit_server(&self, server: &str) -> bool {
        let reaches = |patterns: &Vec<Pattern>| patterns.iter().any(|pattern| pattern.matches_server(server));
        let is_denied = self.deny.iter().any(|pattern| pattern.matches_all_of(server));
        self.allow.iter().all(reaches) && !is_denied
    }
}

/// Whether a text is a pattern of servers and tools.
pub(crate) fn is_pattern(text: &str) -> bool {
    !readings(text).is_empty()
}

/// The work of matching a pattern: 0 for names and for parts with one `*`, which nearly all patterns are; else the
/// number of wildcards of each reading, and more for `?`.
pub(crate) fn pattern_work(text: &str) -> usize {
    readings(text).iter().map(Reading::work).sum()
}

/// The readings of a pattern as a server and a tool; none if the text is not a pattern.
fn readings(text: &str) -> Vec<Reading> {
    // Real names do not have more separators than this.
    const MAX_READINGS: usize = 16;
    if ["*", "mcp__*"].contains(&text) {
        return vec![Reading::new("*", "*")];
    }
    let (names, separator) = text.strip_prefix("mcp__").map_or((text, "."), |full_name| (full_name, "__"));
    names
        .match_indices(separator)
        .map(|(at, separator)| (&names[..at], &names[at + separator.len()..]))
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        .take(MAX_READINGS)
        .map(|(server, tool)| Reading::new(server, tool))
        .collect()
}

fn first_match<'a>(patterns: &'a [Pattern], server: &str, tool: &str) -> Option<&'a Pattern> {
    patterns.iter().find(|pattern| pattern.matches(server, tool))
}

/// `server.tool` or `mcp__server__tool`, where `*` in either half stands for any characters; `*`
/// alone and `mcp__*` match every tool. Names may themselves contain dots and `__`: a pattern matches every
/// server and tool whose joined names match its text.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    text: String,
    readings: Vec<Reading>,
}

/// One way to split a pattern into a server and a tool.
#[derive(Clone, Debug)]
struct Reading {
    server: ServerPattern,
    tool: Glob,
    every_tool: bool,
}

#[derive(Clone, Debug)]
enum ServerPattern {
    Wild(Glob),
    /// One server, whose name may contain `*`.
    Exact(String),
}

impl ServerPattern {
    fn matches(&self, server: &str) -> bool {
        match self {
            Self::Wild(pattern) => pattern.matches(server),
            Self::Exact(name) => name == server,
        }
    }

    /// The name of the only server that it matches; `None` if it has wildcards.
    fn literal(&self) -> Option<&str> {
        match self {
            Self::Wild(pattern) => pattern.literal(),
            Self::Exact(name) => Some(name),
        }
    }
}

impl Pattern {
    pub(super) fn parse(list: RuleList, text: &str) -> Result<Self, Error> {
        let readings = readings(text);
        if readings.is_empty() {
            // `fs*` could mean only the server `fs`, or also `fsx`. It is refused because the
            // intent cannot be known.
            let words = match list {
                RuleList::Ask => AskAnnotation::ALL.map(|word| format!("`{word}`, ")).concat(),
                _ => String::new(),
            };
            let problem =
                format!("expected {words}`server.tool`, `server.*`, `mcp__server__tool` or `*`: `{text}`");
            return Err(Error::InvalidPattern { list, problem });
        }
        Ok(Self { text: text.to_owned(), readings })
    }

    /// A pattern of the names of one server's tools.
    fn of_server(server: &str, tool: &str) -> Self {
        let reading = Reading {
            server: ServerPattern::Exact(server.to_owned()),
            tool: Glob::new(tool),
            every_tool: tool == "*",
        };
        Self { text: format!("{server}.{tool}"), readings: vec![reading] }
    }

    /// The report about this pattern, if each reading names one server that does not exist or whose known tools it does
    /// not match.
    fn unmatched(
        &self,
        list: RuleList,
        known: &KnownNames,
        budget: &SuggestionBudget,
    ) -> Option<UnmatchedPattern> {
        let mut meant: Option<(&Reading, &str, bool)> = None;
        for reading in &self.readings {
            let server = reading.server.literal()?;
            // Its other names are hosts, which no list has. That holds also beside a server of this name.
            let is_of_runs = matches!(reading.server, ServerPattern::Wild(_));
            if is_of_runs && server == FETCH_SERVER && matches!(list, RuleList::Deny | RuleList::Ask) {
                return None;
            }
            let has_server = match known.tools(server) {
                Ok(None) => return None,
                Ok(Some(tools)) if reading.matches_any(list, tools) => return None,
                Ok(Some(_)) => true,
                // Such rules hold as soon as there are saved scripts, or scripts may be saved.
                Err(NoServer) if server == SCRIPTS_SERVER => return None,
                Err(NoServer) => false,
            };
            // An existing server is more likely to be meant.
            if meant.is_none_or(|(_, _, is_known)| has_server && !is_known) {
                meant = Some((reading, server, has_server));
            }
        }
        let (reading, server, has_server) = meant?;
        let nearest = if has_server {
            reading.tool.literal().and_then(|tool| known.nearest_tool(server, tool, budget))
        } else {
            known.nearest_server(server, budget)
        };
        let (pattern, server) = (self.text.clone(), server.to_owned());
        Some(UnmatchedPattern { list, pattern, server, has_server, nearest })
    }

    pub(super) fn matches(&self, server: &str, tool: &str) -> bool {
        self.readings.iter().any(|reading| reading.server.matches(server) && reading.tool.matches(tool))
    }

    pub(super) fn matches_server(&self, server: &str) -> bool {
        self.readings.iter().any(|reading| reading.server.matches(server))
    }

    fn matches_all_of(&self, server: &str) -> bool {
        self.readings.iter().any(|reading| reading.every_tool && reading.server.matches(server))
    }
}

impl Reading {
    fn new(server: &str, tool: &str) -> Self {
        Self {
            server: ServerPattern::Wild(Glob::new(server)),
            tool: Glob::new(tool),
            every_tool: tool == "*",
        }
    }

    fn work(&self) -> usize {
        let server = match &self.server {
            ServerPattern::Wild(pattern) => pattern.work(),
            ServerPattern::Exact(_) => 0,
        };
        server + self.tool.work()
    }

    /// Whether the pattern matches one of the tools, or another name that rules can contain.
    fn matches_any(&self, list: RuleList, tools: &[Arc<str>]) -> bool {
        let is_word = list == RuleList::Ask
            && self.tool.literal().is_some_and(|word| AskAnnotation::from_word(word).is_some());
        let mut names = tools.iter().map(AsRef::as_ref).chain(ServerRequest::METHODS);
        self.every_tool || is_word || names.any(|name| self.tool.matches(name))
    }
}

#[cfg(test)]
mod tests;
