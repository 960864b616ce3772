//! The servers that runs can use.

use std::sync::Arc;

use futures::future::join_all;
use tokio::runtime::Handle;

use super::upstream::{ServerOptions, Upstream};
use crate::error::Error;
use crate::run::script::UpstreamServer;
use crate::tools::ToolDispatcher;
use crate::tools::catalog::{Catalog, CatalogOptions};
use crate::tools::native::NativeTools;
use crate::tools::policy::Policy;

/// The servers, their tools, and the policy for them. It never changes: whoever adds or removes a
/// server makes another set, and a run keeps the one that it started with.
#[derive(Clone)]
pub(super) struct ServerSet {
    pub(super) catalog: Arc<Catalog>,
    pub(super) policy: Arc<Policy>,
    native: Arc<NativeTools>,
    /// The embedder's own.
    dispatchers: Vec<Arc<dyn ToolDispatcher>>,
    upstream: Vec<Upstream>,
}

impl ServerSet {
    /// `servers` have different names. Nothing is started.
    pub(super) fn new(
        native: NativeTools,
        dispatchers: Vec<Arc<dyn ToolDispatcher>>,
        servers: Vec<UpstreamServer>,
        mut policy: Policy,
        options: &ServerOptions,
        catalog_options: &CatalogOptions,
    ) -> Self {
        let upstream =
            servers.into_iter().map(|server| Upstream::new(server, &mut policy, options)).collect();
        Self {
            catalog: Arc::new(Catalog::new(&[], catalog_options)),
            policy: Arc::new(policy),
            native: Arc::new(native),
            dispatchers,
            upstream,
        }
        .with_catalog()
    }

    /// The set with these native tools and MCP servers in addition. The second value are the new
    /// servers.
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
    ) -> Result<(Self, Vec<Upstream>), Error> {
        let taken = |option, name: &str| {
            let problem = format!("there is a server `{name}` already");
            Err(Error::InvalidOptions { option, problem })
        };
        let mut native = (*self.native).clone();
        for name in tools.servers() {
            if self.has_other_than_native(&name) {
                return taken("tool", &name);
            }
        }
        native.extend(tools);
        let mut policy = (*self.policy).clone();
        let mut new: Vec<Upstream> = Vec::new();
        for server in servers {
            let server = Upstream::new(server, &mut policy, options);
            let is_native = native.servers().iter().any(|name| **name == *server.name());
            let is_new = new.iter().all(|other| other.name() != server.name());
            if is_native || !is_new || self.has_other_than_native(server.name()) {
                return taken("server", server.name());
            }
            new.push(server);
        }
        let upstream = self.upstream.iter().chain(&new).cloned().collect();
        // The same native tools keep what is known of them.
        let native = if tools.is_empty() { Arc::clone(&self.native) } else { Arc::new(native) };
        let set = Self { policy: Arc::new(policy), native, upstream, ..self.clone() };
        Ok((set.with_catalog(), new))
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
        let mut policy = (*self.policy).clone();
        policy.remove_server(name);
        let set = Self { policy: Arc::new(policy), native, upstream, ..self.clone() };
        Some((set.with_catalog(), removed.into_iter().next()))
    }

    /// The set without a native tool; `None` if there is no such tool.
    pub(super) fn without_tool(&self, name: &str) -> Option<Self> {
        let native = Arc::new(self.native.without_tool(name)?);
        Some(Self { native, ..self.clone() }.with_catalog())
    }

    /// Makes the catalog again. Servers that stay keep what is known of their tools.
    fn with_catalog(mut self) -> Self {
        self.catalog = Arc::new(self.catalog.with_dispatchers(&self.all_dispatchers()));
        self
    }

    /// Native tools come first, so that no other server can take over their server's name.
    fn all_dispatchers(&self) -> Vec<Arc<dyn ToolDispatcher>> {
        let native = (!self.native.is_empty()).then(|| Arc::clone(&self.native) as Arc<dyn ToolDispatcher>);
        let upstream = self.upstream.iter().map(Upstream::dispatcher);
        native.into_iter().chain(self.dispatchers.iter().cloned()).chain(upstream).collect()
    }

    fn has_other_than_native(&self, name: &str) -> bool {
        self.upstream.iter().any(|server| server.name() == name)
            || self.dispatchers.iter().any(|server| server.servers().iter().any(|other| **other == *name))
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

/// The MCP servers of one run. They are shut down when this is dropped.
pub(super) struct OwnServers {
    servers: Vec<Upstream>,
    runtime: Handle,
}

impl OwnServers {
    pub(super) fn new(servers: Vec<Upstream>, runtime: Handle) -> Self {
        Self { servers, runtime }
    }
}

impl Drop for OwnServers {
    fn drop(&mut self) {
        let servers = std::mem::take(&mut self.servers);
        if !servers.is_empty() {
            self.runtime.spawn(async move {
                join_all(servers.iter().map(Upstream::shutdown)).await;
            });
        }
    }
}
