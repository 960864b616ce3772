//! Applies another configuration while scripts run.

use std::fmt;
use std::time::SystemTime;

use super::core::Executor;
use super::settings::{Bounds, ConfigFailure, ConfigStatus, FromConfig, Settings, check_strict};
use crate::config::{Config, ConfigFileStatus};
use crate::error::Error;
use crate::mcp::McpServer;
#[cfg(feature = "http")]
use crate::rate::RateLimit;
use crate::tools::policy::Policy;
use crate::tools::unmatched::KnownNames;
use crate::tools::{ToolRules, UnmatchedPattern};

/// What [`Executor::reconfigure`] has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigChanges {
    /// The servers that are new.
    pub added: Vec<String>,
    /// The servers that are defined in another way than before. If only the rules of one differ, it
    /// keeps its connection.
    pub changed: Vec<String>,
    /// The servers that are gone.
    pub removed: Vec<String>,
    /// Servers of the configuration that are not used, because the embedder has added one of the
    /// same name itself.
    pub ignored: Vec<String>,
    /// Whether the rules about tools differ, those of servers aside.
    pub rules: bool,
    /// Whether limits, the bounds of all runs together, the resolution of clocks, the time zone,
    /// strict mode, the tools that clients see directly, or the files that wait for trust differ.
    pub settings: bool,
}

impl ConfigChanges {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for ConfigChanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (what, names) in [
            ("added", &self.added),
            ("changed", &self.changed),
            ("removed", &self.removed),
            ("ignored", &self.ignored),
        ] {
            if !names.is_empty() {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                parts.push(format!("servers {what}: {}", names.join(", ")));
            }
        }
        parts.extend(self.rules.then(|| "other rules".to_owned()));
        parts.extend(self.settings.then(|| "other settings".to_owned()));
        if parts.is_empty() {
            return formatter.write_str("nothing has changed");
        }
        formatter.write_str(&parts.join("; "))
    }
}

impl FromConfig {
    /// The parts of a configuration that can change later, and its servers.
    pub(super) fn new(config: Config) -> (Self, Vec<McpServer>) {
        let used = config
            .files
            .iter()
            .filter(|file| matches!(file.status, ConfigFileStatus::Used | ConfigFileStatus::Untrusted));
        let status = ConfigStatus {
            loaded: SystemTime::now(),
            files: used.map(|file| file.path.clone()).collect(),
            count: 1,
            needs_restart: Vec::new(),
            failure: None,
        };
        let from_config = Self {
            rules: config.rules,
            grants: config.grants,
            strict: config.strict,
            clock_resolution: config.clock_resolution,
            time_zone: config.time_zone,
            direct: config.direct,
            llm: Some(config.llm),
            untrusted: config.untrusted,
            skipped: config.skipped.into_iter().map(|server| server.name).collect(),
            max_runs: config.max_runs,
            total_memory_bytes: config.total_memory_bytes,
            client_rate: config.client_rate,
            isolation: config.isolation.clone(),
            fixed: vec![
                ("isolation", format!("{:?}", config.isolation)),
                ("tokensFile", format!("{:?}", config.tokens_file)),
                ("audit", format!("{:?}", config.audit)),
                ("cache", format!("{} {:?}", config.cache_enabled, config.cache_directory)),
            ],
            status: Some(status),
        };
        let interfaces = from_config.direct.interfaces;
        let mut servers = config.servers;
        servers.iter_mut().for_each(|server| server.interfaces = interfaces);
        (from_config, servers)
    }

    /// Both together, where a builder is given several configurations.
    pub(super) fn and(self, other: Self) -> Self {
        let mut status = other.status;
        if let (Some(status), Some(before)) = (&mut status, self.status) {
            status.files.splice(0..0, before.files);
        }
        Self {
            rules: self.rules.and(other.rules),
            grants: self.grants.and(other.grants),
            strict: self.strict || other.strict,
            clock_resolution: other.clock_resolution.or(self.clock_resolution),
            time_zone: other.time_zone.or(self.time_zone),
            max_runs: other.max_runs.or(self.max_runs),
            total_memory_bytes: other.total_memory_bytes.or(self.total_memory_bytes),
            client_rate: other.client_rate.or(self.client_rate),
            direct: other.direct.and(&self.direct),
            llm: other.llm.or(self.llm),
            untrusted: self.untrusted.into_iter().chain(other.untrusted).collect(),
            skipped: self.skipped.into_iter().chain(other.skipped).collect(),
            isolation: other.isolation.or(self.isolation),
            fixed: other.fixed,
            status,
        }
    }
}

