//! The options of an executor, and how it is made from them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::admission::Admission;
use super::core::{Executor, Inner};
use super::isolation::{nats_worker_program, remote_worker_program, worker_program};
use super::nats_shared;
use super::runtime;
use super::servers::ServerSet;
use super::settings::{Bounds, FromConfig, OwnSettings, Settings, check_strict};
use super::upstream::{ServerOptions, UpstreamServers};
#[cfg(feature = "mcp")]
use crate::config::ScriptLibrary;
use crate::engine::backend::Backend;
use crate::engine::compile::{CodeForm, CompileProgress};
use crate::engine::engines::{self, CompileListener, EngineOptions, Engines};
use crate::error::Error;
use crate::llm::{LanguageModel, LlmOptions, NamedModel};
use crate::machine::{self, SandboxFeatures};
use crate::run::grants::Grants;
use crate::run::history::shared::SharedRuns;
use crate::run::history::{History, HistoryLimits};
use crate::run::hooks::CallHook;
use crate::run::isolation::Isolation;
use crate::run::limits::Limits;
use crate::run::observer::{DefinitionEvent, Observers, RunObserver};
use crate::run::script::Language;
use crate::storage::files::Store;
use crate::storage::shared::SharedStores;
use crate::storage::state::{SharedState, StateScope, StateStore};
#[cfg(feature = "audit")]
use crate::telemetry::audit::{AuditOptions, AuditTrail};
use crate::telemetry::requests::RequestTracer;
use crate::telemetry::run_trace::{RunTrace, TraceRecorder};
use crate::tools::approval::Approver;
use crate::tools::cache::ListCache;
use crate::tools::catalog::CatalogOptions;
use crate::tools::inferred::InferredSchemas;
use crate::tools::native::{self, NativeTools};
use crate::tools::pins::{ChangeListener, OnChange, Pins};
use crate::tools::policy::Policy;
use crate::tools::skill_pins::SkillPins;
use crate::tools::tool_use::ToolUse;
use crate::tools::{
    Approval, ApprovalRequest, DirectTools, ElicitationAnswer, ElicitationRequest, Elicitor, ToolDefinition,
    ToolDispatcher, ToolRules,
};

/// How long engines are idle before their idle trim: longer than an agent pauses between two
/// scripts.
const TIME_TO_IDLE_TRIM: Duration = Duration::from_secs(30);

/// Options of an [`Executor`]. They are checked by [`ExecutorBuilder::build`].
#[derive(Default)]
pub struct ExecutorBuilder {
    pub(super) limits: Limits,
    pub(super) max_limits: Option<Limits>,
    own: OwnSettings,
    pub(super) config: FromConfig,
    approver: Option<Approver>,
    elicitor: Option<Elicitor>,
    hooks: Vec<Arc<dyn CallHook>>,
    observers: Vec<Arc<dyn RunObserver>>,
    requests: Option<Arc<dyn RequestTracer>>,
    native: NativeTools,
    dispatchers: Vec<Arc<dyn ToolDispatcher>>,
    #[cfg(feature = "mcp")]
    scripts: Option<Arc<ScriptLibrary>>,
    pub(super) upstream: UpstreamServers,
    warm_instances: Option<usize>,
    trim_after: Option<Duration>,
    languages: Option<Vec<Language>>,
    on_compile: Option<CompileListener>,
    isolation: Option<Isolation>,
    backend: Option<Arc<dyn Backend>>,
    queued_runs: Option<usize>,
    queue_timeout: Option<Duration>,
    cache_directory: Option<PathBuf>,
    fallback_cache: Option<PathBuf>,
    state_directory: Option<PathBuf>,
    keep_runs: Option<HistoryLimits>,
    state: Option<(StateStore, StateScope)>,
    #[cfg(feature = "audit")]
    audit: Option<AuditOptions>,
    runtime: Option<Handle>,
}

impl fmt::Debug for ExecutorBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ExecutorBuilder")
            .field("limits", &self.limits)
            .field("rules", &self.own.rules)
            .finish_non_exhaustive()
    }
}

impl Executor {
    /// Returns a builder with the defaults of [`ExecutorBuilder`].
    pub fn builder() -> ExecutorBuilder {
        ExecutorBuilder::default()
    }
}

