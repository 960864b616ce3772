//! One server's tool list: fetched from the server, cached on disk, and refreshed when it is stale.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::time::timeout_at;

use super::CatalogOptions;
use super::list::{ResolvedTool, ServerTools};
use crate::tools::{ToolDispatcher, ToolError, ToolErrorCode, ToolList};

/// How long a search waits for a server whose tools are unknown. Longer than an ordinary start. A
/// slower server is left out with a warning until it has answered.
pub(super) const DISCOVERY_TIME: Duration = Duration::from_secs(2);

/// Time limit of a refresh, including one in the background.
pub(super) const REFRESH_TIME: Duration = Duration::from_secs(60);

/// Maximum number of refreshes within the period below, for a server that sends list-changed
/// notifications continuously.
pub(super) const MAX_REFRESHES: usize = 5;
const REFRESHES_PERIOD: Duration = Duration::from_secs(5);

pub(super) struct Server {
    pub(super) name: Arc<str>,
    pub(super) dispatcher: Arc<dyn ToolDispatcher>,
    /// The key of the list on disk; `None` if the list is not stored.
    pub(super) identity: Option<String>,
    pub(super) options: CatalogOptions,
    pub(super) state: Mutex<ServerState>,
}

#[derive(Default)]
pub(super) struct ServerState {
    known: Option<Known>,
    /// Whether the list was looked up on disk.
    was_loaded: bool,
    refresh: Option<Refresh>,
    /// Start times of the most recent refreshes.
    refreshes: VecDeque<Instant>,
    /// The error of the last refresh, while the list from before it is used.
    failure: Option<ToolError>,
}

/// The known tools, and where the list came from.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) tools: Arc<ServerTools>,
    pub(super) source: Source,
}

#[derive(Clone, Copy)]
pub(super) enum Source {
    /// The list came from the server at this generation.
    Server { generation: u64 },
    /// The list came from disk.
    Disk { is_fresh: bool },
}

/// A refresh in flight, shared by all callers that wait for it.
#[derive(Clone)]
pub(super) struct Refresh {
    began: Instant,
    result: Shared<BoxFuture<'static, Result<Arc<ServerTools>, ToolError>>>,
}

impl Server {
    /// The tools: the known list if it is recent enough, else a list from the server.
    pub(super) async fn tools(self: &Arc<Self>, deadline: Instant) -> Result<Arc<ServerTools>, ToolError> {
        let generation = self.dispatcher.generation(&self.name);
        match self.load() {
            Some(Known { tools, source: Source::Server { generation: known } }) if known == generation => {
                Ok(tools)
            }
            Some(Known { tools, source: Source::Disk { is_fresh } }) if !self.options.strict => {
                // This list is good enough to continue with. If it is stale, or the server is
                // running anyway, it is refreshed in the background.
                if !is_fresh || generation > 0 {
                    self.refresh();
                }
                Ok(tools)
            }
            Some(Known { tools, source })
                if (!self.options.strict || matches!(source, Source::Server { .. }))
                    && !self.may_refresh() =>
            {
                Ok(tools)
            }
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

    /// The tools for a search, which waits at most [`DISCOVERY_TIME`] for one server, and the error
    /// if the list could not be fetched.
    pub(super) async fn discovered(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> (Option<Arc<ServerTools>>, Option<ToolError>) {
        // A search does not wait again for a server that has already exceeded the time.
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

    /// The known list. The first call looks it up on disk.
    pub(super) fn load(&self) -> Option<Known> {
        let mut state = self.state.lock();
        if !state.was_loaded {
            state.was_loaded = true;
            if let (Some(cache), Some(identity)) = (&self.options.cache, &self.identity)
                && let Some(cached) = cache.load(identity)
                && state.known.is_none()
            {
                let source = Source::Disk { is_fresh: cached.is_fresh(SystemTime::now()) };
                let tools = Arc::new(ServerTools::new(cached.list, None));
                state.known = Some(Known { tools, source });
            }
        }
        state.known.clone()
    }

    /// The names of the tools in the list that differ from their pinned definitions; all names if
    /// the pins cannot be read. Blocks.
    pub(super) fn differing(&self, list: &ToolList) -> HashSet<String> {
        let pins = self.options.pins.as_ref().filter(|_| self.identity.is_some());
        pins.map_or_else(HashSet::new, |pins| {
            pins.differing(&self.name, list)
                .unwrap_or_else(|_unreadable| list.tools.iter().map(|tool| tool.name.clone()).collect())
        })
    }

    /// Whether the list came from the server and the server has announced no change since.
    pub(super) fn is_verified(&self) -> bool {
        let generation = self.dispatcher.generation(&self.name);
        let state = self.state.lock();
        matches!(&state.known, Some(Known { source: Source::Server { generation: known }, .. }) if *known == generation)
    }

    pub(super) fn may_refresh(&self) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        while state.refreshes.front().is_some_and(|began| now.duration_since(*began) > REFRESHES_PERIOD) {
            state.refreshes.pop_front();
        }
        state.refreshes.len() < MAX_REFRESHES
    }

    /// Starts a refresh, or joins the one in flight, and waits for it.
    pub(super) async fn refreshed(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<Arc<ServerTools>, ToolError> {
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
        let result = Arc::clone(self).ask().boxed().shared();
        if let Some(runtime) = &self.options.runtime {
            // The task ends by itself: the request has a deadline.
            runtime.spawn(result.clone().map(drop));
        }
        let refresh = Refresh { began, result };
        state.refresh = Some(refresh.clone());
        refresh
    }

    async fn ask(self: Arc<Self>) -> Result<Arc<ServerTools>, ToolError> {
        // The generation is read before the request, so that a change during the request causes
        // another refresh.
        let generation = self.dispatcher.generation(&self.name);
        let asked = SystemTime::now();
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
            // Only a list without differences is reused: a definition may have been pinned since
            // then.
            Some(tools) if is_same && tools.changed.get().is_some_and(HashSet::is_empty) => tools,
            _ => Arc::new(ServerTools::new(Arc::clone(&list), self.changed(&list, asked).await?)),
        };
        let mut state = self.state.lock();
        state.failure = None;
        state.known = Some(Known { tools: Arc::clone(&tools), source: Source::Server { generation } });
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
            Some(runtime) => runtime.spawn_blocking(work).await.map_err(std::io::Error::other).flatten(),
            None => work(),
        };
        match checked {
            Ok(changed) => {
                if !changed.is_empty() {
                    tracing::warn!(server = %self.name, tools = changed.len(), "tools differ from what was accepted");
                }
                Ok(Some(changed))
            }
            Err(error) if self.options.strict => Err(ToolError::new(
                ToolErrorCode::ToolDenied,
                format!("what was accepted of server `{}` cannot be read: {error}", self.name),
            )),
            Err(error) => {
                tracing::warn!(server = %self.name, %error, "accepted definitions cannot be read or kept");
                Ok(None)
            }
        }
    }

    pub(super) fn resolved(self: &Arc<Self>, tools: &Arc<ServerTools>, position: usize) -> ResolvedTool {
        ResolvedTool {
            server: Arc::clone(&self.name),
            tool: Arc::clone(&tools.names[position]),
            host: Arc::clone(self),
            tools: Arc::clone(tools),
            position,
        }
    }
}
