//! Which servers and tools there are, and which of them a name means.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::names::{camel_case, full_name, split_full_name, suggestion};
use super::{ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList};

/// All servers of an executor. Lives as long as the executor; lists are fetched when first needed.
pub(crate) struct Catalog {
    servers: Vec<Server>,
    /// Exact and camelCase names. An exact name wins over another server's camelCase form.
    by_name: HashMap<String, usize>,
}

struct Server {
    name: Arc<str>,
    dispatcher: Arc<dyn ToolDispatcher>,
    /// The index of the list that the dispatcher gave last.
    index: Mutex<Option<Arc<ServerTools>>>,
}

/// One server's tools with their names indexed. Immutable; a changed list makes a new one.
pub(crate) struct ServerTools {
    list: Arc<ToolList>,
    names: Vec<Arc<str>>,
    exact: HashMap<Arc<str>, usize>,
    /// `None` where two tools have the same form: then neither can be called by it.
    camel: HashMap<String, Option<usize>>,
}

/// A tool that a name turned out to mean.
#[derive(Clone)]
pub(crate) struct ResolvedTool {
    pub(crate) server: Arc<str>,
    pub(crate) tool: Arc<str>,
    pub(crate) dispatcher: Arc<dyn ToolDispatcher>,
    tools: Arc<ServerTools>,
    position: usize,
}

impl ResolvedTool {
    pub(crate) fn definition(&self) -> &ToolDefinition {
        &self.tools.list.tools[self.position]
    }

    /// The object that scripts see: `ToolSchema`.
    pub(crate) fn schema(&self) -> Value {
        let definition = self.definition();
        let mut schema = Map::new();
        schema.insert("name".to_owned(), full_name(&self.server, &self.tool).into());
        schema.insert("server".to_owned(), Value::from(&*self.server));
        schema.insert("description".to_owned(), definition.description.clone().unwrap_or_default().into());
        schema.insert("parameters".to_owned(), definition.input_schema.to_value());
        if let Some(output_schema) = &definition.output_schema {
            schema.insert("outputSchema".to_owned(), output_schema.to_value());
        }
        if let Some(annotations) = &definition.annotations {
            schema.insert("annotations".to_owned(), annotations.clone());
        }
        Value::Object(schema)
    }

    /// Name, server and description only.
    pub(crate) fn summary(&self) -> Value {
        json!({
            "name": full_name(&self.server, &self.tool),
            "server": &*self.server,
            "description": self.definition().description.clone().unwrap_or_default(),
        })
    }
}

impl Catalog {
    /// Collects the servers of all dispatchers. Of two servers with one name the first wins: native
    /// tools come before MCP servers, which cannot take their names over.
    pub(crate) fn new(dispatchers: &[Arc<dyn ToolDispatcher>]) -> Self {
        let mut servers: Vec<Server> = Vec::new();
        for dispatcher in dispatchers {
            for name in dispatcher.servers() {
                if servers.iter().any(|server| server.name == name) {
                    tracing::warn!(server = %name, "a second server of this name is ignored");
                    continue;
                }
                let dispatcher = Arc::clone(dispatcher);
                servers.push(Server { name, dispatcher, index: Mutex::new(None) });
            }
        }
        let mut by_name = HashMap::new();
        for (position, server) in servers.iter().enumerate() {
            by_name.insert(server.name.to_string(), position);
        }
        for (position, server) in servers.iter().enumerate() {
            by_name.entry(camel_case(&server.name)).or_insert(position);
        }
        Self { servers, by_name }
    }

    /// The servers' names, in order.
    pub(crate) fn server_names(&self) -> impl Iterator<Item = &Arc<str>> + Clone {
        self.servers.iter().map(|server| &server.name)
    }

    fn server(&self, name: &str) -> Result<&Server, ToolError> {
        if let Some(&position) = self.by_name.get(name) {
            return Ok(&self.servers[position]);
        }
        let names = self.server_names().map(AsRef::as_ref);
        Err(ToolError::new(
            ToolErrorCode::ToolNotFound,
            format!("no server `{}`{}", shortened(name), suggestion(name, "servers", names)),
        ))
    }

    /// The canonical name of the server that `name` means.
    pub(crate) fn server_name(&self, name: &str) -> Result<&Arc<str>, ToolError> {
        self.server(name).map(|server| &server.name)
    }

    /// Every tool of one server, in the server's order.
    pub(crate) async fn tools(
        &self,
        server: &str,
        deadline: Instant,
    ) -> Result<Vec<ResolvedTool>, ToolError> {
        let server = self.server(server)?;
        let tools = server.tools(deadline).await?;
        Ok((0..tools.names.len()).map(|position| server.resolved(&tools, position)).collect())
    }

    /// The tool that a server's and a tool's name mean: the exact names, else their camelCase forms.
    ///
    /// # Errors
    ///
    /// `ToolNotFound` with the nearest right names, or what kept the server from listing its tools.
    pub(crate) async fn resolve(
        &self,
        server: &str,
        tool: &str,
        deadline: Instant,
    ) -> Result<ResolvedTool, ToolError> {
        let server = self.server(server).map_err(|error| error.for_tool(server, tool))?;
        let tools = server.tools(deadline).await.map_err(|error| error.for_tool(&server.name, tool))?;
        let position = tools.position(&server.name, tool)?;
        Ok(server.resolved(&tools, position))
    }

