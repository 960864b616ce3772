//! Which servers and tools there are, and which of them a name means.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, join_all};
use lru::LruCache;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::time::timeout_at;

use super::arguments::ArgumentCheck;
use super::cache::ListCache;
use super::declarations::{self, ToolTypes};
use super::names::{full_name, python_name, split_full_name, suggestion, typescript_name};
use super::observed::Observed;
use super::pins::Pins;
use super::search::{self, SearchIndex};
use super::shape::Shape;
use super::{ToolChange, ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList};

/// How long a search waits for a server whose tools are not known yet. Longer than an ordinary start;
/// a server that needs more is left out with a warning until it has answered.
const DISCOVERY_TIME: Duration = Duration::from_secs(2);

/// How long asking a server for its list may take when nobody waits for it.
const REFRESH_TIME: Duration = Duration::from_secs(60);

/// A server that announces changes all the time is asked again this often in that time and no more.
const MOST_REFRESHES: usize = 5;
const REFRESHES_PERIOD: Duration = Duration::from_secs(5);

/// All servers of an executor. Lives as long as the executor; lists are fetched when first needed.
pub(crate) struct Catalog {
    servers: Vec<Arc<Server>>,
    /// Exact names and their forms in both languages. An exact name wins over another server's form.
    by_name: HashMap<String, usize>,
    /// The index of the lists that were searched last.
    index: Mutex<Option<Indexed>>,
    options: CatalogOptions,
}

/// An index and the lists that it is of, in this order.
#[derive(Clone)]
struct Indexed {
    lists: Vec<Arc<ServerTools>>,
    index: Arc<SearchIndex>,
}

/// How many compiled schemas are kept, those that were used last.
const KEPT_CHECKS: NonZeroUsize = NonZeroUsize::new(1_000).expect("more than none");

/// Compiled schemas of arguments, by list and position. The list is kept with them, so that its
/// address means no other.
pub(crate) struct ArgumentChecks {
    compiled: Mutex<LruCache<(usize, usize), CheckOf>>,
}

struct CheckOf {
    _tools: Arc<ServerTools>,
    check: Option<Arc<ArgumentCheck>>,
}

impl Default for ArgumentChecks {
    fn default() -> Self {
        Self { compiled: Mutex::new(LruCache::new(KEPT_CHECKS)) }
    }
}

impl fmt::Debug for ArgumentChecks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ArgumentChecks").field("len", &self.compiled.lock().len()).finish()
    }
}

impl ArgumentChecks {
    fn get(&self, tools: &Arc<ServerTools>, position: usize, server: &str) -> Option<Arc<ArgumentCheck>> {
        let key = (Arc::as_ptr(tools).addr(), position);
        if let Some(kept) = self.compiled.lock().get(&key) {
            return kept.check.clone();
        }
        // Compiled out of the lock: a large schema takes milliseconds.
        let definition = &tools.list.tools[position];
        let check = match ArgumentCheck::compile(&definition.input_schema) {
            Ok(check) => Some(Arc::new(check)),
            Err(problem) => {
                tracing::warn!(
                    server,
                    tool = definition.name,
                    problem,
                    "arguments are not checked: the schema"
                );
                None
            }
        };
        let kept = CheckOf { _tools: Arc::clone(tools), check: check.clone() };
        self.compiled.lock().put(key, kept);
        check
    }
}

/// What a catalogue keeps beyond this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct CatalogOptions {
    /// Lists of tools. Without it every process asks every server.
    pub(crate) cache: Option<ListCache>,
    /// Accepted definitions. Without them no change is noticed.
    pub(crate) pins: Option<Pins>,
    /// Shapes of results.
    pub(crate) observed: Arc<Observed>,
    /// Compiled schemas of arguments.
    pub(crate) checks: Arc<ArgumentChecks>,
    /// Whether tools that are not as they were accepted are refused.
    pub(crate) strict: bool,
    /// Where lists are refreshed while nobody waits. Without it they are only when somebody does.
    pub(crate) runtime: Option<Handle>,
}

struct Server {
    name: Arc<str>,
    dispatcher: Arc<dyn ToolDispatcher>,
    /// Under which the list is kept on disk, if it is.
    identity: Option<String>,
    options: CatalogOptions,
    state: Mutex<ServerState>,
}

