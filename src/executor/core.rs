//! The executor and its runs.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::admission::{Admission, RunStats};
use super::metrics::CountedRun;
use super::nested::{self, Parts};
use super::run::Run;
use super::runtime::OwnRuntime;
use super::servers::ServerSet;
use super::settings::{FromConfig, OwnSettings, Settings};
use super::start::{not_run, refused, start_engine};
use super::upstream::ServerOptions;
#[cfg(feature = "mcp")]
use crate::config::ScriptLibrary;
use crate::engine::engines::Engines;
use crate::engine::pool::{Job, PoolStats};
use crate::error::Error;
use crate::machine::probe;
use crate::run::check::finding::{Checked, Finding};
use crate::run::context::{Purpose, RunEnvironment};
use crate::run::grants::{Grants, RunGrants};
use crate::run::history::History;
use crate::run::hooks::Hooks;
use crate::run::limits::Limits;
use crate::run::limits::in_force::RunLimits;
use crate::run::nested::NestedRunner;
use crate::run::observer::{ClientRequest, DefinitionEvent, Observation, Observers};
use crate::run::result::{ErrorCode, ExecuteResult, Outcome, Usage};
use crate::run::script::{Language, Script};
use crate::run::state::{NoState, StateAccess};
use crate::run::tape::Tape;
use crate::run::time_zone::TimeZone;
use crate::storage::state::{DefaultScope, RunState, StateScope, StateStore};
#[cfg(feature = "audit")]
use crate::telemetry::audit::{AuditStatus, AuditTrail};
use crate::telemetry::requests::RequestTracer;
use crate::text::preview;
use crate::tools::approval::Approver;
use crate::tools::catalog::ResolvedTool;
use crate::tools::in_force::{RunTools, ToolSet};
use crate::tools::native::{self, NativeTools};
use crate::tools::usage::IndexedServer;
use crate::tools::{
    DamagedPins, Elicitor, KnownServer, SavedScript, SkillChange, Tool, ToolChange, ToolDefinition, ToolError,
};

/// Maximum characters of a name that an error shows.
const MAX_SHOWN_NAME: usize = 60;

/// Runs scripts. Cheap to clone; all clones share the engines, the connections and the limits.
///
/// It can be used from any tokio runtime, from several, and without one, because it has threads of
/// its own. When the last clone is dropped, upstream servers are killed and running scripts are
/// stopped.
#[derive(Clone)]
pub struct Executor {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) settings: RwLock<Settings>,
    /// The maximum limits of `settings`, for runs in flight.
    pub(super) max_limits: watch::Sender<Limits>,
    pub(super) own: OwnSettings,
    /// Held while a configuration is applied.
    pub(super) config: Mutex<FromConfig>,
    pub(super) approver: Option<Approver>,
    pub(super) elicitor: Option<Elicitor>,
    pub(super) hooks: Hooks,
    /// Hear what runs do.
    pub(super) observers: Observers,
    /// Makes spans of clients' requests.
    pub(super) requests: Option<Arc<dyn RequestTracer>>,
    #[cfg(feature = "audit")]
    pub(super) audit: Option<Arc<AuditTrail>>,
    /// The servers of runs that start now. Held only for the moment of a copy or a change.
    pub(super) servers: RwLock<Arc<ServerSet>>,
    /// The same as runs in flight see it. Changes with `servers`, and when the settings change.
    pub(super) current: watch::Sender<ToolSet>,
    pub(super) server_options: ServerOptions,
    pub(super) engines: Arc<Engines>,
    pub(super) admission: Arc<Admission>,
    /// The name of the mode in which scripts are isolated.
    pub(super) isolation: &'static str,
    /// The saved scripts, if scripts and clients may use them.
    #[cfg(feature = "mcp")]
    pub(super) scripts: Option<Arc<ScriptLibrary>>,
    pub(super) history: Option<Arc<History>>,
    /// The store of the scripts' state, and the scope of runs that name no session.
    pub(super) state: Option<(StateStore, StateScope)>,
    /// Cancels every run when the executor is closed.
    pub(super) closed: CancellationToken,
    /// Runtime of the tools' timers, sockets, tasks and child processes.
    pub(super) runtime: Handle,
    pub(super) _own_runtime: OwnRuntime,
}

