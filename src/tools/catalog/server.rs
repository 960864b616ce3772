//! One server's tool list: fetched from the server, cached on disk, and refreshed when it is stale.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::time::timeout_at;

use super::list::IndexedList;
use super::options::CatalogOptions;
use crate::machine::probe;
use crate::tools::caught::caught;
use crate::tools::dispatch::{ToolDispatcher, ToolList};
use crate::tools::error::{ToolError, ToolErrorCode};

/// How long a search waits for a server whose tools are unknown. Longer than an ordinary start. A slower server is left
/// out with a warning until its list has arrived.
pub(crate) const DISCOVERY_TIME: Duration = Duration::from_secs(2);

/// How long searches do not wait for a server whose last refresh failed after more than [`DISCOVERY_TIME`]. The refresh
/// that such a search starts continues in the background, so that the next search finds a server that has recovered.
const HUNG_TIME: Duration = Duration::from_secs(60);

/// Time limit of a refresh, including one in the background. Longer than the start of a server that is downloaded
/// first.
pub(crate) const REFRESH_TIME: Duration = Duration::from_secs(80);

/// How long after that a refresh is abandoned. A dispatcher that keeps its deadline has returned a better error by
/// then.
const LATE: Duration = Duration::from_secs(1);

/// Maximum number of refreshes within the period below, for a server that sends list-changed
/// notifications continuously.
pub(crate) const MAX_REFRESHES: usize = 5;
const REFRESHES_PERIOD: Duration = Duration::from_secs(5);

/// One server of a catalog.
pub(crate) struct CatalogServer {
    pub(crate) name: Arc<str>,
    pub(crate) dispatcher: Arc<dyn ToolDispatcher>,
    /// The key of the list on disk; `None` if the list is not stored.
    pub(crate) identity: Option<String>,
    /// As [`ToolDispatcher::results_identity`].
    pub(crate) results_identity: Option<String>,
    /// As [`ToolDispatcher::declares_elicitation`].
    declares_elicitation: bool,
    pub(crate) options: CatalogOptions,
    state: Mutex<ServerState>,
}

#[derive(Default)]
struct ServerState {
    known: Option<KnownList>,
    /// Whether the list was looked up on disk.
    was_loaded: bool,
    refresh: Option<Refresh>,
    /// Start times of the most recent refreshes.
    refreshes: VecDeque<Instant>,
    /// Why the last refresh failed.
    failure: Option<RefreshFailure>,
}

struct RefreshFailure {
    error: ToolError,
    at: Instant,
    /// How long the refresh took.
    took: Duration,
}

/// The known tools, and where the list came from.
#[derive(Clone)]
pub(crate) struct KnownList {
    pub(crate) tools: Arc<IndexedList>,
    pub(crate) source: ListSource,
}

#[derive(Clone, Copy)]
pub(crate) enum ListSource {
    /// The list came from the server at this generation.
    Server { generation: u64 },
    /// The list came from disk.
    Disk { is_fresh: bool },
}

/// A refresh in flight, shared by all callers that wait for it.
#[derive(Clone)]
struct Refresh {
    began: Instant,
    result: Shared<BoxFuture<'static, Result<Arc<IndexedList>, ToolError>>>,
}

/// The result of a search for one server's tools.
pub(crate) struct Discovery {
    /// The list, if there is one.
    pub(crate) tools: Option<Arc<IndexedList>>,
    /// Why there is no list, or why the list may be out of date.
    pub(crate) failure: Option<ToolError>,
}

impl CatalogServer {
    /// The server `name` of `dispatcher`.
    pub(crate) fn new(
        name: Arc<str>,
        dispatcher: &Arc<dyn ToolDispatcher>,
        options: &CatalogOptions,
    ) -> Self {
        Self {
            identity: dispatcher.identity(&name),
            results_identity: dispatcher.results_identity(&name),
            declares_elicitation: dispatcher.declares_elicitation(&name),
            dispatcher: Arc::clone(dispatcher),
            options: options.clone(),
            state: Mutex::default(),
            name,
        }
    }

