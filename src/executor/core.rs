//! The executor: what all of its runs share, from its start to its end.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::admission::{Admission, RunStats};
use super::runtime::OwnRuntime;
use super::servers::ServerSet;
use super::settings::{FromConfig, OwnSettings, Settings};
use super::upstream::ServerOptions;
#[cfg(feature = "mcp")]
use crate::config::ScriptLibrary;
use crate::engine::engines::Engines;
use crate::engine::pool::PoolStats;
use crate::error::Error;
use crate::llm::LlmAccess;
use crate::machine::probe;
use crate::run::grants::Grants;
use crate::run::history::History;
use crate::run::hooks::Hooks;
use crate::run::limits::Limits;
use crate::run::observer::{ClientRequest, Observers, TokenEvent};
use crate::run::script::Language;
use crate::storage::state::{StateScope, StateStore};
#[cfg(feature = "audit")]
use crate::telemetry::audit::{AuditStatus, AuditTrail};
use crate::telemetry::requests::RequestTracer;
use crate::text::{MAX_SHOWN_NAME, preview};
use crate::tools::approval::Approver;
use crate::tools::in_force::ToolSet;
use crate::tools::{Elicitor, SavedScript};

/// How long [`Executor::close`] waits for each of its last changes of files: a file system can hang. A change waits two
/// seconds for the lock of another process.
const MAX_LAST_WORK: Duration = Duration::from_secs(3);

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
    /// Receive the events of runs.
    pub(super) observers: Observers,
    /// Makes spans of clients' requests.
    pub(super) requests: Option<Arc<dyn RequestTracer>>,
    #[cfg(feature = "audit")]
    pub(super) audit: Option<Arc<AuditTrail>>,
    /// The servers of runs that start now. Held only for the moment of a copy or a change.
    pub(super) servers: RwLock<Arc<ServerSet>>,
    /// The servers as runs in flight see them. Changes with `servers`, and when the settings
    /// change.
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

    /// Tells the observers what happened to the tokens of a server over HTTP.
    pub(crate) fn observe_tokens(&self, event: &TokenEvent<'_>) {
        self.inner.observers.tokens(event);
    }

    /// What makes spans of clients' requests, if traces are exported.
    pub(crate) fn request_tracer(&self) -> Option<&dyn RequestTracer> {
        self.inner.requests.as_deref()
    }

    /// Whether the tools that clients see have the parameters of language models: scripts have a
    /// model, or one is configured for those that ask for it.
    pub(crate) fn lists_models(&self) -> bool {
        let settings = self.inner.settings.read();
        match settings.llm.options.access {
            LlmAccess::Always => true,
            LlmAccess::Never => false,
            LlmAccess::OnRequest => settings.llm.has_provider(),
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
        let warn = |error: &dyn fmt::Display| {
            tracing::warn!(%error, "the state of a client that has gone is not forgotten");
        };
        let forgetting = probe::spawn_blocking(&self.inner.runtime, move || {
            if let Err(error) = store.clear(&scope) {
                warn(&error);
            }
        });
        if let Err(error) = forgetting {
            warn(&error);
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

    /// Runs a task on the executor's runtime. What the task keeps of the executor keeps the executor.
    #[cfg(feature = "server")]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.inner.runtime.spawn(task));
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

    /// Cache directories for machine code, best first.
    #[cfg(all(feature = "process", any(feature = "http", feature = "nats"), target_os = "linux"))]
    pub(super) fn cache_directories(&self) -> &[std::path::PathBuf] {
        self.inner.engines.caches()
    }

    /// Clears the [`cache_directory`](crate::ExecutorBuilder::cache_directory): the tool lists and
    /// inferred output schemas of all servers that ever used it, counts of used tools, and compiled
    /// Python. Returns the number of files removed.
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
    /// [`ErrorCode::Cancelled`](crate::ErrorCode::Cancelled), later [calls](Self::call) with
    /// [`Error::Closed`].
    ///
    /// Dropping the future does not undo this. What has not ended by then ends with the executor.
    pub async fn close(&self) {
        self.inner.closed.cancel();
        let servers = self.servers();
        servers.shutdown().await;
        let catalog = Arc::clone(&servers.tools.catalog);
        if let Err(error) = last_work(&self.inner.runtime, move || catalog.save()).await {
            tracing::warn!(%error, "what was learned about tools is not saved");
        }
        #[cfg(feature = "audit")]
        if let Some(trail) = self.inner.audit.clone() {
            // If there is no thread for it, dropping the executor does it.
            let _not_in_time = last_work(&self.inner.runtime, move || trail.stop()).await;
        }
    }
}

/// Performs `work` on files, on a thread that may block, and waits for it for at most [`MAX_LAST_WORK`].
///
/// # Errors
///
/// If there is no thread for it, or if it takes longer. It goes on then, until the process ends.
async fn last_work(runtime: &Handle, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let working = probe::spawn_blocking(runtime, work)?;
    // The caller may have no timers.
    let waiting = {
        let _entered = runtime.enter();
        timeout(MAX_LAST_WORK, working)
    };
    match waiting.await {
        // Also if the runtime has ended or the work has panicked.
        Ok(_ended) => Ok(()),
        Err(_elapsed) => {
            let problem = format!("the files do not answer within {} s", MAX_LAST_WORK.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, problem))
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.closed.cancel();
        self.servers.get_mut().close();
    }
}

#[cfg(test)]
mod tests;
