//! The MCP servers of an executor.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

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
}

/// One server.
#[derive(Clone)]
pub(super) struct Upstream {
    name: String,
    pub(super) connection: Arc<McpServers>,
}

impl Upstream {
    /// Adds the server's rules to `policy`. Starts nothing.
    pub(super) fn new(mut server: McpServer, policy: &mut Policy, options: &ServerOptions) -> Self {
        if let McpTransport::Stdio(stdio) = &mut server.transport {
            let (variable, depth) = &options.depth;
            stdio.env.entry((*variable).to_owned()).or_insert_with(|| depth.clone());
        }
        policy.set_server(&server.name, &server.rules);
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
    pub(super) servers: Vec<McpServer>,
    pub(super) config_files: Vec<PathBuf>,
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
