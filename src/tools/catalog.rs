//! The catalog of servers and tools.

mod checks;
mod failures;
mod list;
mod options;
mod resolve;
mod resolved;
mod search;
mod server;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;

use self::list::{IndexedList, preview_name};
use self::search::RankedSearch;
use self::server::{CatalogServer, REFRESH_TIME};
use super::cache::ListCache;
use super::declarations::{self, ToolTypes};
use super::dispatch::ToolDispatcher;
use super::error::{ToolError, ToolErrorCode};
use super::names::{python_name, suggestion, typescript_name};
use super::pins::{DamagedPins, Pins, ToolChange};
use super::shape::Shape;
use super::unmatched::NamedServer;

pub(crate) use self::failures::{ListFailure, describe_failures};
pub(crate) use self::options::CatalogOptions;
pub(crate) use self::resolved::ResolvedTool;

/// All servers of an executor. Lives as long as the executor; lists are fetched when first needed.
pub(crate) struct Catalog {
    servers: Vec<Arc<CatalogServer>>,
    /// Exact names and their identifiers in both languages. An exact name has precedence over
    /// another server's identifier.
    by_name: HashMap<String, usize>,
    /// The same for servers that were removed while the catalog was in use.
    removed: HashMap<String, Arc<str>>,
    search: RankedSearch,
    options: CatalogOptions,
}

impl Catalog {
    /// Collects the servers of all dispatchers. If two servers have the same name, the first one
    /// wins: native tools come before MCP servers, so an MCP server cannot take over a native
    /// server's name.
    pub(crate) fn new(dispatchers: &[Arc<dyn ToolDispatcher>], options: &CatalogOptions) -> Self {
        let empty = Self {
            servers: Vec::new(),
            by_name: HashMap::new(),
            removed: HashMap::new(),
            search: RankedSearch::default(),
            options: options.clone(),
        };
        empty.with_dispatchers(dispatchers)
    }

    /// A catalog of the same dispatchers with other options. Servers keep what is known of their
    /// tools, unless strict mode changes: then each has to list them again.
    pub(crate) fn with_options(&self, strict: bool, missing_server_hint: Option<Arc<str>>) -> Self {
        let options = CatalogOptions { strict, missing_server_hint, ..self.options.clone() };
        let servers = if strict == self.options.strict { self.servers.clone() } else { Vec::new() };
        Self {
            servers,
            by_name: HashMap::new(),
            removed: HashMap::new(),
            search: RankedSearch::default(),
            options,
        }
    }

    /// This catalog, as a run uses it after the configuration has changed: each configured server is
    /// the one that `now` has under its name, or missing. All others stay, and none is added. A name
    /// means the server that it meant before, or none.
    pub(crate) fn following(
        &self,
        now: &Self,
        was_configured: impl Fn(&str) -> bool,
        is_configured: impl Fn(&str) -> bool,
    ) -> Self {
        let current = |server: &Arc<CatalogServer>| {
            if !was_configured(&server.name) {
                return Some(Arc::clone(server));
            }
            let current = now.servers.iter().find(|current| current.name == server.name);
            current.filter(|current| is_configured(&current.name)).cloned()
        };
        let mut servers = Vec::with_capacity(self.servers.len());
        let positions: Vec<Option<usize>> = self
            .servers
            .iter()
            .map(|server| {
                servers.push(current(server)?);
                Some(servers.len() - 1)
            })
            .collect();
        let (mut by_name, mut removed) = (HashMap::new(), self.removed.clone());
        for (name, &position) in &self.by_name {
            match positions[position] {
                Some(position) => drop(by_name.insert(name.clone(), position)),
                None => drop(removed.insert(name.clone(), Arc::clone(&self.servers[position].name))),
            }
        }
        Self { servers, by_name, removed, search: RankedSearch::default(), options: self.options.clone() }
    }

    /// Whether this is how `tool` is reached now: its server is still the one that listed it.
    pub(crate) fn has_server_of(&self, tool: &ResolvedTool) -> bool {
        let current = self.dispatcher(&tool.server);
        let own = Arc::as_ptr(tool.dispatcher());
        current.is_ok_and(|(_, dispatcher)| std::ptr::addr_eq(Arc::as_ptr(dispatcher), own))
    }

