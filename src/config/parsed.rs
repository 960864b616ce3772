//! The settings of one file, as they were read.

use std::path::PathBuf;
use std::time::Duration;

use super::clients::Client;
use super::entry::ServerEntry;
use super::error::Finding;
use super::expand::Text;
use super::limits::LimitSetting;
use super::llm_settings::LlmSettings;
use super::sampling_settings::Sampling;
use crate::rate::RateLimit;
use crate::run::grants::HostPattern;
use crate::run::isolation::Isolation;
use crate::tools::{PrivateAddresses, ToolMode};

/// The settings other than servers.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) import: Option<Vec<&'static Client>>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Option<Vec<String>>,
    pub(super) ask: Option<Vec<String>>,
    pub(super) read_only: Option<Vec<String>>,
    pub(super) private_addresses: Option<PrivateAddresses>,
    pub(super) direct: Option<Vec<String>>,
    pub(super) mode: Option<ToolMode>,
    pub(super) interfaces: Option<bool>,
    pub(super) strict: Option<bool>,
    pub(super) elicitation: Option<bool>,
    pub(super) llm: LlmSettings,
    /// code-executor-mcp's settings of language models, until all of them were read.
    pub(super) sampling: Sampling,
    /// If one limit is set several times, the last value counts.
    pub(super) limits: Vec<LimitSetting>,
    pub(super) grants: GrantFields,
    /// Another program's setting that every readable directory is also writable, until the readable directories are
    /// known.
    pub(super) writes_as_reads: Option<Text>,
    /// Resolution of the clocks that scripts can read.
    pub(super) clock_resolution: Option<Duration>,
    /// The time zone of scripts that name none.
    pub(super) time_zone: Option<String>,
    /// Where scripts are executed.
    pub(super) isolation: Option<Isolation>,
    /// How many runs one client of a server over HTTP may have.
    pub(super) client_rate: Option<RateLimit>,
    /// A file with the tokens of tenants of a server over HTTP.
    pub(super) tokens_file: Option<PathBuf>,
    /// Memory of all runs together, in bytes.
    pub(super) total_memory_bytes: Option<usize>,
    pub(super) cache_enabled: Option<bool>,
    pub(super) cache_directory: Option<Text>,
    /// Where traces and metrics are exported to.
    pub(super) telemetry_endpoint: Option<Text>,
    /// Whether they have arguments and results of calls.
    pub(super) telemetry_content: Option<bool>,
    /// The audit trail, if the file says anything about it.
    pub(super) audit: Option<AuditFields>,
    /// The audit settings of another program.
    pub(super) foreign_audit: AuditFields,
    /// Another file with servers.
    pub(super) servers_file: Option<Text>,
    pub(super) server_defaults: ServerDefaults,
    /// Maximum number of runs at the same time.
    pub(super) max_runs: Option<usize>,
}

/// The grants of a file, before expansion.
#[derive(Debug, Default)]
pub(super) struct GrantFields {
    pub(super) read: Option<Vec<Text>>,
    pub(super) write: Option<Vec<Text>>,
    pub(super) net: Option<Vec<HostPattern>>,
}

impl GrantFields {
    /// Reads a host.
    pub(super) fn host(text: Text) -> Result<HostPattern, Finding> {
        text.raw.parse().map_err(|_invalid| {
            let expected = "a host such as `api.example.com`, `*.example.com:443` or `[2001:db8::1]:8080`";
            Finding::unexpected(&text.key, text.location, expected, "another text")
        })
    }
}

/// The audit settings of a file.
#[derive(Debug, Default)]
pub(super) struct AuditFields {
    pub(super) enabled: Option<bool>,
    pub(super) directory: Option<Text>,
    pub(super) required: Option<bool>,
    pub(super) contents: Option<bool>,
    pub(super) retention_days: Option<u32>,
}

/// Defaults for servers that do not set these values.
#[derive(Debug, Default)]
pub(super) struct ServerDefaults {
    pub(super) call_timeout: Option<Duration>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) max_concurrent: Option<usize>,
    pub(super) max_queued: Option<usize>,
    pub(super) queue_timeout: Option<Duration>,
}

impl ServerDefaults {
    /// Sets the values that the entry does not set.
    pub(super) fn fill(&self, entry: &mut ServerEntry) {
        entry.call_timeout = entry.call_timeout.or(self.call_timeout);
        entry.connect_timeout = entry.connect_timeout.or(self.connect_timeout);
        entry.max_concurrent = entry.max_concurrent.or(self.max_concurrent);
        entry.max_queued = entry.max_queued.or(self.max_queued);
        entry.queue_timeout = entry.queue_timeout.or(self.queue_timeout);
    }
}
