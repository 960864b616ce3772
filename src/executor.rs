//! The executor: admits runs, creates their contexts, and submits them to an engine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::compile::CompileProgress;
use crate::engine::engines::{self, CompileListener, EngineOptions, Engines};
use crate::engine::pool::{Job, PoolStats};
use crate::error::Error;
use crate::run::context::ContextOptions;
use crate::run::history::{History, HistoryLimits};
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult, Language, Outcome, Script, ScriptError, Usage};
use crate::storage::files::Store;
use crate::storage::state::{DefaultScope, RunState, StateScope, StateStore};
use crate::sync::{self, AtomicUsize, OwnedSemaphorePermit, Semaphore};
use crate::tools::approval::Approver;
use crate::tools::cache::ListCache;
use crate::tools::catalog::{Catalog, CatalogOptions, ResolvedTool};
use crate::tools::native::{self, NativeTools};
use crate::tools::observed::Observed;
use crate::tools::pins::Pins;
use crate::tools::policy::{Policy, PolicyLists};
use crate::tools::{
    Approval, ApprovalRequest, KnownServer, Tool, ToolChange, ToolDefinition, ToolDispatcher, ToolError,
};

/// How long engines are idle before their idle trim: longer than an agent pauses between two
/// scripts.
const TIME_TO_REST: Duration = Duration::from_secs(30);

/// Error messages for scripts of runs without state.
const NO_STATE: &str = "nothing is kept between runs here: the program that runs scripts has to say where, with \
                        `ExecutorBuilder::state`";
const UNAVAILABLE_STATE: &str = "clients of this server that have no session of the protocol share no state: name a session \
                             of your own with the parameter `session`, and the same one each time";

/// Runs scripts. Cheap to clone; all clones share the engines, the connections and the limits.
///
/// It can be used from any tokio runtime, from several, and without one, because it has threads of
/// its own. When the last clone is dropped, upstream servers are killed and running scripts are
/// stopped.
#[derive(Clone)]
pub struct Executor {
    inner: Arc<Inner>,
}

struct Inner {
    limits: Limits,
    max_limits: Limits,
    policy: Arc<Policy>,
    approver: Option<Approver>,
    catalog: Arc<Catalog>,
    dispatchers: Vec<Arc<dyn ToolDispatcher>>,
    #[cfg(feature = "mcp")]
    mcp: Option<Arc<crate::mcp::McpServers>>,
    engines: Engines,
    admission: Admission,
    history: Option<Arc<History>>,
    /// The store of the scripts' state, and the scope of runs that name no session.
    state: Option<(StateStore, StateScope)>,
    /// Cancels every run when the executor is closed.
    closed: CancellationToken,
    /// Runtime of the tools' timers, sockets, tasks and child processes. Removed only by `drop`.
    runtime: Option<tokio::runtime::Runtime>,
}

impl fmt::Debug for Executor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Executor")
            .field("limits", &self.inner.limits)
            .field("engines", &self.inner.engines)
            .finish_non_exhaustive()
    }
}

impl Executor {
    /// Returns a builder with the defaults of [`ExecutorBuilder`].
    pub fn builder() -> ExecutorBuilder {
        ExecutorBuilder::default()
    }

    /// Runs TypeScript or JavaScript with the executor's limits. Short for [`Executor::run`].
    ///
    /// # Errors
    ///
    /// As [`Executor::run`].
    pub async fn run_ts(&self, source: &str) -> Result<ExecuteResult, Error> {
        self.run(Script::typescript(source)).await
    }

    /// Runs Python with the executor's limits. Short for [`Executor::run`].
    ///
    /// # Errors
    ///
    /// As [`Executor::run`].
    pub async fn run_py(&self, source: &str) -> Result<ExecuteResult, Error> {
        self.run(Script::python(source)).await
    }

    /// Runs a script to its end.
    ///
    /// The first run of a language starts its engine. Python is compiled if this machine has no
    /// compiled code yet, which takes seconds ([`Executor::warm`]). The run waits for that at most
    /// as long as its wall-clock limit; this wait does not count against the limit.
    ///
    /// If too many scripts are running, waits for admission. The reply comes at the latest half a
    /// second after a limit is exceeded, even if the script cannot be stopped.
    ///
    /// Dropping the future stops the script and cancels its calls.
    ///
    /// # Errors
    ///
    /// Nothing that a script does is an error here: a failing script is [`Outcome::Failed`]. The
    /// errors are [`Error::InvalidOptions`] for invalid limits or patterns, [`Error::Closed`],
    /// [`Error::Start`] and [`Error::WorkerLost`].
    pub async fn run(&self, script: impl Into<Script>) -> Result<ExecuteResult, Error> {
        let script = script.into();
        let mut counted = CountedRun::new(script.language);
        let result = self.run_uncounted(script).await;
        counted.settle(&result);
        result
    }

