//! How an executor is made from its options.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ExecutorBuilder;
use crate::engine::compile::CodeForm;
use crate::engine::engines::{self, EngineOptions, Engines};
use crate::error::{Error, OptionName};
use crate::executor::admission::Admission;
use crate::executor::core::{Executor, Inner};
use crate::executor::isolation::{nats_worker_program, remote_worker_program, worker_program};
use crate::executor::nats_shared;
use crate::executor::runtime;
use crate::executor::servers::ServerSet;
use crate::executor::settings::{Bounds, Settings, check_strict};
use crate::executor::upstream::ServerOptions;
use crate::machine::{self, SandboxFeatures};
use crate::run::history::History;
use crate::run::history::shared::SharedRuns;
use crate::run::isolation::Isolation;
use crate::run::limits::Limits;
#[cfg(feature = "audit")]
use crate::run::observer::RunObserver;
use crate::run::observer::{DefinitionEvent, Observers};
use crate::run::script::Language;
use crate::storage::files::Store;
use crate::storage::shared::SharedStores;
use crate::storage::state::{SharedState, StateScope, StateStore};
#[cfg(feature = "audit")]
use crate::telemetry::audit::AuditTrail;
#[cfg(feature = "mcp")]
use crate::tools::ToolDispatcher;
use crate::tools::cache::ListCache;
use crate::tools::catalog::CatalogOptions;
use crate::tools::inferred::InferredSchemas;
use crate::tools::pins::{ChangeListener, OnChange, Pins};
use crate::tools::policy::Policy;
use crate::tools::skill_pins::SkillPins;
use crate::tools::tool_use::ToolUse;

/// How long engines are idle before their idle trim: longer than an agent pauses between two
/// scripts.
const TIME_TO_IDLE_TRIM: Duration = Duration::from_secs(30);

/// Maximum number of queued runs: twice as many as run at once by default.
const DEFAULT_QUEUED_RUNS: usize = 200;

/// How long a run may be queued: as long as a run may take by default.
const DEFAULT_QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

impl ExecutorBuilder {
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
        self.check_backend()?;
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
        let ExecutorStores { history, state } = self.open_stores(&runtime)?;
        let isolation = if self.backend.is_some() { "backend" } else { self.chosen_isolation().as_str() };
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

    /// Checks that the embedder has not asked for both a back end and worker processes.
    fn check_backend(&self) -> Result<(), Error> {
        match &self.isolation {
            Some(isolation) if self.backend.is_some() && *isolation != Isolation::InProcess => {
                let problem =
                    format!("a back end executes all scripts, set one of both: `{}`", isolation.as_str());
                Err(Error::InvalidOptions { option: OptionName::Isolation, problem })
            }
            _ => Ok(()),
        }
    }

    /// Where scripts are executed, unless a back end executes them: as the embedder says, or else a configuration.
    fn chosen_isolation(&self) -> &Isolation {
        self.isolation.as_ref().or(self.config.isolation.as_ref()).unwrap_or(&Isolation::InProcess)
    }

    /// The run history and the state of scripts, and what of them is shared with other executors.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if what is to be shared cannot be used.
    fn open_stores(&mut self, runtime: &Handle) -> Result<ExecutorStores, Error> {
        // Also of an executor with a back end: it takes the place of workers, and not of what is kept.
        let shared = nats_shared::open(self.chosen_isolation(), self.keep_runs.unwrap_or_default(), runtime)?;
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
        let queued = self.queued_runs.unwrap_or(DEFAULT_QUEUED_RUNS);
        let max_wait = self.queue_timeout.unwrap_or(DEFAULT_QUEUE_TIMEOUT);
        Ok(Admission::new(runs, memory, queued, max_wait))
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
        let workers = match self.chosen_isolation() {
            // A back end executes all scripts, whatever a configuration says.
            _ if self.backend.is_some() => None,
            Isolation::InProcess => None,
            Isolation::Process(workers) => Some(worker_program(workers, &SandboxFeatures::of_kernel())?),
            Isolation::Remote(workers) => {
                let program = remote_worker_program(workers)?;
                // A worker that waits here for its run is one less for others there.
                self.warm_instances = Some(0);
                Some(program)
            }
            Isolation::Nats(workers) => Some(nats_worker_program(workers)?),
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

#[cfg(test)]
mod tests;
