//! Records which tools runs called, and which of them together, for search to learn from. Only names and counts are
//! stored; never arguments, results, scripts or times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::delayed_save::DelayedSave;
use super::search::Learned;
use crate::storage::files::Store;

/// Incremented when the file's format changes.
const VERSION: u32 = 1;

const FILE: &str = "tool-use";

/// Maximum number of tools. Beyond it, the tool that the fewest runs called is dropped.
const MAX_TOOLS: usize = 512;

/// Maximum number of recorded tools of one run, in the order of their names. A run that calls more does not show which
/// belong together.
const MAX_TOOLS_OF_RUN: usize = 16;

/// Maximum number of other tools that are recorded with a tool.
const MAX_TOGETHER: usize = 16;

/// Maximum bytes of a server's and of a tool's name. Longer ones are not stored.
const MAX_NAME: usize = 256;

/// At this many runs of a tool all counts are halved, so that newer runs count more.
const MANY_RUNS: u32 = 1_000;

/// Maximum number of runs that wait to be stored.
const MAX_UNSAVED: usize = 256;

/// Minimum number of runs that called a pair of tools together. One may be chance.
const MIN_TOGETHER: u32 = 2;

/// Added to a tool's number of runs before shares are computed, so that few runs have less weight than many.
const DOUBT: f32 = 2.0;

/// A server's name and a tool's.
type Name = (String, String);

/// The tools that the runs of one executor called, shared with other processes through a directory if
/// there is one.
#[derive(Debug, Default)]
pub(crate) struct ToolUse {
    store: Option<Store>,
    /// Whether runs are recorded and earlier records used.
    is_on: bool,
    known: Mutex<RunCounts>,
    /// How often `known` has changed.
    changes: AtomicU64,
    delayed_save: DelayedSave,
}

#[derive(Debug, Default)]
struct RunCounts {
    /// Whether the file has been read.
    is_read: bool,
    counts: Counts,
    /// The tools of the runs that are not on disk yet, oldest first.
    unsaved: VecDeque<Vec<Name>>,
}

/// How many runs called each tool.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counts(BTreeMap<Name, Used>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Used {
    runs: u32,
    /// How many of these runs called each other tool too.
    together: BTreeMap<Name, u32>,
}

/// One tool in the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    server: String,
    tool: String,
    runs: u32,
    together: Vec<(String, String, u32)>,
}

impl ToolUse {
    /// A record that is kept in `store`, or in memory only. If `is_on` is false it stays empty, and stored records can
    /// only be deleted.
    pub(crate) fn new(store: Option<Store>, is_on: bool) -> Self {
        Self { store, is_on, ..Self::default() }
    }

