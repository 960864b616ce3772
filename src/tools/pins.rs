//! Pinned tool definitions: trust on first use. A server that changes a tool's description can make
//! a model misuse the tool; comparing definitions with the pinned ones detects this.
//!
//! The definitions that a server offers when it is first seen are pinned, because that is when the
//! user configured it. Every later difference is recorded until the user accepts it. In strict mode
//! the tool cannot be called before that.
//!
//! Pins that cannot be read are set aside and replaced by pins of no tool, so that each tool counts as changed until
//! the user accepts it. Otherwise a damaged file would allow a second first use.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dispatch::{ToolDefinition, ToolList};
use super::schema::Schema;
use crate::storage::files::{self, Store};

const VERSION: u32 = 1;

/// The pins of all servers, one file per server name.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    store: Store,
    /// The damaged pins that were found so far and whose tools were not accepted since, by server.
    damaged: Arc<Mutex<BTreeMap<String, PathBuf>>>,
    on_change: ChangeListener,
}

/// Called with a server and its tools whose definitions have newly been found to differ from the pinned ones. Each
/// difference is reported once, by the process that records it.
#[derive(Clone, Default)]
pub(crate) struct ChangeListener(pub(crate) Option<Arc<OnChange>>);

/// A listener of changes: the server and the tools.
pub(crate) type OnChange = dyn Fn(&str, &[String]) + Send + Sync;

impl fmt::Debug for ChangeListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ChangeListener").field(&self.0.is_some()).finish()
    }
}

/// Pinned definitions of a server that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedPins {
    /// The server.
    pub server: String,
    /// Where the damaged file is now.
    pub file: PathBuf,
}

/// The pins of one server.
#[derive(Clone, Default, Serialize, Deserialize)]
struct ServerPins {
    server: String,
    tools: BTreeMap<String, Pin>,
    /// The damaged file that these pins have replaced, until all tools are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    damaged: Option<PathBuf>,
    /// Whether a list that was compared with them was [that of a client which may be
    /// asked](ToolList::with_elicitation). A list of another client may lack some of the tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    with_elicitation: bool,
    /// Whether all lists that were compared with them were those of clients which may not be asked. The first list of
    /// another client can have tools that no client was shown before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    without_elicitation: bool,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Pin {
    /// The pinned definition; `None` for a tool that did not exist when the server was pinned.
    #[serde(rename = "accepted")]
    pinned: Option<ToolDefinition>,
    seen: Seen,
    /// Whether a tool that is not pinned was in a list of a client which may be asked, so that it may be missing in
    /// the lists of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    with_elicitation: bool,
}

impl Pin {
    fn new(pinned: Option<ToolDefinition>) -> Self {
        Self { pinned, seen: Seen::AsPinned, with_elicitation: false }
    }
}

/// A tool's definition as last listed by its server.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
enum Seen {
    #[serde(rename = "AsAccepted")]
    AsPinned,
    Different(Box<ToolDefinition>),
    Gone,
}

/// One difference between a pinned definition and the current one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolChange {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The pinned definition; `None` for a new tool.
    pub pinned: Option<ToolDefinition>,
    /// The current definition; `None` for a removed tool.
    pub current: Option<ToolDefinition>,
}

impl ToolChange {
    /// The parts that differ: `description`, `inputSchema`, `outputSchema`, `annotations`.
    pub fn changed_parts(&self) -> Vec<&'static str> {
        let (Some(pinned), Some(current)) = (&self.pinned, &self.current) else { return Vec::new() };
        differing_parts(pinned, current).collect()
    }
}

impl Pins {
    pub(crate) fn new(store: Store) -> Self {
        Self { store: store.binding(), damaged: Arc::default(), on_change: ChangeListener::default() }
    }

    /// Sets the listener for new differences.
    pub(crate) fn on_change(self, listener: ChangeListener) -> Self {
        Self { on_change: listener, ..self }
    }