impl ExecutorBuilder {
    /// Sets the limits of runs that set none of their own.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The most that a client of a [`Server`](crate::server::Server) may ask for: a request for
    /// more gets this much. Default: [`Limits::CEILING`]. [`Script::limits`](crate::Script::limits)
    /// is not bounded by it: it is the embedder's own.
    #[must_use]
    pub fn max_limits(mut self, limits: Limits) -> Self {
        self.max_limits = Some(limits);
        self
    }

    /// Sets the resolution of the clocks that scripts can read: `performance.now`, and everything in
    /// Python's `time`. Default: 100 µs, too coarse to time what other runs of this process do to
    /// caches and branch predictors. [`Duration::ZERO`] gives scripts the system's resolution; at
    /// most one second.
    #[must_use]
    pub fn clock_resolution(mut self, resolution: Duration) -> Self {
        self.own.clock_resolution = Some(resolution);
        self
    }

    /// Grants directories and hosts to scripts, in addition to what a configuration grants. Default:
    /// none. Every script has a scratch directory in memory, `/tmp`, which needs no grant.
    ///
    /// A script restricts itself with [`Script::permissions`](crate::Script::permissions), and a client of
    /// a [`Server`](crate::server::Server) with the parameter `permissions`.
    #[must_use]
    pub fn grants(mut self, grants: Grants) -> Self {
        self.own.grants = self.own.grants.and(grants);
        self
    }

    /// Sets the time zone of scripts that name none ([`Script::time_zone`](crate::Script::time_zone)):
    /// a name of the IANA database, such as `Europe/Berlin`. Default: UTC, whatever the machine's is.
    #[must_use]
    pub fn time_zone(mut self, name: impl Into<String>) -> Self {
        self.own.time_zone = Some(name.into());
        self
    }

    /// Sets which tools a [`Server`](crate::server::Server) shows to its clients themselves, in addition
    /// to those of the [configuration](crate::Config::direct).
    #[must_use]
    pub fn direct(mut self, direct: DirectTools) -> Self {
        self.own.direct = direct;
        self
    }

