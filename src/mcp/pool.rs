//! All configured servers: each started when it is first needed, and again after it has died.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, join_all, ready};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout, timeout_at};

use super::McpServer;
use super::client::{self, Connection};
use super::connect::Process;
use super::settings::McpTransport;
use crate::tools::{
    ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList, ToolRequest, ToolResult,
};

/// A server that dies as soon as it starts is not started more often than this.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// How long a graceful end of all servers may take: two graces of a second each, and the killing.
const SHUTDOWN_TIME: Duration = Duration::from_secs(4);

/// The MCP servers of one executor. Lives as long as the executor; its processes end with it.
pub(crate) struct McpServers {
    servers: Vec<Arc<Server>>,
    /// Where connections, timers and processes live. Whoever calls may be on any thread.
    handle: Handle,
}

struct Server {
    name: Arc<str>,
    config: McpServer,
    handle: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// The current connection, or the attempt to make it, shared by all who need it.
    start: Option<Driven<Arc<Connection>>>,
    /// When the last attempt began.
    started: Option<Instant>,
    /// The current process. Here, so that it can be killed before it has shaken hands.
    process: Option<Arc<Process>>,
    listing: Option<Listing>,
    /// The last list, kept over restarts so that an equal one is the same.
    tools: Option<Arc<ToolList>>,
}

/// A list of tools, or the attempt to get it, and what it is valid for.
struct Listing {
    connection: Arc<Connection>,
    list_changes: u64,
    result: Driven<Arc<ToolList>>,
}

/// The result of work that goes on to its end whether or not anybody waits for it.
type Driven<T> = Shared<BoxFuture<'static, Result<T, ToolError>>>;

fn drive<T: Clone + Send + Sync + 'static>(
    handle: &Handle,
    work: impl Future<Output = Result<T, ToolError>> + Send + 'static,
) -> Driven<T> {
    let driven = work.boxed().shared();
    // Ends by itself: all work here has deadlines.
    handle.spawn(driven.clone().map(drop));
    driven
}

impl McpServers {
    /// Takes charge of `servers` and starts none of them. Of two with one name the last counts, so
    /// that a later file overrides an earlier one.
    pub(crate) fn new(servers: Vec<McpServer>, handle: &Handle) -> Self {
        let mut unique: Vec<Arc<Server>> = Vec::with_capacity(servers.len());
        for config in servers {
            let name: Arc<str> = Arc::from(config.name.as_str());
            let known = unique.iter().position(|server| server.name == name);
            let server = Arc::new(Server { name, config, handle: handle.clone(), state: Mutex::default() });
            match known {
                Some(position) => unique[position] = server,
                None => unique.push(server),
            }
        }
        Self { servers: unique, handle: handle.clone() }
    }