impl fmt::Debug for Executor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Executor")
            .field("limits", &self.limits())
            .field("engines", &self.inner.engines)
            .finish_non_exhaustive()
    }
}

impl Executor {
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
    /// The first run of a language starts its engine. For Python that takes a part of a second on a
    /// machine that has not run it yet ([`Executor::warm`]). The run waits for that, and this time
    /// counts against its wall-clock limit, and in [`Usage::wall_time`](crate::Usage::wall_time).
    ///
    /// If too many scripts are running, waits for admission. The reply comes at the latest half a
    /// second after a limit is exceeded, even if the script cannot be stopped.
    ///
    /// Dropping the future stops the script and cancels its calls.
    ///
    /// # Errors
    ///
    /// Nothing that a script does is an error here: a failing script is [`Outcome::Failed`]. The
    /// errors are [`Error::InvalidOptions`] for invalid limits, [`Error::InvalidPattern`] for invalid
    /// rules, [`Error::Closed`], [`Error::Start`] and [`Error::WorkerLost`].
    pub async fn run(&self, script: impl Into<Script>) -> Result<ExecuteResult, Error> {
        self.run_with(script.into(), None, self.inner.closed.child_token()).await
    }

    /// As [`run`](Self::run), for callers without an async runtime: blocks this thread until the
    /// run ends. It must not be called on a thread that other tasks wait for, such as a worker of
    /// an async runtime; use `spawn_blocking` there.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_blocking(&self, script: impl Into<Script>) -> Result<ExecuteResult, Error> {
        pollster::block_on(self.run(script))
    }

    /// Starts a script and returns a handle, to cancel the run, to follow its output and its calls
    /// while it runs, and to wait for its result. [`run`](Self::run) is the short form.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), cx::Error> {
    /// use cx::{Executor, Output, RunEvent};
    ///
    /// let executor = Executor::builder().build()?;
    /// let mut run = executor.start("console.log('half way'); return 1");
    /// let mut events = run.events().expect("they were not taken yet");
    /// while let Some(event) = events.next().await {
    ///     if let RunEvent::Output(Output::Log { text, .. }) = event {
    ///         assert_eq!(text, "half way");
    ///     }
    /// }
    /// assert_eq!(run.await?.value_as::<u32>().ok(), Some(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(&self, script: impl Into<Script>) -> Run {
        Run::start(self, script.into())
    }

    /// Checks a script without running any of it, and returns everything that is wrong with it, in the order
    /// of the source: whether it can be compiled, whether the servers and tools that it names exist and are
    /// permitted, whether the arguments that it writes out match their schemas, and whether calls are awaited.
    /// Servers that it names and whose tools are not known are asked for them.
    ///
    /// A finding is an [`Severity::Error`](crate::Severity::Error) if a run of the script cannot succeed.
    /// [`run`](Self::run) makes the same check first, and does not run a script with an error in its calls
    /// ([`ErrorCode::CheckFailed`]).
    ///
    /// It is admitted and limited like a run. What ends it early is a finding too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), cx::Error> {
    /// use cx::{Executor, Script};
    /// use serde_json::{Value, json};
    ///
    /// let schema = json!({ "properties": { "n": { "type": "number" } }, "required": ["n"] });
    /// let double = |_: Value| async { Ok::<_, String>(0) };
    /// let executor = Executor::builder().tool("math.double", schema, double).build()?;
    /// let script = Script::typescript("await tools.math.dubble({ n: 1 });\nawait tools.math.double({});");
    /// let checked = executor.check(script).await?;
    /// let found: Vec<String> = checked.findings.iter().map(ToString::to_string).collect();
    /// assert_eq!(found, [
    ///     "line 1, column 18: TOOL_NOT_FOUND: no tool `dubble` on server `math`; did you mean `double`?",
    ///     "line 2, column 18: INVALID_ARGUMENTS: missing `n` (a number)",
    /// ]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn check(&self, script: impl Into<Script>) -> Result<Checked, Error> {
        self.check_with(script.into(), true).await
    }

    /// As [`check`](Self::check), by the tools that are known already: no server is started or asked. That the
    /// tools of a server are not known is a finding.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn check_offline(&self, script: impl Into<Script>) -> Result<Checked, Error> {
        self.check_with(script.into(), false).await
    }

    async fn check_with(&self, script: Script, asks_servers: bool) -> Result<Checked, Error> {
        let cancel = self.inner.closed.child_token();
        let found = Arc::new(Mutex::new(Checked { program: 0..script.source.len(), ..Checked::default() }));
        let purpose = Purpose::Check { asks_servers, found: Arc::clone(&found) };
        let grants = Arc::new(self.grants().of_run(&script.permissions)?);
        let result = self.perform(script, grants, purpose, Observation::none(), None, cancel).await?;
        let mut checked = std::mem::take(&mut *found.lock());
        if let Outcome::Failed(error) = result.outcome {
            let error = Finding::from(error);
            let at = checked.findings.partition_point(|finding| finding.location() < error.location());
            checked.findings.insert(at, error);
        }
        Ok(checked)
    }

    pub(super) async fn run_with(
        &self,
        script: Script,
        tape: Option<Arc<Tape>>,
        cancel: CancellationToken,
    ) -> Result<ExecuteResult, Error> {
        // Determined once, so that the run and its observers get the same.
        let grants = Arc::new(self.grants().of_run(&script.permissions)?);
        let mut counted = CountedRun::new(script.language);
        let limits = script.limits.unwrap_or_else(|| self.limits());
        let observers = &self.inner.observers;
        let runtime = &self.inner.runtime;
        let observed = observers.start(&script, Some(script.language), &limits, &grants, runtime).await;
        let result = match observed.refusal() {
            Some(refusal) => Ok(refused(refusal)),
            None => {
                let observation = observed.observation().clone();
                self.perform(script, grants, Purpose::Run, observation, tape, cancel).await
            }
        };
        counted.record(&result);
        observed.finish(result.as_ref().map_err(|error| match error {
            Error::Closed => ErrorCode::Cancelled,
            _ => ErrorCode::EngineUnavailable,
        }));
        result
    }

    /// Performs a run that ends when `cancel` is cancelled.
    pub(super) async fn perform(
        &self,
        mut script: Script,
        grants: Arc<RunGrants>,
        purpose: Purpose,
        observation: Observation,
        tape: Option<Arc<Tape>>,
        cancel: CancellationToken,
    ) -> Result<ExecuteResult, Error> {
        let queued = Instant::now();
        let lowered = self.inner.max_limits.subscribe();
        let Settings { limits, max_limits, clock_resolution, time_zone, llm, .. } =
            self.inner.settings.read().clone();
        let limits = script.limits.unwrap_or(limits);
        limits.validate()?;
        self.inner.admission.check(limits.memory_bytes)?;
        let policy = script.policy()?;
        let time_zone = script.time_zone.as_deref().map_or(Ok(time_zone), TimeZone::find)?;
        let state = self.run_state(&mut script)?;
        // Kept until the run has ended: servers that nothing else uses any more end then.
        let servers = self.servers_of(&mut script)?;
        let _stop_on_drop = cancel.clone().drop_guard();
        let _forward = script.cancel.as_ref().map(|token| self.forward(token, &cancel));
        let starting = Instant::now();
        let (engines, runtime) = (&self.inner.engines, &self.inner.runtime);
        let start_error = start_engine(engines, runtime, script.language, &limits, &cancel).await?;
        let engine_start_time = starting.elapsed();
        if let Some(error) = start_error {
            return Ok(not_run(error, Usage { wall_time: engine_start_time, ..Usage::default() }));
        }
        let permit = match self.inner.admission.enter(runtime, limits.memory_bytes, &cancel).await {
            Ok(permit) => permit,
            Err(refused) => {
                let wall_time = engine_start_time;
                let queue_time = queued.elapsed().saturating_sub(wall_time);
                return Ok(not_run(*refused, Usage { wall_time, queue_time, ..Usage::default() }));
            }
        };
        let (reply, answer) = oneshot::channel();
        self.inner.engines.submit(Job {
            script,
            environment: RunEnvironment {
                purpose,
                limits: RunLimits::new(limits, max_limits, lowered),
                grants,
                tools: RunTools::new(servers.tools.clone(), policy, self.inner.current.subscribe()),
                approver: self.inner.approver.clone(),
                elicitor: self.inner.elicitor.clone(),
                hooks: Arc::clone(&self.inner.hooks),
                observation,
                tape,
                state,
                llm,
                history: self.inner.history.clone(),
                caller: None,
                nested: Some(self.inner.nested_runner()),
                cancel,
                runtime: runtime.clone(),
                clock_resolution,
                time_zone,
                queued,
                engine_start_time,
            },
            reply,
            permit: Box::new(permit),
        });
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// The saved scripts, if scripts and clients may use them
    /// ([`ExecutorBuilder::scripts`](crate::ExecutorBuilder::scripts)).
    #[cfg(feature = "mcp")]
    pub fn scripts(&self) -> Option<&ScriptLibrary> {
        self.inner.scripts.as_deref()
    }

    /// The saved scripts that clients can run and read. Reads files.
    pub(crate) fn saved_scripts(&self) -> Vec<Arc<SavedScript>> {
        #[cfg(feature = "mcp")]
        if let Some(library) = self.scripts() {
            return library.list();
        }
        Vec::new()
    }

    /// The saved script of this name. Reads files.
    ///
    /// # Errors
    ///
    /// Why there is none, as text for the author of a call.
    pub(crate) fn saved_script(&self, name: &str) -> Result<Arc<SavedScript>, String> {
        #[cfg(feature = "mcp")]
        if let Some(library) = self.scripts() {
            return library.get(name).map_err(|error| error.to_string());
        }
        Err(format!("there are no saved scripts here: `{}`", preview(name, MAX_SHOWN_NAME)))
    }

    /// Whether there are observers, which are told of requests.
    pub(crate) fn has_observers(&self) -> bool {
        !self.inner.observers.is_empty()
    }

    /// Tells the observers of a client's request that has been answered.
    pub(crate) fn observe_request(&self, request: &ClientRequest<'_>) {
        self.inner.observers.request(request);
    }

    /// What makes spans of clients' requests, if traces are exported.
    pub(crate) fn request_tracer(&self) -> Option<&dyn RequestTracer> {
        self.inner.requests.as_deref()
    }

    /// The servers of a run, with its own.
    pub(super) fn servers_of(&self, script: &mut Script) -> Result<Arc<ServerSet>, Error> {
        let (tools, own) = (std::mem::take(&mut script.tools), std::mem::take(&mut script.servers));
        let servers = self.servers();
        if tools.is_empty() && own.is_empty() {
            return Ok(servers);
        }
        servers.with(&tools, own, &self.inner.server_options).map(Arc::new)
    }

    /// Cancels `run` when `caller` is cancelled, until the guard is dropped. It cannot be a child
    /// token, because a run's token already has a parent.
    pub(super) fn forward(&self, caller: &CancellationToken, run: &CancellationToken) -> ForwardGuard {
        if caller.is_cancelled() {
            // Cancelled here and not by the task below, because such a run must not even start.
            run.cancel();
        }
        let stop = CancellationToken::new();
        let (caller, run, stopped) = (caller.clone(), run.clone(), stop.clone());
        self.inner.runtime.spawn(async move {
            tokio::select! {
                () = caller.cancelled() => run.cancel(),
                () = stopped.cancelled() => {}
            }
        });
        ForwardGuard(stop)
    }

    /// The state of a run: its session's, or by default the workspace's.
    fn run_state(&self, script: &mut Script) -> Result<StateAccess, Error> {
        let tenant = script.tenant.clone();
        let session = script.session.take().map(|handle| StateScope::session_of(tenant.as_deref(), handle));
        let session = session.transpose()?;
        let Some((store, workspace)) = &self.inner.state else {
            return Ok(StateAccess::None(NoState::NotConfigured));
        };
        let scope = match (session, std::mem::take(&mut script.default_scope)) {
            (Some(scope), _) | (None, DefaultScope::Of(scope)) => scope,
            (None, DefaultScope::Workspace) => workspace.clone(),
            (None, DefaultScope::Unavailable) => return Ok(StateAccess::None(NoState::NoSession)),
        };
        Ok(StateAccess::Open(Arc::new(RunState::new(store.clone(), scope, script.is_dry_run))))
    }

    /// Whether the tools that clients see have the parameters of language models: scripts have a
    /// model, or one is configured for those that ask for it.
    pub(crate) fn lists_models(&self) -> bool {
        let settings = self.inner.settings.read();
        match settings.llm.options.enabled {
            Some(is_enabled) => is_enabled,
            None => settings.llm.has_provider(),
        }
    }

    /// Whether a damaged state file was set aside, which the user has not removed yet.
    pub(crate) fn has_damaged_state_file(&self) -> bool {
        self.inner.state.as_ref().is_some_and(|(store, _)| store.damaged_file().is_some())
    }

    /// Clears the state of a client that will not return, in the background.
    pub(crate) fn forget_state(&self, scope: StateScope) {
        let Some((store, _)) = &self.inner.state else { return };
        let store = store.clone();
        let forgetting = probe::spawn_blocking(&self.inner.runtime, move || {
            if let Err(error) = store.clear(&scope) {
                tracing::warn!(%error, "the state of a client that has gone is not forgotten");
            }
        });
        if let Err(error) = forgetting {
            tracing::warn!(%error, "the state of a client that has gone is not forgotten");
        }
    }

    /// Where scripts are executed: the name of an [`Isolation`](crate::Isolation).
    pub(crate) fn isolation(&self) -> &'static str {
        self.inner.isolation
    }

    /// The servers of runs that start now.
    pub(super) fn servers(&self) -> Arc<ServerSet> {
        Arc::clone(&self.inner.servers.read())
    }

    /// Adds a tool written in Rust for later runs, as
    /// [`ExecutorBuilder::tool`](crate::ExecutorBuilder::tool) does. It replaces a tool of the same
    /// name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if its server is not one of native tools, [`Error::Closed`] if the
    /// executor is closed.
    pub fn add_tool<Arguments, Output, Failure, Function, Returned>(
        &self,
        name: &str,
        input_schema: Value,
        function: Function,
    ) -> Result<(), Error>
    where
        Arguments: serde::de::DeserializeOwned,
        Output: serde::Serialize,
        Failure: fmt::Display,
        Function: Fn(Arguments) -> Returned + Send + Sync + 'static,
        Returned: Future<Output = Result<Output, Failure>> + Send + 'static,
    {
        let mut tools = NativeTools::default();
        let definition: ToolDefinition = native::definition(input_schema);
        tools.add(name, definition, native::erase(function));
        self.change(|servers| servers.with(&tools, Vec::new(), &self.inner.server_options))
    }

    pub(super) fn change(
        &self,
        changed: impl FnOnce(&ServerSet) -> Result<ServerSet, Error>,
    ) -> Result<(), Error> {
        let servers = self.inner.servers.write();
        if self.inner.closed.is_cancelled() {
            return Err(Error::Closed);
        }
        let set = changed(&servers)?;
        self.publish(servers, set);
        Ok(())
    }

    /// Makes `set` the servers of later runs, and tells runs in flight and servers of clients.
    pub(super) fn publish(&self, mut servers: RwLockWriteGuard<'_, Arc<ServerSet>>, mut set: ServerSet) {
        set.tools.version = servers.tools.version + 1;
        self.inner.current.send_replace(set.tools.clone());
        let before = std::mem::replace(&mut *servers, Arc::new(set));
        drop(servers);
        // Outside of the lock: it may be the last use of a server, which then ends.
        drop(before);
    }

    /// Receives each change of the servers, the rules and the settings. Do not use the executor
    /// while you hold a borrow of it: a change holds `servers` while it waits for borrows to end.
    pub(crate) fn changes(&self) -> watch::Receiver<ToolSet> {
        self.inner.current.subscribe()
    }

    /// Removes an MCP server with its rules, or a server of native tools, for later runs, and
    /// returns whether it existed. An MCP server is shut down, which takes at most a few seconds; calls that running
    /// scripts make to it fail.
    pub async fn remove_server(&self, name: &str) -> bool {
        let removed = {
            let servers = self.inner.servers.write();
            let Some((set, removed)) = servers.without_server(name) else { return false };
            self.publish(servers, set);
            removed
        };
        if let Some(server) = removed {
            server.shutdown().await;
        }
        true
    }

    /// Removes a tool written in Rust for later runs, by the name that it was added with. Returns
    /// whether it existed. Running scripts keep it.
    pub fn remove_tool(&self, name: &str) -> bool {
        let servers = self.inner.servers.write();
        let Some(set) = servers.without_tool(name) else { return false };
        self.publish(servers, set);
        true
    }

    /// Starts a language's engine if it has not been started, and completes when its
    /// [`warm_instances`](crate::ExecutorBuilder::warm_instances) are ready. Runs need not wait for
    /// this; it is for measurements and for servers whose first answer should be fast.
    ///
    /// If this machine has no machine code for Python yet, the code that is in the program is unpacked,
    /// which takes a part of a second. If the machine cannot use that code, Python is compiled, which
    /// takes seconds and needs the feature `compile`. The
    /// [`cache_directory`](crate::ExecutorBuilder::cache_directory) stores the result; without one
    /// every process does it again. All executors of a process share it. Dropping the future does not
    /// stop it.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if the system refuses threads or memory.
    pub async fn warm(&self, language: Language) -> Result<(), Error> {
        self.inner.engines.warm(language, &self.inner.runtime).await
    }

    /// Requests the tool lists of all servers concurrently, even if they are cached. A server that
    /// fails or is slow does not delay the others. Returns each server's name and result, in order.
    pub async fn refresh_tools(&self) -> Vec<(String, Result<(), ToolError>)> {
        let catalog = Arc::clone(&self.servers().tools.catalog);
        self.inner.runtime.spawn(async move { catalog.refresh().await }).await.unwrap_or_default()
    }

    /// Requests the tool lists of the servers of which none is known, as [`refresh_tools`] does.
    /// Returns the names and results of those that were asked.
    ///
    /// [`refresh_tools`]: Self::refresh_tools
    pub async fn fetch_missing_tools(&self) -> Vec<(String, Result<(), ToolError>)> {
        let catalog = Arc::clone(&self.servers().tools.catalog);
        self.inner.runtime.spawn(async move { catalog.fetch_missing().await }).await.unwrap_or_default()
    }

    /// The names of all servers that scripts may see, including native ones, in order.
    pub fn server_names(&self) -> Vec<String> {
        let servers = self.servers();
        let names = servers.tools.catalog.server_names();
        let permitted = names.filter(|name| servers.tools.policy.may_permit_server(name));
        permitted.map(|name| name.to_string()).collect()
    }

    /// What to tell an agent about servers that are not used until the user trusts their file.
    pub(crate) fn untrusted_hint(&self) -> Option<Arc<str>> {
        self.inner.settings.read().untrusted_hint.clone()
    }

    /// What scripts may reach of the machine:
    /// [`ExecutorBuilder::grants`](crate::ExecutorBuilder::grants) and those of the configuration.
    pub fn grants(&self) -> Arc<Grants> {
        Arc::clone(&self.inner.settings.read().grants)
    }

    /// The limits of runs that set none of their own.
    pub fn limits(&self) -> Limits {
        self.inner.settings.read().limits
    }

    /// The most that a client of a server may ask for: see
    /// [`ExecutorBuilder::max_limits`](crate::ExecutorBuilder::max_limits).
    pub fn max_limits(&self) -> Limits {
        self.inner.settings.read().max_limits
    }

    /// The number of runs at this moment.
    pub fn run_stats(&self) -> RunStats {
        self.inner.admission.stats()
    }

    /// The state of the audit trail; `None` if there is [none](crate::ExecutorBuilder::audit).
    #[cfg(feature = "audit")]
    pub fn audit_status(&self) -> Option<AuditStatus> {
        self.inner.audit.as_ref().map(|trail| trail.status())
    }

    /// The run history, if the executor [keeps one](crate::ExecutorBuilder::keep_runs).
    pub fn history(&self) -> Option<&History> {
        self.inner.history.as_deref()
    }

    /// The servers and their tools that are known without sending requests: from this process's
    /// runs, and from the [`cache_directory`](crate::ExecutorBuilder::cache_directory). Reads files.
    pub fn known_tools(&self) -> Vec<KnownServer> {
        let servers = self.servers();
        let permits = |tool: &&ResolvedTool| servers.tools.policy.permits(&tool.server, &tool.tool);
        let known = servers.tools.catalog.known().into_iter();
        known
            .map(|(name, tools)| KnownServer {
                problem: servers.tools.catalog.list_problem(&name),
                name: name.to_string(),
                hidden: tools.iter().flatten().filter(|tool| !permits(tool)).count(),
                tools: tools.map(|tools| tools.iter().filter(permits).map(Tool::new).collect()),
            })
            .collect()
    }

    /// The names of the [`known_tools`](Self::known_tools) and of their parameters. A server has at
    /// most `max` here, and `known_names` is cheap where `known_tools` is not.
    pub(crate) fn known_names(&self, max: usize) -> Vec<IndexedServer> {
        let servers = self.servers();
        let permits = |tool: &&ResolvedTool| servers.tools.policy.permits(&tool.server, &tool.tool);
        let names = |tools: Vec<ResolvedTool>| {
            tools.iter().filter(permits).take(max).map(ResolvedTool::names).collect()
        };
        let known = servers.tools.catalog.known().into_iter();
        known.map(|(name, tools)| IndexedServer { name: name.to_string(), tools: tools.map(names) }).collect()
    }

    /// The [`known_tools`](Self::known_tools) that match `query`, best match first, at most
    /// `limit`.
    pub fn search_known_tools(&self, query: &str, limit: usize) -> Vec<Tool> {
        let servers = self.servers();
        let permitted = |server: &str, tool: &str| servers.tools.policy.permits(server, tool);
        let found = servers.tools.catalog.search_known(query, limit, permitted);
        found.iter().map(Tool::new).collect()
    }

    /// TypeScript declarations of the [`known_tools`](Self::known_tools) that scripts may use.
    pub fn declarations(&self) -> String {
        let servers = self.servers();
        servers.tools.catalog.declarations(|server, tool| servers.tools.policy.permits(server, tool))
    }

    /// The same as stubs for Python's type checkers: the names of files in one directory, and their
    /// texts.
    pub fn python_stubs(&self) -> Vec<(&'static str, String)> {
        let servers = self.servers();
        servers.tools.catalog.python_stubs(|server, tool| servers.tools.policy.permits(server, tool))
    }

    /// The differences from the pinned tool definitions, by server and tool, as of the last tool
    /// list of each server. Reads files.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if they cannot be read.
    pub fn tool_changes(&self) -> Result<Vec<ToolChange>, Error> {
        let changes = self.servers().tools.catalog.changes();
        changes.map_err(|source| Error::Files { what: "accepted tool definitions", source })
    }

    /// The skills of servers that differ from the pinned ones, by server and address, as they were read last.
    /// Reads files.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if they cannot be read.
    pub fn skill_changes(&self) -> Result<Vec<SkillChange>, Error> {
        let changes = self.servers().tools.catalog.skill_changes();
        changes.map_err(|source| Error::Files { what: "pinned skills", source })
    }

    /// The pinned tool definitions that could not be read, of servers whose pins were needed since the
    /// executor was built, or since [`tool_changes`](Self::tool_changes), which needs all. They were set
    /// aside, and each tool of those servers is a change until it is [accepted](Self::accept_tools).
    pub fn damaged_pins(&self) -> Vec<DamagedPins> {
        self.servers().tools.catalog.damaged_pins()
    }

    /// Pins the current definition of a server's tool, or of all its tools and skills. Returns how
    /// many differed.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the pins cannot be written.
    pub fn accept_tools(&self, server: &str, tool: Option<&str>) -> Result<usize, Error> {
        let accepted = self.servers().tools.catalog.accept(server, tool);
        if let Ok(count) = accepted {
            self.inner.observers.definitions(&DefinitionEvent::Accepted { server, tool, count });
        }
        accepted.map_err(|source| Error::Files { what: "accepted tool definitions", source })
    }

    /// Cache directories for machine code, best first.
    #[cfg(all(feature = "process", any(feature = "http", feature = "nats"), target_os = "linux"))]
    pub(super) fn cache_directories(&self) -> &[std::path::PathBuf] {
        self.inner.engines.caches()
    }

    /// Clears the [`cache_directory`](crate::ExecutorBuilder::cache_directory): the tool lists and
    /// inferred output schemas of all servers that ever used it, and compiled Python. Returns the
    /// number of files removed.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if they cannot be removed.
    pub fn clear_cache(&self) -> Result<usize, Error> {
        let failed = |source| Error::Files { what: "the cache", source };
        let lists = self.servers().tools.catalog.clear_cache().map_err(failed)?;
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
        let servers = self.servers();
        servers.shutdown().await;
        let catalog = Arc::clone(&servers.tools.catalog);
        match probe::spawn_blocking(&self.inner.runtime, move || catalog.save()) {
            Ok(saving) => {
                let _runtime_ends = saving.await;
            }
            Err(error) => tracing::warn!(%error, "what was learnt of tools is not saved"),
        }
        #[cfg(feature = "audit")]
        if let Some(trail) = self.inner.audit.clone() {
            // On a thread that may block. If there is none, dropping the executor does it.
            if let Ok(stopping) = probe::spawn_blocking(&self.inner.runtime, move || trail.stop()) {
                let _runtime_ends = stopping.await;
            }
        }
    }
}

impl Inner {
    /// Runs the stored scripts that runs call. It does not keep the executor alive.
    pub(super) fn nested_runner(self: &Arc<Self>) -> NestedRunner {
        let inner = Arc::downgrade(self);
        nested::runner(move || {
            let inner = inner.upgrade()?;
            Some(Parts {
                engines: Arc::clone(&inner.engines),
                admission: Arc::clone(&inner.admission),
                observers: inner.observers.clone(),
                runtime: inner.runtime.clone(),
            })
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.closed.cancel();
        self.servers.get_mut().close();
    }
}

pub(super) struct ForwardGuard(CancellationToken);

impl Drop for ForwardGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests;
