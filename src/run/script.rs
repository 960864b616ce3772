//! A script and the options of its run.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, OptionName};
use crate::json::Json;
use crate::llm::{LanguageModel, NamedModel};
use crate::run::grants::Permissions;
use crate::run::limits::Limits;
use crate::run::result::{Output, ToolCallRecord};
use crate::run::sampling::SamplingOptions;
use crate::storage::state::DefaultScope;
pub use crate::tools::Language;
use crate::tools::approval::Approver;
use crate::tools::native::{self, NativeTools};
use crate::tools::policy::Policy;
use crate::tools::{
    Approval, ApprovalRequest, ElicitationAnswer, ElicitationRequest, Elicitor, Progress, ToolRules,
    TraceContext,
};

/// A script and the options of its run.
///
/// ```
/// # use cx::{Limits, Script};
/// # use std::time::Duration;
/// let script = Script::typescript("return input.a + 1")
///     .named("add.ts")
///     .input(serde_json::json!({ "a": 1 }))
///     .allow(["weather.*"])
///     .limits(Limits { wall_time: Duration::from_secs(5), ..Limits::default() });
/// ```
#[derive(Clone)]
pub struct Script {
    pub(crate) language: Language,
    pub(crate) source: String,
    pub(crate) name: String,
    pub(crate) input: Option<Json>,
    pub(crate) limits: Option<Limits>,
    pub(crate) rules: ToolRules,
    pub(crate) permissions: Permissions,
    /// Tools and servers that only this run has.
    pub(crate) tools: NativeTools,
    pub(crate) servers: Vec<UpstreamServer>,
    pub(crate) approver: Option<Approver>,
    pub(crate) elicitor: Option<Elicitor>,
    pub(crate) sampling: SamplingOptions,
    /// The client's own model, which is asked through the protocol's sampling.
    pub(crate) client_model: Option<NamedModel>,
    pub(crate) is_dry_run: bool,
    pub(crate) session: Option<String>,
    pub(crate) time_zone: Option<String>,
    pub(crate) default_scope: DefaultScope,
    pub(crate) client: Option<String>,
    /// The tenant, in a server with tenants, whose client requests the run. The state of its sessions is separate.
    pub(crate) tenant: Option<Arc<str>>,
    /// Whether many clients share that name and cannot be told apart.
    pub(crate) client_is_many: bool,
    /// What the client calls itself, for the observers of runs.
    pub(crate) client_name: Option<String>,
    /// The span that causes the run.
    pub(crate) trace: Option<TraceContext>,
    pub(crate) cancel: Option<CancellationToken>,
    /// Hears everything that the script prints.
    pub(crate) on_output: Option<OutputListener>,
    /// Receives the output that is kept for the result, which [`Limits::output_bytes`] and [`Limits::result_bytes`]
    /// bound.
    pub(crate) on_kept_output: Option<KeptOutputListener>,
    pub(crate) on_progress: Option<CallProgressListener>,
    /// Hears what the script reports of its own progress.
    pub(crate) on_report: Option<ReportListener>,
    pub(crate) on_call: Option<CallListener>,
    /// Counts what the run has before it is admitted, such as the bytes of its input. Afterwards that is part of its
    /// own memory, and this is dropped.
    pub(crate) while_queued: Option<WhileQueued>,
}

/// An MCP server of a run's own.
#[cfg(feature = "mcp")]
pub(crate) type UpstreamServer = crate::mcp::McpServer;
/// A build without MCP has no such servers.
#[cfg(not(feature = "mcp"))]
pub(crate) type UpstreamServer = NoServer;

/// Has no value.
#[cfg(not(feature = "mcp"))]
#[derive(Clone)]
pub(crate) enum NoServer {}

/// Called with each output entry when it is printed, on the script's own thread.
pub(crate) type OutputListener = Arc<dyn Fn(&Output, &CancellationToken) + Send + Sync>;
pub(crate) type KeptOutputListener = Arc<dyn Fn(&Output) + Send + Sync>;

