//! The MCP servers of an executor: what of it needs the feature `mcp`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use super::{Executor, ExecutorBuilder};
use crate::config::{self, Config};
use crate::error::Error;
use crate::mcp::{McpServer, McpServers, McpTransport, ServerStats};
use crate::tools::ToolError;
use crate::tools::policy::{Policy, ServerLists};

/// The servers that a builder was given.
#[derive(Default)]
pub(super) struct Upstream {
    servers: Vec<McpServer>,
    config_files: Vec<PathBuf>,
}

impl Upstream {
    /// Reads the configuration files, adds the lists of all servers to `policy`, and makes their
    /// dispatcher; `None` if there is no server. Starts none of them.
    ///
    /// # Errors
    ///
    /// If a file cannot be used.
    pub(super) fn connect(
        self,
        policy: &mut Policy,
        state_directory: Option<&Path>,
        runtime: &Handle,
    ) -> Result<Option<Arc<McpServers>>, Error> {
        let mut servers = self.servers;
        for path in &self.config_files {
            servers.extend(config::read_mcp_config(path)?);
        }
        let (variable, depth) = config::depth_for_children();
        for server in &mut servers {
            if let McpTransport::Stdio(stdio) = &mut server.transport {
                stdio.env.entry(variable.to_owned()).or_insert_with(|| depth.clone());
            }
            let lists = ServerLists {
                allow: server.allow.as_deref(),
                deny: &server.deny,
                ask: &server.ask,
                read_only: server.read_only.as_deref(),
            };
            policy.set_server(&server.name, lists);
        }
        let servers = (!servers.is_empty()).then(|| McpServers::new(servers, state_directory, runtime));
        Ok(servers.map(Arc::new))
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

    /// Applies a configuration: its servers, its lists for allow, deny and ask, its limits, and
    /// whether it is strict. It does not set where tool lists and pinned definitions are stored:
    /// see [`cache_directory`](Self::cache_directory) and
    /// [`state_directory`](Self::state_directory).
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.upstream.servers.extend(config.servers);
        self.limits = config.limits;
        self.max_limits = Some(config.max_limits);
        self.strict |= config.strict;
        self.deny.extend(config.deny);
        self.ask.extend(config.ask);
        self.read_only.extend(config.read_only);
        if let Some(allow) = config.allow {
            self.allow.get_or_insert_default().extend(allow);
        }
        self
    }
}

impl Executor {
    /// Connects to all MCP servers concurrently and lists their tools, so that the first script
    /// need not wait. A server that fails or is slow does not delay the others. Returns each
    /// server's name and result, in the order of the configuration.
    pub async fn connect_servers(&self) -> Vec<(String, Result<(), ToolError>)> {
        let Some(mcp) = &self.inner.mcp else { return Vec::new() };
        let results = mcp.warm().await;
        results.into_iter().map(|(name, result)| (name.to_string(), result)).collect()
    }

    /// The state of the MCP servers at this moment, in the order of the configuration.
    pub fn server_stats(&self) -> Vec<ServerStats> {
        self.inner.mcp.as_ref().map_or_else(Vec::new, |mcp| mcp.stats())
    }
}
