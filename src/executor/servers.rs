//! The servers that runs can use.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::join_all;

use super::origin::Origin;
use super::upstream::{ServerOptions, Upstream};
use crate::error::{Error, OptionName};
use crate::run::script::UpstreamServer;
use crate::tools::ToolDispatcher;
use crate::tools::catalog::{Catalog, CatalogOptions};
use crate::tools::in_force::ToolSet;
use crate::tools::native::NativeTools;
use crate::tools::policy::Policy;

/// The servers, their tools, and the policy for them. It is immutable: adding or removing a server
/// makes another set, and a run keeps the set that it started with.
#[derive(Clone)]
pub(super) struct ServerSet {
    pub(super) tools: ToolSet,
    native: Arc<NativeTools>,
    /// The embedder's own.
    dispatchers: Vec<Arc<dyn ToolDispatcher>>,
    upstream: Vec<Upstream>,
}

/// The changes that a new configuration makes to the servers, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerChanges {
    pub(super) added: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) removed: Vec<String>,
    /// Configured servers that are not used, because the embedder has a server of that name.
    pub(super) ignored: Vec<String>,
}

impl ServerSet {
    /// `servers` have different names. Nothing is started.
    pub(super) fn new(
        native: NativeTools,
        dispatchers: Vec<Arc<dyn ToolDispatcher>>,
        servers: Vec<(UpstreamServer, Origin)>,
        mut policy: Policy,
        options: &ServerOptions,
        catalog_options: &CatalogOptions,
    ) -> Self {
        let upstream = servers
            .into_iter()
            .map(|(server, origin)| Upstream::new(server, origin, &mut policy, options))
            .collect();
        Self {
            tools: ToolSet {
                version: 0,
                catalog: Arc::new(Catalog::new(&[], catalog_options)),
                policy: Arc::new(policy),
                configured: Arc::default(),
            },
            native: Arc::new(native),
            dispatchers,
            upstream,
        }
        .with_catalog()
    }

    /// The set with these native tools and MCP servers in addition.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if there is a server of that name already. A native tool replaces
    /// another one of the same name.
    pub(super) fn with(
        &self,
        tools: &NativeTools,
        servers: Vec<UpstreamServer>,
        options: &ServerOptions,
    ) -> Result<Self, Error> {
        let taken = |option, name: &str| {
            let problem = format!("there is a server `{name}` already");
            Err(Error::InvalidOptions { option, problem })
        };
        let mut native = (*self.native).clone();
        for name in tools.servers() {
            if self.has_other_than_native(&name) {
                return taken(OptionName::Tool, &name);
            }
        }
        native.extend(tools);
        let mut policy = (*self.tools.policy).clone();
        let mut new: Vec<Upstream> = Vec::new();
        for server in servers {
            let server = Upstream::new(server, Origin::Embedder, &mut policy, options);
            let is_native = native.servers().iter().any(|name| **name == *server.name());
            let is_new = new.iter().all(|other| other.name() != server.name());
            if is_native || !is_new || self.has_other_than_native(server.name()) {
                return taken(OptionName::Server, server.name());
            }
            new.push(server);
        }
        let upstream = self.upstream.iter().cloned().chain(new).collect();
        // The same native tools keep their cached state.
        let native = if tools.is_empty() { Arc::clone(&self.native) } else { Arc::new(native) };
        Ok(Self { native, upstream, ..self.clone() }.with_policy(policy).with_catalog())
    }

    /// The set without the MCP server or the native server `name` and its rules, and the MCP
    /// server; `None` if there is neither.
    pub(super) fn without_server(&self, name: &str) -> Option<(Self, Option<Upstream>)> {
        let (removed, upstream): (Vec<_>, Vec<_>) =
            self.upstream.iter().cloned().partition(|server| server.name() == name);
        let native = self.native.without_server(name);
        if removed.is_empty() && native.is_none() {
            return None;
        }
        let native = native.map_or_else(|| Arc::clone(&self.native), Arc::new);
        let mut policy = (*self.tools.policy).clone();
        policy.remove_server(name);
        let set = Self { native, upstream, ..self.clone() }.with_policy(policy).with_catalog();
        Some((set, removed.into_iter().next()))
    }

    /// The set without a native tool; `None` if there is no such tool.
    pub(super) fn without_tool(&self, name: &str) -> Option<Self> {
        let native = Arc::new(self.native.without_tool(name)?);
        Some(Self { native, ..self.clone() }.with_catalog())
    }

