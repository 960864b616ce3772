//! The catalog of servers and tools, and the resolution of names to them.

mod checks;
mod list;
mod server;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use self::checks::ArgumentChecks;
pub(crate) use self::list::ResolvedTool;
use self::list::{ServerTools, shown_name};
use self::server::{REFRESH_TIME, Server};
use super::cache::ListCache;
use super::declarations::{self, ToolTypes};
use super::names::{python_name, split_full_name, suggestion, typescript_name};
use super::observed::Observed;
use super::pins::Pins;
use super::search::{self, SearchIndex};
use super::shape::Shape;
use super::{ToolChange, ToolDispatcher, ToolError, ToolErrorCode};

/// All servers of an executor. Lives as long as the executor; lists are fetched when first needed.
pub(crate) struct Catalog {
    servers: Vec<Arc<Server>>,
    /// Exact names and their identifiers in both languages. An exact name has precedence over
    /// another server's identifier.
    by_name: HashMap<String, usize>,
    /// The index of the lists that were searched last.
    index: Mutex<Option<Indexed>>,
    options: CatalogOptions,
}

/// A search index and the lists that it was built from, in this order.
#[derive(Clone)]
struct Indexed {
    lists: Vec<Arc<ServerTools>>,
    index: Arc<SearchIndex>,
}
/// The stores and options of a catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct CatalogOptions {
    /// The cache of tool lists on disk. Without it, each process has to ask every server.
    pub(crate) cache: Option<ListCache>,
    /// The pinned definitions. Without them, changed definitions are not detected.
    pub(crate) pins: Option<Pins>,
    /// The inferred output schemas.
    pub(crate) observed: Arc<Observed>,
    /// The compiled argument schemas.
    pub(crate) checks: Arc<ArgumentChecks>,
    /// Strict mode: tools whose definition differs from the pinned one are refused.
    pub(crate) strict: bool,
    /// The runtime for background refreshes. Without it, lists are refreshed only while a caller
    /// waits.
    pub(crate) runtime: Option<Handle>,
}

impl Catalog {
    /// Collects the servers of all dispatchers. If two servers have the same name, the first one
    /// wins: native tools come before MCP servers, so an MCP server cannot take over a native
    /// server's name.
    pub(crate) fn new(dispatchers: &[Arc<dyn ToolDispatcher>], options: &CatalogOptions) -> Self {
        let empty = Self {
            servers: Vec::new(),
            by_name: HashMap::new(),
            index: Mutex::default(),
            options: options.clone(),
        };
        empty.with_dispatchers(dispatchers)
    }

    /// A catalog of these dispatchers' servers instead, in the same way. A server of the same name
    /// and dispatcher keeps what is known of its tools.
    pub(crate) fn with_dispatchers(&self, dispatchers: &[Arc<dyn ToolDispatcher>]) -> Self {
        let mut servers: Vec<Arc<Server>> = Vec::new();
        let mut by_name = HashMap::new();
        for dispatcher in dispatchers {
            for name in dispatcher.servers() {
                if by_name.contains_key(&*name) {
                    tracing::warn!(server = %name, "a second server of this name is ignored");
                    continue;
                }
                by_name.insert(name.to_string(), servers.len());
                let is_same = |server: &&Arc<Server>| {
                    server.name == name
                        && std::ptr::addr_eq(Arc::as_ptr(&server.dispatcher), Arc::as_ptr(dispatcher))
                };
                servers.push(self.servers.iter().find(is_same).cloned().unwrap_or_else(|| {
                    Arc::new(Server {
                        identity: dispatcher.identity(&name),
                        dispatcher: Arc::clone(dispatcher),
                        options: self.options.clone(),
                        state: Mutex::default(),
                        name,
                    })
                }));
            }
        }
        for (position, server) in servers.iter().enumerate() {
            by_name.entry(typescript_name(&server.name)).or_insert(position);
            by_name.entry(python_name(&server.name)).or_insert(position);
        }
        Self { servers, by_name, index: Mutex::default(), options: self.options.clone() }
    }

