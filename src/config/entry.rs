//! One server's entry in a file, whatever the file's format, before references in it are expanded.

use std::time::Duration;

use super::error::{Finding, Key, Location};
use super::expand::Text;
use crate::mcp::HttpKind;
use crate::rate::RateLimit;
use crate::tools::PrivateAddresses;
use crate::tools::rules::ToolRules;

/// Ten minutes: enough to build a container image. Users do not wait longer for a server to start.
pub(super) const MAX_CONNECT_TIME: Duration = Duration::from_secs(10 * 60);

/// The longest wall-clock time of a run: no call waits for longer.
pub(super) const MAX_QUEUE_TIME: Duration = Duration::from_secs(10 * 60);

/// The maximum number of calls that one run may have in flight.
pub(super) const MAX_CALLS: u64 = 1_024;

/// A server's entry.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerEntry {
    pub(super) name: String,
    pub(super) key: Key,
    pub(super) location: Option<Location>,
    pub(super) description: Option<String>,
    pub(super) enabled: Option<bool>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Vec<String>,
    pub(super) ask: Vec<String>,
    pub(super) read_only: Option<Vec<String>>,
    pub(super) private_addresses: Option<PrivateAddresses>,
    /// `None` for an entry that only restricts a server from another file.
    pub(super) target: Option<Target>,
    pub(super) call_timeout: Option<Duration>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) max_concurrent: Option<usize>,
    pub(super) max_queued: Option<usize>,
    pub(super) queue_timeout: Option<Duration>,
    pub(super) rate_limit: Option<RateLimit>,
    pub(super) elicitation: Option<bool>,
    pub(super) roots: Vec<Text>,
}

impl ServerEntry {
    /// The rules about the server's tools.
    pub(super) fn rules(&self) -> ToolRules {
        let rules = ToolRules::new().deny(self.deny.clone()).ask(self.ask.clone());
        let rules = self.allow.iter().cloned().fold(rules, ToolRules::allow);
        let mut rules = self.read_only.iter().cloned().fold(rules, ToolRules::read_only);
        rules.private_addresses = self.private_addresses.unwrap_or_default();
        rules
    }

    /// The mistake of an entry without a target where one is needed.
    pub(super) fn without_target(&self) -> Finding {
        let expected = "an object with the key `command` or `url`";
        Finding::unexpected(&self.key, self.location, expected, "an object without it")
    }

    /// Whether the entry can restrict a server from another file.
    pub(super) fn restricts(&self) -> bool {
        self.enabled.is_some()
            || self.allow.is_some()
            || self.read_only.is_some()
            || self.private_addresses.is_some()
            || self.elicitation.is_some()
            || !self.deny.is_empty()
            || !self.ask.is_empty()
    }
}

/// The transport of a server.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Stdio(StdioTarget),
    Http(HttpTarget),
}

/// A program to start.
#[derive(Clone, Debug)]
pub(super) struct StdioTarget {
    pub(super) command: Text,
    pub(super) args: Vec<Text>,
    pub(super) env: Vec<(String, Text)>,
    pub(super) cwd: Option<Text>,
}

/// A URL to connect to.
#[derive(Clone, Debug)]
pub(super) struct HttpTarget {
    pub(super) url: Text,
    pub(super) headers: Vec<(String, Text)>,
    pub(super) kind: HttpKind,
    pub(super) oauth: Option<Box<OAuthEntry>>,
}

/// The `oauth` section.
#[derive(Clone, Debug, Default)]
pub(super) struct OAuthEntry {
    pub(super) client_id: Option<Text>,
    pub(super) client_metadata_url: Option<Text>,
    pub(super) client_secret: Option<Text>,
    pub(super) private_key: Option<Text>,
    pub(super) assertion_file: Option<Text>,
    pub(super) identity_provider: Option<Text>,
    pub(super) identity_client_id: Option<Text>,
    pub(super) identity_client_secret: Option<Text>,
    pub(super) id_token_file: Option<Text>,
    pub(super) issuer: Option<Text>,
    pub(super) scopes: Vec<String>,
    pub(super) client_credentials: bool,
}
