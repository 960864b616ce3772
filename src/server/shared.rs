//! The state that all clients of a server share.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::answer::Format;
use super::answer::draft::MAX_CHARACTERS;
use super::client_slots::ClientSlots;
use super::guide;
use super::hung_workers::HungWorkers;
use super::index::Index;
use super::pending::PendingRuns;
use super::shown::{Shown, ShownTools};
use super::skills;
use super::tasks::AllTasks;
use crate::error::{Error, with_sources};
use crate::executor::Executor;
use crate::run::script::Language;

/// Options of a [`Server`](super::Server).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Format of the text of answers. The structured content is the same in all formats.
    pub format: Format,
    /// Maximum characters of the value of one answer, and also of its output. What exceeds it is left out of the answer
    /// and can be read for an hour. The default of 25,000 suits answers that a model reads; for a program it can be
    /// higher.
    pub max_value: usize,
    /// Whether the instructions that clients show to their models contain an index of the known tools, as long as it is
    /// small (300 tokens). True by default.
    pub index: bool,
    /// Time after which a call is answered although its run continues, if the call does not set `yieldAfterMs`; the
    /// tool `wait` returns the rest. For clients with a session that do not support tasks. With zero, only runs whose
    /// call asks for it continue. With `None`, the default, no run continues, and the tool `wait` does not exist.
    pub yield_after: Option<Duration>,
    /// Whether approval prompts go to the user of the requesting client, if the client can show them. If false, the
    /// executor's [`approver`](crate::ExecutorBuilder::approver) is asked for all clients. True by default.
    pub clients_approve: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            format: Format::default(),
            max_value: MAX_CHARACTERS,
            index: true,
            yield_after: None,
            clients_approve: true,
        }
    }
}

/// Maximum number of open subscriptions of one client. A client needs one, but all clients behind a
/// proxy on this machine count as one.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 64;

/// Maximum number of resources that one client is subscribed to, in all of its subscriptions together.
pub(crate) const MAX_RESOURCES: usize = 64;

/// The digests of the files of all skills, by URI.
pub(crate) type SkillDigests = Arc<HashMap<String, u64>>;

/// Identifies the lists that a list of tools was made from: [`Executor::lists_key`].
type ListKey = (u64, u64);

/// State that all clients share. Lives as long as the server.
pub(crate) struct Shared {
    pub(crate) executor: Executor,
    pub(crate) options: ServerOptions,
    pub(crate) started: Instant,
    /// The list of tools, and the key that it was made for. It is the same for every client, except that tools which
    /// are shown only for their user interfaces may be left out.
    tools: Mutex<Option<(ListKey, Arc<ShownTools>)>>,
    /// Whether a task follows the lists of servers.
    is_following: AtomicBool,
    /// Counts the changes of the list of tools that were found by that task.
    list_changes: watch::Sender<u64>,
    /// Why engines did not start, by language.
    pub(crate) start_failures: Mutex<BTreeMap<&'static str, String>>,
    /// Suspended runs: their clients were sent an approval prompt and have not repeated the call
    /// yet.
    pub(crate) pending: Arc<PendingRuns>,
    pub(crate) hung_workers: Arc<HungWorkers>,
    /// The number of sources whose newer tokens cannot be used, so that the last ones stay in force.
    tokens_failing: AtomicUsize,
    /// The open subscriptions of clients of the stateless revision.
    pub(crate) subscriptions: ClientSlots,
    /// The resources that clients are subscribed to.
    pub(crate) resource_slots: ClientSlots,
    /// Whether a task follows the files of skills.
    is_following_skills: AtomicBool,
    /// Those files as that task has last found them.
    skill_digests: watch::Sender<SkillDigests>,
    /// The tasks of all sessions.
    pub(crate) all_tasks: Arc<AllTasks>,
    index: Index,
    /// The number of clients so far. Gives each client a different name.
    clients: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(executor: Executor, options: ServerOptions) -> Self {
        Self {
            options,
            started: Instant::now(),
            tools: Mutex::default(),
            is_following: AtomicBool::new(false),
            list_changes: watch::Sender::new(0),
            start_failures: Mutex::default(),
            pending: Arc::default(),
            hung_workers: Arc::new(HungWorkers::new(executor.clone())),
            tokens_failing: AtomicUsize::new(0),
            subscriptions: ClientSlots::new(MAX_SUBSCRIPTIONS),
            resource_slots: ClientSlots::new(MAX_RESOURCES),
            is_following_skills: AtomicBool::new(false),
            skill_digests: watch::Sender::default(),
            all_tasks: Arc::default(),
            index: Index::default(),
            clients: AtomicUsize::new(0),
            executor,
        }
    }

    /// The instructions for a client that connects now. May read files.
    pub(crate) fn instructions(&self) -> String {
        let shown = self.tools().shown;
        // Tools that are shown directly need no index.
        let has_index = self.options.index && !matches!(shown, Shown::All(_));
        let index = if has_index { self.index.text(&self.executor) } else { None };
        guide::instructions(index, shown, self.executor.untrusted_hint().as_deref())
    }