    /// The set with these servers instead of those of the configuration before, and with `policy`,
    /// which has no rules of servers yet. A server that is defined as before keeps its connection.
    /// The embedder's own servers stay, also where the configuration has another of that name.
    pub(super) fn reconfigured(
        &self,
        servers: Vec<UpstreamServer>,
        mut policy: Policy,
        strict: bool,
        missing_server_hint: Option<Arc<str>>,
        options: &ServerOptions,
    ) -> (Self, ServerChanges) {
        let mut changes = ServerChanges::default();
        let mut configured: Vec<Upstream> = Vec::with_capacity(servers.len());
        for server in servers {
            let name = Upstream::name_of(&server).to_owned();
            let before = self.upstream.iter().find(|before| before.name() == name);
            let is_own = before.is_some_and(|before| before.origin == Origin::Embedder)
                || self.native.servers().iter().any(|own| **own == *name)
                || self.has_dispatcher(&name);
            if is_own {
                changes.ignored.push(name);
                continue;
            }
            let server = match before {
                None => {
                    changes.added.push(name);
                    Upstream::new(server, Origin::Config, &mut policy, options)
                }
                Some(before) => {
                    if !before.is_defined_by(&server) {
                        changes.changed.push(name);
                    }
                    before.redefined(server, &mut policy, options)
                }
            };
            configured.push(server);
        }
        let is_gone = |before: &&Upstream| {
            before.origin == Origin::Config && configured.iter().all(|now| now.name() != before.name())
        };
        changes.removed =
            self.upstream.iter().filter(is_gone).map(|server| server.name().to_owned()).collect();
        // At the index of the replaced servers.
        let is_configured = |server: &&Upstream| server.origin == Origin::Config;
        let index = self.upstream.iter().position(|server| is_configured(&server));
        let (first, last) = self.upstream.split_at(index.unwrap_or(self.upstream.len()));
        let last: Vec<Upstream> = last.iter().filter(|server| !is_configured(server)).cloned().collect();
        for own in first.iter().chain(&last) {
            own.add_rules(&mut policy);
        }
        let upstream = first.iter().cloned().chain(configured).chain(last).collect();
        let mut set = Self { upstream, ..self.clone() }.with_policy(policy);
        set.tools.catalog = Arc::new(set.tools.catalog.with_options(strict, missing_server_hint));
        (set.with_catalog(), changes)
    }

    fn with_policy(mut self, policy: Policy) -> Self {
        self.tools.policy = Arc::new(policy);
        self
    }

    /// Makes the catalog again. Servers that stay keep the cached state of their tools.
    fn with_catalog(mut self) -> Self {
        self.tools.catalog = Arc::new(self.tools.catalog.with_dispatchers(&self.all_dispatchers()));
        let configured = self.upstream.iter().filter(|server| server.origin == Origin::Config);
        let configured: HashSet<Arc<str>> = configured.map(|server| server.name().into()).collect();
        self.tools.configured = Arc::new(configured);
        self
    }

    /// Native tools come first, so that no other server can take over their server's name.
    fn all_dispatchers(&self) -> Vec<Arc<dyn ToolDispatcher>> {
        let native = (!self.native.is_empty()).then(|| Arc::clone(&self.native) as Arc<dyn ToolDispatcher>);
        let upstream = self.upstream.iter().map(Upstream::dispatcher);
        native.into_iter().chain(self.dispatchers.iter().cloned()).chain(upstream).collect()
    }

    fn has_other_than_native(&self, name: &str) -> bool {
        self.upstream.iter().any(|server| server.name() == name) || self.has_dispatcher(name)
    }

    fn has_dispatcher(&self, name: &str) -> bool {
        self.dispatchers.iter().any(|server| server.servers().iter().any(|other| **other == *name))
    }

    pub(super) fn upstream(&self) -> &[Upstream] {
        &self.upstream
    }

    /// Shuts down all servers gracefully and at the same time, within a few seconds.
    pub(super) async fn shutdown(&self) {
        join_all(self.upstream.iter().map(Upstream::shutdown)).await;
        self.close();
    }

    /// Kills all servers at once.
    pub(super) fn close(&self) {
        for dispatcher in self.all_dispatchers() {
            dispatcher.close();
        }
    }
}
