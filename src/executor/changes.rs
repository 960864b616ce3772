//! Changes of the servers and tools of later runs, of which the runs in flight and the servers of clients are told.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLockWriteGuard;
use serde_json::Value;
use tokio::sync::watch;

use super::core::Executor;
use super::servers::ServerSet;
use crate::error::Error;
use crate::tools::ToolDefinition;
use crate::tools::in_force::ToolSet;
use crate::tools::native::{self, NativeTools};

impl Executor {
    /// Adds a tool written in Rust for later runs, as
    /// [`ExecutorBuilder::tool`](crate::ExecutorBuilder::tool) does. It replaces a tool of the same
    /// name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if a server that is not one of native tools has the name of its
    /// server, [`Error::Closed`] if the executor is closed.
    pub fn add_tool<Arguments, Output, Failure, Function, Returned>(
        &self,
        name: &str,
        input_schema: Value,
        function: Function,
    ) -> Result<(), Error>
    where
        Arguments: serde::de::DeserializeOwned,
        Output: serde::Serialize,
        Failure: fmt::Display,
        Function: Fn(Arguments) -> Returned + Send + Sync + 'static,
        Returned: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        let mut tools = NativeTools::default();
        let definition: ToolDefinition = native::definition(input_schema);
        tools.add(name, definition, native::erase(function));
        self.change(|servers| servers.with(&tools, Vec::new(), &self.inner.server_options))
    }

    pub(super) fn change(
        &self,
        changed: impl FnOnce(&ServerSet) -> Result<ServerSet, Error>,
    ) -> Result<(), Error> {
        let servers = self.inner.servers.write();
        if self.inner.closed.is_cancelled() {
            return Err(Error::Closed);
        }
        let set = changed(&servers)?;
        self.publish(servers, set);
        Ok(())
    }

    /// Makes `set` the servers of later runs, and tells runs in flight and servers of clients.
    pub(super) fn publish(&self, mut servers: RwLockWriteGuard<'_, Arc<ServerSet>>, mut set: ServerSet) {
        set.tools.version = servers.tools.version + 1;
        self.inner.current.send_replace(set.tools.clone());
        let before = std::mem::replace(&mut *servers, Arc::new(set));
        drop(servers);
        // Outside of the lock: it may be the last use of a server, which then ends.
        drop(before);
    }

    /// Receives each change of the servers, the rules and the settings. Do not use the executor
    /// while you hold a borrow of it: a change holds `servers` while it waits for borrows to end.
    pub(crate) fn changes(&self) -> watch::Receiver<ToolSet> {
        self.inner.current.subscribe()
    }

    /// Removes an MCP server with its rules, or a server of native tools, for later runs, and
    /// returns whether it existed. An MCP server is shut down, which takes at most a few seconds; calls that running
    /// scripts make to it fail.
    ///
    /// Dropping the future does not undo the removal. The server then ends at the latest with the last run that
    /// can see it.
    pub async fn remove_server(&self, name: &str) -> bool {
        let removed = {
            let servers = self.inner.servers.write();
            let Some((set, removed)) = servers.without_server(name) else { return false };
            self.publish(servers, set);
            removed
        };
        if let Some(server) = removed {
            server.shutdown().await;
        }
        true
    }

    /// Removes a tool written in Rust for later runs, by the name that it was added with. Returns
    /// whether it existed. Running scripts keep it.
    pub fn remove_tool(&self, name: &str) -> bool {
        let servers = self.inner.servers.write();
        let Some(set) = servers.without_tool(name) else { return false };
        self.publish(servers, set);
        true
    }
}