    /// A catalog of these dispatchers' servers instead, in the same way. A server of the same name
    /// and dispatcher keeps what is known of its tools.
    pub(crate) fn with_dispatchers(&self, dispatchers: &[Arc<dyn ToolDispatcher>]) -> Self {
        let mut servers: Vec<Arc<CatalogServer>> = Vec::new();
        let mut by_name = HashMap::new();
        for dispatcher in dispatchers {
            for name in dispatcher.servers() {
                if by_name.contains_key(&*name) {
                    tracing::warn!(server = %name, "a second server of this name is ignored");
                    continue;
                }
                by_name.insert(name.to_string(), servers.len());
                let is_same = |server: &&Arc<CatalogServer>| {
                    server.name == name
                        && std::ptr::addr_eq(Arc::as_ptr(&server.dispatcher), Arc::as_ptr(dispatcher))
                };
                let known = self.servers.iter().find(is_same).cloned();
                let new = || Arc::new(CatalogServer::new(name, dispatcher, &self.options));
                servers.push(known.unwrap_or_else(new));
            }
        }
        for (position, server) in servers.iter().enumerate() {
            by_name.entry(typescript_name(&server.name)).or_insert(position);
            by_name.entry(python_name(&server.name)).or_insert(position);
        }
        let (removed, search) = (HashMap::new(), RankedSearch::default());
        Self { servers, by_name, removed, search, options: self.options.clone() }
    }

    /// The servers' names, in order.
    pub(crate) fn server_names(&self) -> impl Iterator<Item = &Arc<str>> + Clone {
        self.servers.iter().map(|server| &server.name)
    }

    fn server(&self, name: &str) -> Result<&Arc<CatalogServer>, ToolError> {
        if let Some(&position) = self.by_name.get(name) {
            return Ok(&self.servers[position]);
        }
        Err(self.unknown_server(name))
    }

    fn unknown_server(&self, name: &str) -> ToolError {
        if let Some(server) = self.removed.get(name) {
            let message =
                format!("server `{server}` was removed from the configuration while this script was running");
            return ToolError::new(ToolErrorCode::ToolNotFound, message);
        }
        let suggestion = suggestion(name, "servers", self.server_names().map(AsRef::as_ref));
        let hint = self.options.missing_server_hint.as_ref().map(|hint| format!("; {hint}"));
        let message = format!("no server `{}`{suggestion}{}", preview_name(name), hint.unwrap_or_default());
        ToolError::new(ToolErrorCode::ToolNotFound, message)
    }

    /// The canonical name of the server that `name` refers to.
    pub(crate) fn server_name(&self, name: &str) -> Result<&Arc<str>, ToolError> {
        self.server(name).map(|server| &server.name)
    }

    /// The canonical name of the server that `name` refers to, and its dispatcher.
    pub(crate) fn dispatcher(&self, name: &str) -> Result<(&Arc<str>, &Arc<dyn ToolDispatcher>), ToolError> {
        self.server(name).map(|server| (&server.name, &server.dispatcher))
    }

    /// The name of a server in Python scripts: its identifier, or the exact name if the identifier
    /// refers to another server.
    pub(crate) fn python_alias(&self, server: &str) -> String {
        let identifier = python_name(server);
        let is_own = self.server_name(&identifier).is_ok_and(|name| **name == *server);
        if is_own { identifier } else { server.to_owned() }
    }