    async fn run_uncounted(&self, script: Script) -> Result<ExecuteResult, Error> {
        let queued = Instant::now();
        let limits = script.limits.unwrap_or(self.inner.limits);
        limits.validate()?;
        let policy = Policy::new(PolicyLists {
            allow: script.allow.as_deref(),
            deny: &script.deny,
            ask: &script.ask,
            read_only: &[],
        })?;
        let state = self.run_state(script.session, script.default_scope, script.is_dry_run)?;
        let cancel = self.inner.closed.child_token();
        let _stop_on_drop = cancel.clone().drop_guard();
        let _forward = script.cancel.as_ref().map(|token| self.forward(token, &cancel));
        let runtime = self.runtime()?;
        let too_late = {
            let _entered = runtime.enter();
            tokio::time::sleep(limits.wall_time)
        };
        tokio::select! {
            biased;
            started = self.inner.engines.start(script.language, runtime) => started?,
            () = too_late => {
                let message = format!("Python was not ready within {:?}", limits.wall_time);
                let error = ScriptError::new(ErrorCode::Timeout, message).with_hint(
                    "the first time on a machine Python is compiled, which takes some seconds and is kept: \
                     run it again, or with a longer timeout",
                );
                return Ok(not_run(error, queued));
            }
            () = cancel.cancelled() => {
                let message = "the run was cancelled while its engine was being made ready";
                return Ok(not_run(ScriptError::new(ErrorCode::Cancelled, message), queued));
            }
        }
        let admission = &self.inner.admission;
        let permit = match admission.enter(runtime, limits.memory_bytes, &cancel).await {
            Ok(permit) => permit,
            Err(refused) => return Ok(not_run(*refused, queued)),
        };
        let (reply, answer) = oneshot::channel();
        self.inner.engines.submit(Job {
            source: script.source,
            context: ContextOptions {
                language: script.language,
                limits,
                name: script.name,
                input: script.input,
                catalog: Arc::clone(&self.inner.catalog),
                policies: [Arc::clone(&self.inner.policy), Arc::new(policy)],
                approver: script.approver.or_else(|| self.inner.approver.clone()),
                is_dry_run: script.is_dry_run,
                state,
                history: script
                    .owner
                    .and_then(|owner| Some((Arc::clone(self.inner.history.as_ref()?), owner))),
                on_output: script.on_output,
                on_progress: script.on_progress,
                on_call: script.on_call,
                cancel,
                runtime: runtime.clone(),
                queued,
            },
            reply,
            permit: Box::new(permit),
        });
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Cancels `run` when `caller` is cancelled, until the guard is dropped. It cannot be a child
    /// token, because a run's token already has a parent.
    fn forward(&self, caller: &CancellationToken, run: &CancellationToken) -> ForwardGuard {
        if caller.is_cancelled() {
            // Cancelled here and not by the task below, because such a run must not even start.
            run.cancel();
        }
        let stop = CancellationToken::new();
        if let Some(runtime) = &self.inner.runtime {
            let (caller, run, stop) = (caller.clone(), run.clone(), stop.clone());
            runtime.spawn(async move {
                tokio::select! {
                    () = caller.cancelled() => run.cancel(),
                    () = stop.cancelled() => {}
                }
            });
        }
        ForwardGuard(stop)
    }

    /// The state of a run: its session's, or by default the workspace's. The inner error is the
    /// message for a run without state.
    fn run_state(
        &self,
        session: Option<String>,
        default: DefaultScope,
        is_dry_run: bool,
    ) -> Result<Result<RunState, &'static str>, Error> {
        let session = session.map(StateScope::session).transpose()?;
        let Some((store, workspace)) = &self.inner.state else { return Ok(Err(NO_STATE)) };
        let scope = match (session, default) {
            (Some(scope), _) | (None, DefaultScope::Of(scope)) => scope,
            (None, DefaultScope::Workspace) => workspace.clone(),
            (None, DefaultScope::Unavailable) => return Ok(Err(UNAVAILABLE_STATE)),
        };
        Ok(Ok(RunState::new(store.clone(), scope, is_dry_run)))
    }