    /// Reads the pins of a server. Damaged ones are set aside first.
    fn read(&self, server: &str) -> std::io::Result<Option<ServerPins>> {
        let name = file_name(server);
        let pins = match self.store.read::<ServerPins>(&name, VERSION) {
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                let replacement = |file: PathBuf| {
                    tracing::warn!(server, file = %file.display(), "damaged pinned definitions were set aside");
                    let server = server.to_owned();
                    ServerPins { server, damaged: Some(file), ..ServerPins::default() }
                };
                Some(self.store.set_aside(&name, VERSION, replacement)?)
            }
            pins => pins?,
        };
        let damaged = pins.as_ref().and_then(|pins| pins.damaged.clone());
        let mut all = self.damaged.lock();
        match damaged {
            Some(file) => all.insert(server.to_owned(), file),
            None => all.remove(server),
        };
        drop(all);
        Ok(pins)
    }

    /// The damaged pins that were found since this was made and whose tools were not accepted since.
    pub(crate) fn damaged(&self) -> Vec<DamagedPins> {
        let damaged = self.damaged.lock();
        let pins =
            |(server, file): (&String, &PathBuf)| DamagedPins { server: server.clone(), file: file.clone() };
        damaged.iter().map(pins).collect()
    }

    /// Whether the pins of `server` were damaged and no list was compared with their replacement yet.
    pub(crate) fn need_a_list(&self, server: &str) -> std::io::Result<bool> {
        Ok(self.read(server)?.is_some_and(|pins| pins.damaged.is_some() && pins.tools.is_empty()))
    }

    /// Compares a list with the pins and records the differences. Returns the names of the tools
    /// that differ. Blocks; writes only if something is new.
    pub(crate) fn check(&self, server: &str, list: &ToolList) -> std::io::Result<HashSet<String>> {
        let name = file_name(server);
        let known = self.read(server)?;
        let pins = compare(known.clone(), server, list);
        let is_known = known.is_some_and(|known| {
            known.tools == pins.tools
                && known.with_elicitation == pins.with_elicitation
                && known.without_elicitation == pins.without_elicitation
        });
        let pins = if is_known {
            pins
        } else {
            // Compared again under the lock with what is on disk, because another process may have
            // written.
            let (pins, new) = self.store.update(&name, VERSION, |known: Option<ServerPins>| {
                let pins = compare(known.clone(), server, list);
                let new = known.map_or_else(Vec::new, |known| new_differences(&known, &pins));
                (pins.clone(), (pins, new))
            })?;
            if !new.is_empty()
                && let Some(listener) = &self.on_change.0
            {
                listener(server, &new);
            }
            pins
        };
        Ok(different(pins))
    }

    /// The names of the tools in a list that differ from the pins. Records nothing.
    pub(crate) fn differing(&self, server: &str, list: &ToolList) -> std::io::Result<HashSet<String>> {
        let pins = compare(self.read(server)?, server, list);
        Ok(different(pins))
    }

    /// All differences that have not been accepted, by server and tool.
    pub(crate) fn changes(&self) -> std::io::Result<Vec<ToolChange>> {
        let mut changes = Vec::new();
        for name in self.store.names()?.iter().filter(|name| name.starts_with(PREFIX)) {
            let pins = match self.store.read(name, VERSION) {
                // A server that is not configured now: its file is set aside when it is configured again.
                Err(error) if error.kind() == ErrorKind::InvalidData => continue,
                pins => pins?,
            };
            let Some(ServerPins { server, tools, .. }) = pins else { continue };
            changes.extend(tools.into_iter().filter_map(|(tool, pin)| {
                let current = match pin.seen {
                    Seen::AsPinned => return None,
                    Seen::Different(definition) => Some(*definition),
                    Seen::Gone => None,
                };
                Some(ToolChange { server: server.clone(), tool, pinned: pin.pinned, current })
            }));
        }
        changes.sort_by(|a, b| (&a.server, &a.tool).cmp(&(&b.server, &b.tool)));
        Ok(changes)
    }

    /// Pins the current definition of one of a server's tools, or of all. Returns how many differed. If damaged pins
    /// were replaced and no list was seen since, all tools of the server's next list are pinned.
    pub(crate) fn accept(&self, server: &str, tool: Option<&str>) -> std::io::Result<usize> {
        let name = file_name(server);
        let Some(known) = self.read(server)? else { return Ok(0) };
        if tool.is_none() && known.damaged.is_some() && known.tools.is_empty() {
            self.store.remove(&name)?;
            self.damaged.lock().remove(server);
            return Ok(0);
        }
        let accepted = self.store.update(&name, VERSION, |known: Option<ServerPins>| {
            let mut pins = known.unwrap_or_default();
            let mut accepted = 0;
            pins.tools.retain(|name, pin| {
                if tool.is_some_and(|tool| tool != name) {
                    return true;
                }
                match std::mem::replace(&mut pin.seen, Seen::AsPinned) {
                    Seen::AsPinned => return true,
                    Seen::Different(definition) => pin.pinned = Some(*definition),
                    Seen::Gone => pin.pinned = None,
                }
                accepted += 1;
                pin.pinned.is_some()
            });
            if pins.tools.values().all(|pin| pin.seen == Seen::AsPinned) {
                pins.damaged = None;
            }
            (pins, accepted)
        })?;
        self.read(server)?;
        Ok(accepted)
    }
}

