//! All configured servers, as one dispatcher.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all, poll_fn, ready};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::server::UpstreamServer;
use super::settings::{McpServer, McpTransport};
use super::stats::ServerStats;
use crate::conventions;
use crate::json::Json;
use crate::tools::{
    RemoteServer, RequestContext, ServerDetails, ServerRequest, ToolDispatcher, ToolError, ToolErrorCode,
    ToolList, ToolRequest, ToolResult,
};

/// The MCP servers of one executor. Lives as long as the executor; its processes end with it.
pub(crate) struct McpServers {
    servers: Vec<Arc<UpstreamServer>>,
    by_name: HashMap<Arc<str>, usize>,
    /// The runtime of connections, timers and processes. Callers may be on any thread.
    handle: Handle,
}

impl McpServers {
    /// Takes ownership of `servers` without starting them. Of two servers with the same name the
    /// last one is used, so that a later file overrides an earlier one.
    ///
    /// Tokens for HTTP servers are stored in `state_directory`.
    pub(crate) fn new(servers: Vec<McpServer>, state_directory: Option<&Path>, handle: &Handle) -> Self {
        let mut unique: Vec<Arc<UpstreamServer>> = Vec::with_capacity(servers.len());
        let mut by_name = HashMap::new();
        for settings in servers {
            let server = UpstreamServer::new(settings.with_bounded_times(), state_directory, handle);
            match by_name.get(&server.name) {
                Some(&position) => unique[position] = server,
                None => {
                    by_name.insert(Arc::clone(&server.name), unique.len());
                    unique.push(server);
                }
            }
        }
        Self { servers: unique, by_name, handle: handle.clone() }
    }

    /// Connects to all servers at the same time and lists their tools. A failure of one does not
    /// affect the others. Returns each server's name with its result, in order.
    pub(crate) async fn warm(&self) -> Vec<(Arc<str>, Result<(), ToolError>)> {
        let warming = self.servers.iter().map(|server| {
            let name = Arc::clone(&server.name);
            on_runtime(&self.handle, Arc::clone(server).warm()).map(|result| (name, result))
        });
        join_all(warming).await
    }

    /// The tools that a server has listed over its present connection, if it has. Sends no request.
    pub(crate) fn known_tools(&self, name: &str) -> Option<Arc<ToolList>> {
        self.server(name).ok()?.known_tools()
    }

    /// The current figures of the servers, in order.
    pub(crate) fn stats(&self) -> Vec<ServerStats> {
        self.servers.iter().map(|server| server.stats()).collect()
    }

    /// Shuts down all servers gracefully and at the same time: closes stdin, then sends SIGTERM,
    /// then kills. Takes as long as the slowest [`UpstreamServer::shutdown`].
    pub(crate) async fn shutdown(&self) {
        let endings = join_all(self.servers.iter().cloned().map(UpstreamServer::shutdown));
        let _runtime_is_gone = on_runtime(&self.handle, endings.map(Ok)).await;
        self.close();
    }

    pub(super) fn server(&self, name: &str) -> Result<&Arc<UpstreamServer>, ToolError> {
        self.by_name
            .get(name)
            .map(|&position| &self.servers[position])
            .ok_or_else(|| ToolError::new(ToolErrorCode::ToolNotFound, format!("no MCP server `{name}`")))
    }
}

impl ToolDispatcher for McpServers {
    fn servers(&self) -> Vec<Arc<str>> {
        self.servers.iter().map(|server| Arc::clone(&server.name)).collect()
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        let server = match self.server(server) {
            Ok(server) => server,
            Err(error) => return ready(Err(error)).boxed(),
        };
        if let Some(tools) = server.known_tools() {
            return ready(Ok(tools)).boxed();
        }
        on_runtime(&self.handle, Arc::clone(server).tools(deadline)).boxed()
    }

    fn identity(&self, server: &str) -> Option<String> {
        self.server(server).ok().map(|server| server.identity.clone())
    }

    fn results_identity(&self, server: &str) -> Option<String> {
        self.server(server).ok().map(|server| server.settings.results_identity())
    }

    fn generation(&self, server: &str) -> u64 {
        self.server(server).map_or(0, |server| server.generation.load(Ordering::Acquire))
    }

    fn may_change_tools(&self, server: &str) -> bool {
        self.server(server).is_ok_and(|server| server.may_change_tools())
    }

    fn declares_elicitation(&self, server: &str) -> bool {
        self.server(server).is_ok_and(|server| server.settings.elicitation)
    }

    fn details(&self, server: &str) -> ServerDetails {
        let mut details = ServerDetails::default();
        if let Ok(server) = self.server(server) {
            details.description.clone_from(&server.settings.description);
            if let McpTransport::Stdio(stdio) = &server.settings.transport {
                details.directory.clone_from(&stdio.cwd);
            }
        }
        details.remote = self.remote(server);
        details
    }

    fn remote(&self, server: &str) -> Option<RemoteServer> {
        let server = self.server(server).ok()?;
        let mut remote = RemoteServer::default();
        match &server.settings.transport {
            McpTransport::Stdio(_) => remote.transport = conventions::PIPE,
            McpTransport::Http(http) => {
                remote.transport = conventions::TCP;
                remote.address = http.url.host_str().map(str::to_owned);
                remote.port = http.url.port_or_known_default();
            }
        }
        Some(remote)
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        match self.server(&request.server) {
            Ok(server) => entered(&self.handle, Arc::clone(server).call(request).boxed()),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    fn request(
        &self,
        server: Arc<str>,
        request: ServerRequest,
        context: RequestContext,
    ) -> BoxFuture<'_, Result<Json, ToolError>> {
        match self.server(&server) {
            Ok(server) => entered(&self.handle, Arc::clone(server).request(request, context).boxed()),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    /// Kills all servers at once. Blocks for the few milliseconds until they have ended.
    fn close(&self) {
        let processes: Vec<_> = self.servers.iter().filter_map(|server| server.kill()).collect();
        for process in processes {
            process.reap_killed();
        }
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        self.close();
    }
}

/// Polls `work` where the returned future is polled, with the runtime entered that its timers and pipes need. It is no
/// task of its own: calls pass the limiter in the order in which they were made, and two hand-overs between threads are
/// saved.
fn entered<'a, T: 'static>(handle: &'a Handle, mut work: BoxFuture<'static, T>) -> BoxFuture<'a, T> {
    poll_fn(move |task| {
        let _entered = handle.enter();
        work.poll_unpin(task)
    })
    .boxed()
}

/// Runs `work` on the runtime that its timers and pipes need. May be called on any thread. Dropping
/// the future drops the work.
async fn on_runtime<T: Send + 'static>(
    handle: &Handle,
    work: impl Future<Output = Result<T, ToolError>> + Send + 'static,
) -> Result<T, ToolError> {
    let mut task = JoinSet::new();
    task.spawn_on(work, handle);
    match task.join_next().await {
        Some(Ok(result)) => result,
        // The runtime is shutting down, or the work has panicked.
        _ => Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, "the connection's task has ended")),
    }
}