#[derive(Default)]
struct ServerState {
    known: Option<Known>,
    /// Whether the disk was looked at.
    was_loaded: bool,
    refresh: Option<Refresh>,
    /// When the last refreshes began.
    refreshes: VecDeque<Instant>,
    /// Why the last refresh failed, while the list from before it is used.
    failure: Option<ToolError>,
}

/// The tools as they are known, and how well.
#[derive(Clone)]
struct Known {
    tools: Arc<ServerTools>,
    source: Source,
}

#[derive(Clone, Copy)]
enum Source {
    /// The server itself, as of that generation.
    Server { generation: u64 },
    /// The disk.
    Disk { is_fresh: bool },
}

/// A refresh on its way, shared by all who wait for it.
#[derive(Clone)]
struct Refresh {
    began: Instant,
    result: Shared<BoxFuture<'static, Result<Arc<ServerTools>, ToolError>>>,
}

/// One server's tools with their names indexed. Immutable; a changed list makes a new one.
pub(crate) struct ServerTools {
    list: Arc<ToolList>,
    names: Vec<Arc<str>>,
    exact: HashMap<Arc<str>, usize>,
    /// Identifiers in both languages. `None` where two tools have the same form: then neither can be
    /// called by it.
    forms: HashMap<String, Option<usize>>,
    /// The tools that are not as they were accepted.
    changed: HashSet<String>,
}

/// A tool that a name turned out to mean.
#[derive(Clone)]
pub(crate) struct ResolvedTool {
    pub(crate) server: Arc<str>,
    pub(crate) tool: Arc<str>,
    host: Arc<Server>,
    tools: Arc<ServerTools>,
    position: usize,
}

impl ResolvedTool {
    pub(crate) fn definition(&self) -> &ToolDefinition {
        &self.tools.list.tools[self.position]
    }

    pub(crate) fn dispatcher(&self) -> &Arc<dyn ToolDispatcher> {
        &self.host.dispatcher
    }

    /// What the tool was seen to return, if its server does not say.
    pub(crate) fn observed(&self) -> Option<Shape> {
        let is_unknown = self.definition().output_schema.is_none();
        let shape =
            || self.host.options.observed.shape(&self.server, self.host.identity.as_deref(), &self.tool);
        is_unknown.then(shape).flatten()
    }

    /// Takes note of what the tool has returned, if its server does not say what that is.
    pub(crate) fn observe(&self, result: &Value) {
        if self.definition().output_schema.is_some() {
            return;
        }
        let observed = &self.host.options.observed;
        if observed.record(&self.server, self.host.identity.as_deref(), &self.tool, result) {
            observed.save_soon(self.host.options.runtime.as_ref());
        }
    }

    /// The tool as a TypeScript function, in one line.
    pub(crate) fn signature(&self) -> String {
        let observed = self.observed();
        declarations::signature(ToolTypes { definition: self.definition(), observed: observed.as_ref() })
    }