    /// Restricts the tools that scripts may call, in addition to what is set already:
    /// [`ToolRules::and`].
    #[must_use]
    pub fn rules(mut self, rules: ToolRules) -> Self {
        self.own.rules = self.own.rules.and(rules);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::allow`]. Each call restricts the tools
    /// further.
    #[must_use]
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.own.rules = self.own.rules.allow(patterns);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::deny`].
    #[must_use]
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.own.rules = self.own.rules.deny(patterns);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::ask`]. The
    /// [`approver`](Self::approver) is asked.
    #[must_use]
    pub fn ask<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.own.rules = self.own.rules.ask(patterns);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::read_only`].
    #[must_use]
    pub fn read_only<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.own.rules = self.own.rules.read_only(patterns);
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

    /// Sets what shows the questions of servers (elicitation) to the user: [`ElicitationRequest`]. An
    /// MCP server asks only if [`McpServer::elicitation`](crate::McpServer::elicitation) is on.
    ///
    /// Questions and approval prompts share their bounds, and the future is polled in the same way:
    /// [`approver`](Self::approver). A panic counts as [`ElicitationAnswer::Unavailable`].
    #[must_use]
    pub fn elicitor<Answer>(
        mut self,
        elicitor: impl Fn(ElicitationRequest) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = ElicitationAnswer> + Send + 'static,
    {
        self.elicitor = Some(Arc::new(move |request| elicitor(request).boxed()));
        self
    }

    /// Adds a hook, which sees every call of every script before and after it: see [`CallHook`].
    #[must_use]
    pub fn hook(mut self, hook: impl CallHook) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Exports a trace of each run and of its calls, and of the requests of clients if a
    /// [`Server`](crate::server::Server) runs them, and sends calls to upstream servers with the trace
    /// context in `_meta`.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn open_telemetry(mut self, telemetry: &crate::telemetry::otel::OpenTelemetry) -> Self {
        if let Some(spans) = telemetry.spans() {
            self.requests = Some(Arc::clone(spans) as Arc<dyn RequestTracer>);
            self.observers.push(Arc::clone(spans) as Arc<dyn RunObserver>);
        }
        self
    }

    /// Calls `listener` with the trace of each run when it has ended, on the thread that ended it: it
    /// must not block.
    #[must_use]
    pub fn on_trace(self, listener: impl Fn(RunTrace) + Send + Sync + 'static) -> Self {
        self.observer(Arc::new(TraceRecorder::new(Arc::new(listener))))
    }

    /// Adds an observer, which receives the events of runs.
    pub(crate) fn observer(mut self, observer: Arc<dyn RunObserver>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Uses this tokio runtime for the tools' timers, sockets, tasks and child processes, instead
    /// of one of the executor's own with two threads. It must be a multi-thread runtime with timers
    /// and I/O enabled, and must outlive the executor.
    #[must_use]
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
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

    /// Lets scripts call the saved scripts of a library, as tools of a server `scripts`, and clients of
    /// a [`Server`](crate::server::Server) run and read them.
    ///
    /// A saved script is a run of its own within what is left of its caller's limits, and by its
    /// caller's rules. Its tool calls count at the caller. An MCP server named `scripts` cannot be used
    /// then.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn scripts(mut self, library: ScriptLibrary) -> Self {
        self.scripts = Some(Arc::new(library));
        self
    }

    /// Sets whether scripts may ask a language model, which one, and within what bounds. A
    /// configuration does not change what is set here. Default: what the configuration says.
    #[must_use]
    pub fn llm(mut self, options: LlmOptions) -> Self {
        self.own.llm = Some(options);
        self
    }

    /// Sets a language model of the embedder's own, in place of a provider: results call it `name`. It
    /// is within the bounds of [`llm`](Self::llm).
    #[must_use]
    pub fn language_model(mut self, name: &str, model: Arc<dyn LanguageModel>) -> Self {
        self.own.model = Some(NamedModel::new(name, model));
        self
    }

    /// Executes all scripts by a back end of the embedder's, in place of V8, CPython and their worker processes.
    #[must_use]
    pub fn backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Sets where scripts are executed, whatever the configuration says. Default: as configured, else in this
    /// process.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
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
    pub fn trim_after(mut self, time: Duration) -> Self {
        self.trim_after = Some(time);
        self
    }

    /// Sets the languages whose engines [`build`](Self::build) starts in the background. Others
    /// start with their first run. Default: TypeScript; in a build without it, Python.
    #[must_use]
    pub fn languages(mut self, languages: impl IntoIterator<Item = Language>) -> Self {
        self.languages = Some(languages.into_iter().collect());
        self
    }

    /// Calls `listener` when Python's machine code cannot be kept, or has to be compiled for this
    /// machine, on one of the executor's threads.
    #[must_use]
    pub fn on_compile(mut self, listener: impl Fn(CompileProgress) + Send + Sync + 'static) -> Self {
        self.on_compile = Some(Arc::new(listener));
        self
    }

    /// Sets the maximum number of concurrent runs. Default: 100. Each has a thread. A configuration
    /// that is given later, and sets it too, has precedence.
    #[must_use]
    pub fn max_concurrent_runs(mut self, count: usize) -> Self {
        self.own.max_runs.set(count, self.config.status.is_some());
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

    /// Sets the maximum memory of all running scripts together in bytes, as the sum of their
    /// [`Limits::memory_bytes`]; further scripts wait. At least one run's. Default: half of what this
    /// process may use, which is the least of the machine's memory, the memory limits of the process's
    /// control groups (a container's, a service's) and its resource limits (`ulimit -v`, `ulimit -d`);
    /// at least one run's. [`RunStats`](crate::RunStats) has the result.
    #[must_use]
    pub fn total_memory_bytes(mut self, bytes: usize) -> Self {
        self.own.total_memory_bytes.set(bytes, self.config.status.is_some());
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

    /// Stores Python's machine code in this directory if the
    /// [`cache_directory`](Self::cache_directory) is not set or cannot be used, for example because its
    /// disk is full or read-only. A directory for temporary files will do, even one that other users
    /// can write to, if this one below it belongs to the user. Default: not stored, and then every
    /// process unpacks it.
    #[must_use]
    pub fn fallback_cache_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.fallback_cache = Some(directory.into());
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
        self.own.strict = strict;
        self
    }

    /// Enables the run history, which [`Executor::history`] returns. The client that requests a run
    /// decides whether its record is kept. Search then also learns which tools runs call, and which
    /// of them together: their names are counted, and kept in the
    /// [`cache_directory`](Self::cache_directory) if there is one. Default: no history, and search
    /// learns nothing.
    #[must_use]
    pub fn keep_runs(mut self, limits: HistoryLimits) -> Self {
        self.keep_runs = Some(limits);
        self
    }

    /// Stores what scripts write with `state.set` in this store: separately for each
    /// [`Script::session`](crate::Script::session), and for all other runs under this workspace's
    /// directory. Does not open the store. Default: calls of `state` fail with an explanation.
    #[cfg(feature = "state")]
    #[must_use]
    pub fn state(mut self, store: StateStore, workspace: impl AsRef<std::path::Path>) -> Self {
        self.state = Some((store, StateScope::workspace(workspace.as_ref())));
        self
    }

    /// Writes an audit trail of all runs: [`audit`](crate::audit). Default: none.
    ///
    /// [`build`](Self::build) starts a thread that writes it. Files that cannot be written fail no run,
    /// unless [`AuditOptions::required`](crate::audit::AuditOptions::required) is set.
    #[cfg(feature = "audit")]
    #[must_use]
    pub fn audit(mut self, options: AuditOptions) -> Self {
        self.audit = Some(options);
        self
    }

    /// Creates the executor: reads the configuration, starts the threads and begins to create warm
    /// instances. Starts no MCP server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`], [`Error::TotalMemoryTooSmall`], [`Error::InvalidPattern`] and
    /// [`Error::Config`] name the option, pattern or key that is wrong; [`Error::Start`] means that the
    /// system refuses a thread or a file descriptor. An engine that does not start is an error of the
    /// runs that need it.
    pub fn build(mut self) -> Result<Executor, Error> {
        let max_limits = self.max_limits.unwrap_or(Limits::CEILING);
        let settings = Settings::new(self.limits, max_limits, &self.own, &self.config)?;
        let admission = self.admission()?;
        check_strict(self.own.strict || self.config.strict, self.state_directory.is_some())?;
        let policy = Policy::new(&self.own.rules.clone().and(self.config.rules.clone()))?;
        let servers = std::mem::take(&mut self.upstream).read()?;
        let (own_runtime, runtime) = runtime::start(self.runtime.take())?;
        #[cfg(feature = "audit")]
        let audit = self.start_audit()?;
        let observers = Observers::from(std::mem::take(&mut self.observers));
        let catalog_options = self.catalog_options(&settings, &observers, &runtime);
        let ExecutorStores { history, state } = self.kept(&runtime)?;
        let isolation = self.isolation.as_ref().or(self.config.isolation.as_ref());
        let isolation = isolation.unwrap_or(&Isolation::InProcess).as_str();
        let engines = self.start_engines(&runtime)?;
        #[cfg(feature = "mcp")]
        self.dispatchers.extend(self.scripts.clone().map(|scripts| scripts as Arc<dyn ToolDispatcher>));
        let server_options = ServerOptions::new(self.state_directory, runtime.clone());
        let set =
            ServerSet::new(self.native, self.dispatchers, servers, policy, &server_options, &catalog_options);
        Ok(Executor {
            inner: Arc::new(Inner {
                max_limits: watch::Sender::new(max_limits),
                settings: RwLock::new(settings),
                own: self.own,
                config: Mutex::new(self.config),
                approver: self.approver,
                elicitor: self.elicitor,
                hooks: self.hooks.into(),
                observers,
                requests: self.requests,
                #[cfg(feature = "audit")]
                audit,
                current: watch::Sender::new(set.tools.clone()),
                servers: RwLock::new(Arc::new(set)),
                server_options,
                engines: Arc::new(engines),
                admission: Arc::new(admission),
                isolation,
                #[cfg(feature = "mcp")]
                scripts: self.scripts,
                history,
                state,
                closed: CancellationToken::new(),
                runtime,
                _own_runtime: own_runtime,
            }),
        })
    }

    /// The run history and the state of scripts, and what of them is shared with other executors.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if what is to be shared cannot be used.
    fn kept(&mut self, runtime: &Handle) -> Result<ExecutorStores, Error> {
        let isolation = self.isolation.as_ref().or(self.config.isolation.as_ref());
        let shared = nats_shared::open(isolation, self.keep_runs.unwrap_or_default(), runtime)?;
        let (history, state) = (self.keep_runs.map(History::new), self.state.take());
        let Some(SharedStores { state: shared, runs }) = shared else {
            return Ok(ExecutorStores { history: history.map(Arc::new), state });
        };
        let history = history.map(|history| Arc::new(history.sharing(SharedRuns::new(runs))));
        let state = state.map(|(store, scope)| (store.sharing(SharedState::new(shared)), scope));
        Ok(ExecutorStores { history, state })
    }

    #[cfg(feature = "audit")]
    fn start_audit(&mut self) -> Result<Option<Arc<AuditTrail>>, Error> {
        let Some(options) = self.audit.take() else { return Ok(None) };
        let started = AuditTrail::start(options);
        let trail = Arc::new(started.map_err(|source| Error::Start { what: "the audit trail", source })?);
        self.observers.push(Arc::clone(&trail) as Arc<dyn RunObserver>);
        Ok(Some(trail))
    }

    fn admission(&self) -> Result<Admission, Error> {
        let Bounds { runs, memory } = Bounds::new(self.limits.memory_bytes, &self.own, &self.config)?;
        let queued = self.queued_runs.unwrap_or(200);
        let longest_wait = self.queue_timeout.unwrap_or(Duration::from_secs(30));
        Ok(Admission::new(runs, memory, queued, longest_wait))
    }

    fn catalog_options(
        &self,
        settings: &Settings,
        observers: &Observers,
        runtime: &Handle,
    ) -> CatalogOptions {
        let observers = observers.clone();
        let on_change = (!observers.is_empty()).then(|| {
            let report = move |server: &str, tools: &[String]| {
                observers.definitions(&DefinitionEvent::Changed { server, tools });
            };
            Arc::new(report) as Arc<OnChange>
        });
        let pins = self
            .state_directory
            .clone()
            .map(|directory| Pins::new(Store::new(directory)).on_change(ChangeListener(on_change)));
        let skills = self.state_directory.clone().map(|directory| SkillPins::new(Store::new(directory)));
        let cache = self.cache_directory.clone().map(Store::new);
        CatalogOptions {
            cache: cache.clone().map(ListCache::new),
            pins,
            skills,
            inferred: Arc::new(InferredSchemas::new(cache.clone())),
            tool_use: Arc::new(ToolUse::new(cache, self.keep_runs.is_some())),
            checks: Arc::default(),
            strict: self.own.strict || self.config.strict,
            missing_server_hint: settings.untrusted_hint.clone(),
            runtime: Some(runtime.clone()),
        }
    }

    fn start_engines(&mut self, runtime: &Handle) -> Result<Engines, Error> {
        let workers = match self.isolation.take().or_else(|| self.config.isolation.clone()) {
            Some(Isolation::Process(workers)) => {
                Some(worker_program(&workers, &SandboxFeatures::of_kernel())?)
            }
            Some(Isolation::Remote(workers)) => {
                // A worker that waits here for its run is one less for others there.
                self.warm_instances = Some(0);
                Some(remote_worker_program(&workers)?)
            }
            Some(Isolation::Nats(workers)) => Some(nats_worker_program(&workers)?),
            Some(Isolation::InProcess) | None => None,
        };
        let engines = Engines::new(EngineOptions {
            warm: self.warm_instances.unwrap_or_else(default_warm_instances),
            trim_after: self.trim_after.unwrap_or(TIME_TO_IDLE_TRIM),
            memory_bytes: self.limits.memory_bytes,
            form: CodeForm::from(&self.limits),
            caches: [&self.cache_directory, &self.fallback_cache].into_iter().flatten().cloned().collect(),
            on_compile: self.on_compile.take(),
            workers,
            backend: self.backend.take(),
        });
        let first = || engines::AVAILABLE.iter().copied().take(1).collect();
        let languages = self.languages.take().unwrap_or_else(first);
        for &language in &languages {
            engines::require(language)?;
        }
        if languages.contains(&Language::TypeScript)
            && let Err(error) = engines.start_typescript()
        {
            // The first run tries again and reports it: other languages may still work.
            tracing::warn!(%error, "TypeScript does not start");
        }
        if languages.contains(&Language::Python) {
            engines.start_python_in_background(runtime);
        }
        Ok(engines)
    }
}

/// What an executor keeps between runs.
struct ExecutorStores {
    history: Option<Arc<History>>,
    state: Option<(StateStore, StateScope)>,
}

fn default_warm_instances() -> usize {
    // With a single instance, the second of two consecutive runs would find its instance still
    // being made.
    machine::processors().max(2)
}
