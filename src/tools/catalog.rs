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
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;

use self::list::{IndexedList, preview_name};
use self::search::{Found, RankedSearch};
use self::server::{CatalogServer, DISCOVERY_TIME, REFRESH_TIME};
use super::cache::ListCache;
use super::declarations::{self, ToolTypes};
use super::dispatch::ToolDispatcher;
use super::error::{ToolError, ToolErrorCode};
use super::names::{SEARCH, SuggestionBudget, python_name, suggestion, typescript_name};
use super::pins::{DamagedPins, Pins, ToolChange};
use super::shape::Shape;
use super::skill_pins::{SkillChange, SkillPin};
use super::stored_script::{SCRIPTS_SERVER, ToolKind};
use super::unmatched::NamedServer;

pub(crate) use self::failures::{ListFailure, describe_failures};
pub(crate) use self::options::CatalogOptions;
pub(crate) use self::resolve::LookUp;
pub(crate) use self::resolved::ResolvedTool;

/// All servers of an executor. Lives as long as the executor; lists are fetched when first needed.
pub(crate) struct Catalog {
    servers: Vec<Arc<CatalogServer>>,
    /// Exact names and their identifiers in both languages. An exact name has precedence over
    /// another server's identifier.
    by_name: HashMap<String, usize>,
    /// The names of servers that were removed while the catalog was in use.
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

    /// A catalog of the same dispatchers with other options. Servers keep their known tools, unless strict mode
    /// changes: then each has to list its tools again.
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

    /// This catalog as a running script sees it after the configuration has changed: each configured server is replaced
    /// by the server of that name in `now`, or is missing. Other servers stay, and none is added. So a name never
    /// refers to a different server than before.
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

    /// Whether the tool is still reached in the same way: its server is the one that listed it.
    pub(crate) fn has_server_of(&self, tool: &ResolvedTool) -> bool {
        let current = self.dispatcher(&tool.server);
        let own = Arc::as_ptr(tool.dispatcher());
        current.is_some_and(|(_, dispatcher)| std::ptr::addr_eq(Arc::as_ptr(dispatcher), own))
    }

    /// A catalog of the servers of these dispatchers instead. A server with the same name and dispatcher keeps its
    /// known tools.
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

    fn server(&self, name: &str) -> Option<&Arc<CatalogServer>> {
        self.by_name.get(name).map(|&position| &self.servers[position])
    }

    /// The error for an unknown server name: `ToolNotFound` with the nearest valid names.
    pub(crate) fn unknown_server(&self, name: &str, budget: &SuggestionBudget) -> ToolError {
        if let Some(server) = self.removed.get(name) {
            let message =
                format!("server `{server}` was removed from the configuration while this script was running");
            return ToolError::new(ToolErrorCode::ToolNotFound, message);
        }
        // The server of saved scripts is built in, not configured.
        let names = self.server_names().map(|name| &**name).filter(|name| *name != SCRIPTS_SERVER);
        let suggestion = suggestion(name, ("servers", SEARCH), names, budget);
        let hint = self.options.missing_server_hint.as_ref().map(|hint| format!("; {hint}"));
        let message = format!("no server `{}`{suggestion}{}", preview_name(name), hint.unwrap_or_default());
        ToolError::new(ToolErrorCode::ToolNotFound, message)
    }

    /// The canonical name of the server that `name` refers to.
    pub(crate) fn server_name(&self, name: &str) -> Option<&Arc<str>> {
        self.server(name).map(|server| &server.name)
    }

