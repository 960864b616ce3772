//! The place of MCP servers in a build without the feature `mcp`, which has none.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::error::Error;
use crate::run::script::UpstreamServer;
use crate::tools::ToolDispatcher;
use crate::tools::policy::Policy;

pub(super) struct ServerOptions;

impl ServerOptions {
    pub(super) fn new(_state_directory: Option<PathBuf>, _runtime: Handle) -> Self {
        Self
    }
}

/// Has no value.
#[derive(Clone)]
pub(super) struct Upstream(UpstreamServer);

impl Upstream {
    pub(super) fn new(server: UpstreamServer, _policy: &mut Policy, _options: &ServerOptions) -> Self {
        match server {}
    }

    pub(super) fn name(&self) -> &str {
        match self.0 {}
    }

    pub(super) fn dispatcher(&self) -> Arc<dyn ToolDispatcher> {
        match self.0 {}
    }

    pub(super) async fn shutdown(&self) {
        match self.0 {}
    }
}

#[derive(Default)]
pub(super) struct UpstreamServers;

impl UpstreamServers {
    pub(super) fn read(self) -> Result<Vec<UpstreamServer>, Error> {
        Ok(Vec::new())
    }
}
