//! The part of the public interface that needs MCP servers.

use std::path::PathBuf;

use futures::future::join_all;

use super::builder::ExecutorBuilder;
use super::core::Executor;
use super::origin::Origin;
use super::settings::FromConfig;
use crate::config::Config;
use crate::error::Error;
use crate::mcp::{McpServer, ServerStats};
use crate::tools::ToolError;
use crate::tools::native::NativeTools;

impl ExecutorBuilder {
    /// Adds an MCP server. It is started when a script first needs it.
    #[must_use]
    pub fn mcp_server(mut self, server: McpServer) -> Self {
        self.upstream.servers.push((server, Origin::Embedder));
        self
    }

    /// Adds the servers of an `mcpServers` file. The caller must trust the file, because its
    /// commands are started. It is read by [`ExecutorBuilder::build`].
    #[must_use]
    pub fn mcp_config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.upstream.config_files.push(path.into());
        self
    }

    /// Applies a configuration: its servers, its rules about tools, which restrict what is set already, its limits,
    /// the memory of all runs, whether it is strict, and which files the user has yet to trust. It does not set where
    /// tool lists and pinned definitions are stored: see [`cache_directory`](Self::cache_directory) and
    /// [`state_directory`](Self::state_directory).
    ///
    /// [`Executor::reconfigure`] replaces it by another one while scripts run.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        let (limits, max_limits) = (config.limits, config.max_limits);
        let (from_config, servers) = FromConfig::new(config);
        self.upstream.servers.extend(servers.into_iter().map(|server| (server, Origin::Config)));
        self.limits = limits;
        self.max_limits = Some(max_limits);
        self.config = std::mem::take(&mut self.config).and(from_config);
        self
    }
}

impl Executor {
    /// Connects to all MCP servers concurrently and lists their tools, so that the first script
    /// need not wait. A server that fails or is slow does not delay the others. Returns each
    /// server's name and result, in the order of the configuration.
    ///
    /// Each server has its own time to connect
    /// ([`McpServer::busy_connect_timeout`](crate::McpServer::busy_connect_timeout)) and to list its tools. Dropping
    /// the future ends the wait only: servers that are being started are started.
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
        let options = &self.inner.server_options;
        self.change(|servers| servers.with(&NativeTools::default(), vec![server], options))
    }
}
