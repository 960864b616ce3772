//! One tool list with its names indexed.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use crate::text::preview;
use crate::tools::dispatch::ToolList;
use crate::tools::error::{ToolError, ToolErrorCode};
use crate::tools::names::{SEARCH, SuggestionBudget, python_name, suggestion, typescript_name};
use crate::tools::usage;

/// Maximum number of tools that the message about an ambiguous identifier names. Ten thousand tools of a server can
/// share one.
const MAX_NAMED: usize = 10;

/// One server's tools with their names indexed. Immutable; a changed list makes a new one.
pub(crate) struct IndexedList {
    pub(crate) list: Arc<ToolList>,
    /// The exact names, by position.
    pub(crate) names: Vec<Arc<str>>,
    exact: HashMap<Arc<str>, usize>,
    /// The identifiers of the names in both languages.
    identifiers: HashMap<String, Identified>,
    /// The tools that differ from their pinned definitions; set at the first lookup.
    changed: OnceLock<HashSet<String>>,
    /// The common beginning of descriptions; set when first needed.
    shared_beginning: OnceLock<String>,
}

/// What an identifier refers to.
enum Identified {
    /// The tool at this position.
    Tool(usize),
    /// Several tools that share the identifier, so that it refers to none of them.
    Ambiguous {
        /// The positions of the first ones.
        named: Vec<usize>,
        /// The number of further ones.
        more: usize,
    },
}

impl Identified {
    /// Adds another tool, after those before it.
    fn add(&mut self, position: usize) {
        match self {
            Self::Tool(first) => *self = Self::Ambiguous { named: vec![*first, position], more: 0 },
            Self::Ambiguous { named, .. } if named.len() < MAX_NAMED => named.push(position),
            Self::Ambiguous { more, .. } => *more += 1,
        }
    }
}

impl IndexedList {
    /// Indexes a list. Without `changed`, the differences from the pins are looked up when first
    /// needed.
    pub(crate) fn new(list: Arc<ToolList>, changed: Option<HashSet<String>>) -> Self {
        let names: Vec<Arc<str>> = list.tools.iter().map(|definition| Arc::from(&*definition.name)).collect();
        let mut exact = HashMap::new();
        let mut identifiers = HashMap::new();
        for (position, name) in names.iter().enumerate() {
            // If two tools have the same name, only the first can be called.
            exact.entry(Arc::clone(name)).or_insert(position);
            let typescript = typescript_name(name);
            let python = Some(python_name(name)).filter(|python| *python != typescript);
            for identifier in [Some(typescript), python].into_iter().flatten() {
                match identifiers.entry(identifier) {
                    Entry::Vacant(vacant) => drop(vacant.insert(Identified::Tool(position))),
                    Entry::Occupied(mut others) => others.get_mut().add(position),
                }
            }
        }
        let changed = changed.map_or_else(OnceLock::new, OnceLock::from);
        Self { list, names, exact, identifiers, changed, shared_beginning: OnceLock::new() }
    }

    /// The position of the tool with this exact name.
    pub(crate) fn exact_position(&self, name: &str) -> Option<usize> {
        self.exact.get(name).copied()
    }

    /// Length in bytes of the beginning that a description shares with others.
    pub(crate) fn shared_part(&self, description: &str) -> usize {
        let shared = self.shared_beginning.get_or_init(|| {
            let descriptions = self.list.tools.iter().filter_map(|tool| tool.description.as_deref());
            usage::shared_beginning(descriptions).to_owned()
        });
        if description.starts_with(&**shared) { shared.len() } else { 0 }
    }

    /// Whether the tool's definition equals the pinned one. The first call for a list looks up
    /// which ones differ.
    pub(crate) fn matches_pin(&self, position: usize, differing: impl FnOnce() -> HashSet<String>) -> bool {
        !self.changed.get_or_init(differing).contains(&*self.names[position])
    }

    /// Whether it is already known that every tool equals its pinned definition.
    pub(crate) fn is_known_to_match_pins(&self) -> bool {
        self.changed.get().is_some_and(HashSet::is_empty)
    }

    /// Whether scripts that write `name` call the tool at `position`.
    pub(crate) fn refers_to(&self, name: &str, position: usize) -> bool {
        match self.exact.get(name) {
            Some(&exact) => exact == position,
            None => self.identified(name) == Some(position),
        }
    }

    /// The position of the tool that `tool` names: exactly, else as an identifier.
    pub(crate) fn position(&self, tool: &str) -> Option<usize> {
        self.exact_position(tool).or_else(|| self.identified(tool))
    }

    /// The position of the only tool with this identifier.
    fn identified(&self, identifier: &str) -> Option<usize> {
        match self.identifiers.get(identifier)? {
            Identified::Tool(position) => Some(*position),
            Identified::Ambiguous { .. } => None,
        }
    }

    /// The error for an unknown tool name of `server`: `ToolNotFound` with the nearest valid names.
    pub(crate) fn unknown_tool(&self, server: &str, tool: &str, budget: &SuggestionBudget) -> ToolError {
        let message = if let Some(Identified::Ambiguous { named, more }) = self.identifiers.get(tool) {
            let names = named.iter().map(|&position| format!("`{}`", self.names[position]));
            let names = names.collect::<Vec<_>>().join(", ");
            let more = if *more > 0 { format!(" or {more} more") } else { String::new() };
            format!("`{tool}` on server `{server}` could be {names}{more}; use the exact name")
        } else {
            let names = self.names.iter().map(AsRef::as_ref);
            let problem = self.list.problem.as_ref().map(|problem| format!("; {problem}"));
            format!(
                "no tool `{}` on server `{server}`{}{}",
                preview_name(tool),
                suggestion(tool, ("tools", SEARCH), names, budget),
                problem.unwrap_or_default()
            )
        };
        ToolError::new(ToolErrorCode::ToolNotFound, message).for_tool(server, tool)
    }
}

/// The start of a name that came from a script, for a message.
pub(crate) fn preview_name(name: &str) -> String {
    preview(name, 100)
}