    /// The servers' names, in order.
    pub(crate) fn server_names(&self) -> impl Iterator<Item = &Arc<str>> + Clone {
        self.servers.iter().map(|server| &server.name)
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>, ToolError> {
        if let Some(&position) = self.by_name.get(name) {
            return Ok(&self.servers[position]);
        }
        let names = self.server_names().map(AsRef::as_ref);
        Err(ToolError::new(
            ToolErrorCode::ToolNotFound,
            format!("no server `{}`{}", shown_name(name), suggestion(name, "servers", names)),
        ))
    }

    /// The canonical name of the server that `name` refers to.
    pub(crate) fn server_name(&self, name: &str) -> Result<&Arc<str>, ToolError> {
        self.server(name).map(|server| &server.name)
    }

    /// The canonical name of the server that `name` refers to, and its dispatcher.
    pub(crate) fn dispatcher(&self, name: &str) -> Result<(&Arc<str>, &Arc<dyn ToolDispatcher>), ToolError> {
        self.server(name).map(|server| (&server.name, &server.dispatcher))
    }

    /// All tools of one server, in the server's order.
    pub(crate) async fn tools(
        &self,
        server: &str,
        deadline: Instant,
    ) -> Result<Vec<ResolvedTool>, ToolError> {
        let server = self.server(server)?;
        let tools = server.tools(deadline).await?;
        let permitted = (0..tools.names.len()).filter(|&position| tools.is_usable(server, position));
        Ok(permitted.map(|position| server.resolved(&tools, position)).collect())
    }

    /// Resolves a server's and a tool's name: as exact names, else as identifiers in either
    /// language. If the name is not in a cached list, the list is fetched again.
    ///
    /// # Errors
    ///
    /// `ToolNotFound` with the nearest valid names; the error that prevented the server from
    /// listing its tools; or, in strict mode, `ToolDenied` for a tool whose definition differs from
    /// the pinned one.
    pub(crate) async fn resolve(
        &self,
        server: &str,
        tool: &str,
        deadline: Instant,
    ) -> Result<ResolvedTool, ToolError> {
        let server = self.server(server).map_err(|error| error.for_tool(server, tool))?;
        let named = |error: ToolError| error.for_tool(&server.name, tool);
        let mut tools = server.tools(deadline).await.map_err(named)?;
        let may_be_outdated = match tools.position(&server.name, tool) {
            Ok(position) => !tools.is_usable(server, position),
            Err(_) => !server.is_verified(),
        };
        if may_be_outdated && server.may_refresh() {
            tools = server.refreshed(deadline).await.map_err(named)?;
        }
        let position = tools.position(&server.name, tool)?;
        let resolved = server.resolved(&tools, position);
        if !tools.is_usable(server, position) {
            let message = format!(
                "the definition of `{}.{}` is not the one that was accepted; look at it with `cx tools changed` \
                 and accept it with `cx tools accept {}.{}`",
                server.name, resolved.tool, server.name, resolved.tool
            );
            return Err(named(ToolError::new(ToolErrorCode::ToolDenied, message)));
        }
        Ok(resolved)
    }

    /// Resolves the same tool again in a list fetched from its server, after a cached list has led
    /// the caller to an error. `None` if the tool's list already came from the server, or if the
    /// server may not be asked again yet.
    pub(crate) async fn resolve_again(
        &self,
        tool: &ResolvedTool,
        deadline: Instant,
    ) -> Result<Option<ResolvedTool>, ToolError> {
        let server = self.server(&tool.server)?;
        if server.is_verified() || !server.may_refresh() {
            return Ok(None);
        }
        server.refreshed(deadline).await?;
        self.resolve(&tool.server, &tool.tool, deadline).await.map(Some)
    }

    /// Resolves `mcp__server__tool` among the tools for which `is_out_of_reach` is false.
    ///
    /// # Errors
    ///
    /// As [`Catalog::resolve`]; also `ToolNotFound` if the name can be read as two tools that both
    /// exist, because the intended one cannot be known.
    pub(crate) async fn resolve_full_name(
        &self,
        name: &str,
        is_out_of_reach: impl Fn(&str, &str) -> bool,
        deadline: Instant,
    ) -> Result<ResolvedTool, ToolError> {
        let known = |server: &str| self.by_name.contains_key(server);
        let (denied, candidates): (Vec<_>, Vec<_>) = split_full_name(name)
            .filter(|(server, _)| known(server))
            .partition(|(server, tool)| is_out_of_reach(server, tool));
        let mut found: Vec<ResolvedTool> = Vec::new();
        let mut failure = None;
        for (server, tool) in &candidates {
            match self.resolve(server, tool, deadline).await {
                Ok(resolved) => found.push(resolved),
                // It is unknown whether this server has the tool, so the name may be ambiguous.
                Err(error) if error.code != ToolErrorCode::ToolNotFound => return Err(error),
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
            (None, None) => Err(match denied.first() {
                Some((server, tool)) => ToolError::new(
                    ToolErrorCode::ToolDenied,
                    format!("this run may not call `{server}.{tool}`"),
                )
                .for_tool(server, tool),
                None => self.unknown_full_name(name),
            }),
        }
    }

    fn unknown_full_name(&self, name: &str) -> ToolError {
        let names = self.server_names().map(AsRef::as_ref);
        let message = match split_full_name(name).next() {
            Some((server, _)) => {
                format!("no server `{}`{}", shown_name(server), suggestion(server, "servers", names))
            }
            None => format!("expected a full name as `mcp__server__tool`: `{}`", shown_name(name)),
        };
        ToolError::new(ToolErrorCode::ToolNotFound, message)
    }

    /// The tools that match `query`, best first, and the errors of servers that could not list
    /// theirs. All tools in order if the query has no words. At most `limit` tools.
    pub(crate) async fn search(
        &self,
        query: &str,
        limit: usize,
        wanted: impl Fn(&str) -> bool,
        permitted: impl Fn(&str, &str) -> bool,
        deadline: Instant,
    ) -> (Vec<ResolvedTool>, Vec<ToolError>) {
        let servers: Vec<&Arc<Server>> = self.servers.iter().filter(|server| wanted(&server.name)).collect();
        let listed = join_all(servers.iter().map(|server| server.discovered(deadline))).await;
        let mut lists = Vec::new();
        let mut failures = Vec::new();
        for (server, (tools, failure)) in servers.into_iter().zip(listed) {
            lists.extend(tools.map(|tools| (server, tools)));
            failures
                .extend(failure.map(|error| ToolError { server: Some(server.name.to_string()), ..error }));
        }
        (self.ranked(&lists, query, limit, permitted), failures)
    }

    /// As `search`, among the tools that are known without asking any server.
    pub(crate) fn search_known(
        &self,
        query: &str,
        limit: usize,
        permitted: impl Fn(&str, &str) -> bool,
    ) -> Vec<ResolvedTool> {
        let lists: Vec<_> =
            self.servers.iter().filter_map(|server| Some((server, server.load()?.tools))).collect();
        self.ranked(&lists, query, limit, permitted)
    }

    fn ranked(
        &self,
        lists: &[(&Arc<Server>, Arc<ServerTools>)],
        query: &str,
        limit: usize,
        permitted: impl Fn(&str, &str) -> bool,
    ) -> Vec<ResolvedTool> {
        // The start of each list in the concatenation of all tools.
        let mut starts = Vec::with_capacity(lists.len());
        let mut total = 0;
        for (_, tools) in lists {
            starts.push(total);
            total += tools.names.len();
        }
        let place = |position: usize| {
            let list = starts.partition_point(|start| *start <= position) - 1;
            (list, position - starts[list])
        };
        let accept = |position: usize| {
            let (list, position) = place(position);
            let (server, tools) = &lists[list];
            tools.is_usable(server, position) && permitted(&server.name, &tools.names[position])
        };
        let resolve = |position: usize| {
            let (list, position) = place(position);
            let (server, tools) = &lists[list];
            server.resolved(tools, position)
        };
        if query.trim().is_empty() {
            return (0..total).filter(|&position| accept(position)).take(limit).map(resolve).collect();
        }
        let index = self.index_of(lists);
        index.search(query, accept).into_iter().take(limit).map(resolve).collect()
    }

    /// The index of these lists. The previous index is reused if it was built from the same lists.
    fn index_of(&self, lists: &[(&Arc<Server>, Arc<ServerTools>)]) -> Arc<SearchIndex> {
        let is_same = |indexed: &&Indexed| {
            indexed.lists.len() == lists.len()
                && indexed.lists.iter().zip(lists).all(|(indexed, (_, tools))| Arc::ptr_eq(indexed, tools))
        };
        if let Some(indexed) = self.index.lock().as_ref().filter(is_same) {
            return Arc::clone(&indexed.index);
        }
        let definitions = lists.iter().flat_map(|(server, tools)| {
            tools.list.tools.iter().map(|definition| (&*server.name, definition))
        });
        let index = Arc::new(search::index_of(definitions));
        let lists = lists.iter().map(|(_, tools)| Arc::clone(tools)).collect();
        *self.index.lock() = Some(Indexed { lists, index: Arc::clone(&index) });
        index
    }

    /// Fetches the tool lists of all servers concurrently.
    pub(crate) async fn refresh(&self) -> Vec<(String, Result<(), ToolError>)> {
        let deadline = Instant::now() + REFRESH_TIME;
        let refreshed = self.servers.iter().map(|server| async move {
            (server.name.to_string(), server.refreshed(deadline).await.map(drop))
        });
        join_all(refreshed).await
    }

    /// TypeScript declarations of the permitted tools that are known without asking any server.
    pub(crate) fn declarations(&self, permitted: impl Fn(&str, &str) -> bool) -> String {
        let mut known = self.known();
        for (_, tools) in &mut known {
            tools.iter_mut().for_each(|tools| tools.retain(|tool| permitted(&tool.server, &tool.tool)));
        }
        let tools: Vec<(&Arc<str>, Vec<&ResolvedTool>)> =
            known.iter().map(|(server, tools)| (server, tools.iter().flatten().collect())).collect();
        let shapes: Vec<Vec<Option<Shape>>> =
            tools.iter().map(|(_, tools)| tools.iter().map(|tool| tool.observed()).collect()).collect();
        declarations::typescript(tools.iter().zip(&shapes).map(|((name, tools), shapes)| {
            let types = tools
                .iter()
                .zip(shapes)
                .map(|(tool, shape)| ToolTypes { definition: tool.definition(), observed: shape.as_ref() });
            declarations::ServerTools { name, tools: types.collect() }
        }))
    }

    /// The differences from the pinned definitions.
    pub(crate) fn changes(&self) -> std::io::Result<Vec<ToolChange>> {
        self.options.pins.as_ref().map_or_else(|| Ok(Vec::new()), Pins::changes)
    }

    /// Pins the current definition of one of a server's tools, or of all its tools.
    pub(crate) fn accept(&self, server: &str, tool: Option<&str>) -> std::io::Result<usize> {
        self.options.pins.as_ref().map_or(Ok(0), |pins| pins.accept(server, tool))
    }

    /// Writes unsaved data to disk. Blocks.
    pub(crate) fn save(&self) {
        self.options.observed.save();
    }

    /// Deletes the cached lists and the inferred output schemas.
    pub(crate) fn clear_cache(&self) -> std::io::Result<usize> {
        let lists = self.options.cache.as_ref().map_or(Ok(0), ListCache::clear)?;
        Ok(lists + self.options.observed.clear()?)
    }

    /// What is known of all servers without asking any: each server's name and its tools as last
    /// listed, from memory or from disk.
    pub(crate) fn known(&self) -> Vec<(Arc<str>, Option<Vec<ResolvedTool>>)> {
        let known = |server: &Arc<Server>| {
            let tools = server.load().map(|known| {
                (0..known.tools.names.len())
                    .filter(|&position| known.tools.is_usable(server, position))
                    .map(|position| server.resolved(&known.tools, position))
                    .collect()
            });
            (Arc::clone(&server.name), tools)
        };
        self.servers.iter().map(known).collect()
    }
}

#[cfg(test)]
mod tests;