    /// Clears the state of a client that will not return, in the background.
    pub(crate) fn forget_state(&self, scope: StateScope) {
        let (Some((store, _)), Ok(runtime)) = (&self.inner.state, self.runtime()) else { return };
        let store = store.clone();
        runtime.spawn_blocking(move || {
            if let Err(error) = store.clear(&scope) {
                tracing::warn!(%error, "the state of a client that has gone is not forgotten");
            }
        });
    }

    fn runtime(&self) -> Result<&tokio::runtime::Handle, Error> {
        self.inner.runtime.as_ref().map(tokio::runtime::Runtime::handle).ok_or(Error::Closed)
    }

    /// Starts a language's engine if it has not been started, and completes when its
    /// [`warm_instances`](ExecutorBuilder::warm_instances) are ready. Runs need not wait for this;
    /// it is for measurements and for servers whose first answer should be fast.
    ///
    /// Python is compiled if this machine has no compiled code yet, which takes some seconds. The
    /// [`cache_directory`](ExecutorBuilder::cache_directory) stores the code; without one it is
    /// compiled in every process. All executors of a process share it. Dropping the future does not
    /// stop the compilation.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if the system refuses threads or memory.
    pub async fn warm(&self, language: Language) -> Result<(), Error> {
        self.inner.engines.start(language, self.runtime()?).await?;
        self.inner.engines.warm(language).await;
        Ok(())
    }

    /// Requests the tool lists of all servers concurrently, even if they are cached. A server that
    /// fails or is slow does not delay the others. Returns each server's name and result, in order.
    pub async fn refresh_tools(&self) -> Vec<(String, Result<(), ToolError>)> {
        let Ok(runtime) = self.runtime() else { return Vec::new() };
        let catalog = Arc::clone(&self.inner.catalog);
        runtime.spawn(async move { catalog.refresh().await }).await.unwrap_or_default()
    }

    /// The names of all servers that scripts may see, including native ones, in order.
    pub fn server_names(&self) -> Vec<String> {
        let names = self.inner.catalog.server_names();
        let permitted = names.filter(|name| self.inner.policy.may_permit_server(name));
        permitted.map(|name| name.to_string()).collect()
    }

    /// The limits of runs that set none of their own.
    pub fn limits(&self) -> Limits {
        self.inner.limits
    }

    /// The most that a client of a server may ask for: see [`ExecutorBuilder::max_limits`].
    pub fn max_limits(&self) -> Limits {
        self.inner.max_limits
    }

    /// The number of runs at this moment.
    pub fn run_stats(&self) -> RunStats {
        let admission = &self.inner.admission;
        RunStats {
            running: admission.running.load(Ordering::Relaxed),
            queued: admission.waiting.load(Ordering::Relaxed),
            most_running: admission.most_runs,
            most_queued: admission.most_waiting,
        }
    }

    /// The run history, if the executor [keeps one](ExecutorBuilder::keep_runs).
    pub fn history(&self) -> Option<&History> {
        self.inner.history.as_deref()
    }

    /// The servers and their tools that are known without sending requests: from this process's
    /// runs, and from the [`cache_directory`](ExecutorBuilder::cache_directory). Reads files.
    pub fn known_tools(&self) -> Vec<KnownServer> {
        let known = self.inner.catalog.known().into_iter();
        known
            .map(|(name, tools)| KnownServer {
                name: name.to_string(),
                tools: tools
                    .map(|tools| tools.iter().filter(|tool| self.permits(tool)).map(Tool::new).collect()),
            })
            .collect()
    }

    /// The [`known_tools`](Self::known_tools) that match `query`, best match first, at most
    /// `limit`.
    pub fn search_known_tools(&self, query: &str, limit: usize) -> Vec<Tool> {
        let permitted = |server: &str, tool: &str| self.inner.policy.permits(server, tool);
        let found = self.inner.catalog.search_known(query, limit, permitted);
        found.iter().map(Tool::new).collect()
    }

    fn permits(&self, tool: &ResolvedTool) -> bool {
        self.inner.policy.permits(&tool.server, &tool.tool)
    }

    /// TypeScript declarations of the [`known_tools`](Self::known_tools) that scripts may use.
    pub fn declarations(&self) -> String {
        let permitted = |server: &str, tool: &str| self.inner.policy.permits(server, tool);
        self.inner.catalog.declarations(permitted)
    }