    /// Ends all servers at once and gracefully: stdin ends, then a signal asks, then they are
    /// killed. Returns within [`SHUTDOWN_TIME`].
    pub(crate) async fn shutdown(&self) {
        let endings = join_all(self.servers.iter().cloned().map(Server::shutdown));
        let _runtime_is_gone = on_runtime(&self.handle, endings.map(Ok)).await;
        self.close();
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>, ToolError> {
        self.servers
            .iter()
            .find(|server| &*server.name == name)
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

    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        match self.server(&request.server) {
            Ok(server) => on_runtime(&self.handle, Arc::clone(server).call(request)).boxed(),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    /// Kills all servers without asking. Blocks for the few milliseconds until they are gone.
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

/// Runs `work` on the runtime that its timers and pipes need, from any thread. Dropping the future
/// drops the work.
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

impl Server {
    /// The tools, if they are known, without waiting. Every call of every script comes by here.
    fn known_tools(&self) -> Option<Arc<ToolList>> {
        let state = self.state.lock();
        let Some(Ok(connection)) = state.start.as_ref()?.peek() else { return None };
        let listing = state.listing.as_ref()?;
        let is_current = connection.is_alive() && listing.is_for(connection);
        listing.result.peek().filter(|_| is_current)?.as_ref().ok().cloned()
    }

    async fn tools(self: Arc<Self>, deadline: Instant) -> Result<Arc<ToolList>, ToolError> {
        let list = async {
            let connection = self.connection()?.await?;
            self.listing(&connection).await
        };
        timeout_at(deadline.into(), list).await.unwrap_or_else(|_elapsed| {
            let message = format!("server `{}` did not list its tools before the run's end", self.name);
            Err(ToolError::new(ToolErrorCode::ToolTimeout, message))
        })
    }

    async fn call(self: Arc<Self>, request: ToolRequest) -> Result<ToolResult, ToolError> {
        let cancelled = || ToolError::new(ToolErrorCode::Cancelled, "the run is over");
        let start = self.connection()?;
        let connection = tokio::select! {
            biased;
            started = timeout_at(request.deadline.into(), start) => started.map_err(|_elapsed| {
                let message = format!("server `{}` did not start before the run's end", self.name);
                ToolError::new(ToolErrorCode::ToolTimeout, message)
            })??,
            () = request.cancel.cancelled() => return Err(cancelled()),
        };
        // A tool's own time starts now, not when it queued or when its server had to be started.
        let sent = Instant::now();
        let limit = request.deadline.min(sent + self.config.call_timeout);
        tracing::debug!(server = &*self.name, tool = &*request.tool, "call sent");
        // Leaving this without an answer drops the call, and that tells the server.
        tokio::select! {
            biased;
            result = connection.call(&request.tool, request.arguments) => result,
            () = request.cancel.cancelled() => Err(cancelled()),
            () = sleep_until(limit.into()) => Err(ToolError::new(
                ToolErrorCode::ToolTimeout,
                format!(
                    "no answer within {} ms; whether the call took effect is unknown",
                    limit.duration_since(sent).as_millis()
                ),
            )),
        }
    }

    /// The live connection or the attempt to make one, which this begins if there is none.
    fn connection(self: &Arc<Self>) -> Result<Driven<Arc<Connection>>, ToolError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(client::closed(&self.name));
        }
        if let Some(start) = &state.start {
            match start.peek() {
                None => return Ok(start.clone()),
                Some(Ok(connection)) if connection.is_alive() => return Ok(start.clone()),
                Some(_) => {}
            }
        }
        let now = Instant::now();
        let not_before = state.started.map_or(now, |started| now.max(started + RESTART_PAUSE));
        state.started = Some(not_before);
        let start = drive(&self.handle, Arc::clone(self).start(not_before));
        state.start = Some(start.clone());
        Ok(start)
    }

    async fn start(self: Arc<Self>, not_before: Instant) -> Result<Arc<Connection>, ToolError> {
        sleep_until(not_before.into()).await;
        let adopt = |process: &Arc<Process>| {
            let mut state = self.state.lock();
            if !state.closed {
                state.process = Some(Arc::clone(process));
            }
            !state.closed
        };
        let McpTransport::Stdio(stdio) = &self.config.transport else {
            return Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, "HTTP is not there yet"));
        };
        Connection::start(stdio, Arc::clone(&self.name), &self.handle, adopt).await
    }

    /// The list over this connection, which is asked for if there is none, or if the server has
    /// said that it changed. A server that says so all the time costs itself a list for each call
    /// of a script, and nobody else anything.
    fn listing(self: &Arc<Self>, connection: &Arc<Connection>) -> Driven<Arc<ToolList>> {
        let mut state = self.state.lock();
        if let Some(listing) = &state.listing
            && listing.is_for(connection)
            && !matches!(listing.result.peek(), Some(Err(_)))
        {
            return listing.result.clone();
        }
        let list_changes = connection.list_changes();
        let (server, listed) = (Arc::clone(self), Arc::clone(connection));
        let result = drive(&self.handle, async move {
            let definitions = listed.list().await?;
            Ok(server.keep(definitions))
        });
        state.listing =
            Some(Listing { connection: Arc::clone(connection), list_changes, result: result.clone() });
        result
    }

    /// The list as it is kept: the last one, if that is equal.
    fn keep(&self, definitions: Vec<ToolDefinition>) -> Arc<ToolList> {
        let mut state = self.state.lock();
        match &state.tools {
            Some(tools) if tools.tools == definitions => Arc::clone(tools),
            _ => Arc::clone(state.tools.insert(Arc::new(ToolList { tools: definitions, ttl: None }))),
        }
    }

    /// Lets nobody in any more and returns what there was, for its end to happen out of the lock.
    fn lock_up(&self) -> State {
        std::mem::replace(&mut *self.state.lock(), State { closed: true, ..State::default() })
    }

    fn kill(&self) -> Option<Arc<Process>> {
        let process = self.lock_up().process?;
        process.kill();
        Some(process)
    }

    async fn shutdown(self: Arc<Self>) {
        let State { start, process, .. } = self.lock_up();
        if let Some(Ok(connection)) = start.as_ref().and_then(Shared::peek) {
            let _elapsed = timeout(SHUTDOWN_TIME, connection.shutdown()).await;
        }
        // One that is still starting has nothing to lose.
        if let Some(process) = process {
            process.kill();
        }
    }
}

impl Listing {
    fn is_for(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.connection, connection) && self.list_changes == connection.list_changes()
    }
}