    /// Records that one run called these tools, each as server and tool. Returns whether there is
    /// anything new to save.
    pub(crate) fn record<'a>(&self, called: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
        if !self.is_on {
            return false;
        }
        let is_short = |(server, tool): &(&str, &str)| server.len() <= MAX_NAME && tool.len() <= MAX_NAME;
        let called: BTreeSet<(&str, &str)> = called.filter(is_short).collect();
        let run: Vec<Name> = called
            .into_iter()
            .take(MAX_TOOLS_OF_RUN)
            .map(|(server, tool)| (server.to_owned(), tool.to_owned()))
            .collect();
        if run.is_empty() {
            return false;
        }
        let mut known = self.known.lock();
        known.counts.add(&run);
        if self.store.is_some() {
            if known.unsaved.len() == MAX_UNSAVED {
                known.unsaved.pop_front();
            }
            known.unsaved.push_back(run);
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Number of changes of the record: [`ToolUse::learned`] returns the same for the same number.
    pub(crate) fn changes(&self) -> u64 {
        self.read();
        self.changes.load(Ordering::Relaxed)
    }

    /// The records about the tools for which `position` returns a position.
    pub(crate) fn learned(&self, position: impl Fn(&str, &str) -> Option<usize>) -> Learned {
        self.read();
        let counts = self.known.lock().counts.clone();
        let position = |(server, tool): &Name| position(server, tool).map(|position| position as u32);
        let most = counts.0.values().map(|used| used.runs).max().unwrap_or(0);
        let mut learned = Learned::default();
        for (name, used) in &counts.0 {
            let Some(own) = position(name) else { continue };
            learned.popularity.push((own, (used.runs as f32).ln_1p() / (most as f32).ln_1p()));
            let together = used.together.iter().filter(|(_, runs)| **runs >= MIN_TOGETHER);
            let together: Vec<(u32, f32)> = together
                .filter_map(|(other, &runs)| {
                    Some((position(other)?, runs as f32 / (used.runs as f32 + DOUBT)))
                })
                .collect();
            if !together.is_empty() {
                learned.together.insert(own as usize, together);
            }
        }
        learned.popularity.sort_by(|a, b| b.1.total_cmp(&a.1));
        learned
    }

    /// Reads what is stored, once.
    fn read(&self) {
        let Some(store) = self.store.as_ref().filter(|_| self.is_on) else { return };
        let mut known = self.known.lock();
        if known.is_read {
            return;
        }
        known.is_read = true;
        // Unreadable records are replaced at the next save.
        let stored: Option<Vec<Entry>> = store.read(FILE, VERSION).ok().flatten();
        let mut counts = Counts::from_entries(stored.unwrap_or_default());
        known.unsaved.iter().for_each(|run| counts.add(run));
        known.counts = counts;
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the runs that are not stored yet to the stored ones. Blocks. A failed write is retried at
    /// the next save.
    pub(crate) fn save(&self) {
        let Some(store) = &self.store else { return };
        // The lock is not held during disk access.
        let unsaved = std::mem::take(&mut self.known.lock().unsaved);
        if unsaved.is_empty() {
            return;
        }
        let saved = store.update(FILE, VERSION, |stored: Option<Vec<Entry>>| {
            let mut counts = Counts::from_entries(stored.unwrap_or_default());
            unsaved.iter().for_each(|run| counts.add(run));
            (counts.entries(), counts)
        });
        let mut known = self.known.lock();
        match saved {
            Ok(mut counts) => {
                known.unsaved.iter().for_each(|run| counts.add(run));
                known.counts = counts;
                known.is_read = true;
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::warn!(%error, "which tools are used cannot be stored");
                let room = MAX_UNSAVED.saturating_sub(known.unsaved.len());
                for run in unsaved.into_iter().rev().take(room) {
                    known.unsaved.push_front(run);
                }
            }
        }
    }

    /// Saves soon, so that runs until then are written together. Does nothing without a runtime.
    pub(crate) fn save_soon(self: &Arc<Self>, runtime: Option<&Handle>) {
        let Some(runtime) = runtime.filter(|_| self.store.is_some()) else { return };
        let tool_use = Arc::clone(self);
        self.delayed_save.schedule(runtime, "records of used tools", move || tool_use.save());
    }

    /// Deletes everything, in memory and on disk. Returns the number of files removed.
    pub(crate) fn clear(&self) -> std::io::Result<usize> {
        *self.known.lock() = RunCounts::default();
        self.changes.fetch_add(1, Ordering::Relaxed);
        let Some(store) = &self.store else { return Ok(0) };
        store.remove_all(FILE)
    }
}

impl Counts {
    fn add(&mut self, run: &[Name]) {
        for name in run {
            let used = self.0.entry(name.clone()).or_default();
            used.runs += 1;
            for other in run.iter().filter(|other| *other != name) {
                *used.together.entry(other.clone()).or_default() += 1;
            }
            // There is at most one run's number of tools above the bound.
            while used.together.len() > MAX_TOGETHER {
                let least = used.together.iter().min_by_key(|(_, runs)| **runs);
                let Some(least) = least.map(|(name, _)| name.clone()) else { break };
                used.together.remove(&least);
            }
        }
        if self.0.values().any(|used| used.runs >= MANY_RUNS) {
            self.halve();
        }
        while self.0.len() > MAX_TOOLS {
            // The tools of this run stay; otherwise no new tool could ever be added.
            let others = self.0.iter().filter(|(name, _)| !run.contains(name));
            let Some(least) = others.min_by_key(|(_, used)| used.runs).map(|(name, _)| name.clone()) else {
                break;
            };
            self.0.remove(&least);
        }
    }

    fn halve(&mut self) {
        for used in self.0.values_mut() {
            used.runs /= 2;
            used.together.values_mut().for_each(|runs| *runs /= 2);
            used.together.retain(|_, runs| *runs > 0);
        }
        self.0.retain(|_, used| used.runs > 0);
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |((server, tool), used): (&Name, &Used)| Entry {
            server: server.clone(),
            tool: tool.clone(),
            runs: used.runs,
            together: used
                .together
                .iter()
                .map(|((server, tool), runs)| (server.clone(), tool.clone(), *runs))
                .collect(),
        };
        self.0.iter().map(entry).collect()
    }

    /// Reads entries of a file that another version or another program may have written.
    fn from_entries(entries: Vec<Entry>) -> Self {
        let used = entries.into_iter().take(MAX_TOOLS).map(|entry| {
            let together = entry.together.into_iter().take(MAX_TOGETHER);
            let together = together.map(|(server, tool, runs)| ((server, tool), runs.min(MANY_RUNS)));
            let used = Used { runs: entry.runs.clamp(1, MANY_RUNS), together: together.collect() };
            ((entry.server, entry.tool), used)
        });
        Self(used.collect())
    }
}

#[cfg(test)]
mod tests;