    /// The differences from the pinned tool definitions, by server and tool, as of the last tool
    /// list of each server. Reads files.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if they cannot be read.
    pub fn tool_changes(&self) -> Result<Vec<ToolChange>, Error> {
        self.inner
            .catalog
            .changes()
            .map_err(|source| Error::Files { what: "accepted tool definitions", source })
    }

    /// Pins the current definition of a server's tool, or of all its tools. Returns how many
    /// differed.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the pins cannot be written.
    pub fn accept_tools(&self, server: &str, tool: Option<&str>) -> Result<usize, Error> {
        let accepted = self.inner.catalog.accept(server, tool);
        accepted.map_err(|source| Error::Files { what: "accepted tool definitions", source })
    }

    /// Clears the [`cache_directory`](ExecutorBuilder::cache_directory): the tool lists and
    /// inferred output schemas of all servers that ever used it, and compiled Python. Returns the
    /// number of files removed.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if they cannot be removed.
    pub fn clear_cache(&self) -> Result<usize, Error> {
        let failed = |source| Error::Files { what: "the cache", source };
        let lists = self.inner.catalog.clear_cache().map_err(failed)?;
        let code = self.inner.engines.clear_cache().map_err(failed)?;
        Ok(lists + code)
    }

    /// The state of a language's instances (isolates or interpreters) at this moment.
    pub fn pool_stats(&self, language: Language) -> PoolStats {
        self.inner.engines.stats(language)
    }

    /// Stops all runs and shuts down the upstream servers: their stdin is closed, then they are
    /// asked to terminate, then they are killed. Takes at most a few seconds. Later runs end with
    /// [`ErrorCode::Cancelled`].
    pub async fn close(&self) {
        self.inner.closed.cancel();
        #[cfg(feature = "mcp")]
        if let Some(mcp) = &self.inner.mcp {
            mcp.shutdown().await;
        }
        for dispatcher in &self.inner.dispatchers {
            dispatcher.close();
        }
        let catalog = Arc::clone(&self.inner.catalog);
        if let Ok(runtime) = self.runtime() {
            let _runtime_ends = runtime.spawn_blocking(move || catalog.save()).await;
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.closed.cancel();
        for dispatcher in &self.dispatchers {
            dispatcher.close();
        }
        if let Some(runtime) = self.runtime.take() {
            // A blocking wait for tasks is not possible here, because this may be a tokio worker
            // thread.
            runtime.shutdown_background();
        }
    }
}

struct ForwardGuard(CancellationToken);

impl Drop for ForwardGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Metrics of one run, recorded however it ends.
struct CountedRun {
    language: Language,
    began: Instant,
    /// `None` if no run took place.
    outcome: Option<&'static str>,
}

impl CountedRun {
    fn new(language: Language) -> Self {
        // A run whose future is dropped before its end counts as cancelled.
        Self { language, began: Instant::now(), outcome: Some(ErrorCode::Cancelled.as_str()) }
    }

    fn settle(&mut self, result: &Result<ExecuteResult, Error>) {
        self.outcome = match result {
            Ok(result) => Some(result.error().map_or("ok", |error| error.code.as_str())),
            Err(Error::Closed) => Some(ErrorCode::Cancelled.as_str()),
            Err(Error::Start { .. } | Error::WorkerLost { .. }) => {
                Some(ErrorCode::EngineUnavailable.as_str())
            }
            Err(_) => None,
        };
    }
}

impl Drop for CountedRun {
    fn drop(&mut self) {
        let Some(outcome) = self.outcome else { return };
        let language = match self.language {
            Language::TypeScript => "typescript",
            Language::Python => "python",
        };
        metrics::counter!("cx_runs_total", "language" => language, "outcome" => outcome).increment(1);
        metrics::histogram!("cx_run_duration_seconds", "language" => language).record(self.began.elapsed());
    }
}

/// The result of a run that was never started.
fn not_run(error: ScriptError, queued: Instant) -> ExecuteResult {
    ExecuteResult {
        outcome: Outcome::Failed(error),
        logs: Vec::new(),
        tool_calls: Vec::new(),
        planned_calls: None,
        usage: Usage { queue_time: queued.elapsed(), ..Usage::default() },
    }
}

/// The number of an executor's runs, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStats {
    /// Runs that were admitted and have not ended.
    pub running: usize,
    /// Runs that wait for admission: for a slot, or for memory.
    pub queued: usize,
    /// Maximum number of running runs.
    pub most_running: usize,
    /// Maximum number of queued runs. Further runs are refused immediately.
    pub most_queued: usize,
}