    /// The compiled check of the tool's arguments; `None` if its schema cannot be used for that.
    pub(crate) fn argument_check(&self) -> Option<Arc<ArgumentCheck>> {
        self.host.options.checks.get(&self.tools, self.position, &self.server)
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
        } else if let Some(observed) = self.observed() {
            schema.insert("observed".to_owned(), observed.to_schema());
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
    pub(crate) fn new(dispatchers: &[Arc<dyn ToolDispatcher>], options: &CatalogOptions) -> Self {
        let mut servers: Vec<Arc<Server>> = Vec::new();
        let mut by_name = HashMap::new();
        for dispatcher in dispatchers {
            for name in dispatcher.servers() {
                if by_name.contains_key(&*name) {
                    tracing::warn!(server = %name, "a second server of this name is ignored");
                    continue;
                }
                by_name.insert(name.to_string(), servers.len());
                servers.push(Arc::new(Server {
                    identity: dispatcher.identity(&name),
                    dispatcher: Arc::clone(dispatcher),
                    options: options.clone(),
                    state: Mutex::default(),
                    name,
                }));
            }
        }
        for (position, server) in servers.iter().enumerate() {
            by_name.entry(typescript_name(&server.name)).or_insert(position);
            by_name.entry(python_name(&server.name)).or_insert(position);
        }
        Self { servers, by_name, index: Mutex::default(), options: options.clone() }
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
        let permitted = (0..tools.names.len()).filter(|&position| tools.is_usable(server, position));
        Ok(permitted.map(|position| server.resolved(&tools, position)).collect())
    }

    /// The tool that a server's and a tool's name mean: the exact names, else their forms in either language.
    /// A name that is not in a list from before is looked for in a new one.
    ///
    /// # Errors
    ///
    /// `ToolNotFound` with the nearest right names, what kept the server from listing its tools, or
    /// `ToolDenied` in strict mode for a tool that is not as it was accepted.
    pub(crate) async fn resolve(
        &self,
        server: &str,
        tool: &str,
        deadline: Instant,
    ) -> Result<ResolvedTool, ToolError> {
        let server = self.server(server).map_err(|error| error.for_tool(server, tool))?;
        let named = |error: ToolError| error.for_tool(&server.name, tool);
        let mut tools = server.tools(deadline).await.map_err(named)?;
        if tools.position(&server.name, tool).is_err() && !server.is_verified() {
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

    /// The same tool by a list that its server has just given, for a caller whom the list from before
    /// has led to an error. `None` if that list came from the server itself.
    pub(crate) async fn resolve_again(
        &self,
        tool: &ResolvedTool,
        deadline: Instant,
    ) -> Result<Option<ResolvedTool>, ToolError> {
        let server = self.server(&tool.server)?;
        if server.is_verified() {
            return Ok(None);
        }
        server.refreshed(deadline).await?;
        self.resolve(&tool.server, &tool.tool, deadline).await.map(Some)
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

    /// The tools that match `query`, best first, and what kept servers from listing theirs; all tools
    /// in order for a query without words. At most `limit`.
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

    /// The same among the tools that are known without asking any server.
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
        // Where each list begins among all tools.
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

    /// The index of these lists: the one from before if it is of the same.
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

    /// Asks all servers for their tools at once.
    pub(crate) async fn refresh(&self) -> Vec<(String, Result<(), ToolError>)> {
        let deadline = Instant::now() + REFRESH_TIME;
        let refreshed = self.servers.iter().map(|server| async move {
            (server.name.to_string(), server.refreshed(deadline).await.map(drop))
        });
        join_all(refreshed).await
    }

    /// TypeScript declarations of the permitted tools that are known without asking any server.
    pub(crate) fn declarations(&self, permitted: impl Fn(&str, &str) -> bool) -> String {
        let known: Vec<(Arc<str>, Vec<(ResolvedTool, Option<Shape>)>)> = self
            .known()
            .into_iter()
            .map(|(server, tools)| {
                let tools = tools.unwrap_or_default().into_iter();
                let permitted = tools.filter(|tool| permitted(&tool.server, &tool.tool));
                (
                    server,
                    permitted
                        .map(|tool| (tool.observed(), tool))
                        .map(|(shape, tool)| (tool, shape))
                        .collect(),
                )
            })
            .collect();
        declarations::typescript(known.iter().map(|(name, tools)| {
            declarations::ServerTools {
                name,
                tools: tools
                    .iter()
                    .map(|(tool, shape)| ToolTypes {
                        definition: tool.definition(),
                        observed: shape.as_ref(),
                    })
                    .collect(),
            }
        }))
    }

    /// What differs from the accepted definitions.
    pub(crate) fn changes(&self) -> std::io::Result<Vec<ToolChange>> {
        self.options.pins.as_ref().map_or_else(|| Ok(Vec::new()), Pins::changes)
    }

    /// Accepts a server's tool as it is now, or all of them.
    pub(crate) fn accept(&self, server: &str, tool: Option<&str>) -> std::io::Result<usize> {
        self.options.pins.as_ref().map_or(Ok(0), |pins| pins.accept(server, tool))
    }

    /// Writes what is not on disk yet. Blocks.
    pub(crate) fn save(&self) {
        self.options.observed.save();
    }

    /// Forgets lists and shapes.
    pub(crate) fn clear_cache(&self) -> std::io::Result<usize> {
        let lists = self.options.cache.as_ref().map_or(Ok(0), ListCache::clear)?;
        Ok(lists + self.options.observed.clear()?)
    }

    /// What is known of all servers without asking any: each server's name, its tools as
    /// they were last seen, and when that was read from disk whether it still holds.
    pub(crate) fn known(&self) -> Vec<(Arc<str>, Option<Vec<ResolvedTool>>)> {
        let known = |server: &Arc<Server>| {
            let tools = server.load().map(|known| {
                (0..known.tools.names.len()).map(|position| server.resolved(&known.tools, position)).collect()
            });
            (Arc::clone(&server.name), tools)
        };
        self.servers.iter().map(known).collect()
    }
}

impl Server {
    /// The tools: as they are known if that is good enough, else from the server.
    async fn tools(self: &Arc<Self>, deadline: Instant) -> Result<Arc<ServerTools>, ToolError> {
        let generation = self.dispatcher.generation(&self.name);
        match self.load() {
            Some(Known { tools, source: Source::Server { generation: known } }) if known == generation => {
                Ok(tools)
            }
            Some(Known { tools, source: Source::Disk { is_fresh } }) if !self.options.strict => {
                // Good enough to go on with. A server that runs anyway is asked for the present state.
                if !is_fresh || generation > 0 {
                    self.refresh();
                }
                Ok(tools)
            }
            Some(Known { tools, .. }) if !self.may_refresh() => Ok(tools),
            Some(Known { tools, .. }) => match self.refreshed(deadline).await {
                Err(error) if !self.options.strict && error.code != ToolErrorCode::Cancelled => {
                    tracing::warn!(server = %self.name, %error, "the list of tools may be out of date");
                    Ok(tools)
                }
                result => result,
            },
            None => self.refreshed(deadline).await,
        }
    }

    /// The tools for a search, which does not wait long for one server, and what is wrong with them.
    async fn discovered(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> (Option<Arc<ServerTools>>, Option<ToolError>) {
        // A server that did not answer within the time is not waited for a second time.
        let pending = self.state.lock().refresh.clone().filter(|refresh| refresh.result.peek().is_none());
        let began = pending.map_or_else(Instant::now, |refresh| refresh.began);
        let until = deadline.min(began + DISCOVERY_TIME);
        match self.tools(until).await {
            Ok(tools) => {
                let stale = self.state.lock().failure.clone();
                (
                    Some(tools),
                    stale.map(|error| ToolError {
                        message: format!("they may be out of date: {}", error.message),
                        ..error
                    }),
                )
            }
            Err(error) => (None, Some(error)),
        }
    }

    /// What is known, after a first look at the disk.
    fn load(&self) -> Option<Known> {
        let mut state = self.state.lock();
        if !state.was_loaded {
            state.was_loaded = true;
            if let (Some(cache), Some(identity)) = (&self.options.cache, &self.identity)
                && let Some(cached) = cache.load(identity)
                && state.known.is_none()
            {
                let source = Source::Disk { is_fresh: cached.is_fresh(SystemTime::now()) };
                let tools = Arc::new(ServerTools::new(cached.list, HashSet::new()));
                state.known = Some(Known { tools, source });
            }
        }
        state.known.clone()
    }

    /// Whether the list came from the server itself and nothing has changed since.
    fn is_verified(&self) -> bool {
        let generation = self.dispatcher.generation(&self.name);
        let state = self.state.lock();
        matches!(&state.known, Some(Known { source: Source::Server { generation: known }, .. }) if *known == generation)
    }

    fn may_refresh(&self) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        while state.refreshes.front().is_some_and(|began| now.duration_since(*began) > REFRESHES_PERIOD) {
            state.refreshes.pop_front();
        }
        state.refreshes.len() < MOST_REFRESHES
    }

    /// Asks the server, or joins who is asking, and waits for the answer.
    async fn refreshed(self: &Arc<Self>, deadline: Instant) -> Result<Arc<ServerTools>, ToolError> {
        let refresh = self.refresh();
        if self.options.runtime.is_none() {
            return refresh.result.await;
        }
        timeout_at(deadline.into(), refresh.result).await.unwrap_or_else(|_elapsed| {
            let message = format!(
                "server `{}` has not listed its tools yet, after {} s",
                self.name,
                refresh.began.elapsed().as_secs_f64().round()
            );
            Err(ToolError::new(ToolErrorCode::ToolTimeout, message))
        })
    }

    /// Asks the server unless that is on its way already. Goes on whether or not anybody waits.
    fn refresh(self: &Arc<Self>) -> Refresh {
        let mut state = self.state.lock();
        if let Some(refresh) = state.refresh.as_ref().filter(|refresh| refresh.result.peek().is_none()) {
            return refresh.clone();
        }
        let began = Instant::now();
        if state.refreshes.len() == MOST_REFRESHES {
            state.refreshes.pop_front();
        }
        state.refreshes.push_back(began);
        let result = Arc::clone(self).ask().boxed().shared();
        if let Some(runtime) = &self.options.runtime {
            // Ends by itself: asking has a deadline.
            runtime.spawn(result.clone().map(drop));
        }
        let refresh = Refresh { began, result };
        state.refresh = Some(refresh.clone());
        refresh
    }

    async fn ask(self: Arc<Self>) -> Result<Arc<ServerTools>, ToolError> {
        // As of before: what changes while the list is on its way is asked for again.
        let generation = self.dispatcher.generation(&self.name);
        let result = self.dispatcher.tools(&self.name, Instant::now() + REFRESH_TIME).await;
        let list = match result {
            Ok(list) => list,
            Err(error) => {
                self.state.lock().failure = Some(error.clone());
                return Err(error);
            }
        };
        let present = self.state.lock().known.as_ref().map(|known| Arc::clone(&known.tools));
        let is_same = present.as_ref().is_some_and(|tools| Arc::ptr_eq(&tools.list, &list));
        let tools = match present {
            Some(tools) if is_same => tools,
            _ => Arc::new(ServerTools::new(Arc::clone(&list), self.changed(&list).await?)),
        };
        let mut state = self.state.lock();
        state.failure = None;
        state.known = Some(Known { tools: Arc::clone(&tools), source: Source::Server { generation } });
        drop(state);
        Ok(tools)
    }

    /// Compares a list with what was accepted, and keeps it. On a thread that may wait for the disk.
    async fn changed(self: &Arc<Self>, list: &Arc<ToolList>) -> Result<HashSet<String>, ToolError> {
        let Some(identity) = self.identity.clone() else { return Ok(HashSet::new()) };
        let (server, list, asked) = (Arc::clone(self), Arc::clone(list), SystemTime::now());
        let work = move || {
            if let Some(cache) = &server.options.cache {
                cache.save(&identity, &server.name, &list, asked);
            }
            let pins = server.options.pins.as_ref();
            pins.map_or_else(|| Ok(HashSet::new()), |pins| pins.check(&server.name, &list))
        };
        let checked = match &self.options.runtime {
            Some(runtime) => runtime.spawn_blocking(work).await.map_err(std::io::Error::other).flatten(),
            None => work(),
        };
        match checked {
            Ok(changed) => {
                if !changed.is_empty() {
                    tracing::warn!(server = %self.name, tools = changed.len(), "tools differ from what was accepted");
                }
                Ok(changed)
            }
            Err(error) if self.options.strict => Err(ToolError::new(
                ToolErrorCode::ToolDenied,
                format!("what was accepted of server `{}` cannot be read: {error}", self.name),
            )),
            Err(error) => {
                tracing::warn!(server = %self.name, %error, "accepted definitions cannot be read or kept");
                Ok(HashSet::new())
            }
        }
    }

    fn resolved(self: &Arc<Self>, tools: &Arc<ServerTools>, position: usize) -> ResolvedTool {
        ResolvedTool {
            server: Arc::clone(&self.name),
            tool: Arc::clone(&tools.names[position]),
            host: Arc::clone(self),
            tools: Arc::clone(tools),
            position,
        }
    }
}

impl ServerTools {
    fn new(list: Arc<ToolList>, changed: HashSet<String>) -> Self {
        let names: Vec<Arc<str>> = list.tools.iter().map(|definition| Arc::from(&*definition.name)).collect();
        let mut exact = HashMap::new();
        let mut forms = HashMap::new();
        for (position, name) in names.iter().enumerate() {
            // Of two tools with one name the first is the one that can be called.
            exact.entry(Arc::clone(name)).or_insert(position);
            for form in [typescript_name(name), python_name(name)] {
                let entry = forms.entry(form).or_insert(Some(position));
                if *entry != Some(position) {
                    *entry = None;
                }
            }
        }
        Self { list, names, exact, forms, changed }
    }

    /// Whether the tool is as it was accepted, or that does not matter.
    fn is_usable(&self, server: &Server, position: usize) -> bool {
        !server.options.strict || !self.changed.contains(&*self.names[position])
    }

    fn position(&self, server: &str, tool: &str) -> Result<usize, ToolError> {
        if let Some(&position) = self.exact.get(tool) {
            return Ok(position);
        }
        let message = match self.forms.get(tool) {
            Some(&Some(position)) => return Ok(position),
            Some(None) => {
                let names = self.names.iter().map(AsRef::as_ref).filter(|name| {
                    [typescript_name(name), python_name(name)].iter().any(|form| form == tool)
                });
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
