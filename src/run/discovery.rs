//! Discovery: the servers and tools that a script can find, all of which it may call.

use std::sync::Arc;
use std::time::Instant;

use crate::run::context::ExecutionContext;
use crate::run::errors::{denied, over};
use crate::run::observer::{Discovered, RunEvent};
use crate::run::result::LogLevel;
use crate::text::visible_preview;
use crate::tools::catalog::{Catalog, ResolvedTool, describe_failures};
use crate::tools::{ServerDetails, ToolError, ToolKind};

/// Maximum characters of a query in the line which says that nothing matches it.
const MAX_SHOWN_QUERY: usize = 80;

impl ExecutionContext {
    /// Returns at most `limit` permitted tools that match `query`, best match first. An empty query returns all tools,
    /// in order. `server` restricts the search to one server. Servers that cannot list their tools are left out, and
    /// one line of the script's output names them. If no tool matches and `or_nearest` is set, the most similar tools
    /// are returned, and a line says so.
    pub(crate) async fn search(
        &self,
        query: &str,
        server: Option<&str>,
        limit: usize,
        or_nearest: bool,
    ) -> Result<Vec<ResolvedTool>, ToolError> {
        let asked = Instant::now();
        let found = self.find(query, server, limit, or_nearest).await;
        self.report_discovery("search", Some(query), server, asked, &found);
        found
    }

    async fn find(
        &self,
        query: &str,
        server: Option<&str>,
        limit: usize,
        or_nearest: bool,
    ) -> Result<Vec<ResolvedTool>, ToolError> {
        let in_force = self.in_force();
        let catalog = &in_force.catalog;
        let server = server.map(|name| self.known_server(catalog, name)).transpose()?;
        let wanted =
            |name: &str| server.is_none_or(|server| &**server == name) && in_force.may_permit_server(name);
        let permitted = |server: &str, tool: &str| in_force.permits(server, tool);
        let deadline = self.latest_deadline();
        let (mut found, failures) =
            catalog.search(query, limit, or_nearest, wanted, permitted, deadline).await;
        if let Some(warning) = describe_failures(&failures) {
            self.log_for_call(LogLevel::Warn, warning);
        }
        // A search for tools is no search for ways to save scripts: `help("scripts")` describes
        // those.
        found.tools.retain(|tool| tool.kind() != ToolKind::ScriptChange);
        if found.are_nearest && !found.tools.is_empty() {
            let shown = visible_preview(query, MAX_SHOWN_QUERY);
            self.log_for_call(LogLevel::Warn, format!("no tool matches `{shown}`: these are the nearest"));
        }
        Ok(found.tools)
    }

    /// The canonical name of a server that the run may see, and what is known of the server without a request to it.
    pub(crate) fn server_details(&self, server: &str) -> Result<(Arc<str>, ServerDetails), ToolError> {
        let tools = self.in_force();
        let (name, dispatcher) =
            tools.catalog.dispatcher(server).ok_or_else(|| self.unknown_server(&tools.catalog, server))?;
        if !tools.may_permit_server(name) {
            return Err(denied(name, "*"));
        }
        Ok((Arc::clone(name), dispatcher.details(name)))
    }

    /// The canonical name of a server.
    fn known_server<'a>(&self, catalog: &'a Catalog, server: &str) -> Result<&'a Arc<str>, ToolError> {
        catalog.server_name(server).ok_or_else(|| self.unknown_server(catalog, server))
    }

    /// The error about a server that does not exist.
    pub(super) fn unknown_server(&self, catalog: &Catalog, server: &str) -> ToolError {
        catalog.unknown_server(server, &self.suggestions)
    }

    /// The servers with a tool of this name that the run may call, at most `max`, as last listed.
    pub(crate) fn servers_with_tool(&self, name: &str, max: usize) -> Vec<Arc<str>> {
        let in_force = self.in_force();
        let named = in_force.catalog.servers_with_tool(name);
        let permitted = named.filter(|(server, tool)| in_force.permits(server, tool));
        permitted.take(max).map(|(server, _)| Arc::clone(server)).collect()
    }

    /// The name of a server in Python scripts.
    pub(crate) fn python_alias(&self, server: &str) -> String {
        self.in_force().catalog.python_alias(server)
    }

    /// The permitted tools of one server, in its order.
    pub(crate) async fn tools(&self, server: &str) -> Result<Vec<ResolvedTool>, ToolError> {
        let asked = Instant::now();
        let found = self.list(server).await;
        self.report_discovery("list", None, Some(server), asked, &found);
        found
    }

    /// Calls `describe` for each tool, and stops if the run ends: a server can have ten thousand tools with megabytes
    /// of schemas, and nothing else interrupts a host call.
    pub(crate) fn describe_each<'a, T>(
        &self,
        tools: &'a [ResolvedTool],
        describe: impl Fn(&'a ResolvedTool) -> T,
    ) -> Result<Vec<T>, ToolError> {
        let described = tools
            .iter()
            .map(|tool| if self.cancel.is_cancelled() { Err(over()) } else { Ok(describe(tool)) });
        described.collect()
    }

    fn report_discovery(
        &self,
        kind: &'static str,
        query: Option<&str>,
        server: Option<&str>,
        asked: Instant,
        found: &Result<Vec<ResolvedTool>, ToolError>,
    ) {
        self.observation().emit(|| {
            let found = found.as_ref().map(Vec::len).map_err(|error| error.code);
            RunEvent::Discovered(Discovered { kind, query, server, found, duration: asked.elapsed() })
        });
    }

    async fn list(&self, server: &str) -> Result<Vec<ResolvedTool>, ToolError> {
        let in_force = self.in_force();
        let name = self.known_server(&in_force.catalog, server)?;
        if !in_force.may_permit_server(name) {
            return Err(denied(name, "*"));
        }
        let mut tools = in_force.catalog.tools(server, self.latest_deadline(), &self.suggestions).await?;
        tools.retain(|tool| in_force.permits(&tool.server, &tool.tool));
        Ok(tools)
    }
}