/// Admission control: bounds the number and the memory of concurrent runs, and the length of the
/// queue.
struct Admission {
    runs: Arc<Semaphore>,
    most_runs: usize,
    /// Permits for megabytes: the sum of the memory limits of all runs.
    memory: Arc<Semaphore>,
    /// Runs that have both permits. A run that waits for memory already holds its run permit, but
    /// is counted only as waiting.
    running: Arc<AtomicUsize>,
    waiting: AtomicUsize,
    most_waiting: usize,
    longest_wait: Duration,
}

/// Permit of an admitted run. Dropping it admits another run.
struct Permit {
    _run: OwnedSemaphorePermit,
    _memory: OwnedSemaphorePermit,
    running: Arc<AtomicUsize>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    async fn enter(
        &self,
        runtime: &tokio::runtime::Handle,
        memory_bytes: usize,
        cancel: &CancellationToken,
    ) -> Result<Permit, Box<ScriptError>> {
        let megabytes = u32::try_from(memory_bytes >> 20).unwrap_or(u32::MAX);
        let acquire = async {
            let run = Arc::clone(&self.runs).acquire_owned().await.ok()?;
            let memory = Arc::clone(&self.memory).acquire_many_owned(megabytes).await.ok()?;
            self.running.fetch_add(1, Ordering::Relaxed);
            Some(Permit { _run: run, _memory: memory, running: Arc::clone(&self.running) })
        };
        tokio::pin!(acquire);
        if let Some(permit) = futures::FutureExt::now_or_never(acquire.as_mut()) {
            return permit.ok_or_else(cancelled);
        }
        let _place = self.wait_in_line()?;
        let timeout = {
            let _entered = runtime.enter();
            sync::sleep(self.longest_wait)
        };
        tokio::select! {
            biased;
            permit = acquire => permit.ok_or_else(cancelled),
            () = timeout => Err(self.full(format!("no place was free within {:?}", self.longest_wait))),
            () = cancel.cancelled() => Err(cancelled()),
        }
    }

    fn wait_in_line(&self) -> Result<PlaceInLine<'_>, Box<ScriptError>> {
        let place = PlaceInLine(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.most_waiting {
            drop(place);
            return Err(self.full(format!("{} runs are waiting already", self.most_waiting)));
        }
        Ok(place)
    }

    fn full(&self, message: String) -> Box<ScriptError> {
        // A typical run is far shorter than the queue timeout.
        let retry_after = self.longest_wait.min(Duration::from_secs(5)).max(Duration::from_millis(100));
        let error = ScriptError::new(ErrorCode::QueueFull, message).with_hint("try again later");
        Box::new(ScriptError { retry_after: Some(retry_after), ..error })
    }
}

struct PlaceInLine<'a>(&'a AtomicUsize);

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn cancelled() -> Box<ScriptError> {
    Box::new(ScriptError::new(ErrorCode::Cancelled, "the run was cancelled before it started"))
}

/// Options of an [`Executor`]. They are checked by [`ExecutorBuilder::build`].
#[derive(Default)]
pub struct ExecutorBuilder {
    limits: Limits,
    max_limits: Option<Limits>,
    allow: Option<Vec<String>>,
    deny: Vec<String>,
    ask: Vec<String>,
    read_only: Vec<String>,
    approver: Option<Approver>,
    narrow: Vec<Vec<String>>,
    native: NativeTools,
    dispatchers: Vec<Arc<dyn ToolDispatcher>>,
    #[cfg(feature = "mcp")]
    upstream: upstream::Upstream,
    warm_instances: Option<usize>,
    rest_after: Option<Duration>,
    languages: Option<Vec<Language>>,
    on_compile: Option<CompileListener>,
    concurrent_runs: Option<usize>,
    queued_runs: Option<usize>,
    queue_timeout: Option<Duration>,
    memory_bytes: Option<usize>,
    cache_directory: Option<PathBuf>,
    state_directory: Option<PathBuf>,
    strict: bool,
    keep_runs: Option<HistoryLimits>,
    state: Option<(StateStore, StateScope)>,
}

impl fmt::Debug for ExecutorBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ExecutorBuilder")
            .field("limits", &self.limits)
            .field("allow", &self.allow)
            .field("deny", &self.deny)
            .field("ask", &self.ask)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