    /// The tools: the known list if it is recent enough, else a list from the server.
    pub(crate) async fn tools(self: &Arc<Self>, deadline: Instant) -> Result<Arc<IndexedList>, ToolError> {
        let generation = self.dispatcher.generation(&self.name);
        let known = self.load();
        let is_hit = known.as_ref().is_some_and(|known| self.is_enough(known, generation));
        let result = if is_hit { "hit" } else { "miss" };
        metrics::counter!("cx_cache_requests_total", "cache" => "tool_lists", "result" => result)
            .increment(1);
        match known {
            Some(KnownList { tools, source: ListSource::Server { generation: known } })
                if known == generation =>
            {
                Ok(tools)
            }
            Some(KnownList { tools, source: ListSource::Disk { is_fresh } }) if !self.options.strict => {
                // The known list is good enough to continue with. If it is stale, or the server is running anyway, it
                // is refreshed in the background.
                if !is_fresh || generation > 0 {
                    self.refresh();
                }
                Ok(tools)
            }
            Some(KnownList { tools, source })
                if (!self.options.strict || matches!(source, ListSource::Server { .. }))
                    && !self.may_refresh() =>
            {
                Ok(tools)
            }
            Some(KnownList { tools, .. }) => match self.refreshed(deadline).await {
                Err(error) if !self.options.strict && error.code != ToolErrorCode::Cancelled => {
                    tracing::warn!(server = %self.name, %error, "the list of tools may be out of date");
                    Ok(tools)
                }
                result => result,
            },
            None => self.refreshed(deadline).await,
        }
    }

    /// Whether the list can be used without a request to its server.
    fn is_enough(&self, known: &KnownList, generation: u64) -> bool {
        match known.source {
            ListSource::Server { generation: known } => known == generation,
            ListSource::Disk { .. } => !self.options.strict,
        }
    }

    /// The tools for a search or a check, which waits at most [`DISCOVERY_TIME`] for one server.
    pub(crate) async fn discovered(self: &Arc<Self>, deadline: Instant) -> Discovery {
        // A search does not wait again for a server that has already exceeded the time.
        let pending = self.state.lock().refresh.clone().filter(|refresh| refresh.result.peek().is_none());
        let now = Instant::now();
        let hung = self.hung(now);
        let began = pending.map_or(now, |refresh| refresh.began);
        let until = if hung.is_some() { now } else { deadline.min(began + DISCOVERY_TIME) };
        match self.tools(until).await {
            Ok(tools) => {
                let failure = self.state.lock().failure.as_ref().map(|failure| failure.error.clone());
                Discovery { tools: Some(tools), failure }
            }
            // The server's failure when it was waited for is more informative than that it was not waited for now.
            Err(error) => Discovery { tools: None, failure: hung.or(Some(error)) },
        }
    }

    /// The error of the last refresh, if that took long and was recent.
    fn hung(&self, now: Instant) -> Option<ToolError> {
        let state = self.state.lock();
        let failure = state.failure.as_ref()?;
        let is_recent = now.duration_since(failure.at) < HUNG_TIME;
        (is_recent && failure.took > DISCOVERY_TIME).then(|| failure.error.clone())
    }

    #[cfg(test)]
    pub(crate) fn hung_recently(&self) -> bool {
        self.hung(Instant::now()).is_some()
    }

    /// The known list. The first call looks it up on disk.
    pub(crate) fn load(&self) -> Option<KnownList> {
        let generation = self.dispatcher.generation(&self.name);
        let own = self.dispatcher.known(&self.name);
        let mut state = self.state.lock();
        if let Some(list) = own {
            let is_same = |known: &KnownList| Arc::ptr_eq(&known.tools.list, &list);
            let tools = match state.known.take().filter(is_same) {
                Some(known) => known.tools,
                // No pins are kept for such a server.
                None => Arc::new(IndexedList::new(list, Some(HashSet::new()))),
            };
            state.known = Some(KnownList { tools, source: ListSource::Server { generation } });
            return state.known.clone();
        }
        if !state.was_loaded {
            state.was_loaded = true;
            if let (Some(cache), Some(identity)) = (&self.options.cache, &self.identity)
                && let Some(cached) = cache.load(identity)
                && state.known.is_none()
            {
                let is_fresh = cached.is_fresh(SystemTime::now()) && !self.may_lack_tools(&cached.list);
                let source = ListSource::Disk { is_fresh };
                let tools = Arc::new(IndexedList::new(cached.list, None));
                state.known = Some(KnownList { tools, source });
            }
        }
        state.known.clone()
    }