/// Called with each progress report of a tool.
pub(crate) type CallProgressListener = Arc<dyn Fn(&CallProgress) + Send + Sync>;

/// Called with each progress report of a script.
pub(crate) type ReportListener = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Held only to be dropped: that releases what it counts.
pub(crate) type WhileQueued = Arc<dyn Any + Send + Sync>;

/// Called with each call that has ended.
pub(crate) type CallListener = Arc<dyn Fn(&ToolCallRecord) + Send + Sync>;

/// The progress of one of a script's calls, as its tool reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallProgress {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The reported progress.
    pub progress: Progress,
}

impl Script {
    /// A script from TypeScript or JavaScript source, in any of the forms that docs/scripts.md
    /// lists.
    pub fn typescript(source: impl Into<String>) -> Self {
        Self::new(Language::TypeScript, source)
    }

    /// A script from Python source, in any of the forms that docs/python.md lists.
    pub fn python(source: impl Into<String>) -> Self {
        Self::new(Language::Python, source)
    }

    /// A script in `language`, as [`typescript`](Self::typescript) and [`python`](Self::python) make it.
    pub fn new(language: Language, source: impl Into<String>) -> Self {
        let name = match language {
            Language::TypeScript => "script.ts",
            Language::Python => "script.py",
        };
        Self {
            language,
            source: source.into(),
            name: name.to_owned(),
            input: None,
            limits: None,
            rules: ToolRules::new(),
            permissions: Permissions::default(),
            tools: NativeTools::default(),
            servers: Vec::new(),
            approver: None,
            elicitor: None,
            sampling: SamplingOptions::default(),
            client_model: None,
            is_dry_run: false,
            session: None,
            time_zone: None,
            default_scope: DefaultScope::default(),
            client: None,
            tenant: None,
            client_is_many: false,
            client_name: None,
            trace: None,
            cancel: None,
            on_output: None,
            on_kept_output: None,
            on_progress: None,
            on_report: None,
            on_call: None,
            while_queued: None,
        }
    }

    /// Sets the name that stack traces show instead of `script.ts` or `script.py`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Replaces the source.
    #[must_use]
    pub fn source_text(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets the JSON value that the script sees as `input` (Python: `inputs`). It is a [`Value`], or
    /// what takes a fraction of the memory: JSON text ([`Json::parse`]), or a value of a Rust type
    /// ([`Json::from_serialize`]). The default is `null` (`None`).
    #[must_use]
    pub fn input(mut self, input: impl Into<Json>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Sets the limits of this run, instead of the executor's.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Restricts the directories and hosts that this run may reach to a part of what is
    /// [granted](crate::ExecutorBuilder::grants). [`Executor::run`](crate::Executor::run) refuses a
    /// script that asks for more.
    #[must_use]
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Restricts the tools that this run may call, in addition to the executor's rules.
    /// [`ToolRules::read_only`] is not for scripts: [`Executor::run`](crate::Executor::run) refuses
    /// it.
    #[must_use]
    pub fn rules(mut self, rules: ToolRules) -> Self {
        self.rules = self.rules.and(rules);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::allow`].
    #[must_use]
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.rules = self.rules.allow(patterns);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::deny`].
    #[must_use]
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.rules = self.rules.deny(patterns);
        self
    }

    /// Short for [`rules`](Self::rules) with [`ToolRules::ask`].
    #[must_use]
    pub fn ask<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.rules = self.rules.ask(patterns);
        self
    }

    pub(crate) fn policy(&self) -> Result<Policy, Error> {
        if !self.rules.read_only.is_empty() {
            let problem = "only an executor, its configuration and its servers declare tools read-only";
            return Err(Error::InvalidOptions { option: OptionName::ReadOnly, problem: problem.to_owned() });
        }
        Policy::new(&self.rules)
    }

