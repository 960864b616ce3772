//! The tools of an executor, and which of them are in force for a run.
//!
//! The configuration can change while scripts run. A run keeps the tools and rules that it started with, restricted by
//! those of the executor at the moment of each call. So a run never gains permissions, and loses revoked ones at its
//! next call.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::approval::{AskReason, Effects};
use super::catalog::Catalog;
use super::policy::Policy;
use super::private_addresses::PrivateAddresses;

/// The servers of an executor at one moment, and the policy for them. It is immutable; a change makes a new one.
#[derive(Clone)]
pub(crate) struct ToolSet {
    /// Increases with each change.
    pub(crate) version: u64,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) policy: Arc<Policy>,
    /// The servers of the configuration. Changes of the configuration apply to them also in runs in flight. All other
    /// servers stay as they were.
    pub(crate) configured: Arc<HashSet<Arc<str>>>,
}

/// The tools of one run.
pub(crate) struct RunTools {
    started: ToolSet,
    /// The script's own rules.
    script: Arc<Policy>,
    current: watch::Receiver<ToolSet>,
    in_force: Mutex<Arc<ToolsInForce>>,
}

/// What a run may use at one moment.
pub(crate) struct ToolsInForce {
    version: u64,
    pub(crate) catalog: Arc<Catalog>,
    started: Arc<Policy>,
    /// The executor's policy now, if it has changed since the run started.
    current: Option<Arc<Policy>>,
    script: Arc<Policy>,
}

impl RunTools {
    /// The tools of a run that starts with `started` and follows `current`.
    pub(crate) fn new(started: ToolSet, script: Policy, current: watch::Receiver<ToolSet>) -> Self {
        let script = Arc::new(script);
        let in_force = ToolsInForce {
            version: started.version,
            catalog: Arc::clone(&started.catalog),
            started: Arc::clone(&started.policy),
            current: None,
            script: Arc::clone(&script),
        };
        Self { started, script, current, in_force: Mutex::new(Arc::new(in_force)) }
    }

    /// The tools of a run that this run has called: it starts with the same tools as this one.
    pub(crate) fn for_nested(&self) -> Self {
        Self {
            started: self.started.clone(),
            script: Arc::clone(&self.script),
            current: self.current.clone(),
            in_force: Mutex::new(Arc::clone(&self.in_force.lock())),
        }
    }

    /// No tools, for tests of engines.
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        let set = ToolSet {
            version: 0,
            catalog: Arc::new(Catalog::new(&[], &super::catalog::CatalogOptions::default())),
            policy: Arc::default(),
            configured: Arc::default(),
        };
        // A closed channel keeps its last value.
        Self::new(set.clone(), Policy::default(), watch::Sender::new(set).subscribe())
    }

    /// What is in force now.
    pub(crate) fn now(&self) -> Arc<ToolsInForce> {
        let mut in_force = self.in_force.lock();
        let version = self.current.borrow().version;
        if in_force.version != version {
            *in_force = Arc::new(self.restricted());
        }
        Arc::clone(&in_force)
    }

    /// What the run started with, restricted by the executor's current tools.
    fn restricted(&self) -> ToolsInForce {
        let current = self.current.borrow().clone();
        let catalog = self.started.catalog.following(
            &current.catalog,
            |name| self.started.configured.contains(name),
            |name| current.configured.contains(name),
        );
        ToolsInForce {
            version: current.version,
            catalog: Arc::new(catalog),
            started: Arc::clone(&self.started.policy),
            current: Some(current.policy),
            script: Arc::clone(&self.script),
        }
    }
}

impl ToolsInForce {
    /// Whether both are the same, so that nothing has changed in between.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.version == other.version
    }

    pub(crate) fn permits(&self, server: &str, tool: &str) -> bool {
        self.policies().all(|policy| policy.permits(server, tool))
    }

    pub(crate) fn denies(&self, server: &str, tool: &str) -> bool {
        self.policies().any(|policy| policy.denies(server, tool))
    }

    /// The rule by which a tool is permitted, for records: `default` if no list restricts it.
    pub(crate) fn permitting_rule(&self, server: &str, tool: &str) -> Cow<'static, str> {
        let mut patterns: Vec<&str> =
            self.policies().flat_map(|policy| policy.allowing(server, tool)).collect();
        patterns.dedup();
        if patterns.is_empty() { "default".into() } else { format!("allow: {}", patterns.join(", ")).into() }
    }

    /// The rule of a deny list that names a tool, for records.
    pub(crate) fn denying_rule(&self, server: &str, tool: &str) -> Option<String> {
        let pattern = self.policies().find_map(|policy| policy.denying(server, tool));
        pattern.map(|pattern| format!("deny: {pattern}"))
    }

    /// The rule by which a tool is not permitted, for records. `None` if it is permitted.
    pub(crate) fn refusing_rule(&self, server: &str, tool: &str) -> Option<String> {
        self.denying_rule(server, tool)
            .or_else(|| (!self.permits(server, tool)).then(|| "allow: no pattern matches".to_owned()))
    }

    pub(crate) fn may_permit_server(&self, server: &str) -> bool {
        self.policies().all(|policy| policy.may_permit_server(server))
    }

    /// Whether any call may need approval.
    pub(crate) fn may_ask(&self) -> bool {
        self.policies().any(|policy| policy.may_ask())
    }

    /// Why a call needs an approval, or `None` if it needs none.
    pub(crate) fn asks(&self, server: &str, tool: &str, effects: Effects) -> Option<AskReason> {
        self.policies().find_map(|policy| policy.asks(server, tool, effects))
    }

    /// The treatment of calls of the server's tools that have private addresses in their arguments.
    pub(crate) fn private_addresses(&self, server: &str) -> PrivateAddresses {
        self.policies().map(|policy| policy.private_addresses(server)).max().unwrap_or_default()
    }

    /// The effects of a call, corrected by the configuration. A tool is read-only by the configuration only if it was
    /// so when the run started and still is.
    pub(crate) fn effects(&self, server: &str, tool: &str, effects: Effects) -> Effects {
        let started = self.started.effects(server, tool, effects);
        let current = self.current.as_ref().map(|policy| policy.effects(server, tool, effects));
        let both = current.map_or(started, |current| started.worst(current));
        self.script.effects(server, tool, both)
    }

    fn policies(&self) -> impl Iterator<Item = &Arc<Policy>> {
        [&self.started, &self.script].into_iter().chain(&self.current)
    }
}

#[cfg(test)]
mod tests;
