//! Back ends of an embedder: the embedder executes scripts, and the executor decides about their
//! calls, limits and records. A back end is an engine of the pool like V8 and wasmtime, and has the
//! same host interface.

mod common;
mod files;
mod host_client;
mod languages;
mod network;
mod reported;
mod run;

use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;

pub use self::files::{BackendDirectoryEntry, BackendFileError};
pub use self::network::{BackendRequest, BackendResponse};
use self::reported::ReportedUsage;
pub use self::run::BackendRun;
use crate::engine::failure;
use crate::engine::host::{HostCalls, RunHost};
use crate::engine::instance::{Engine, Instance, Unprepared};
use crate::engine::stop::Stop;
use crate::engine::thread_root::ThreadRoot;
use crate::run::check::survey::Survey;
use crate::run::result::Outcome;
use crate::run::script::Language;

/// Executes scripts in place of V8 and CPython: a sandbox of the embedder's own, on this machine or another.
///
/// The executor admits a run, holds it to its limits of time, calls and output, asks for approvals, records what it
/// does, and answers when it has to stop. A back end executes the script, and asks [`BackendRun`] for everything that
/// is not computing. The executor does not see memory and CPU time of what is not in this process: a back end bounds
/// them, or says what they are ([`BackendRun::report_memory`], [`BackendRun::report_cpu_time`]), and then the executor
/// stops the run at its limits. The check before a run is made for languages that are those of cx
/// ([`is_checked`](Self::is_checked)).
///
/// ```
/// use cx::{Backend, BackendRun, BoxFuture, Executor, Outcome};
///
/// /// Scripts of one line: the name of a tool, which is called without arguments.
/// struct OneCall;
///
/// impl Backend for OneCall {
///     fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome> {
///         Box::pin(async move {
///             match run.call(run.source(), "{}").await {
///                 Ok(answer) => Outcome::Returned(answer),
///                 Err(error) => run.failed_by(&error),
///             }
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), cx::Error> {
/// let two = |_: serde_json::Value| async { Ok::<_, String>(2) };
/// let executor = Executor::builder()
///     .tool("math.two", serde_json::Value::Null, two)
///     .backend(OneCall)
///     .build()?;
/// let result = executor.run_ts("math.two").await?;
/// assert_eq!(result.value_as::<u32>().ok(), Some(2));
/// assert_eq!(result.tool_calls.len(), 1);
/// # Ok(())
/// # }
/// ```
pub trait Backend: Send + Sync + 'static {
    /// Executes a script to its end. The future is dropped when the run has to stop: whatever it has started must end
    /// then.
    ///
    /// During a run its thread polls nothing else, in a tokio runtime of its own with timers and sockets, which stands
    /// still between runs: tasks that outlive the future belong to another runtime. The future must not block. A
    /// thread that does not come back within 400 ms after its run had to stop is abandoned and counts as a hung
    /// worker. A panic costs this run only: [`Error::WorkerLost`](crate::Error::WorkerLost).
    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome>;

    /// Whether scripts of this language are what cx's own engine of it executes. Then the check before a run is made:
    /// a script in TypeScript with a syntax error, and one in either language that certainly calls a tool that is not
    /// there or with wrong arguments, fails without [`execute`](Self::execute), as it does in the built-in engines.
    ///
    /// By default it is not made, because the language may be only the name by which a back end knows its own. It is
    /// not made either for a language that cx is built without.
    fn is_checked(&self, _language: Language) -> bool {
        false
    }
}

impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome> {
        (**self).execute(run)
    }

    fn is_checked(&self, language: Language) -> bool {
        (**self).is_checked(language)
    }
}

/// An embedder's back end as an engine.
pub(crate) struct BackendEngine(pub(crate) Arc<dyn Backend>);

impl Engine for BackendEngine {
    const THREAD: &'static str = "cx-backend";
    type Instance = BackendInstance;
    type Prepared = Survey;

    fn spawn(&self, name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        static ROOT: ThreadRoot = ThreadRoot::new("cx-backend-root", || Ok(()), languages::STACK_BYTES);
        ROOT.spawn(name, task)
    }

    async fn make(&self) -> Result<BackendInstance, String> {
        let stop = Arc::default();
        let usage = ReportedUsage::new(&stop);
        Ok(BackendInstance { backend: Arc::clone(&self.0), stop, usage })
    }

    fn prepare(&self, host: &dyn RunHost, source: &str) -> Result<Survey, Box<Unprepared>> {
        match self.0.is_checked(host.language()) {
            true => languages::survey(host, source),
            false => Ok(Survey::default()),
        }
    }
}

/// One run of a back end.
pub(crate) struct BackendInstance {
    backend: Arc<dyn Backend>,
    stop: Arc<Stop>,
    usage: Arc<ReportedUsage>,
}

impl Instance<BackendEngine> for BackendInstance {
    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// The back end knows the run's limits.
    fn set_memory_limit(&mut self, _bytes: usize) {}

    async fn survey(
        &mut self,
        _host: &Arc<dyn RunHost>,
        _source: &str,
        prepared: &mut Survey,
    ) -> Result<Survey, Outcome> {
        Ok(std::mem::take(prepared))
    }

    async fn execute(&mut self, host: &Arc<dyn RunHost>, source: &str, _read: Survey) -> Outcome {
        self.usage.count_files(host.files().budget());
        let run = BackendRun::new(host, source, &self.usage);
        // A tape delivers answers when an engine says that it has nothing else to do, which a back end does not say.
        let _blocking = HostCalls::new(Arc::clone(host)).blocking();
        let outcome = tokio::select! {
            biased;
            () = host.cancelled().cancelled() => None,
            outcome = self.backend.execute(run) => Some(outcome),
        };
        let is_stopped = self.stop.reason().is_some() || host.cancelled().is_cancelled();
        match outcome.filter(|_| !is_stopped) {
            Some(Outcome::Returned(value)) if value.text().len() > host.limits().result_bytes => {
                Outcome::Failed(failure::too_large(value.text().len(), &**host))
            }
            Some(outcome) => outcome,
            None => Outcome::Failed(failure::stopped(self.stop.reason(), &**host)),
        }
    }

    async fn check(&mut self, host: &Arc<dyn RunHost>, source: &str, read: Survey) -> Outcome {
        self.execute(host, source, read).await
    }

    fn memory_bytes(&self) -> usize {
        self.usage.most_memory()
    }
}