impl ExecutorBuilder {
    /// Sets the limits of runs that set none of their own.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The most that a client of a [`Server`](crate::server::Server) may ask for: a request for more gets this much.
    /// Default: [`Limits::CEILING`]. [`Script::limits`] is not bounded by it: it is the embedder's own.
    #[must_use]
    pub fn max_limits(mut self, limits: Limits) -> Self {
        self.max_limits = Some(limits);
        self
    }

    /// Allows only the tools that match one of `patterns`; an empty list allows nothing. By default
    /// every tool is allowed.
    ///
    /// A pattern is `server.tool` or `mcp__server__tool`, with `*` for any sequence of characters
    /// in either part, or `*` alone.
    #[must_use]
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.allow.get_or_insert_default().extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Denies the tools that match one of `patterns`. Denial takes precedence over allowance.
    #[must_use]
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.deny.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Requires approval for each call of the tools that match one of `patterns`. Denial takes
    /// precedence over approval, and approval over allowance. Without an
    /// [`approver`](Self::approver) such calls are refused.
    ///
    /// A pattern is one as in [`allow`](Self::allow), or one of three words that select tools by
    /// their own annotations: `destructive`, `write`, `open-world`
    /// ([`AskAnnotation`](crate::AskAnnotation)). None of these words is a valid tool pattern. An
    /// annotation can only add approval prompts. A malicious server can omit annotations, so tools
    /// that matter should be named. If a tool's definition differs from the pinned one, its
    /// annotations are ignored.
    #[must_use]
    pub fn ask<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.ask.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Declares the tools that match one of `patterns`, as in [`allow`](Self::allow), read-only,
    /// regardless of their annotations: `destructive` and `write` require no approval for them, and
    /// a [dry run](crate::Script::dry_run) calls them.
    #[must_use]
    pub fn read_only<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.read_only.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Sets the function that asks the user for approval of a call. The answer applies to exactly
    /// the call that is shown.
    ///
    /// A run has at most one open approval prompt at a time, [`Limits::questions`] in total, each
    /// for at most [`Limits::answer_time`]. Meanwhile the run's wall clock is paused, up to
    /// [`Limits::paused_time`] in total, and the run keeps its slot. CPU time that the script uses
    /// meanwhile counts.
    ///
    /// The future is polled on the executor's runtime, where it must not block, and not on the
    /// script's thread. It is dropped when the run ends or the answer times out: a prompt that is
    /// still shown must then be withdrawn. A panic counts as
    /// [`Approval::Unavailable`](crate::Approval::Unavailable).
    #[must_use]
    pub fn approver<Answer>(
        mut self,
        approver: impl Fn(ApprovalRequest) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = Approval> + Send + 'static,
    {
        self.approver = Some(Arc::new(move |request| approver(request).boxed()));
        self
    }

    /// Denies the tools that match none of `patterns`, whatever else allows them. Each call
    /// restricts the tools further.
    #[must_use]
    pub fn narrow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.narrow.push(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a tool written in Rust.
    ///
    /// `name` is `server.tool`; without a dot the server is `native`. `input_schema` is the JSON
    /// Schema of the arguments, whose `description` is also the tool's; `Value::Null` accepts any
    /// object. The function takes any type that deserializes from the arguments and returns any
    /// type that serializes; its error becomes the script's `McpToolError` with the code
    /// `TOOL_ERROR`.
    ///
    /// The function is polled on the script's thread, so it should not block; tokio's timers,
    /// sockets and `spawn` work in it.
    #[must_use]
    pub fn tool<Arguments, Output, Failure, Function, Returned>(
        self,
        name: &str,
        input_schema: Value,
        function: Function,
    ) -> Self
    where
        Arguments: serde::de::DeserializeOwned,
        Output: serde::Serialize,
        Failure: fmt::Display,
        Function: Fn(Arguments) -> Returned + Send + Sync + 'static,
        Returned: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        let definition = native::definition(input_schema);
        self.tool_with_definition(ToolDefinition { name: name.to_owned(), ..definition }, function)
    }

    /// As [`ExecutorBuilder::tool`], with the complete definition, including output schema and
    /// annotations. `definition.name` is `server.tool`.
    #[must_use]
    pub fn tool_with_definition<Arguments, Output, Failure, Function, Returned>(
        mut self,
        definition: ToolDefinition,
        function: Function,
    ) -> Self
    where
        Arguments: serde::de::DeserializeOwned,
        Output: serde::Serialize,
        Failure: fmt::Display,
        Function: Fn(Arguments) -> Returned + Send + Sync + 'static,
        Returned: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        let name = definition.name.clone();
        self.native.add(&name, definition, native::erase(function));
        self
    }

