//! The MCP servers of an executor.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use tokio::runtime::Handle;

use super::{Executor, ExecutorBuilder};
use crate::config::{self, Config};
use crate::error::Error;
use crate::mcp::{McpServer, McpServers, McpTransport, ServerStats};
use crate::tools::native::NativeTools;
use crate::tools::policy::Policy;
use crate::tools::{ToolDispatcher, ToolError, ToolRules};

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
}

/// One server.
#[derive(Clone)]
pub(super) struct Upstream {
    name: String,
    connection: Arc<McpServers>,
}

impl Upstream {
    /// Adds the server's rules to `policy`. Starts nothing.
    pub(super) fn new(mut server: McpServer, policy: &mut Policy, options: &ServerOptions) -> Self {
        if let McpTransport::Stdio(stdio) = &mut server.transport {
            let (variable, depth) = &options.depth;
            stdio.env.entry((*variable).to_owned()).or_insert_with(|| depth.clone());
        }
        policy.set_server(&server.name, &server.rules());
        let name = server.name.clone();
        let state_directory = options.state_directory.as_deref();
        Self { name, connection: Arc::new(McpServers::new(vec![server], state_directory, &options.runtime)) }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
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
    servers: Vec<McpServer>,
    config_files: Vec<PathBuf>,
}

impl UpstreamServers {
    /// The servers, including those of the files. Of two servers with the same name the last one is
    /// used, so that a later file overrides an earlier one.
    ///
    /// # Errors
    ///
    /// If a file cannot be used.
    pub(super) fn read(self) -> Result<Vec<McpServer>, Error> {
        let mut servers = self.servers;
        for path in &self.config_files {
            servers.extend(config::read_mcp_config(path)?);
        }
        let mut unique: Vec<McpServer> = Vec::with_capacity(servers.len());
        for server in servers {
            match unique.iter_mut().find(|other| other.name == server.name) {
                Some(earlier) => *earlier = server,
                None => unique.push(server),
            }
        }
        Ok(unique)
    }
}

impl ExecutorBuilder {
    /// Adds an MCP server. It is started when a script first needs it.
    #[must_use]
    pub fn mcp_server(mut self, server: McpServer) -> Self {
        self.upstream.servers.push(server);
        self
    }

    /// Adds the servers of an `mcpServers` file. The caller must trust the file, because its
    /// commands are started. It is read by [`ExecutorBuilder::build`].
    #[must_use]
    pub fn mcp_config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.upstream.config_files.push(path.into());
        self
    }

    /// Applies a configuration: its servers, its rules about tools, which restrict what is set
    /// already, its limits, and whether it is strict. It does not set where tool lists and pinned
    /// definitions are stored: see [`cache_directory`](Self::cache_directory) and
    /// [`state_directory`](Self::state_directory).
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.upstream.servers.extend(config.servers);
        self.limits = config.limits;
        self.max_limits = Some(config.max_limits);
        self.strict |= config.strict;
        let mut rules = ToolRules::new().deny(config.deny).ask(config.ask);
        if let Some(allow) = config.allow {
            rules = rules.allow(allow);
        }
        if !config.read_only.is_empty() {
            rules = rules.read_only(config.read_only);
        }
        self.rules(rules)
    }
}

impl Executor {
    /// Connects to all MCP servers concurrently and lists their tools, so that the first script
    /// need not wait. A server that fails or is slow does not delay the others. Returns each
    /// server's name and result, in the order of the configuration.
    pub async fn connect_servers(&self) -> Vec<(String, Result<(), ToolError>)> {
        let servers = self.servers();
        let connecting = servers.upstream().iter().map(|server| server.connection.warm());
        let results = join_all(connecting).await.into_iter().flatten();
        results.map(|(name, result)| (name.to_string(), result)).collect()
    }

    /// The state of the MCP servers at this moment, in the order of the configuration.
    pub fn server_stats(&self) -> Vec<ServerStats> {
        self.servers().upstream().iter().flat_map(|server| server.connection.stats()).collect()
    }

    /// Adds an MCP server for later runs. It is started when a script first needs it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if there is a server of that name already, [`Error::Closed`] if the
    /// executor is closed.
    pub fn add_server(&self, server: McpServer) -> Result<(), Error> {
        self.change(|servers| servers.with(&NativeTools::default(), vec![server], &self.inner.server_options))
    }
}
