//! What tools without an output schema were seen to return: the shape, never the values.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::shape::Shape;
use crate::storage::files::Store;

/// Grows when the file's format changes.
const VERSION: u32 = 1;

/// A shape that so many results have made is not looked at for every result any more.
const ENOUGH: u64 = 1_000;

/// How long what is new waits for more of it before it is written.
const SAVE_PAUSE: Duration = Duration::from_secs(2);

/// The shapes of one executor's tools, shared with other processes through a directory if there is
/// one.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    store: Option<Store>,
    servers: Mutex<HashMap<Arc<str>, ServerShapes>>,
    /// Whether a save is on its way.
    is_saving: AtomicBool,
}

/// One server's shapes.
#[derive(Debug, Default)]
struct ServerShapes {
    /// The file's name, if they are kept.
    file: Option<String>,
    tools: BTreeMap<String, ToolShapes>,
}

#[derive(Debug, Default)]
struct ToolShapes {
    /// Everything that is known.
    known: Option<Shape>,
    /// The part of it that is not on disk yet.
    unsaved: Option<Shape>,
}

impl Observed {
    pub(crate) fn new(store: Option<Store>) -> Self {
        Self { store, servers: Mutex::default(), is_saving: AtomicBool::new(false) }
    }

    /// Whether another result of the tool is worth looking at.
    pub(crate) fn wants(&self, server: &Arc<str>, identity: Option<&str>, tool: &str) -> bool {
        let mut servers = self.servers.lock();
        let known = self.server(&mut servers, server, identity).tools.get(tool);
        known.and_then(|tool| tool.known.as_ref()).is_none_or(|known| known.calls() < ENOUGH)
    }

    /// Takes note of a result's shape. Returns whether that is worth a [`Observed::save`]: the shape is new
    /// in some way.
    pub(crate) fn record(&self, server: &Arc<str>, identity: Option<&str>, tool: &str, shape: Shape) -> bool {
        let mut servers = self.servers.lock();
        let shapes = self.server(&mut servers, server, identity);
        let tool = match shapes.tools.get_mut(tool) {
            Some(tool) => tool,
            None => shapes.tools.entry(tool.to_owned()).or_default(),
        };
        merge(&mut tool.unsaved, shape.clone());
        merge(&mut tool.known, shape)
    }

    /// What the tool was seen to return, if it was ever called.
    pub(crate) fn shape(&self, server: &Arc<str>, identity: Option<&str>, tool: &str) -> Option<Shape> {
        let mut servers = self.servers.lock();
        self.server(&mut servers, server, identity).tools.get(tool)?.known.clone()
    }

    /// The server's shapes, read from disk the first time.
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

    /// Adds what is new to what is on disk. Blocks. What cannot be written is tried again next time.
    pub(crate) fn save(&self) {
        let Some(store) = &self.store else { return };
        // The lock is not held while the disk is waited for.
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
                            tools.insert(name, shape);
                        }
                    }
                }
                (tools, ())
            });
            if let Err(error) = added {
                tracing::warn!(%error, "shapes of results cannot be kept");
                let mut servers = self.servers.lock();
                let shapes = servers.entry(server).or_default();
                for (name, shape) in again {
                    merge(&mut shapes.tools.entry(name).or_default().unsaved, shape);
                }
            }
        }
    }

    /// Saves in a moment, together with what is new until then.
    pub(crate) fn save_soon(self: &Arc<Self>, runtime: Option<&Handle>) {
        let Some(runtime) = runtime.filter(|_| self.store.is_some()) else { return };
        if self.is_saving.swap(true, Ordering::Relaxed) {
            return;
        }
        let observed = Arc::clone(self);
        // Ends by itself. If the runtime ends before, closing has saved.
        runtime.spawn(async move {
            tokio::time::sleep(SAVE_PAUSE).await;
            observed.is_saving.store(false, Ordering::Relaxed);
            let _runtime_ends = tokio::task::spawn_blocking(move || observed.save()).await;
        });
    }

    /// Forgets all shapes, here and on disk, and returns of how many servers there were any on disk.
    pub(crate) fn clear(&self) -> std::io::Result<usize> {
        self.servers.lock().clear();
        let Some(store) = &self.store else { return Ok(0) };
        let names: Vec<String> = store.names()?.into_iter().filter(|name| name.starts_with(PREFIX)).collect();
        for name in &names {
            store.remove(name)?;
        }
        Ok(names.len())
    }
}

/// Merges and returns whether anything but a count is new.
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
    format!("{PREFIX}{}", identity.get(..32).unwrap_or(identity))
}

#[cfg(test)]
mod tests;
