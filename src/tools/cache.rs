//! Cache of tool lists on disk, so that a new process knows the tools of servers that it has not
//! started.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::dispatch::{ToolDefinition, ToolList};
use crate::durations::milliseconds;
use crate::storage::files::{Store, digest_name};

/// Incremented when [`Document`] changes.
const VERSION: u32 = 1;

/// How long a list is valid if its server does not specify it.
const DEFAULT_TTL: Duration = Duration::from_hours(24);

/// The lists of all servers, one file each.
#[derive(Clone, Debug)]
pub(crate) struct ListCache {
    store: Store,
}

/// A list and the time when it was fetched.
#[derive(Clone, Debug)]
pub(crate) struct CachedList {
    pub(crate) list: Arc<ToolList>,
    pub(crate) fetched_at: SystemTime,
}

#[derive(Serialize, Deserialize)]
struct Document {
    server: String,
    fetched_at_ms: u64,
    ttl_ms: Option<u64>,
    tools: Vec<ToolDefinition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// As [`ToolList::with_elicitation`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    with_elicitation: Option<bool>,
}

impl Document {
    /// Whether this list stays although `newer` was fetched: that of a client which may not be asked, whose tools are
    /// all here as they are. Otherwise each `cx run` of a program would take tools from the clients with a user. No
    /// longer than a day, whatever its server says: a tool that is gone looks like one that such a client is not shown.
    fn outlasts(&self, newer: &Self, now_ms: u64) -> bool {
        let ttl = self.ttl_ms.map_or(DEFAULT_TTL, Duration::from_millis).min(DEFAULT_TTL);
        let age = now_ms.checked_sub(self.fetched_at_ms).map(Duration::from_millis);
        let is_longer = self.with_elicitation == Some(true) && newer.with_elicitation == Some(false);
        if !is_longer || age.is_none_or(|age| age >= ttl) {
            return false;
        }
        let known: HashMap<&str, &ToolDefinition> =
            self.tools.iter().map(|tool| (&*tool.name, tool)).collect();
        newer.tools.iter().all(|tool| known.get(&*tool.name).is_some_and(|known| *known == tool))
    }
}

impl CachedList {
    /// Whether the list is still valid. A list with a time in the future is not: the clock was set back.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        let ttl = self.list.ttl.unwrap_or(DEFAULT_TTL);
        now.duration_since(self.fetched_at).is_ok_and(|age| age < ttl)
    }
}

impl ListCache {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Reads the list of the server with this identity. Blocks on disk.
    pub(crate) fn load(&self, identity: &str) -> Option<CachedList> {
        let document: Document = match self.store.read(&file_name(identity), VERSION) {
            Ok(document) => document?,
            Err(error) => {
                tracing::warn!(%error, "a cached list of tools cannot be read");
                return None;
            }
        };
        Some(CachedList {
            list: Arc::new(ToolList {
                tools: document.tools,
                ttl: document.ttl_ms.map(Duration::from_millis),
                problem: document.problem,
                with_elicitation: document.with_elicitation,
            }),
            // A time that the system cannot represent is in a damaged file, whose list is as old as can be.
            fetched_at: UNIX_EPOCH
                .checked_add(Duration::from_millis(document.fetched_at_ms))
                .unwrap_or(UNIX_EPOCH),
        })
    }

    /// Stores a list that was just fetched. Blocks on disk. A failed write only causes a warning,
    /// because this process still has the list.
    pub(crate) fn save(&self, identity: &str, server: &str, list: &ToolList, fetched_at: SystemTime) {
        let now_ms = milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let document = Document {
            server: server.to_owned(),
            fetched_at_ms: milliseconds(fetched_at.duration_since(UNIX_EPOCH).unwrap_or_default()),
            ttl_ms: list.ttl.map(milliseconds),
            tools: list.tools.clone(),
            problem: list.problem.clone(),
            with_elicitation: list.with_elicitation,
        };
        let newer = |old: Option<Document>| match old {
            // Another process has stored a newer list. A time in the future comes from a wrong clock and does not
            // count.
            Some(old) if (document.fetched_at_ms + 1..=now_ms).contains(&old.fetched_at_ms) => (old, ()),
            Some(old) if old.outlasts(&document, now_ms) => (old, ()),
            _ => (document, ()),
        };
        if let Err(error) = self.store.update(&file_name(identity), VERSION, newer) {
            tracing::warn!(server, %error, "a list of tools cannot be stored");
        }
    }

    /// Deletes all lists and returns how many there were.
    pub(crate) fn clear(&self) -> std::io::Result<usize> {
        self.store.remove_all(PREFIX)
    }
}

const PREFIX: &str = "tools-";

fn file_name(identity: &str) -> String {
    digest_name(PREFIX, identity)
}

#[cfg(test)]
mod tests;