    /// Whether a list is one of a client that may not be asked, while this one may: see
    /// [`ToolList::with_elicitation`].
    fn may_lack_tools(&self, list: &ToolList) -> bool {
        self.declares_elicitation && list.with_elicitation == Some(false)
    }

    /// Whether a list is known that may lack tools which the server would show this client.
    pub(crate) fn is_partial(&self) -> bool {
        self.load().is_some_and(|known| self.may_lack_tools(&known.tools.list))
    }

    /// The known list, or the list that the dispatcher has in memory, and whether the server would return the same list
    /// now.
    pub(crate) fn at_hand(&self) -> Option<(Arc<IndexedList>, bool)> {
        let generation = self.dispatcher.generation(&self.name);
        let mut known = self.load();
        if known.is_none()
            && self.identity.is_none()
            && let Some(list) = self.dispatcher.tools_now(&self.name)
        {
            // No pins are kept for such a server.
            let tools = Arc::new(IndexedList::new(list, Some(HashSet::new())));
            let source = ListSource::Server { generation };
            known = Some(self.state.lock().known.get_or_insert(KnownList { tools, source }).clone());
        }
        let KnownList { tools, source } = known?;
        let is_current = matches!(source, ListSource::Server { generation: listed } if listed == generation);
        Some((tools, is_current))
    }

    /// Whether a tool of the list may be used: its definition equals the pinned one, or strict mode
    /// is off.
    pub(crate) fn is_usable(&self, tools: &IndexedList, position: usize) -> bool {
        !self.options.strict || self.matches_pin(tools, position)
    }

    /// Whether the tool's definition equals the pinned one; true if no pins are kept for the
    /// server. May read a file, once per list.
    pub(crate) fn matches_pin(&self, tools: &IndexedList, position: usize) -> bool {
        tools.matches_pin(position, || self.differing(&tools.list))
    }

    /// The names of the tools in the list that differ from their pinned definitions; all names if
    /// the pins cannot be read. Blocks.
    fn differing(&self, list: &ToolList) -> HashSet<String> {
        let pins = self.options.pins.as_ref().filter(|_| self.identity.is_some());
        pins.map_or_else(HashSet::new, |pins| {
            pins.differing(&self.name, list)
                .unwrap_or_else(|_unreadable| list.tools.iter().map(|tool| tool.name.clone()).collect())
        })
    }

    /// The list, if it came from the server and the server has announced no change since.
    pub(crate) fn verified(&self) -> Option<Arc<IndexedList>> {
        let generation = self.dispatcher.generation(&self.name);
        match &self.state.lock().known {
            Some(KnownList { tools, source: ListSource::Server { generation: known } })
                if *known == generation =>
            {
                Some(Arc::clone(tools))
            }
            _ => None,
        }
    }