    /// Adds servers that are neither native nor MCP.
    #[must_use]
    pub fn dispatcher(mut self, dispatcher: impl ToolDispatcher) -> Self {
        self.dispatchers.push(Arc::new(dispatcher));
        self
    }

    /// Sets how many instances to keep warm for each language in use. Default: one per core, at
    /// least 2. An isolate takes about 2 MB, an interpreter about 10 MB.
    #[must_use]
    pub fn warm_instances(mut self, count: usize) -> Self {
        self.warm_instances = Some(count);
        self
    }

    /// Sets how long engines are idle before they release memory that can be restored: freed
    /// memory, and for Python the code and the unmodified pages of the warm interpreters, about 15
    /// MB for each interpreter and 11 MB for all together. The first script afterwards reads them
    /// again, which takes one or two milliseconds. Default: 30 s.
    #[must_use]
    pub fn rest_after(mut self, time: Duration) -> Self {
        self.rest_after = Some(time);
        self
    }

    /// Sets the languages whose engines [`build`](Self::build) starts in the background. Others
    /// start with their first run. Default: TypeScript; in a build without it, Python.
    #[must_use]
    pub fn languages(mut self, languages: impl IntoIterator<Item = Language>) -> Self {
        self.languages = Some(languages.into_iter().collect());
        self
    }

    /// Calls `listener` when Python has to be compiled for this machine, on one of the executor's
    /// threads.
    #[must_use]
    pub fn on_compile(mut self, listener: impl Fn(CompileProgress) + Send + Sync + 'static) -> Self {
        self.on_compile = Some(Arc::new(listener));
        self
    }

    /// Sets the maximum number of concurrent runs. Default: 100. Each has a thread.
    #[must_use]
    pub fn max_concurrent_runs(mut self, count: usize) -> Self {
        self.concurrent_runs = Some(count);
        self
    }

    /// Sets the maximum number of queued runs. Default: 200.
    #[must_use]
    pub fn max_queued_runs(mut self, count: usize) -> Self {
        self.queued_runs = Some(count);
        self
    }

    /// Sets how long a run may be queued. Default: 30 s.
    #[must_use]
    pub fn queue_timeout(mut self, timeout: Duration) -> Self {
        self.queue_timeout = Some(timeout);
        self
    }

