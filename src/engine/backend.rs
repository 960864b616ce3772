//! Back ends of an embedder: the embedder executes scripts, and the executor decides about their
//! calls, limits and records. A back end is an engine of the pool like V8 and wasmtime, and has the
//! same host interface.

use std::fmt;
use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::engine::failure;
use crate::engine::host::{RunHost, tool_name};
use crate::engine::instance::{Engine, Instance, Unprepared};
use crate::engine::stop::Stop;
use crate::engine::thread_root::ThreadRoot;
use crate::json::Json;
use crate::run::calls::resolve::ToolName;
use crate::run::check::survey::Survey;
use crate::run::limits::Limits;
use crate::run::result::{LogLevel, Outcome, ScriptError};
use crate::run::script::Language;
use crate::tools::ToolError;

/// Stack of the threads that a back end is polled on, in bytes.
const STACK_BYTES: usize = 2 << 20;

/// Executes scripts in place of V8 and CPython: a sandbox of the embedder's own, on this machine or another.
///
/// The executor admits a run, holds it to its limits of time, calls and output, asks for approvals, records what it
/// does, and answers when it has to stop. A back end executes the script, and asks [`BackendRun`] for everything that
/// is not computing. Memory and CPU time of what is not in this process are for the back end to bound.
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
///                 Err(error) => run.failed(error.to_string()),
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
///     .backend(std::sync::Arc::new(OneCall))
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
    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome>;
}

/// A run that a [`Backend`] executes, and its host interface.
pub struct BackendRun {
    host: Arc<dyn RunHost>,
    source: String,
}

impl fmt::Debug for BackendRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BackendRun").field("name", &self.host.script_name()).finish_non_exhaustive()
    }
}

impl BackendRun {
    /// The language of the script.
    pub fn language(&self) -> Language {
        self.host.language()
    }

    /// The text of the script.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The name of the script, for stack traces.
    pub fn name(&self) -> &str {
        self.host.script_name()
    }

    /// The script's input, if it has one.
    pub fn input(&self) -> Option<&Json> {
        self.host.input()
    }

    /// The limits in force. An operator who [changes the configuration](crate::Executor::reconfigure) can lower them
    /// while the run is in flight.
    pub fn limits(&self) -> Limits {
        self.host.limits()
    }

    /// Whether the script is only to be compiled: [`Executor::check`](crate::Executor::check).
    pub fn is_check(&self) -> bool {
        self.host.is_check()
    }

    /// The servers that the script may see, in order.
    pub fn servers(&self) -> Vec<String> {
        self.host.server_names().iter().map(|name| name.to_string()).collect()
    }

    /// Calls a tool, `server.tool` or `mcp__server__tool`, with arguments as JSON text. Dropping the future cancels
    /// the call.
    ///
    /// # Errors
    ///
    /// What the script gets: the tool's own error, or why the executor refuses the call.
    pub fn call(&self, tool: &str, arguments: &str) -> BoxFuture<'static, Result<Json, ToolError>> {
        let name: ToolName = tool_name(tool.to_owned());
        let answer = Arc::clone(&self.host).call(name, arguments.to_owned());
        Box::pin(async move {
            let text = answer.await?;
            Json::parse(&text).map_err(|error| {
                ToolError::new(crate::tools::ToolErrorCode::UpstreamProtocol, error.to_string())
            })
        })
    }

    /// Prints a line.
    pub fn print(&self, level: LogLevel, text: impl Into<String>) {
        self.host.log(level, text.into());
    }

    /// Emits a content block.
    ///
    /// # Errors
    ///
    /// If all blocks together are larger than a result may be.
    pub fn emit(&self, block: &Json) -> Result<(), ToolError> {
        self.host.emit(block.text()).map(drop)
    }

    /// The outcome of a script that has thrown.
    pub fn failed(&self, message: impl Into<String>) -> Outcome {
        Outcome::Failed(ScriptError { message: message.into(), ..ScriptError::default() })
    }
}

/// An embedder's back end as an engine.
pub(crate) struct BackendEngine(pub(crate) Arc<dyn Backend>);

impl Engine for BackendEngine {
    const THREAD: &'static str = "cx-backend";
    type Instance = BackendInstance;
    type Prepared = ();

    fn spawn(&self, name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        static ROOT: ThreadRoot = ThreadRoot::new("cx-backend-root", || Ok(()), STACK_BYTES);
        ROOT.spawn(name, task)
    }

    async fn make(&self) -> Result<BackendInstance, String> {
        Ok(BackendInstance { backend: Arc::clone(&self.0), stop: Arc::default() })
    }

    fn prepare(&self, _host: &dyn RunHost, _source: &str) -> Result<(), Box<Unprepared>> {
        Ok(())
    }
}

/// One run of a back end.
pub(crate) struct BackendInstance {
    backend: Arc<dyn Backend>,
    stop: Arc<Stop>,
}

impl Instance<BackendEngine> for BackendInstance {
    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// The back end knows the run's limits.
    fn set_memory_limit(&mut self, _bytes: usize) {}

    /// The executor does not know the back end's languages.
    async fn survey(
        &mut self,
        _host: &Arc<dyn RunHost>,
        _source: &str,
        (): &mut (),
    ) -> Result<Survey, Outcome> {
        Ok(Survey::default())
    }

    async fn execute(&mut self, host: &Arc<dyn RunHost>, source: &str, (): ()) -> Outcome {
        let run = BackendRun { host: Arc::clone(host), source: source.to_owned() };
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

    async fn check(&mut self, host: &Arc<dyn RunHost>, source: &str, (): ()) -> Outcome {
        self.execute(host, source, ()).await
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}
