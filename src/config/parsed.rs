//! The settings of one file, as they were read.

use std::time::Duration;

use super::clients::Client;
use super::entry::ServerEntry;
use super::expand::Text;
use super::limits::LimitSetting;
use crate::rate::RateLimit;

/// The settings other than servers.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) import: Option<Vec<&'static Client>>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Option<Vec<String>>,
    pub(super) ask: Option<Vec<String>>,
    pub(super) read_only: Option<Vec<String>>,
    pub(super) strict: Option<bool>,
    pub(super) elicitation: Option<bool>,
    /// Of several for one limit the last one counts.
    pub(super) limits: Vec<LimitSetting>,
    /// Resolution of the clocks that scripts can read.
    pub(super) clock_resolution: Option<Duration>,
    /// How many runs one client of a server over HTTP may have.
    pub(super) client_rate: Option<RateLimit>,
    /// Memory of all runs together, in bytes.
    pub(super) total_memory_bytes: Option<usize>,
    pub(super) cache_enabled: Option<bool>,
    pub(super) cache_directory: Option<Text>,
    /// Another file with servers.
    pub(super) servers_file: Option<Text>,
    pub(super) server_defaults: ServerDefaults,
    /// Maximum number of runs at the same time.
    pub(super) max_runs: Option<usize>,
}

/// What applies to servers that say nothing else.
#[derive(Debug, Default)]
pub(super) struct ServerDefaults {
    pub(super) call_timeout: Option<Duration>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) max_concurrent: Option<usize>,
    pub(super) max_queued: Option<usize>,
    pub(super) queue_timeout: Option<Duration>,
}

impl ServerDefaults {
    /// Sets what the entry does not say.
    pub(super) fn fill(&self, entry: &mut ServerEntry) {
        entry.call_timeout = entry.call_timeout.or(self.call_timeout);
        entry.connect_timeout = entry.connect_timeout.or(self.connect_timeout);
        entry.max_concurrent = entry.max_concurrent.or(self.max_concurrent);
        entry.max_queued = entry.max_queued.or(self.max_queued);
        entry.queue_timeout = entry.queue_timeout.or(self.queue_timeout);
    }
}