fn different(pins: ServerPins) -> HashSet<String> {
    pins.tools.into_iter().filter(|(_, pin)| pin.seen != Seen::AsPinned).map(|(tool, _)| tool).collect()
}

/// The tools that differ in `pins` and did not differ in the same way in `known`.
fn new_differences(known: &ServerPins, pins: &ServerPins) -> Vec<String> {
    let is_known = |name: &String, pin: &Pin| {
        known.tools.get(name).is_some_and(|known| known.pinned == pin.pinned && known.seen == pin.seen)
    };
    let is_new = |(name, pin): &(&String, &Pin)| pin.seen != Seen::AsPinned && !is_known(name, pin);
    pins.tools.iter().filter(is_new).map(|(name, _)| name.clone()).collect()
}

/// The pins after `list` was seen.
fn compare(known: Option<ServerPins>, server: &str, list: &ToolList) -> ServerPins {
    let (asked, not_asked) = (list.with_elicitation == Some(true), list.with_elicitation == Some(false));
    let Some(mut pins) = known else {
        let pin = |tool: &ToolDefinition| (tool.name.clone(), Pin::new(Some(tool.clone())));
        let tools = list.tools.iter().map(pin).collect();
        let server = server.to_owned();
        let (with_elicitation, without_elicitation) = (asked, not_asked);
        return ServerPins { server, tools, damaged: None, with_elicitation, without_elicitation };
    };
    // The tools that only clients which may be asked are shown are pinned with their first list, as the others were
    // with theirs. Only if every list before was told of no user: what a server answers does not bring this about.
    let shows_more = pins.without_elicitation && asked;
    pins.with_elicitation |= asked;
    pins.without_elicitation &= not_asked;
    // A tool that this list lacks may be one that only clients which may be asked are shown.
    let is_whole = asked == pins.with_elicitation;
    let present: HashSet<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
    pins.tools.retain(|name, pin| {
        if present.contains(&**name) {
            return true;
        }
        if is_whole {
            pin.seen = Seen::Gone;
        }
        // A new tool that was removed again was never pinned, so it is no longer a difference. Of those that are kept
        // nevertheless there are as many as one list has: a server may list others each time.
        pin.pinned.is_some() || (!is_whole && pin.with_elicitation)
    });
    for tool in &list.tools {
        let new = || Pin::new(shows_more.then(|| tool.clone()));
        let pin = pins.tools.entry(tool.name.clone()).or_insert_with(new);
        let is_same =
            pin.pinned.as_ref().is_some_and(|pinned| differing_parts(pinned, tool).next().is_none());
        pin.seen = if is_same { Seen::AsPinned } else { Seen::Different(Box::new(tool.clone())) };
        pin.with_elicitation |= asked && pin.pinned.is_none();
    }
    pins
}

/// The parts in which two definitions of one tool differ. The order in which a server writes keys does not matter:
/// objects of serde_json are equal in any order. `_meta` is no part: neither models nor decisions depend on it, and
/// pins that were written before `_meta` was kept would all differ.
fn differing_parts(pinned: &ToolDefinition, current: &ToolDefinition) -> impl Iterator<Item = &'static str> {
    // All fields are named, so that a new one is not forgotten.
    let ToolDefinition { name: _, description, input_schema, output_schema, annotations, meta: _ } = pinned;
    let differences = [
        ("description", *description != current.description),
        ("inputSchema", !is_same_schema(input_schema, &current.input_schema)),
        (
            "outputSchema",
            match (output_schema, &current.output_schema) {
                (Some(pinned), Some(current)) => !is_same_schema(pinned, current),
                (pinned, current) => pinned.is_some() != current.is_some(),
            },
        ),
        ("annotations", *annotations != current.annotations),
    ];
    differences.into_iter().filter_map(|(part, differs)| differs.then_some(part))
}

/// Whether two schemas are the same apart from the order of their keys. Nearly all have the same text, and are not
/// parsed. Texts that differ and cannot be parsed are not the same.
fn is_same_schema(one: &Schema, other: &Schema) -> bool {
    let tree = |schema: &Schema| serde_json::from_str::<Value>(schema.text()).ok();
    one == other || tree(one).is_some_and(|one| tree(other).is_some_and(|other| one == other))
}

const PREFIX: &str = "pins-";

fn file_name(server: &str) -> String {
    files::hashed_name(PREFIX, server)
}

#[cfg(test)]
mod tests;