    /// The servers that have a tool of this name, each with the tool's own name, as last listed and in order, without a
    /// request to a server. The name is as a script writes it: exact, or an identifier.
    pub(crate) fn servers_with_tool<'a>(
        &'a self,
        tool: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, Arc<str>)> {
        self.servers.iter().filter_map(move |server| {
            let (tools, _is_current) = server.at_hand()?;
            let position = tools.position(tool)?;
            server.is_usable(&tools, position).then(|| (&server.name, Arc::clone(&tools.names[position])))
        })
    }

    /// Whether a server has saved scripts instead of ordinary tools.
    pub(crate) fn has_saved_scripts(&self, name: &str) -> bool {
        let found = self.server(name);
        found.is_some_and(|server| server.dispatcher.kind(&server.name, "") != ToolKind::Ordinary)
    }

    /// The canonical name of the server that `name` refers to, and its dispatcher.
    pub(crate) fn dispatcher(&self, name: &str) -> Option<(&Arc<str>, &Arc<dyn ToolDispatcher>)> {
        self.server(name).map(|server| (&server.name, &server.dispatcher))
    }

    /// The name of a server in Python scripts: its identifier, or the exact name if the identifier
    /// refers to another server.
    pub(crate) fn python_alias(&self, server: &str) -> String {
        let identifier = python_name(server);
        let is_own = self.server_name(&identifier).is_some_and(|name| **name == *server);
        if is_own { identifier } else { server.to_owned() }
    }

    /// All tools of one server, in the server's order.
    pub(crate) async fn tools(
        &self,
        server: &str,
        deadline: Instant,
        budget: &SuggestionBudget,
    ) -> Result<Vec<ResolvedTool>, ToolError> {
        let server = self.server(server).ok_or_else(|| self.unknown_server(server, budget))?;
        let tools = server.tools(deadline).await?;
        Ok(usable(server, &tools))
    }

    /// The tools that match `query`, best first, at most `limit`, and the errors of servers that could not list their
    /// tools. For a query without words, all tools in order. If no tool matches, with `or_nearest` the most similar
    /// ones.
    pub(crate) async fn search(
        &self,
        query: &str,
        limit: usize,
        or_nearest: bool,
        wanted: impl Fn(&str) -> bool,
        permitted: impl Fn(&str, &str) -> bool,
        deadline: Instant,
    ) -> (Found, Vec<ListFailure>) {
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
        let tool_use = &self.options.tool_use;
        (self.search.search(&lists, tool_use, query, limit, or_nearest, permitted), failures)
    }

    /// As `search`, among the tools that are known without a request to a server.
    pub(crate) fn search_known(
        &self,
        query: &str,
        limit: usize,
        permitted: impl Fn(&str, &str) -> bool,
    ) -> Vec<ResolvedTool> {
        let lists: Vec<_> =
            self.servers.iter().filter_map(|server| Some((server, server.load()?.tools))).collect();
        let tool_use = &self.options.tool_use;
        self.search.search(&lists, tool_use, query, limit, false, permitted).tools
    }

    /// Fetches the tool lists of all servers concurrently.
    pub(crate) async fn refresh(&self) -> Vec<(String, Result<(), ToolError>)> {
        let deadline = Instant::now() + REFRESH_TIME;
        let refreshed = self.servers.iter().map(|server| async move {
            (server.name.to_string(), server.refreshed(deadline).await.map(drop))
        });
        join_all(refreshed).await
    }

    /// Fetches a server's list, unless the known list came from the server and nothing has changed since.
    pub(crate) async fn renew(&self, server: &str, deadline: Instant) {
        let Some(server) = self.server(server) else { return };
        // Twice, because a server that is started for its list counts as changed by its start.
        for _ in 0..2 {
            // If this fails, the call that needs the list reports the reason.
            let is_needed = server.verified().is_none() && server.may_refresh();
            if !is_needed || server.refreshed(deadline).await.is_err() {
                return;
            }
        }
    }

    /// Fetches the lists of servers without a known list, or with a partial one, concurrently.
    pub(crate) async fn fetch_missing(&self) -> Vec<(String, Result<(), ToolError>)> {
        let deadline = Instant::now() + REFRESH_TIME;
        let missing = self.servers.iter().filter(|server| server.load().is_none() || server.is_partial());
        let fetched = missing.map(|server| async move {
            (server.name.to_string(), server.refreshed(deadline).await.map(drop))
        });
        join_all(fetched).await
    }

    /// TypeScript declarations of the permitted tools that are known without a request to a server.
    pub(crate) fn declarations(&self, permitted: impl Fn(&str, &str) -> bool) -> String {
        self.with_types(permitted, |servers| declarations::typescript(servers.into_iter()))
    }

    /// The same tools as Python stubs: file names and texts.
    pub(crate) fn python_stubs(&self, permitted: impl Fn(&str, &str) -> bool) -> Vec<(&'static str, String)> {
        self.with_types(permitted, |servers| declarations::python::stubs(servers.into_iter()))
    }

    fn with_types<T>(
        &self,
        permitted: impl Fn(&str, &str) -> bool,
        write: impl FnOnce(Vec<declarations::ServerTools<'_>>) -> T,
    ) -> T {
        let mut known = self.known();
        for (_, tools) in &mut known {
            tools.iter_mut().for_each(|tools| tools.retain(|tool| permitted(&tool.server, &tool.tool)));
        }
        let shapes: Vec<Vec<Option<Shape>>> = known
            .iter()
            .map(|(_, tools)| tools.iter().flatten().map(ResolvedTool::inferred).collect())
            .collect();
        let servers = known.iter().zip(&shapes).map(|((name, tools), shapes)| {
            let tools = tools.as_ref().map(|tools| {
                let types = tools.iter().zip(shapes);
                types
                    .map(|(tool, shape)| ToolTypes {
                        definition: tool.definition(),
                        inferred: shape.as_ref(),
                    })
                    .collect()
            });
            declarations::ServerTools { name, tools }
        });
        write(servers.collect())
    }

    /// The differences from the pinned definitions. Damaged pins are set aside first.
    pub(crate) fn changes(&self) -> std::io::Result<Vec<ToolChange>> {
        let Some(pins) = &self.options.pins else { return Ok(Vec::new()) };
        for server in self.servers.iter().filter(|server| server.identity.is_some()) {
            // The known list shows the user what they would accept.
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

    /// The skills of servers that differ from the pinned ones.
    pub(crate) fn skill_changes(&self) -> std::io::Result<Vec<SkillChange>> {
        let Some(skills) = &self.options.skills else { return Ok(Vec::new()) };
        skills.changes(self.servers.iter().map(|server| &*server.name))
    }

    /// Pins the current definition of one of a server's tools, or of all its tools and skills.
    pub(crate) fn accept(&self, server: &str, tool: Option<&str>) -> std::io::Result<usize> {
        let accepted = self.options.pins.as_ref().map_or(Ok(0), |pins| pins.accept(server, tool))?;
        // Skills are accepted together with all tools of their server: a tool's name cannot refer to a skill's address.
        let skills = match (&self.options.skills, tool) {
            (Some(skills), None) => skills.accept(server)?,
            _ => 0,
        };
        Ok(accepted + skills)
    }

    /// Writes unsaved data to disk. Blocks.
    pub(crate) fn save(&self) {
        self.options.inferred.save();
        self.options.tool_use.save();
    }

    /// Records that a run called these tools, each given as server and tool, for search to learn from.
    pub(crate) fn record_run<'a>(&self, called: impl Iterator<Item = (&'a str, &'a str)>) {
        let tool_use = &self.options.tool_use;
        if tool_use.record(called) {
            tool_use.save_soon(self.options.runtime.as_ref());
        }
    }

    /// Deletes the cached lists, the inferred output schemas and the record of which tools are used.
    pub(crate) fn clear_cache(&self) -> std::io::Result<usize> {
        let lists = self.options.cache.as_ref().map_or(Ok(0), ListCache::clear)?;
        let tool_use = self.options.tool_use.clear()?;
        Ok(lists + tool_use + self.options.inferred.clear()?)
    }

    /// The names of all servers, each with the names of its tools as last listed.
    pub(crate) fn known_names(&self) -> Vec<NamedServer> {
        let names = |server: &Arc<CatalogServer>| NamedServer {
            name: Arc::clone(&server.name),
            tools: server.load().map(|known| known.tools.names.clone()),
        };
        self.servers.iter().map(names).collect()
    }

    /// Requests the lists of servers, unless they are known and recent. Waits as long as a search does. `is_wanted`
    /// gets the name of each server, and whether it is running or needs no start.
    pub(crate) async fn discover(&self, is_wanted: impl Fn(&str, bool) -> bool) {
        let is_running = |server: &Arc<CatalogServer>| {
            server.identity.is_none() || server.dispatcher.generation(&server.name) > 0
        };
        let deadline = Instant::now() + DISCOVERY_TIME;
        let wanted = self.servers.iter().filter(|server| is_wanted(&server.name, is_running(server)));
        let asking = wanted.map(|server| async move {
            if let Some(error) = server.discovered(deadline).await.failure {
                tracing::debug!(server = %server.name, %error, "the tools of a server are not known yet");
            }
        });
        join_all(asking).await;
    }

    /// A number that changes when the known list of a server changes, or when a server has announced a change.
    pub(crate) fn lists_stamp(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for server in &self.servers {
            let list = server.load().map(|known| Arc::as_ptr(&known.tools).addr());
            (&*server.name, list, server.dispatcher.generation(&server.name)).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Compares the contents of a skill that a server has sent with the pinned ones. Blocks. Servers of this process,
    /// and catalogs without pins, have no pinned skills.
    ///
    /// # Errors
    ///
    /// `ToolDenied` in strict mode if the skill differs, or if the pins cannot be used.
    pub(crate) fn check_skill(&self, server: &str, uri: &str, contents: &str) -> Result<SkillPin, ToolError> {
        let Some(skills) = &self.options.skills else { return Ok(SkillPin::Same) };
        let denied = |problem: String| Err(ToolError::new(ToolErrorCode::ToolDenied, problem));
        match skills.check(server, uri, contents) {
            Ok(SkillPin::Different) if self.options.strict => denied(format!(
                "the skill `{}` of server `{server}` is not the one that was pinned; after a look at it, the user can \
                 accept it with `cx tools accept {server}`",
                preview_name(uri)
            )),
            Ok(pin) => Ok(pin),
            Err(error) if self.options.strict => {
                denied(format!("the pinned skills of server `{server}` cannot be read: {error}"))
            }
            Err(error) => {
                tracing::warn!(server, %error, "pinned skills cannot be read or written");
                Ok(SkillPin::Different)
            }
        }
    }

    /// What was left out of a server's known list, and why.
    pub(crate) fn list_problem(&self, server: &str) -> Option<String> {
        self.server(server)?.load()?.tools.list.problem.clone()
    }

    /// Whether a server's known list may lack tools that it would show this client.
    pub(crate) fn is_partial(&self, server: &str) -> bool {
        self.server(server).is_some_and(|server| server.is_partial())
    }

    /// All servers with their tools as last listed, from memory or from disk, without a request to a server.
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
