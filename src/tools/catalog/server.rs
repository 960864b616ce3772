//! One server's list of tools: from the server, from disk, and when which is good enough.

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

/// How long a search waits for a server whose tools are not known yet. Longer than an ordinary start;
/// a server that needs more is left out with a warning until it has answered.
pub(super) const DISCOVERY_TIME: Duration = Duration::from_secs(2);

/// How long asking a server for its list may take when nobody waits for it.
pub(super) const REFRESH_TIME: Duration = Duration::from_secs(60);

/// A server that announces changes all the time is asked again this often in that time and no more.
pub(super) const MAX_REFRESHES: usize = 5;
const REFRESHES_PERIOD: Duration = Duration::from_secs(5);

pub(super) struct Server {
    pub(super) name: Arc<str>,
    pub(super) dispatcher: Arc<dyn ToolDispatcher>,
    /// Under which the list is kept on disk, if it is.
    pub(super) identity: Option<String>,
    pub(super) options: CatalogOptions,
    pub(super) state: Mutex<ServerState>,
}

#[derive(Default)]
pub(super) struct ServerState {
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
pub(super) struct Known {
    pub(super) tools: Arc<ServerTools>,
    pub(super) source: Source,
}

#[derive(Clone, Copy)]
pub(super) enum Source {
    /// The server itself, as of that generation.
    Server { generation: u64 },
    /// The disk.
    Disk { is_fresh: bool },
}

/// A refresh on its way, shared by all who wait for it.
#[derive(Clone)]
pub(super) struct Refresh {
    began: Instant,
    result: Shared<BoxFuture<'static, Result<Arc<ServerTools>, ToolError>>>,
}

impl Server {
    /// The tools: as they are known if that is good enough, else from the server.
    pub(super) async fn tools(self: &Arc<Self>, deadline: Instant) -> Result<Arc<ServerTools>, ToolError> {
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

    /// The tools for a search, which does not wait long for one server, and what is wrong with them.
    pub(super) async fn discovered(
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

    /// The tools of a list that are not as they were accepted; all of them if that cannot be read. Blocks.
    pub(super) fn differing(&self, list: &ToolList) -> HashSet<String> {
        let pins = self.options.pins.as_ref().filter(|_| self.identity.is_some());
        pins.map_or_else(HashSet::new, |pins| {
            pins.differing(&self.name, list)
                .unwrap_or_else(|_unreadable| list.tools.iter().map(|tool| tool.name.clone()).collect())
        })
    }

    /// Whether the list came from the server itself and nothing has changed since.
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

    /// Asks the server, or joins who is asking, and waits for the answer.
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

    /// Asks the server unless that is on its way already. Goes on whether or not anybody waits.
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
            // What was accepted since then may make a difference.
            Some(tools) if is_same && tools.changed.get().is_some_and(HashSet::is_empty) => tools,
            _ => Arc::new(ServerTools::new(Arc::clone(&list), self.changed(&list, asked).await?)),
        };
        let mut state = self.state.lock();
        state.failure = None;
        state.known = Some(Known { tools: Arc::clone(&tools), source: Source::Server { generation } });
        drop(state);
        Ok(tools)
    }

    /// Compares a list with what was accepted, and keeps it. On a thread that may wait for the disk. `None` if that
    /// cannot be found out.
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
