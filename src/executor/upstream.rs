//! The MCP servers of an executor.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::origin::Origin;
use crate::config;
use crate::error::Error;
use crate::mcp::{McpServer, McpServers, McpTransport};
use crate::tools::ToolDispatcher;
use crate::tools::policy::Policy;

/// What is the same for all servers of an executor.
pub(super) struct ServerOptions {
    state_directory: Option<PathBuf>,
    runtime: Handle,
    /// The variable that tells a child process how many executors are above it, and its value.
    depth: (&'static str, String),
}

impl ServerOptions {
    pub(super) fn new(state_directory: Option<PathBuf>, runtime: Handle) -> Self {
        Self { state_directory, runtime, depth: config::depth_for_children() }
    }

    pub(super) fn has_state_directory(&self) -> bool {
        self.state_directory.is_some()
    }
}

/// One server. It is shut down gracefully when the last clone is dropped: when it is in no set of
/// servers any more, and no run has started with one that it was in.
#[derive(Clone)]
pub(super) struct Upstream {
    /// As the embedder or the configuration has defined it.
    definition: Arc<McpServer>,
    pub(super) origin: Origin,
    pub(super) connection: Arc<McpServers>,
    _shutdown: Arc<ShutdownOnDrop>,
}

/// Shuts a server down in the background when it is dropped.
struct ShutdownOnDrop {
    connection: Arc<McpServers>,
    runtime: Handle,
}

impl Drop for ShutdownOnDrop {
    fn drop(&mut self) {
        let connection = Arc::clone(&self.connection);
        // The task ends by itself: a shutdown has a deadline. A runtime that is gone drops it, which
        // kills the server.
        self.runtime.spawn(async move { connection.shutdown().await });
    }
}

impl Upstream {
    /// Adds the server's rules to `policy`. Starts nothing.
    pub(super) fn new(
        definition: McpServer,
        origin: Origin,
        policy: &mut Policy,
        options: &ServerOptions,
    ) -> Self {
        let mut server = definition.clone();
        if let McpTransport::Stdio(stdio) = &mut server.transport {
            let (variable, depth) = &options.depth;
            stdio.env.entry((*variable).to_owned()).or_insert_with(|| depth.clone());
        }
        let (state_directory, runtime) = (options.state_directory.as_deref(), options.runtime.clone());
        let connection = Arc::new(McpServers::new(vec![server], state_directory, &runtime));
        let shutdown = ShutdownOnDrop { connection: Arc::clone(&connection), runtime };
        let server =
            Self { definition: Arc::new(definition), origin, connection, _shutdown: Arc::new(shutdown) };
        server.add_rules(policy);
        server
    }

    /// The same server by a newer definition of the configuration. It keeps its connection if
    /// nothing but its rules differs.
    pub(super) fn redefined(
        &self,
        definition: McpServer,
        policy: &mut Policy,
        options: &ServerOptions,
    ) -> Self {
        let with_same_rules = McpServer { rules: self.definition.rules.clone(), ..definition.clone() };
        if !self.is_defined_by(&with_same_rules) {
            return Self::new(definition, Origin::Config, policy, options);
        }
        let server = Self { definition: Arc::new(definition), ..self.clone() };
        server.add_rules(policy);
        server
    }

    /// Whether the server is defined in exactly this way.
    pub(super) fn is_defined_by(&self, definition: &McpServer) -> bool {
        *self.definition == *definition
    }

    /// Adds the server's rules to `policy`.
    pub(super) fn add_rules(&self, policy: &mut Policy) {
        policy.set_server(&self.definition.name, &self.definition.rules);
    }

    pub(super) fn name_of(definition: &McpServer) -> &str {
        &definition.name
    }

    pub(super) fn name(&self) -> &str {
        &self.definition.name
    }

    pub(super) fn dispatcher(&self) -> Arc<dyn ToolDispatcher> {
        Arc::clone(&self.connection) as Arc<dyn ToolDispatcher>
    }

    /// Shuts the server down gracefully, within a few seconds. Calls that are still made fail.
    pub(super) async fn shutdown(&self) {
        self.connection.shutdown().await;
    }
}

/// The servers that a builder was given.
#[derive(Default)]
pub(super) struct UpstreamServers {
    pub(super) servers: Vec<(McpServer, Origin)>,
    pub(super) config_files: Vec<PathBuf>,
}

impl UpstreamServers {
    /// The servers, including those of the files. Of two servers with the same name the last one is
    /// used, so that a later file overrides an earlier one.
    ///
    /// # Errors
    ///
    /// If a file cannot be used.
    pub(super) fn read(self) -> Result<Vec<(McpServer, Origin)>, Error> {
        let mut servers = self.servers;
        for path in &self.config_files {
            let read = config::read_mcp_config(path)?.into_iter();
            servers.extend(read.map(|server| (server, Origin::Embedder)));
        }
        let mut unique: Vec<(McpServer, Origin)> = Vec::with_capacity(servers.len());
        for server in servers {
            match unique.iter_mut().find(|other| other.0.name == server.0.name) {
                Some(earlier) => *earlier = server,
                None => unique.push(server),
            }
        }
        Ok(unique)
    }
}