    /// The tool that `mcp__server__tool` means.
    ///
    /// # Errors
    ///
    /// As [`Catalog::resolve`]; also `ToolNotFound` when the name can be read as two tools that both
    /// exist, because the right one cannot be guessed.
    pub(crate) async fn resolve_full_name(
        &self,
        name: &str,
        deadline: Instant,
    ) -> Result<ResolvedTool, ToolError> {
        let known = |server: &str| self.by_name.contains_key(server);
        let candidates: Vec<(&str, &str)> =
            split_full_name(name).filter(|(server, _)| known(server)).collect();
        let mut found: Vec<ResolvedTool> = Vec::new();
        let mut failure = None;
        for (server, tool) in &candidates {
            match self.resolve(server, tool, deadline).await {
                Ok(resolved) => found.push(resolved),
                Err(error) => failure = Some(error),
            }
        }
        match (found.pop(), failure) {
            (Some(resolved), _) if found.is_empty() => Ok(resolved),
            (Some(_), _) => Err(ToolError::new(
                ToolErrorCode::ToolNotFound,
                format!("`{name}` means more than one tool; use `tools[server][tool]`"),
            )),
            (None, Some(error)) => Err(error),
            (None, None) => Err(self.unknown_full_name(name)),
        }
    }

    fn unknown_full_name(&self, name: &str) -> ToolError {
        let names = self.server_names().map(AsRef::as_ref);
        let message = match split_full_name(name).next() {
            Some((server, _)) => {
                format!("no server `{}`{}", shortened(server), suggestion(server, "servers", names))
            }
            None => format!("expected a full name as `mcp__server__tool`: `{}`", shortened(name)),
        };
        ToolError::new(ToolErrorCode::ToolNotFound, message)
    }

    /// The tools of all servers in order, and what kept servers from listing theirs. Servers are
    /// asked at the same time.
    pub(crate) async fn all_tools(
        &self,
        wanted: impl Fn(&str) -> bool,
        deadline: Instant,
    ) -> (Vec<ResolvedTool>, Vec<ToolError>) {
        let servers: Vec<&Server> = self.servers.iter().filter(|server| wanted(&server.name)).collect();
        let lists = join_all(servers.iter().map(|server| server.tools(deadline))).await;
        let mut resolved = Vec::new();
        let mut failures = Vec::new();
        for (server, list) in servers.into_iter().zip(lists) {
            match list {
                Ok(tools) => {
                    resolved.extend((0..tools.names.len()).map(|position| server.resolved(&tools, position)));
                }
                Err(error) => failures.push(ToolError { server: Some(server.name.to_string()), ..error }),
            }
        }
        (resolved, failures)
    }
}

impl Server {
    async fn tools(&self, deadline: Instant) -> Result<Arc<ServerTools>, ToolError> {
        let list = self.dispatcher.tools(&self.name, deadline).await?;
        let mut index = self.index.lock();
        if let Some(tools) = &*index
            && Arc::ptr_eq(&tools.list, &list)
        {
            return Ok(Arc::clone(tools));
        }
        let tools = Arc::new(ServerTools::new(list));
        *index = Some(Arc::clone(&tools));
        Ok(tools)
    }

    fn resolved(&self, tools: &Arc<ServerTools>, position: usize) -> ResolvedTool {
        ResolvedTool {
            server: Arc::clone(&self.name),
            tool: Arc::clone(&tools.names[position]),
            dispatcher: Arc::clone(&self.dispatcher),
            tools: Arc::clone(tools),
            position,
        }
    }
}

impl ServerTools {
    fn new(list: Arc<ToolList>) -> Self {
        let names: Vec<Arc<str>> = list.tools.iter().map(|definition| Arc::from(&*definition.name)).collect();
        let mut exact = HashMap::new();
        let mut camel = HashMap::new();
        for (position, name) in names.iter().enumerate() {
            // Of two tools with one name the first is the one that can be called.
            exact.entry(Arc::clone(name)).or_insert(position);
            camel.entry(camel_case(name)).and_modify(|entry| *entry = None).or_insert(Some(position));
        }
        Self { list, names, exact, camel }
    }

    fn position(&self, server: &str, tool: &str) -> Result<usize, ToolError> {
        if let Some(&position) = self.exact.get(tool) {
            return Ok(position);
        }
        let message = match self.camel.get(tool) {
            Some(&Some(position)) => return Ok(position),
            Some(None) => {
                let names = self.names.iter().map(AsRef::as_ref).filter(|name| camel_case(name) == tool);
                let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                format!("`{tool}` on server `{server}` could be {names}; use the exact name")
            }
            None => {
                let names = self.names.iter().map(AsRef::as_ref);
                format!(
                    "no tool `{}` on server `{server}`{}",
                    shortened(tool),
                    suggestion(tool, "tools", names)
                )
            }
        };
        Err(ToolError::new(ToolErrorCode::ToolNotFound, message).for_tool(server, tool))
    }
}

/// The start of a name that came from a script, for a message.
fn shortened(name: &str) -> String {
    const SHOWN: usize = 100;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