    /// All tools of one server, in the server's order.
    pub(crate) async fn tools(
        &self,
        server: &str,
        deadline: Instant,
    ) -> Result<Vec<ResolvedTool>, ToolError> {
        let server = self.server(server)?;
        let tools = server.tools(deadline).await?;
        Ok(usable(server, &tools))
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
    ) -> (Vec<ResolvedTool>, Vec<ListFailure>) {
        let servers: Vec<&Arc<CatalogServer>> =
            self.servers.iter().filter(|server| wanted(&server.name)).collect();
        let discovered = join_all(servers.iter().map(|server| server.discovered(deadline))).await;
        let mut lists = Vec::new();
        let mut failures = Vec::new();
        for (server, found) in servers.into_iter().zip(discovered) {
            let empty = found.tools.as_ref().filter(|tools| tools.names.is_empty());
            if let Some(problem) = empty.and_then(|tools| tools.list.problem.clone()) {
                let error = ToolError::new(ToolErrorCode::UpstreamProtocol, problem);
                failures.push(ListFailure { server: Arc::clone(&server.name), error, is_stale: false });
            }
            let is_stale = found.tools.is_some();
            let failure = |error| ListFailure { server: Arc::clone(&server.name), error, is_stale };
            failures.extend(found.failure.map(failure));
            lists.extend(found.tools.map(|tools| (server, tools)));
        }
        (self.search.search(&lists, query, limit, permitted), failures)
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
        self.search.search(&lists, query, limit, permitted)
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
            tools.iter().map(|(_, tools)| tools.iter().map(|tool| tool.inferred()).collect()).collect();
        declarations::typescript(tools.iter().zip(&shapes).map(|((name, tools), shapes)| {
            let types = tools
                .iter()
                .zip(shapes)
                .map(|(tool, shape)| ToolTypes { definition: tool.definition(), inferred: shape.as_ref() });
            declarations::ServerTools { name, tools: types.collect() }
        }))
    }

    /// The differences from the pinned definitions. Damaged pins are set aside first.
    pub(crate) fn changes(&self) -> std::io::Result<Vec<ToolChange>> {
        let Some(pins) = &self.options.pins else { return Ok(Vec::new()) };
        for server in self.servers.iter().filter(|server| server.identity.is_some()) {
            // The known list shows the user what is to be accepted.
            if pins.need_a_list(&server.name)?
                && let Some(known) = server.load()
            {
                pins.check(&server.name, &known.tools.list)?;
            }
        }
        pins.changes()
    }

    /// The damaged pins that were found so far.
    pub(crate) fn damaged_pins(&self) -> Vec<DamagedPins> {
        self.options.pins.as_ref().map_or_else(Vec::new, Pins::damaged)
    }

    /// Pins the current definition of one of a server's tools, or of all its tools.
    pub(crate) fn accept(&self, server: &str, tool: Option<&str>) -> std::io::Result<usize> {
        self.options.pins.as_ref().map_or(Ok(0), |pins| pins.accept(server, tool))
    }

    /// Writes unsaved data to disk. Blocks.
    pub(crate) fn save(&self) {
        self.options.inferred.save();
    }

    /// Deletes the cached lists and the inferred output schemas.
    pub(crate) fn clear_cache(&self) -> std::io::Result<usize> {
        let lists = self.options.cache.as_ref().map_or(Ok(0), ListCache::clear)?;
        Ok(lists + self.options.inferred.clear()?)
    }

    /// The names of all servers, each with the names of its tools as last listed.
    pub(crate) fn known_names(&self) -> Vec<NamedServer> {
        let names = |server: &Arc<CatalogServer>| NamedServer {
            name: Arc::clone(&server.name),
            tools: server.load().map(|known| known.tools.names.clone()),
        };
        self.servers.iter().map(names).collect()
    }

    /// What was left out of a server's known list, and why.
    pub(crate) fn list_problem(&self, server: &str) -> Option<String> {
        self.server(server).ok()?.load()?.tools.list.problem.clone()
    }

    /// What is known of all servers without asking any: each server's name and its tools as last
    /// listed, from memory or from disk.
    pub(crate) fn known(&self) -> Vec<(Arc<str>, Option<Vec<ResolvedTool>>)> {
        let known = |server: &Arc<CatalogServer>| {
            (Arc::clone(&server.name), server.load().map(|known| usable(server, &known.tools)))
        };
        self.servers.iter().map(known).collect()
    }
}

/// The tools of a list that may be used, in the server's order.
fn usable(server: &Arc<CatalogServer>, tools: &Arc<IndexedList>) -> Vec<ResolvedTool> {
    let usable = (0..tools.names.len()).filter(|&position| server.is_usable(tools, position));
    usable.map(|position| ResolvedTool::new(server, tools, position)).collect()
}

#[cfg(test)]
mod tests;
