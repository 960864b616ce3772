//! The options of an executor.

mod build;
mod tools;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::core::Executor;
use super::settings::{FromConfig, OwnSettings};
use super::upstream::UpstreamServers;
#[cfg(feature = "mcp")]
use crate::config::ScriptLibrary;
use crate::engine::backend::Backend;
use crate::engine::compile::CompileProgress;
use crate::engine::engines::CompileListener;
use crate::llm::{LanguageModel, LlmOptions, NamedModel};
use crate::run::grants::Grants;
use crate::run::history::HistoryLimits;
use crate::run::hooks::CallHook;
use crate::run::isolation::Isolation;
use crate::run::limits::Limits;
use crate::run::observer::RunObserver;
use crate::run::script::Language;
use crate::storage::state::{StateScope, StateStore};
#[cfg(feature = "audit")]
use crate::telemetry::audit::AuditOptions;
use crate::telemetry::requests::RequestTracer;
use crate::telemetry::run_trace::{RunTrace, TraceRecorder};
use crate::tools::approval::Approver;
use crate::tools::native::NativeTools;
use crate::tools::{Elicitor, ToolDispatcher};

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
    /// must not block. A panic is logged and changes nothing.
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
    pub fn language_model(mut self, name: &str, model: impl LanguageModel) -> Self {
        self.own.model = Some(NamedModel::new(name, Arc::new(model)));
        self
    }

    /// Executes all scripts by a back end of the embedder's, in place of V8, CPython and their worker processes,
    /// whatever isolation a configuration has. [`build`](Self::build) refuses it together with another
    /// [`isolation`](Self::isolation) than [`Isolation::InProcess`].
    #[must_use]
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.backend = Some(Arc::new(backend));
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

    /// Sets the maximum number of concurrent runs, at least one. Default: 100. Each has a thread. A configuration
    /// that is given later, and sets it too, has precedence.
    #[must_use]
    pub fn max_concurrent_runs(mut self, count: usize) -> Self {
        self.own.max_runs.set(count, self.config.status.is_some());
        self
    }

    /// Sets the maximum number of queued runs. Default: 200. With 0, a run that cannot start at once is refused.
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
}