    /// Adds a tool written in Rust for this run only, as
    /// [`ExecutorBuilder::tool`](crate::ExecutorBuilder::tool) does for all. It replaces a native
    /// tool of the executor that has the same name. The executor's rules apply to it.
    #[must_use]
    pub fn tool<Arguments, Output, Failure, Function, Returned>(
        mut self,
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
        self.tools.add(name, native::definition(input_schema), native::erase(function));
        self
    }

    /// Adds an MCP server for this run only. It is started when the script first needs it, and shut
    /// down when the run ends. The executor's rules apply to its tools.
    /// [`Executor::run`](crate::Executor::run) refuses a name that another server has.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn server(mut self, server: crate::mcp::McpServer) -> Self {
        self.servers.push(server);
        self
    }

    /// Sets the approver of this run, instead of the executor's
    /// [`approver`](crate::ExecutorBuilder::approver).
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

    /// Sets what shows the questions of servers to the user of this run, instead of the executor's
    /// [`elicitor`](crate::ExecutorBuilder::elicitor).
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

    /// Sets what the script asks of language models, within the executor's
    /// [`llm`](crate::ExecutorBuilder::llm).
    #[must_use]
    pub fn sampling(mut self, options: SamplingOptions) -> Self {
        self.sampling = options;
        self
    }

    /// Offers a model to this run, after the executor's provider unless
    /// [`prefer_client`](crate::LlmOptions::prefer_client) is set. Results name it `client`. Its user may
    /// be asked, so one call takes at most [`Limits::answer_time`], and the wall clock is paused during it.
    #[must_use]
    pub fn client_model(mut self, model: impl LanguageModel) -> Self {
        self.client_model = Some(NamedModel::new("client", Arc::new(model)));
        self
    }

    /// Makes this a dry run: it calls only read-only tools. For any other call the script gets a
    /// sample of the tool's result, with the text `dry run` in place of every string, and the
    /// result lists the call in
    /// [`ExecuteResult::planned_calls`](crate::ExecuteResult::planned_calls). Writes to the
    /// script's state can be read back during the run and are discarded at its end. Everything else
    /// is as in a real run: limits, policy, checks of arguments, calls of read-only tools, and
    /// requests for resources and prompts. A call that is not made needs no approval.
    ///
    /// Read-only tools are those that
    /// [`ExecutorBuilder::read_only`](crate::ExecutorBuilder::read_only) names, and those that
    /// declare `readOnlyHint`, as long as their definition matches the pinned one. A malicious
    /// server can declare the hint for a tool that writes. If the server's own `read_only` list is
    /// set, its hints are ignored.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }

    /// Uses the state of a session instead of the workspace's
    /// ([`ExecutorBuilder::state`](crate::ExecutorBuilder::state)). Scripts with the same handle
    /// share it. The handle is 1 to 128 visible characters; [`Executor::run`](crate::Executor::run)
    /// refuses others.
    #[must_use]
    pub fn session(mut self, handle: impl Into<String>) -> Self {
        self.session = Some(handle.into());
        self
    }

    /// Sets the time zone that the script sees as the local one, instead of the executor's
    /// ([`ExecutorBuilder::time_zone`](crate::ExecutorBuilder::time_zone)): a name of the IANA
    /// database, such as `Europe/Berlin`. [`Executor::run`](crate::Executor::run) refuses others.
    /// docs/scripts.md and docs/python.md say what depends on it.
    #[must_use]
    pub fn time_zone(mut self, name: impl Into<String>) -> Self {
        self.time_zone = Some(name.into());
        self
    }

    /// Sets the scope of the script's state for a script that names no session.
    pub(crate) fn default_scope(mut self, scope: DefaultScope) -> Self {
        self.default_scope = scope;
        self
    }

    /// Sets the client that requests the run. With `mcp.run(id)` the script can read the records of
    /// this client's earlier runs ([`History::keep`](crate::History::keep)). Without a client it
    /// can read none.
    #[must_use]
    pub fn client(mut self, client: impl Into<String>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Sets what the client calls itself.
    pub(crate) fn client_name(mut self, name: Option<String>) -> Self {
        self.client_name = name;
        self
    }

    /// Makes the run a part of this trace, if the executor
    #[cfg_attr(feature = "otel", doc = "[exports traces](crate::ExecutorBuilder::open_telemetry).")]
    #[cfg_attr(not(feature = "otel"), doc = "exports traces.")]
    #[must_use]
    pub fn trace_context(mut self, context: TraceContext) -> Self {
        self.trace = Some(context);
        self
    }

    /// Ends the run with [`ErrorCode::Cancelled`](crate::ErrorCode::Cancelled) when `token` is
    /// cancelled.
    ///
    /// Dropping the run's future stops the script too, but then its result is lost.
    #[must_use]
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Calls `listener` with each output entry when the script prints it.
    ///
    /// The listener also gets the output beyond [`Limits::output_bytes`], which is not kept for the result. Only the
    /// run's time bounds how much that is, so a listener that stores entries needs a bound of its own. The events of a
    /// [`Run`](crate::Run) contain only the kept output.
    ///
    /// It runs on the script's thread: a slow listener delays the script, but neither other runs nor this run's
    /// deadline. A listener that has to wait uses [`on_output_with`](Self::on_output_with).
    ///
    /// If this or another listener of the run panics, the run ends with
    /// [`Error::WorkerLost`](crate::Error::WorkerLost), and no listener is called again.
    #[must_use]
    pub fn on_output(self, listener: impl Fn(&Output) + Send + Sync + 'static) -> Self {
        self.on_output_with(move |entry, _cancel| listener(entry))
    }

    /// As [`on_output`](Self::on_output), for a listener that waits, for example until a reader has
    /// taken earlier output. The token is cancelled when the run has to end: the listener must
    /// return soon after, or the run ends without its thread, which then counts as hung.
    #[must_use]
    pub fn on_output_with(
        mut self,
        listener: impl Fn(&Output, &CancellationToken) + Send + Sync + 'static,
    ) -> Self {
        self.on_output = Some(Arc::new(listener));
        self
    }

    /// Calls `listener` with each progress report of a tool that the script calls. Servers are
    /// asked for progress reports only if there is a listener.
    ///
    /// It runs on the thread that reads the server's answers, so a slow listener delays those.
    #[must_use]
    pub fn on_progress(mut self, listener: impl Fn(&CallProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(listener));
        self
    }

    /// Calls `listener` with each report that the script makes of its own progress with
    /// `progress(done, total, message)`. `done` never decreases. The message is at most 1,000
    /// characters, untrusted text.
    ///
    /// It runs on the script's thread, so a slow listener delays the script.
    #[must_use]
    pub fn on_report(mut self, listener: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.on_report = Some(Arc::new(listener));
        self
    }

    /// Calls `listener` with each tool call when it has ended, successfully or not, up to the first
    /// [`ToolCallRecord::KEPT`] calls of a run.
    ///
    /// It runs on the script's thread, so a slow listener delays the script.
    #[must_use]
    pub fn on_call(mut self, listener: impl Fn(&ToolCallRecord) + Send + Sync + 'static) -> Self {
        self.on_call = Some(Arc::new(listener));
        self
    }
}

impl From<&str> for Script {
    fn from(source: &str) -> Self {
        Self::typescript(source)
    }
}

impl From<String> for Script {
    fn from(source: String) -> Self {
        Self::typescript(source)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Script")
            .field("language", &self.language)
            .field("name", &self.name)
            .field("source_bytes", &self.source.len())
            .field("limits", &self.limits)
            .field("rules", &self.rules)
            .field("is_dry_run", &self.is_dry_run)
            .finish_non_exhaustive()
    }
}
