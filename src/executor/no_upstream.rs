//! Replaces MCP servers in a build without the feature `mcp`.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::origin::Origin;
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
pub(super) struct Upstream {
    server: UpstreamServer,
    pub(super) origin: Origin,
}

impl Upstream {
    pub(super) fn new(
        server: UpstreamServer,
        _origin: Origin,
        _policy: &mut Policy,
        _options: &ServerOptions,
    ) -> Self {
        match server {}
    }

    pub(super) fn redefined(
        &self,
        _definition: UpstreamServer,
        _policy: &mut Policy,
        _options: &ServerOptions,
    ) -> Self {
        match self.server {}
    }

    pub(super) fn is_defined_by(&self, _definition: &UpstreamServer) -> bool {
        match self.server {}
    }

    pub(super) fn add_rules(&self, _policy: &mut Policy) {
        match self.server {}
    }

    pub(super) fn name_of(definition: &UpstreamServer) -> &str {
        match *definition {}
    }

    pub(super) fn name(&self) -> &str {
        match self.server {}
    }

    pub(super) fn dispatcher(&self) -> Arc<dyn ToolDispatcher> {
        match self.server {}
    }

    pub(super) async fn shutdown(&self) {
        match self.server {}
    }
}

#[derive(Default)]
pub(super) struct UpstreamServers;

impl UpstreamServers {
    pub(super) fn read(self) -> Result<Vec<(UpstreamServer, Origin)>, Error> {
        Ok(Vec::new())
    }
}
