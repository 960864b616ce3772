//! Store of inferred output schemas: the shapes of results of tools without an output schema.
//! Values are never stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::delayed_save::DelayedSave;
use super::shape::Shape;
use crate::storage::files::{Store, digest_name};

/// Incremented when the file's format changes.
const VERSION: u32 = 1;

/// Maximum number of results that a shape is inferred from. Further results are ignored: they seldom add anything.
const MAX_RESULTS: u64 = 1_000;

/// Maximum number of tools of one server with a shape, the same as the bound of its list. A server can list different
/// tools each time.
const MAX_TOOLS: usize = 10_000;

/// The shapes of one executor's tools, shared with other processes through a directory if there is
/// one.
#[derive(Debug, Default)]
pub(crate) struct InferredSchemas {
    store: Option<Store>,
    servers: Mutex<HashMap<Arc<str>, ServerShapes>>,
    delayed_save: DelayedSave,
}

/// The shapes of one server's tools.
#[derive(Debug, Default)]
struct ServerShapes {
    /// The file's name; `None` if the shapes are not stored.
    file: Option<String>,
    tools: BTreeMap<String, ToolShapes>,
}

#[derive(Debug, Default)]
struct ToolShapes {
    /// The complete shape.
    known: Option<Shape>,
    /// The part of it that is not on disk yet.
    unsaved: Option<Shape>,
}

impl InferredSchemas {
    pub(crate) fn new(store: Option<Store>) -> Self {
        Self { store, ..Self::default() }
    }

    /// Whether the shape of another result of the tool should be recorded.
    pub(crate) fn wants(&self, server: &Arc<str>, identity: Option<&str>, tool: &str) -> bool {
        let mut servers = self.servers.lock();
        let tools = &self.server(&mut servers, server, identity).tools;
        match tools.get(tool) {
            Some(tool) => tool.known.as_ref().is_none_or(|known| known.calls() < MAX_RESULTS),
            None => tools.len() < MAX_TOOLS,
        }
    }

    /// Records the shape of a result. Returns whether that changed anything except a count, so that
    /// an [`InferredSchemas::save`] is worthwhile.
    pub(crate) fn record(&self, server: &Arc<str>, identity: Option<&str>, tool: &str, shape: Shape) -> bool {
        let mut servers = self.servers.lock();
        let shapes = self.server(&mut servers, server, identity);
        if shapes.tools.len() >= MAX_TOOLS && !shapes.tools.contains_key(tool) {
            return false;
        }
        let tool = match shapes.tools.get_mut(tool) {
            Some(tool) => tool,
            None => shapes.tools.entry(tool.to_owned()).or_default(),
        };
        merge(&mut tool.unsaved, shape.clone());
        merge(&mut tool.known, shape)
    }

    /// The inferred shape of the tool's results; `None` if it was never called.
    pub(crate) fn shape(&self, server: &Arc<str>, identity: Option<&str>, tool: &str) -> Option<Shape> {
        let mut servers = self.servers.lock();
        self.server(&mut servers, server, identity).tools.get(tool)?.known.clone()
    }

    /// The server's shapes, read from disk on first use.
    fn server<'a>(
        &self,
        servers: &'a mut HashMap<Arc<str>, ServerShapes>,
        server: &Arc<str>,
        identity: Option<&str>,
    ) -> &'a mut ServerShapes {
        servers.entry(Arc::clone(server)).or_insert_with(|| {
            let Some((store, identity)) = self.store.as_ref().zip(identity) else {
                return ServerShapes::default();
            };
            let file = file_name(identity);
            let tools = read(store, &file)
                .into_iter()
                .map(|(tool, shape)| (tool, ToolShapes { known: Some(shape), unsaved: None }))
                .collect();
            ServerShapes { file: Some(file), tools }
        })
    }

    /// Merges unsaved shapes into those on disk. Blocks. A failed write is retried at the next
    /// save.
    pub(crate) fn save(&self) {
        let Some(store) = &self.store else { return };
        // The lock is not held during disk access.
        let mut unsaved: Vec<(Arc<str>, String, BTreeMap<String, Shape>)> = Vec::new();
        for (server, shapes) in self.servers.lock().iter_mut() {
            let Some(file) = shapes.file.clone() else { continue };
            let new: BTreeMap<String, Shape> = shapes
                .tools
                .iter_mut()
                .filter_map(|(name, tool)| Some((name.clone(), tool.unsaved.take()?)))
                .collect();
            if !new.is_empty() {
                unsaved.push((Arc::clone(server), file, new));
            }
        }
        for (server, file, new) in unsaved {
            let again = new.clone();
            let added = store.update(&file, VERSION, |known: Option<BTreeMap<String, Shape>>| {
                let mut tools = known.unwrap_or_default();
                for (name, shape) in new {
                    match tools.get_mut(&name) {
                        Some(known) => {
                            known.merge(shape);
                        }
                        None => {
                            // Other processes may have recorded other tools.
                            if tools.len() < MAX_TOOLS {
                                tools.insert(name, shape);
                            }
                        }
                    }
                }
                (tools, ())
            });
            if let Err(error) = added {
                tracing::warn!(%error, "inferred output schemas cannot be stored");
                let mut servers = self.servers.lock();
                // They may have been cleared meanwhile. Made again here, they would have no file.
                let Some(shapes) = servers.get_mut(&server) else { continue };
                for (name, shape) in again {
                    merge(&mut shapes.tools.entry(name).or_default().unsaved, shape);
                }
            }
        }
    }

    /// Saves soon, so that changes until then are written together. Does nothing without a runtime.
    pub(crate) fn save_soon(self: &Arc<Self>, runtime: Option<&Handle>) {
        let Some(runtime) = runtime.filter(|_| self.store.is_some()) else { return };
        let inferred = Arc::clone(self);
        self.delayed_save.schedule(runtime, "inferred output schemas", move || inferred.save());
    }

    /// Deletes all shapes, in memory and on disk. Returns the number of servers with shapes on
    /// disk.
    pub(crate) fn clear(&self) -> std::io::Result<usize> {
        self.servers.lock().clear();
        let Some(store) = &self.store else { return Ok(0) };
        store.remove_all(PREFIX)
    }
}

/// Merges a shape. Returns whether anything except a count is new.
fn merge(known: &mut Option<Shape>, shape: Shape) -> bool {
    match known {
        Some(known) => known.merge(shape),
        None => {
            *known = Some(shape);
            true
        }
    }
}

fn read(store: &Store, file: &str) -> BTreeMap<String, Shape> {
    store.read(file, VERSION).ok().flatten().unwrap_or_default()
}

const PREFIX: &str = "shapes-";

fn file_name(identity: &str) -> String {
    digest_name(PREFIX, identity)
}

#[cfg(test)]
mod tests;
