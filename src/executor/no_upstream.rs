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

#[derive(Clone)]
pub(super) enum Upstream {}

impl Upstream {
    pub(super) fn new(server: UpstreamServer, _policy: &mut Policy, _options: &ServerOptions) -> Self {
        match server {}
    }

    pub(super) fn name(&self) -> &str {
        match *self {}
    }

    pub(super) fn dispatcher(&self) -> Arc<dyn ToolDispatcher> {
        match *self {}
    }

    pub(super) async fn shutdown(&self) {
        match *self {}
    }
}

#[derive(Default)]
pub(super) struct UpstreamServers;

impl UpstreamServers {
    pub(super) fn read(self) -> Result<Vec<UpstreamServer>, Error> {
        Ok(Vec::new())
    }
}