    pub(crate) fn may_refresh(&self) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        while state.refreshes.front().is_some_and(|began| now.duration_since(*began) > REFRESHES_PERIOD) {
            state.refreshes.pop_front();
        }
        state.refreshes.len() < MAX_REFRESHES
    }

    /// Starts a refresh, or joins the one in flight, and waits for it.
    pub(crate) async fn refreshed(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<Arc<IndexedList>, ToolError> {
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

    /// Starts a refresh unless one is in flight. It continues even if no caller waits for it.
    fn refresh(self: &Arc<Self>) -> Refresh {
        let mut state = self.state.lock();
        if let Some(refresh) = state.refresh.as_ref().filter(|refresh| refresh.result.peek().is_none()) {
            return refresh.clone();
        }
        let began = Instant::now();
        if state.refreshes.len() == MAX_REFRESHES {
            state.refreshes.pop_front();
        }
        state.refreshes.push_back(began);
        // A panic would stay for all who wait for this refresh, and for those who need the list later.
        let result = caught("the server", Arc::clone(self).fetch()).boxed().shared();
        if let Some(runtime) = &self.options.runtime {
            // The task ends by itself: the request has a deadline.
            runtime.spawn(result.clone().map(drop));
        }
        let refresh = Refresh { began, result };
        state.refresh = Some(refresh.clone());
        refresh
    }

    /// Requests the list from the server, compares it with the pins, and makes it the known list.
    async fn fetch(self: Arc<Self>) -> Result<Arc<IndexedList>, ToolError> {
        // The generation is read before the request, so that a change during the request causes
        // another refresh.
        let generation = self.dispatcher.generation(&self.name);
        let (began, asked) = (Instant::now(), SystemTime::now());
        let deadline = Instant::now() + REFRESH_TIME;
        // Here too, so that it counts as the server's failure.
        let asking = caught("the server", async { self.dispatcher.tools(&self.name, deadline).await });
        let result = match &self.options.runtime {
            // All callers that need the list wait for this refresh, and no other refresh begins meanwhile. An
            // embedder's dispatcher may not keep its deadline.
            Some(_) => timeout_at((deadline + LATE).into(), asking).await.unwrap_or_else(|_elapsed| {
                let message = format!("server `{}` did not list its tools in time", self.name);
                Err(ToolError::new(ToolErrorCode::ToolTimeout, message))
            }),
            None => asking.await,
        };
        let list = match result {
            Ok(list) => list,
            Err(error) => {
                let at = Instant::now();
                let failure = RefreshFailure { error: error.clone(), at, took: at - began };
                self.state.lock().failure = Some(failure);
                return Err(error);
            }
        };
        let present = self.state.lock().known.as_ref().map(|known| Arc::clone(&known.tools));
        let is_same = present.as_ref().is_some_and(|tools| Arc::ptr_eq(&tools.list, &list));
        let tools = match present {
            // Only a list without differences is reused: a definition may have been pinned since
            // then.
            Some(tools) if is_same && tools.is_known_to_match_pins() => tools,
            _ => Arc::new(IndexedList::new(Arc::clone(&list), self.changed(&list, asked).await?)),
        };
        let mut state = self.state.lock();
        state.failure = None;
        state.known =
            Some(KnownList { tools: Arc::clone(&tools), source: ListSource::Server { generation } });
        drop(state);
        Ok(tools)
    }

    /// Compares a list with the pins and stores it in the cache, on a thread that may block. If the
    /// pins cannot be read or written, returns `None`, or an error in strict mode.
    async fn changed(
        self: &Arc<Self>,
        list: &Arc<ToolList>,
        asked: SystemTime,
    ) -> Result<Option<HashSet<String>>, ToolError> {
        let Some(identity) = self.identity.clone() else { return Ok(Some(HashSet::new())) };
        let (server, list) = (Arc::clone(self), Arc::clone(list));
        let work = move || {
            if let Some(cache) = &server.options.cache {
                cache.save(&identity, &server.name, &list, asked);
            }
            let pins = server.options.pins.as_ref();
            pins.map_or_else(|| Ok(HashSet::new()), |pins| pins.check(&server.name, &list))
        };
        let checked = match &self.options.runtime {
            Some(runtime) => match probe::spawn_blocking(runtime, work) {
                Ok(checking) => checking.await.map_err(std::io::Error::from).flatten(),
                Err(error) => Err(error),
            },
            None => work(),
        };
        match checked {
            Ok(changed) => {
                if !changed.is_empty() {
                    let tools = changed.len();
                    tracing::warn!(server = %self.name, tools, "tools differ from their pinned definitions");
                }
                Ok(Some(changed))
            }
            Err(error) if self.options.strict => Err(ToolError::new(
                ToolErrorCode::ToolDenied,
                format!("the pinned definitions of server `{}` cannot be read: {error}", self.name),
            )),
            Err(error) => {
                tracing::warn!(server = %self.name, %error, "pinned definitions cannot be read or written");
                Ok(None)
            }
        }
    }
}