    /// Sets the maximum memory of all running scripts together, as the sum of their
    /// [`Limits::memory_bytes`]. Default: half of the machine's memory.
    #[must_use]
    pub fn total_memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Stores the servers' tool lists and the inferred output schemas of their tools in this
    /// directory, so that a later process knows them without starting the servers. Default: not
    /// stored. Several processes may share one directory.
    #[must_use]
    pub fn cache_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache_directory = Some(directory.into());
        self
    }

    /// Stores the pinned tool definitions in this directory. Default: not stored, and then changed
    /// definitions are not detected.
    #[must_use]
    pub fn state_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.state_directory = Some(directory.into());
        self
    }

    /// Refuses tools whose definition differs from the pinned one. Needs
    /// [`state_directory`](Self::state_directory). Servers are then asked for their tools before
    /// the first call on each connection. Default: off.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Enables the run history, which [`Executor::history`] returns. The client that requests a run
    /// decides whether its record is kept. Default: no history.
    #[must_use]
    pub fn keep_runs(mut self, limits: HistoryLimits) -> Self {
        self.keep_runs = Some(limits);
        self
    }

    /// Stores what scripts write with `state.set` in this store: separately for each
    /// [`Script::session`], and for all other runs under this workspace's directory. Does not open
    /// the store. Default: calls of `state` fail with an explanation.
    #[cfg(feature = "state")]
    #[must_use]
    pub fn state(mut self, store: StateStore, workspace: impl AsRef<std::path::Path>) -> Self {
        self.state = Some((store, StateScope::workspace(workspace.as_ref())));
        self
    }

    /// Creates the executor: reads the configuration, starts the threads and begins to create warm
    /// instances. Starts no MCP server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] and [`Error::Config`] name the option or key that is wrong;
    /// [`Error::Start`] means that the system refuses a thread.
    pub fn build(self) -> Result<Executor, Error> {
        self.limits.validate()?;
        let max_limits = self.max_limits.unwrap_or(Limits::CEILING);
        max_limits.validate()?;
        let mut policy = Policy::new(PolicyLists {
            allow: self.allow.as_deref(),
            deny: &self.deny,
            ask: &self.ask,
            read_only: &self.read_only,
        })?;
        for patterns in &self.narrow {
            policy.narrow(patterns)?;
        }
        let warm = self.warm_instances.unwrap_or_else(default_warm_instances);
        let runs = self.concurrent_runs.unwrap_or(100);
        if runs == 0 || runs > Semaphore::MAX_PERMITS {
            let problem = format!("must be between 1 and {}: {runs}", Semaphore::MAX_PERMITS);
            return Err(Error::InvalidOptions { option: "max_concurrent_runs", problem });
        }
        let memory = self.memory_bytes.unwrap_or_else(default_total_memory);
        if memory < self.limits.memory_bytes {
            let problem =
                format!("must be at least one run's `memory_bytes`, {}: {memory}", self.limits.memory_bytes);
            return Err(Error::InvalidOptions { option: "total_memory_bytes", problem });
        }
        let start = |what| move |source| Error::Start { what, source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // For protocol work only; scripts and native tools run on their own threads.
            .worker_threads(2)
            .thread_name("cx-io")
            .enable_all()
            .build()
            .map_err(start("the tools' runtime"))?;
        let mut dispatchers: Vec<Arc<dyn ToolDispatcher>> = Vec::new();
        if !self.native.is_empty() {
            dispatchers.push(Arc::new(self.native));
        }
        dispatchers.extend(self.dispatchers);
        #[cfg(feature = "mcp")]
        let mcp = self.upstream.connect(&mut policy, self.state_directory.as_deref(), runtime.handle())?;
        #[cfg(feature = "mcp")]
        if let Some(mcp) = &mcp {
            dispatchers.push(Arc::clone(mcp) as Arc<dyn ToolDispatcher>);
        }
        if self.strict && self.state_directory.is_none() {
            let problem = "needs `state_directory`, where it is kept what was accepted".to_owned();
            return Err(Error::InvalidOptions { option: "strict", problem });
        }
        let cache_directory = self.cache_directory;
        let cache = cache_directory.clone().map(Store::new);
        let catalog_options = CatalogOptions {
            cache: cache.clone().map(ListCache::new),
            pins: self.state_directory.map(|directory| Pins::new(Store::new(directory))),
            observed: Arc::new(Observed::new(cache)),
            checks: Arc::default(),
            strict: self.strict,
            runtime: Some(runtime.handle().clone()),
        };
        let engines = Engines::new(EngineOptions {
            warm,
            rest_after: self.rest_after.unwrap_or(TIME_TO_REST),
            memory_bytes: self.limits.memory_bytes,
            cache: cache_directory,
            on_compile: self.on_compile,
        });
        let languages =
            self.languages.unwrap_or_else(|| engines::AVAILABLE.iter().copied().take(1).collect());
        for &language in &languages {
            engines::require(language)?;
        }
        if languages.contains(&Language::TypeScript) {
            engines.start_typescript()?;
        }
        if languages.contains(&Language::Python) {
            engines.start_python_in_background(runtime.handle());
        }
        Ok(Executor {
            inner: Arc::new(Inner {
                limits: self.limits,
                max_limits,
                policy: Arc::new(policy),
                approver: self.approver,
                catalog: Arc::new(Catalog::new(&dispatchers, &catalog_options)),
                dispatchers,
                #[cfg(feature = "mcp")]
                mcp,
                engines,
                admission: Admission {
                    runs: Arc::new(Semaphore::new(runs)),
                    most_runs: runs,
                    memory: Arc::new(Semaphore::new((memory >> 20).min(Semaphore::MAX_PERMITS))),
                    running: Arc::default(),
                    waiting: AtomicUsize::new(0),
                    most_waiting: self.queued_runs.unwrap_or(200),
                    longest_wait: self.queue_timeout.unwrap_or(Duration::from_secs(30)),
                },
                history: self.keep_runs.map(|limits| Arc::new(History::new(limits))),
                state: self.state,
                closed: CancellationToken::new(),
                runtime: Some(runtime),
            }),
        })
    }
}

fn default_warm_instances() -> usize {
    // With a single instance, the second of two consecutive runs would find its instance still
    // being made.
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

fn default_total_memory() -> usize {
    let system = rustix::system::sysinfo();
    let bytes = (system.totalram as u64).saturating_mul(system.mem_unit.into());
    usize::try_from(bytes / 2).unwrap_or(usize::MAX)
}

#[cfg(feature = "mcp")]
mod upstream;

#[cfg(test)]
mod models;