    /// The list of tools, as far as the tools of servers are known. May read files.
    pub(crate) fn tools(&self) -> Arc<ShownTools> {
        // Read first: if it changes meanwhile, the list is made again.
        let key = self.executor.lists_key();
        let mut tools = self.tools.lock();
        match &*tools {
            Some((of, tools)) if *of == key => Arc::clone(tools),
            before => {
                let before = before.as_ref().map(|(_, tools)| &**tools);
                let made =
                    Arc::new(ShownTools::new(&self.executor, self.options.yield_after.is_some(), before));
                *tools = Some((key, Arc::clone(&made)));
                made
            }
        }
    }

    /// The list of tools after requests to the servers whose tools may be shown and are unknown. Waits a short time for
    /// their answers; the list changes when later answers arrive.
    pub(crate) async fn asked_tools(&self, has_interfaces: bool) -> Arc<ShownTools> {
        self.executor.list_direct_tools(has_interfaces).await;
        self.tools()
    }

    /// Follows the lists of the servers whose tools are shown directly, from the first call on until
    /// the server is dropped. Must be called in a tokio runtime.
    pub(crate) fn follow_lists(self: &Arc<Self>) {
        if !self.is_following.swap(true, Ordering::Relaxed) {
            tokio::spawn(follow_lists(Arc::downgrade(self)));
        }
    }

    /// A receiver of the changes that [`follow_lists`](Self::follow_lists) finds.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.list_changes.subscribe()
    }

    /// Follows the files of skills while there are receivers of what this returns. Must be called in a tokio runtime.
    pub(crate) fn follow_skills(self: &Arc<Self>) -> watch::Receiver<SkillDigests> {
        if !self.is_following_skills.swap(true, Ordering::Relaxed) {
            tokio::spawn(follow_skills(Arc::downgrade(self)));
        }
        self.skill_digests.subscribe()
    }

    /// Whether newer tokens cannot be used.
    pub(crate) fn tokens_failing(&self) -> bool {
        self.tokens_failing.load(Ordering::Relaxed) > 0
    }

    /// Records that newer tokens of another source cannot be used.
    pub(crate) fn begin_failing_tokens(&self) {
        self.tokens_failing.fetch_add(1, Ordering::Relaxed);
    }

    /// Undoes one [`begin_failing_tokens`](Self::begin_failing_tokens).
    pub(crate) fn end_failing_tokens(&self) {
        self.tokens_failing.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns a name for a new client, which the run history uses to tell clients apart. The name
    /// is not a secret: clients never send it.
    pub(crate) fn next_client(&self) -> String {
        format!("client {}", self.clients.fetch_add(1, Ordering::Relaxed))
    }

    /// Drops the state of a client that is gone, and ends its suspended runs.
    pub(crate) fn forget(&self, client: &str) {
        self.pending.forget(client);
        if let Some(history) = self.executor.history() {
            history.forget(client);
        }
    }

    /// Records whether an engine could be started.
    pub(crate) fn record_start(&self, language: Language, failure: Option<&Error>) {
        let name = language.as_str();
        match failure {
            Some(error @ Error::Start { .. }) => {
                tracing::error!(language = name, error = %with_sources(error), "the engine does not start");
                self.start_failures.lock().insert(name, with_sources(error));
            }
            Some(_) => {}
            None => {
                self.start_failures.lock().remove(name);
            }
        }
    }
}

/// Interval of checking the lists of servers. A check sends no request unless a server has announced a change.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);

/// Announces that the list of tools has changed because a server's list has.
async fn follow_lists(shared: Weak<Shared>) {
    let mut followed = shared.upgrade().map(|shared| shared.executor.lists_stamp());
    loop {
        tokio::time::sleep(FOLLOW_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        let stamp = shared.executor.lists_stamp();
        if followed == Some(stamp) {
            continue;
        }
        let before = shared.tools.lock().as_ref().map(|(_, tools)| Arc::clone(tools));
        // A server that does not answer now is asked again after its next change.
        followed = Some(stamp);
        let now = shared.asked_tools(true).await;
        if before.is_none_or(|before| before != now) {
            shared.list_changes.send_modify(|count| *count += 1);
        }
    }
}

/// Reads the files of skills in each interval in which somebody wants to know of changes.
async fn follow_skills(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(FOLLOW_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        if shared.skill_digests.receiver_count() == 0 {
            continue;
        }
        let executor = shared.executor.clone();
        let read = tokio::task::spawn_blocking(move || skills::digests(&executor));
        let Ok(now) = read.await else { continue };
        shared.skill_digests.send_if_modified(|known| {
            let differs = **known != now;
            if differs {
                *known = Arc::new(now);
            }
            differs
        });
    }
}
