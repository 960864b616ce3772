//! One tool list with its names indexed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use crate::text::preview;
use crate::tools::dispatch::ToolList;
use crate::tools::error::{ToolError, ToolErrorCode};
use crate::tools::names::{python_name, suggestion, typescript_name};
use crate::tools::usage;

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
    /// What the descriptions begin with in common; set when it is first needed.
    shared_beginning: OnceLock<String>,
}

/// What an identifier refers to.
#[derive(Clone, Copy, PartialEq)]
enum Identified {
    /// The tool at this position.
    Tool(usize),
    /// Neither of two tools that both have the identifier.
    Ambiguous,
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
            for identifier in [typescript_name(name), python_name(name)] {
                let entry = identifiers.entry(identifier).or_insert(Identified::Tool(position));
                if *entry != Identified::Tool(position) {
                    *entry = Identified::Ambiguous;
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

    /// Length in bytes of what a description begins with in common with the others.
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

    /// Whether it is known that every tool equals its pinned definition.
    pub(crate) fn is_known_to_match_pins(&self) -> bool {
        self.changed.get().is_some_and(HashSet::is_empty)
    }

    /// Whether scripts that write `name` call the tool at `position`.
    pub(crate) fn refers_to(&self, name: &str, position: usize) -> bool {
        match self.exact.get(name) {
            Some(&exact) => exact == position,
            None => self.identifiers.get(name) == Some(&Identified::Tool(position)),
        }
    }

    /// The position of the tool that `tool` names on `server`: exactly, else as an identifier.
    ///
    /// # Errors
    ///
    /// `ToolNotFound` with the nearest valid names.
    pub(crate) fn position(&self, server: &str, tool: &str) -> Result<usize, ToolError> {
        if let Some(&position) = self.exact.get(tool) {
            return Ok(position);
        }
        let message = match self.identifiers.get(tool) {
            Some(&Identified::Tool(position)) => return Ok(position),
            Some(Identified::Ambiguous) => {
                let names = self.names.iter().map(AsRef::as_ref).filter(|name| {
                    [typescript_name(name), python_name(name)].iter().any(|identifier| identifier == tool)
                });
                let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                format!("`{tool}` on server `{server}` could be {names}; use the exact name")
            }
            None => {
                let names = self.names.iter().map(AsRef::as_ref);
                let problem = self.list.problem.as_ref().map(|problem| format!("; {problem}"));
                format!(
                    "no tool `{}` on server `{server}`{}{}",
                    preview_name(tool),
                    suggestion(tool, "tools", names),
                    problem.unwrap_or_default()
                )
            }
        };
        Err(ToolError::new(ToolErrorCode::ToolNotFound, message).for_tool(server, tool))
    }
}

/// The start of a name that came from a script, for a message.
pub(crate) fn preview_name(name: &str) -> String {
    preview(name, 100)
}