impl Executor {
    /// Replaces the configuration that the executor was [built with](crate::ExecutorBuilder::config),
    /// or the last one that was applied here, while scripts run. Returns what has changed. If there
    /// is an error, nothing has.
    ///
    /// Whatever the embedder has set itself stays: the rules, servers and tools of the builder and
    /// those added later. The configuration's rules restrict further, and a server of the
    /// configuration is ignored if the embedder has one of that name. The limits are those of the
    /// configuration.
    ///
    /// * Runs that start later get the new configuration.
    /// * Runs in flight are restricted at once, and gain nothing: from their next call on, a tool
    ///   must be permitted by the rules that the run started with and by the new ones, a call needs
    ///   approval if either says so, and a tool is read-only only if both say so. Where the maximum of
    ///   a limit ([`Config::max_limits`]) is lower than before, it counts for them too: one that has
    ///   had more time, CPU time, fuel or memory already is stopped within some milliseconds; calls in
    ///   flight beyond `calls_in_flight` go on. A run that started without a limit of `fuel` has none,
    ///   because its code counts none, and `source_bytes` stays that of its start.
    /// * A server that is defined as before keeps its connection; so does one with other rules only.
    ///   Of a removed or changed server, calls in flight are completed. Later calls of runs in
    ///   flight go to the new definition, or fail with
    ///   [`ToolNotFound`](crate::ToolErrorCode::ToolNotFound) if there is none. The old connection is
    ///   shut down when the last run that started before the change has ended.
    /// * A new server is started when a script first needs it.
    /// * The maximum number of runs and the memory of all runs count at once. If they are less than
    ///   what runs in flight have, further runs wait until enough of those have ended.
    /// * The cache directory is that of the start: [`ConfigStatus::needs_restart`].
    ///
    /// Clients of a [`Server`](crate::server::Server) are told if the list of tools that they see
    /// has changed.
    ///
    /// # Errors
    ///
    /// As [`ExecutorBuilder::build`](crate::ExecutorBuilder::build); [`Error::Closed`] if the
    /// executor is closed. [`config_status`](Self::config_status) then reports the failure.
    pub fn reconfigure(&self, config: Config) -> Result<ConfigChanges, Error> {
        let result = self.apply(config);
        if let Err(error) = &result {
            self.report_config_failure(error.to_string());
        }
        result
    }

    fn apply(&self, config: Config) -> Result<ConfigChanges, Error> {
        let inner = &self.inner;
        let (limits, max_limits) = (config.limits, config.max_limits);
        let (mut from_config, servers) = FromConfig::new(config);
        let settings = Settings::new(limits, max_limits, &inner.own, &from_config)?;
        let bounds = Bounds::new(limits.memory_bytes, &inner.own, &from_config)?;
        bounds.memory.check(limits.memory_bytes)?;
        let strict = inner.own.strict || from_config.strict;
        check_strict(strict, inner.server_options.has_state_directory())?;
        let policy = Policy::new(&inner.own.rules.clone().and(from_config.rules.clone()))?;
        // One configuration at a time.
        let mut before = inner.config.lock();
        let set = inner.servers.write();
        if inner.closed.is_cancelled() {
            return Err(Error::Closed);
        }
        let hint = settings.untrusted_hint.clone();
        let (changed, servers) = set.reconfigured(servers, policy, strict, hint, &inner.server_options);
        let mut changes = ConfigChanges {
            added: servers.added,
            changed: servers.changed,
            removed: servers.removed,
            ignored: servers.ignored,
            rules: before.rules != from_config.rules,
            settings: before.strict != from_config.strict || before.client_rate != from_config.client_rate,
        };
        {
            let mut current = inner.settings.write();
            changes.settings |= *current != settings;
            let max_limits = settings.max_limits;
            *current = settings;
            // After the settings: a run that starts now has followed it since before it read them.
            inner.max_limits.send_replace(max_limits);
        }
        let stats = inner.admission.stats();
        changes.settings |= (stats.max_running, stats.max_memory_bytes) != (bounds.runs, bounds.memory.bytes);
        inner.admission.set_bounds(bounds.runs, bounds.memory);
        // Without a change the version stays, so that receivers are not notified.
        if changes.is_empty() {
            drop(set);
        } else {
            self.publish(set, changed);
        }
        from_config.follow(&before);
        *before = from_config;
        Ok(changes)
    }

    /// The rate of each client that the configuration in force sets.
    #[cfg(feature = "http")]
    pub(crate) fn configured_client_rate(&self) -> Option<RateLimit> {
        self.inner.config.lock().client_rate
    }

    /// The configuration in force; `None` if the executor was built without one.
    pub fn config_status(&self) -> Option<ConfigStatus> {
        self.inner.config.lock().status.clone()
    }

    /// Reports in [`config_status`](Self::config_status), and in the tool `health` of a
    /// [`Server`](crate::server::Server), that a newer configuration cannot be loaded and that the
    /// last one stays in force. [`reconfigure`](Self::reconfigure) reports its own failures. Returns
    /// whether this failure was not reported yet.
    pub fn report_config_failure(&self, message: impl Into<String>) -> bool {
        let message = message.into();
        let mut config = self.inner.config.lock();
        let Some(status) = &mut config.status else { return false };
        if status.failure.as_ref().is_some_and(|failure| failure.message == message) {
            return false;
        }
        status.failure = Some(ConfigFailure { since: SystemTime::now(), message });
        true
    }

    /// The patterns of all rules that match no tool, as far as tools are known without asking any
    /// server. At most 50. Reads files.
    pub fn unmatched_patterns(&self) -> Vec<UnmatchedPattern> {
        self.servers().tools.policy.unmatched(&self.matched_names())
    }

    /// As [`unmatched_patterns`](Self::unmatched_patterns), for the rules of a script in place of the executor's.
    /// Before a run less may be known than after it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPattern`] if one of them is no pattern.
    pub fn unmatched_patterns_of(&self, rules: &ToolRules) -> Result<Vec<UnmatchedPattern>, Error> {
        Ok(Policy::new(rules)?.unmatched(&self.matched_names()))
    }

    /// The names that patterns can match, as far as they are known without asking any server.
    fn matched_names(&self) -> KnownNames {
        let servers = self.servers();
        let skipped = self.inner.config.lock().skipped.clone();
        let mut known = KnownNames { servers: servers.tools.catalog.known_names(), skipped };
        // A server that is connected is known better than by a cached list.
        for server in servers.upstream() {
            let Some(list) = server.connection.known_tools(server.name()) else { continue };
            if let Some(known) = known.servers.iter_mut().find(|known| *known.name == *server.name()) {
                known.tools = Some(list.tools.iter().map(|tool| tool.name.as_str().into()).collect());
            }
        }
        known
    }
}
