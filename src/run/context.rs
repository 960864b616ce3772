//! The context of one run: its tools, limits, output and time.

mod approval;
mod state;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::approval::Question;
use super::clock::RunClock;
use crate::json::{self, Json, TreeError};
use crate::run::compute::Turn;
use crate::run::history::History;
use crate::run::limits::Limits;
use crate::run::result::{
    CallListener, CallProgress, CallProgressListener, ExecuteResult, Language, LogLevel, Outcome, Output,
    OutputListener, PlannedCall, ToolCallRecord, ToolCallStatus, Usage,
};
use crate::storage::state::{RunState, StateCall};
use crate::tools::approval::{Approver, Effects};
use crate::tools::catalog::{Catalog, ResolvedTool};
use crate::tools::names::kind;
use crate::tools::policy::Policy;
use crate::tools::{ProgressListener, ServerRequest, ToolError, ToolErrorCode, ToolRequest};

/// Maximum number of calls that wait for a free slot at once. Reached only with a large call limit
/// or none; it bounds the cost of a flood of calls that are not awaited.
const MAX_WAITING_CALLS: u32 = 10_000;

/// Maximum bytes of arguments that all unfinished calls may hold, as a multiple of one call's
/// limit.
const WAITING_ARGUMENTS: usize = 4;

/// Beyond this number of output entries, consecutive lines of one level are merged into one entry:
/// each entry costs about 60 bytes in addition to its text, and all have to be dropped before the
/// next run.
const MAX_SEPARATE_ENTRIES: usize = 10_000;

/// Bytes that each entry beyond them counts against [`Limits::output_bytes`] in addition to its
/// text.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// Bytes that a kept content block costs in addition to its text: the entry, its allocations, and
/// their share of a growing vector.
const BLOCK_OVERHEAD_BYTES: usize = 256;

/// Bytes of a tool's error message that are kept if it is larger than a script may receive. Enough
/// to read.
const MAX_CUT_MESSAGE_BYTES: usize = 16 << 10;

/// The host's state of one run. Shared by the script's thread, the watchdog and the waiting caller.
/// Every decision about a call is made here, so no engine can omit one.
pub(crate) struct ExecutionContext {
    pub(crate) language: Language,
    pub(crate) limits: Limits,
    /// The script's name in stack traces.
    pub(crate) name: String,
    /// The script's `input`.
    pub(crate) input: Option<Json>,
    /// When the run was requested.
    queued: Instant,
    /// Starts when the run gets its thread.
    clock: Arc<RunClock>,
    /// Cancels everything that the run waits for. It is cancelled when the run ends for any reason.
    pub(crate) cancel: CancellationToken,
    /// The run's use of the compute slots.
    pub(crate) turn: Turn,
    catalog: Arc<Catalog>,
    policies: [Arc<Policy>; 2],
    approver: Option<Approver>,
    is_dry_run: bool,
    /// The state that the script keeps between runs, or why it has none.
    state: Result<RunState, &'static str>,
    /// The run history, and the client whose records the script may read.
    history: Option<(Arc<History>, String)>,
    /// Whether some call may need an approval.
    may_ask: bool,
    /// The holder of its permit shows the approval prompt.
    question_turn: Arc<Semaphore>,
    on_output: Option<OutputListener>,
    on_progress: Option<CallProgressListener>,
    on_call: Option<CallListener>,
    slots: Arc<Semaphore>,
    runtime: tokio::runtime::Handle,
    ledger: Mutex<Ledger>,
}

/// What the run has done so far.
#[derive(Default)]
struct Ledger {
    over: bool,
    calls: u64,
    unfinished_calls: u32,
    unfinished_argument_bytes: usize,
    records: Vec<Call>,
    result_bytes: u64,
    output: Vec<Output>,
    output_bytes: usize,
    output_bytes_dropped: u64,
    emitted_bytes: usize,
    /// Number of approval prompts that were shown or wait to be shown.
    questions: u32,
    planned: Vec<PlannedCall>,
    planned_bytes: usize,
    planned_dropped: u64,
}

/// Index of a call's record; `None` if the maximum number of records is reached.
type RecordPlace = Option<usize>;

struct Call {
    record: ToolCallRecord,
    started: Instant,
}

/// What an engine measured during a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) cpu_time: Duration,
    pub(crate) memory_bytes: usize,
}

/// A tool's name as a script writes it.
pub(crate) enum ToolName {
    /// `server` and `tool`, each exact or in camelCase.
    Pair {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// `mcp__server__tool`.
    Full(String),
}

/// The parts of an [`ExecutionContext`].
pub(crate) struct ContextOptions {
    pub(crate) language: Language,
    pub(crate) limits: Limits,
    pub(crate) name: String,
    pub(crate) input: Option<Json>,
    pub(crate) catalog: Arc<Catalog>,
    /// The policies of the executor and of the run. Both must permit a call.
    pub(crate) policies: [Arc<Policy>; 2],
    /// Shows approval prompts. Without it every call that needs an approval is refused.
    pub(crate) approver: Option<Approver>,
    pub(crate) is_dry_run: bool,
    /// The state that the script keeps between runs, or why it has none.
    pub(crate) state: Result<RunState, &'static str>,
    /// The run history, and the client that requested this run.
    pub(crate) history: Option<(Arc<History>, String)>,
    pub(crate) on_output: Option<OutputListener>,
    pub(crate) on_progress: Option<CallProgressListener>,
    pub(crate) on_call: Option<CallListener>,
    pub(crate) cancel: CancellationToken,
    /// Runtime of the tools' timers, sockets and tasks.
    pub(crate) runtime: tokio::runtime::Handle,
    /// When the run was requested.
    pub(crate) queued: Instant,
}

impl ExecutionContext {
    /// Starts the run's clock.
    pub(crate) fn new(options: ContextOptions) -> Self {
        let slots = options.limits.calls_in_flight as usize;
        Self {
            language: options.language,
            limits: options.limits,
            name: options.name,
            input: options.input,
            queued: options.queued,
            clock: RunClock::start(&options.limits),
            cancel: options.cancel,
            turn: Turn::default(),
            catalog: options.catalog,
            may_ask: options.policies.iter().any(|policy| policy.may_ask()),
            policies: options.policies,
            approver: options.approver,
            is_dry_run: options.is_dry_run,
            state: options.state,
            history: options.history,
            question_turn: Arc::new(Semaphore::new(1)),
            on_output: options.on_output,
            on_progress: options.on_progress,
            on_call: options.on_call,
            slots: Arc::new(Semaphore::new(slots)),
            runtime: options.runtime,
            ledger: Mutex::default(),
        }
    }

    /// The run's current deadline. It moves during approval prompts.
    pub(crate) fn deadline(&self) -> Instant {
        self.clock.deadline()
    }

    /// The run's latest possible deadline, for operations that need a fixed one. Calls in flight
    /// during another call's approval prompt keep their own time this way; at the run's real end
    /// they are cancelled.
    fn latest_deadline(&self) -> Instant {
        let may_pause = self.may_ask && self.approver.is_some();
        if may_pause { self.clock.latest_deadline() } else { self.clock.deadline() }
    }

    fn permits(&self, server: &str, tool: &str) -> bool {
        self.policies.iter().all(|policy| policy.permits(server, tool))
    }

    fn denies(&self, server: &str, tool: &str) -> bool {
        self.policies.iter().any(|policy| policy.denies(server, tool))
    }

    fn may_permit_server(&self, server: &str) -> bool {
        self.policies.iter().all(|policy| policy.may_permit_server(server))
    }

    /// The servers that the run may see, in order.
    pub(crate) fn server_names(&self) -> Vec<Arc<str>> {
        let names = self.catalog.server_names();
        names.filter(|name| self.may_permit_server(name)).cloned().collect()
    }

    /// Calls a tool and returns its value as JSON text.
    ///
    /// The number of calls, the arguments' size and the state of the run are checked before this
    /// returns, so that a flood of calls that are not awaited is refused call by call. The rest
    /// happens in the future. Dropping the future cancels the call.
    pub(crate) fn call(
        self: &Arc<Self>,
        name: ToolName,
        arguments: String,
    ) -> impl Future<Output = Result<String, ToolError>> + Send + use<> {
        let admitted = self.admit(arguments.len());
        let context = Arc::clone(self);
        let call = async move {
            let admission = admitted?;
            tokio::select! {
                biased;
                result = admission.context.perform(&admission, name, arguments) => result,
                () = admission.context.cancel.cancelled() => Err(over()),
            }
        };
        context.in_runtime(call)
    }

    /// Polls `future` with the tools' runtime entered. Script threads have a small runtime of their
    /// own that stops between runs; tasks that a tool spawns must not live there.
    pub(crate) fn in_runtime<T>(
        self: Arc<Self>,
        future: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send {
        // Without tokio's cooperative budget: a script makes thousands of calls in one poll, and a
        // blocking call would wait forever for a budget that only the next poll renews.
        let mut future = Box::pin(tokio::task::unconstrained(future));
        futures::future::poll_fn(move |task| {
            let _entered = self.runtime.enter();
            future.poll_unpin(task)
        })
    }

    /// Performs an operation on the script's state and returns JSON text.
    ///
    /// It is not a tool call and does not count against [`Limits::tool_calls`], but it needs one of
    /// the slots for calls in flight and waits for it together with other calls. Dropping the
    /// future stops the wait; an operation that has started is completed.
    pub(crate) async fn state(self: &Arc<Self>, call: StateCall) -> Result<String, ToolError> {
        let _admission = {
            let mut ledger = self.ledger.lock();
            self.check_over(&ledger)?;
            self.hold(&mut ledger, call.bytes())?
        };
        let state = self
            .state
            .as_ref()
            .map_err(|problem| ToolError::new(ToolErrorCode::StateUnavailable, *problem))?;
        // The semaphore is never closed; an error would only mean that the run is over.
        let _slot = self.slots.acquire().await.map_err(|_closed| over())?;
        let answer = state.call(call, self.latest_deadline(), &self.runtime).await?;
        self.check_result_bytes("the answer", answer.len())?;
        Ok(answer)
    }

    /// Returns the record of an earlier run of the same client as JSON text. Records of other
    /// clients are not found.
    pub(crate) fn earlier_run(&self, id: &str) -> Result<String, ToolError> {
        let Some(run) = self.history.as_ref().and_then(|(history, owner)| history.get(owner, id)) else {
            let shown: String = id.chars().take(40).collect();
            let problem = format!(
                "no run `{shown}` is kept: `runId` names one in the answer that left something out, for an hour"
            );
            return Err(ToolError::new(ToolErrorCode::RunNotFound, problem));
        };
        let text = run.to_json_text();
        self.check_result_bytes("what the run left behind", text.len()).map_err(|mut error| {
            error.message += "; its parts are the resources `output`, `value` and `calls` of the run";
            error
        })?;
        Ok(text)
    }

    fn check_over(&self, ledger: &Ledger) -> Result<(), ToolError> {
        // A script that is being stopped may still run for a moment; its calls are refused.
        if ledger.over || self.cancel.is_cancelled() { Err(over()) } else { Ok(()) }
    }

    fn admit(self: &Arc<Self>, argument_bytes: usize) -> Result<Admission, ToolError> {
        let mut ledger = self.ledger.lock();
        self.check_over(&ledger)?;
        ledger.calls += 1;
        let most = self.limits.tool_calls;
        if most > 0 && ledger.calls > u64::from(most) {
            return Err(ToolError::new(
                ToolErrorCode::MaxToolCallsExceeded,
                format!("the script may make {most} tool calls"),
            ));
        }
        self.hold(&mut ledger, argument_bytes)
    }

    /// Counts a call as unfinished until the returned value is dropped.
    fn hold(self: &Arc<Self>, ledger: &mut Ledger, argument_bytes: usize) -> Result<Admission, ToolError> {
        let most = self.limits.argument_bytes;
        if argument_bytes > most {
            return Err(ToolError::new(
                ToolErrorCode::InvalidArguments,
                format!("the arguments are {argument_bytes} bytes of JSON, at most {most} can be sent"),
            ));
        }
        if ledger.unfinished_calls >= MAX_WAITING_CALLS + self.limits.calls_in_flight
            || ledger.unfinished_argument_bytes + argument_bytes > WAITING_ARGUMENTS * most
        {
            return Err(ToolError::new(
                ToolErrorCode::QueueFull,
                format!("{} calls are waiting; await some of them first", ledger.unfinished_calls),
            ));
        }
        ledger.unfinished_calls += 1;
        ledger.unfinished_argument_bytes += argument_bytes;
        Ok(Admission { context: Arc::clone(self), argument_bytes })
    }

    async fn perform(
        &self,
        admission: &Admission,
        name: ToolName,
        arguments: String,
    ) -> Result<String, ToolError> {
        let resolved = self.resolve(name).await?;
        self.check_policy(&resolved.server, &resolved.tool)?;
        let resolved = self.present(resolved).await?;
        let (resolved, arguments) = self.check_arguments(resolved, &arguments).await?;
        // Checked again, because in a new tool list the same name may refer to another tool.
        self.check_policy(&resolved.server, &resolved.tool)?;
        let mut approved = None;
        if self.is_dry_run || self.may_ask {
            let effects = self.effects(&resolved);
            if self.is_dry_run && effects.writes {
                let planned = self.plan(&resolved, arguments, admission.argument_bytes);
                return planned.map_err(|error| error.for_tool(&resolved.server, &resolved.tool));
            }
            if let Some(reason) = self.asks(&resolved.server, &resolved.tool, effects) {
                let question = Question {
                    server: &resolved.server,
                    tool: &resolved.tool,
                    resolved: Some(&resolved),
                    arguments: &arguments,
                    argument_bytes: admission.argument_bytes,
                    reason,
                };
                approved = Some(self.approved(question).await?);
            }
        }
        // The semaphore is never closed; an error would only mean that the run is over.
        let _slot = self.slots.acquire().await.map_err(|_closed| over())?;
        let record = self.record_sent(approved, &resolved.server, &resolved.tool, admission.argument_bytes);
        let result = self.dispatch(&resolved, arguments).await;
        self.record_result(record, &result);
        result.map_err(|error| error.for_tool(&resolved.server, &resolved.tool))
    }

    async fn resolve(&self, name: ToolName) -> Result<ResolvedTool, ToolError> {
        let deadline = self.latest_deadline();
        match name {
            ToolName::Pair { server, tool } => {
                // Checked first, so that a server that the policy denies is not started just to
                // find that out.
                if let Ok(server) = self.catalog.server_name(&server)
                    && (!self.may_permit_server(server) || self.denies(server, &tool))
                {
                    return Err(denied(server, &tool));
                }
                self.catalog.resolve(&server, &tool, deadline).await
            }
            ToolName::Full(name) => {
                let is_out_of_reach = |server: &str, tool: &str| {
                    let server = self.catalog.server_name(server);
                    server.is_ok_and(|server| !self.may_permit_server(server) || self.denies(server, tool))
                };
                self.catalog.resolve_full_name(&name, is_out_of_reach, deadline).await
            }
        }
    }

    /// Checks the arguments against the tool's schema and returns them. If they do not match a
    /// schema that the server has not just sent, the tool is resolved again at its server, because
    /// it may have changed.
    async fn check_arguments(
        &self,
        resolved: ResolvedTool,
        text: &str,
    ) -> Result<(ResolvedTool, Map<String, Value>), ToolError> {
        let named = |error: ToolError| error.for_tool(&resolved.server, &resolved.tool);
        let arguments = parse_arguments(text).map_err(named)?;
        let Some(check) = resolved.argument_check() else { return Ok((resolved, arguments)) };
        let refusal = match check.check(arguments) {
            Ok(arguments) => return Ok((resolved, arguments)),
            Err(error) => named(error),
        };
        let Ok(Some(again)) = self.catalog.resolve_again(&resolved, self.latest_deadline()).await else {
            return Err(refusal);
        };
        let arguments = parse_arguments(text).map_err(named)?;
        match again.argument_check() {
            Some(check) => check.check(arguments).map_err(named).map(|arguments| (again, arguments)),
            None => Ok((again, arguments)),
        }
    }

    fn check_policy(&self, server: &str, tool: &str) -> Result<(), ToolError> {
        if self.permits(server, tool) { Ok(()) } else { Err(denied(server, tool)) }
    }

    async fn dispatch(
        &self,
        resolved: &ResolvedTool,
        arguments: Map<String, Value>,
    ) -> Result<String, ToolError> {
        let request = ToolRequest {
            server: Arc::clone(&resolved.server),
            tool: Arc::clone(&resolved.tool),
            arguments,
            deadline: self.latest_deadline(),
            cancel: self.cancel.clone(),
            on_progress: self.progress_listener(resolved),
        };
        let result = resolved.dispatcher().call(request).await?;
        let value = result.into_value(resolved.definition().output_schema.as_ref());
        let value = value.map_err(|error| self.bounded(error))?;
        self.check_result_bytes("the result", value.text().len())?;
        resolved.observe(&value);
        Ok(value.into_text())
    }

    /// Truncates an error message of a tool that is larger than a result may be.
    fn bounded(&self, mut error: ToolError) -> ToolError {
        let most = self.limits.result_bytes;
        if error.message.len() > most {
            error.message.truncate(error.message.floor_char_boundary(most.min(MAX_CUT_MESSAGE_BYTES)));
            error.message.push('…');
        }
        if error.content.as_ref().is_some_and(|content| content.text().len() > most) {
            error.content = None;
        }
        error
    }

    /// Checks that the script may receive `what`, JSON text of `bytes` bytes.
    fn check_result_bytes(&self, what: &str, bytes: usize) -> Result<(), ToolError> {
        let most = self.limits.result_bytes;
        if bytes > most {
            let message = format!("{what} is {bytes} bytes of JSON, at most {most} can be received");
            return Err(ToolError::new(ToolErrorCode::ResultTooLarge, message));
        }
        Ok(())
    }

    /// Records a call that a dry run does not make, and returns a sample of the tool's result.
    fn plan(
        &self,
        resolved: &ResolvedTool,
        arguments: Map<String, Value>,
        argument_bytes: usize,
    ) -> Result<String, ToolError> {
        let text = resolved.sample()?.into_text();
        self.check_result_bytes("the result", text.len())?;
        let (server, tool) = (resolved.server.to_string(), resolved.tool.to_string());
        let record = self.begin_record(&server, &tool, argument_bytes, ToolCallStatus::Stubbed);
        self.end_record(record, ToolCallStatus::Stubbed, text.len());
        // The arguments as they are printed, which differs from how the script wrote them.
        let arguments = Json::from(Value::Object(arguments));
        let bytes = arguments.text().len();
        let mut ledger = self.ledger.lock();
        if ledger.planned.len() < PlannedCall::KEPT && ledger.planned_bytes + bytes <= PlannedCall::KEPT_BYTES
        {
            ledger.planned_bytes += bytes;
            ledger.planned.push(PlannedCall { server, tool, arguments });
        } else {
            ledger.planned_dropped += 1;
        }
        Ok(text)
    }

    /// Returns a listener that forwards the tool's progress reports, if the run has a progress
    /// listener.
    fn progress_listener(&self, resolved: &ResolvedTool) -> Option<ProgressListener> {
        let listener = Arc::clone(self.on_progress.as_ref()?);
        let (server, tool) = (Arc::clone(&resolved.server), Arc::clone(&resolved.tool));
        Some(Arc::new(move |progress| {
            listener(&CallProgress { server: server.to_string(), tool: tool.to_string(), progress });
        }))
    }

    /// Starts the record of a call.
    fn begin_record(
        &self,
        server: &str,
        tool: &str,
        argument_bytes: usize,
        status: ToolCallStatus,
    ) -> RecordPlace {
        let mut ledger = self.ledger.lock();
        if ledger.records.len() >= ToolCallRecord::KEPT {
            return None;
        }
        ledger.records.push(Call {
            record: ToolCallRecord {
                server: server.to_owned(),
                tool: tool.to_owned(),
                status,
                approved: false,
                duration: Duration::ZERO,
                argument_bytes,
                result_bytes: 0,
            },
            started: Instant::now(),
        });
        Some(ledger.records.len() - 1)
    }

    /// Records that a call is sent now. `approved` is its existing record, if it needed an
    /// approval.
    fn record_sent(
        &self,
        approved: Option<RecordPlace>,
        server: &str,
        tool: &str,
        argument_bytes: usize,
    ) -> RecordPlace {
        let Some(place) = approved else {
            return self.begin_record(server, tool, argument_bytes, ToolCallStatus::InFlight);
        };
        let mut ledger = self.ledger.lock();
        if let Some(call) = place.and_then(|position| ledger.records.get_mut(position)) {
            call.record.status = ToolCallStatus::InFlight;
            call.record.approved = true;
            call.started = Instant::now();
        }
        place
    }

    fn record_result(&self, place: RecordPlace, result: &Result<String, ToolError>) {
        let bytes = result.as_ref().map_or(0, String::len);
        self.ledger.lock().result_bytes += bytes as u64;
        let status = match result {
            Ok(_) => ToolCallStatus::Ok,
            Err(error) => ToolCallStatus::Failed(error.code),
        };
        self.end_record(place, status, bytes);
    }

    fn end_record(&self, place: RecordPlace, status: ToolCallStatus, result_bytes: usize) {
        let mut ledger = self.ledger.lock();
        let call = place.and_then(|position| ledger.records.get_mut(position));
        let Some(Call { record, started }) = call else { return };
        record.duration = started.elapsed();
        record.result_bytes = result_bytes;
        record.status = status;
        if let Some(listener) = &self.on_call {
            let record = record.clone();
            // The listener may call functions that lock the ledger.
            drop(ledger);
            listener(&record);
        }
    }

    /// Sends a request for something other than a tool to a server and returns the answer as JSON.
    /// Counts as a call. The policy treats the method as the name of a tool, so lists that name
    /// individual tools do not allow it.
    pub(crate) async fn request(
        self: &Arc<Self>,
        server: &str,
        request: ServerRequest,
    ) -> Result<String, ToolError> {
        let argument_bytes = match &request {
            ServerRequest::ReadResource { uri } => uri.len(),
            ServerRequest::GetPrompt { name, arguments } => {
                name.len() + serde_json::to_string(arguments).map_or(0, |text| text.len())
            }
            ServerRequest::ListResources | ServerRequest::ListPrompts => 0,
        };
        let admission = self.admit(argument_bytes)?;
        let method = request.method();
        let (name, dispatcher) = self.catalog.dispatcher(server)?;
        self.check_policy(name, method)?;
        let mut approved = None;
        if let Some(reason) = self.asks(name, method, Effects::OF_REQUESTS) {
            let question = Question {
                server: name,
                tool: method,
                resolved: None,
                arguments: &request.parameters(),
                argument_bytes,
                reason,
            };
            approved = Some(self.approved(question).await?);
        }
        // The semaphore is never closed; an error would only mean that the run is over.
        let _slot = self.slots.acquire().await.map_err(|_closed| over())?;
        let record = self.record_sent(approved, name, method, admission.argument_bytes);
        let asked =
            dispatcher.request(Arc::clone(name), request, self.latest_deadline(), self.cancel.clone());
        let answer = tokio::select! {
            biased;
            answer = asked => answer,
            () = self.cancel.cancelled() => Err(over()),
        };
        let text = answer.and_then(|value| {
            self.check_result_bytes("the answer", value.text().len())?;
            Ok(value.into_text())
        });
        self.record_result(record, &text);
        text.map_err(|error| error.for_tool(name, method))
    }

    /// Returns at most `limit` permitted tools that match `query`, best match first; for an empty
    /// query all of them, in order. `server` restricts the search to one server. A server that
    /// cannot list its tools is left out, with a warning in the script's output.
    pub(crate) async fn search(
        &self,
        query: &str,
        server: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ResolvedTool>, ToolError> {
        let server = server.map(|name| self.catalog.server_name(name)).transpose()?;
        let wanted =
            |name: &str| server.is_none_or(|server| &**server == name) && self.may_permit_server(name);
        let permitted = |server: &str, tool: &str| self.permits(server, tool);
        let (tools, failures) =
            self.catalog.search(query, limit, wanted, permitted, self.latest_deadline()).await;
        for failure in failures {
            let server = failure.server.as_deref().unwrap_or_default();
            self.log(LogLevel::Warn, format!("the tools of `{server}` are missing: {failure}"));
        }
        Ok(tools)
    }

    /// The permitted tools of one server, in its order.
    pub(crate) async fn tools(&self, server: &str) -> Result<Vec<ResolvedTool>, ToolError> {
        let name = self.catalog.server_name(server)?;
        if !self.may_permit_server(name) {
            return Err(denied(name, "*"));
        }
        let mut tools = self.catalog.tools(server, self.latest_deadline()).await?;
        tools.retain(|tool| self.permits(&tool.server, &tool.tool));
        Ok(tools)
    }

    /// The permitted tool with this name, or `None` if there is none.
    pub(crate) async fn tool(&self, name: ToolName) -> Result<Option<ResolvedTool>, ToolError> {
        match self.resolve(name).await {
            Ok(tool) => Ok(self.permits(&tool.server, &tool.tool).then_some(tool)),
            Err(error) if matches!(error.code, ToolErrorCode::ToolNotFound | ToolErrorCode::ToolDenied) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Stores as much of a printed line as the output limit allows, and passes the stored part to
    /// the listener.
    pub(crate) fn log(&self, level: LogLevel, mut text: String) {
        let entry = {
            let mut ledger = self.ledger.lock();
            if ledger.over {
                return;
            }
            let is_many = ledger.output.len() >= MAX_SEPARATE_ENTRIES;
            let joins = is_many
                && matches!(ledger.output.last(), Some(Output::Log { level: last, .. }) if *last == level);
            let overhead = if is_many && !joins { ENTRY_OVERHEAD_BYTES } else { 0 };
            let room = (self.limits.output_bytes - ledger.output_bytes).saturating_sub(overhead);
            // The line terminator counts too.
            let cost = text.len() + 1;
            if cost > room {
                let kept = text.floor_char_boundary(room);
                ledger.output_bytes_dropped += (text.len() - kept) as u64;
                ledger.output_bytes = self.limits.output_bytes;
                if kept == 0 {
                    return;
                }
                text.truncate(kept);
            } else {
                ledger.output_bytes += cost + overhead;
            }
            let entry = self.on_output.is_some().then(|| Output::Log { level, text: text.clone() });
            match ledger.output.last_mut() {
                Some(Output::Log { text: last, .. }) if joins => {
                    last.push('\n');
                    last.push_str(&text);
                }
                _ => ledger.output.push(Output::Log { level, text }),
            }
            entry
        };
        if let Some(entry) = entry {
            self.pass_on(&entry);
        }
    }

    /// Stores a content block and passes it to the listener.
    ///
    /// # Errors
    ///
    /// `ResultTooLarge` if all blocks together are larger than one result may be.
    pub(crate) fn emit(&self, block: Json) -> Result<(), ToolError> {
        let bytes = block.text().len();
        let entry = Output::Emit(block);
        {
            let mut ledger = self.ledger.lock();
            if ledger.over {
                return Err(over());
            }
            let most = self.limits.result_bytes;
            // A small block costs memory too; without this a loop could emit millions.
            let bytes = bytes + BLOCK_OVERHEAD_BYTES;
            if ledger.emitted_bytes + bytes > most {
                return Err(ToolError::new(
                    ToolErrorCode::ResultTooLarge,
                    format!("a script may emit {most} bytes in all"),
                ));
            }
            ledger.emitted_bytes += bytes;
            ledger.output.push(entry.clone());
        }
        self.pass_on(&entry);
        Ok(())
    }

    fn pass_on(&self, entry: &Output) {
        if let Some(listener) = &self.on_output {
            listener(entry);
        }
    }

    /// Ends the run: its unfinished calls are cancelled, and calls that its thread still makes are
    /// neither recorded nor performed. Must be called once.
    pub(crate) fn finish(&self, outcome: Outcome, measured: Measured) -> ExecuteResult {
        let result = {
            let mut ledger = self.ledger.lock();
            ledger.over = true;
            let tool_calls = std::mem::take(&mut ledger.records)
                .into_iter()
                .map(|Call { mut record, started }| {
                    if matches!(record.status, ToolCallStatus::InFlight | ToolCallStatus::AwaitingApproval) {
                        record.duration = started.elapsed();
                    }
                    record
                })
                .collect();
            ExecuteResult {
                outcome,
                logs: std::mem::take(&mut ledger.output),
                tool_calls,
                planned_calls: self.is_dry_run.then(|| std::mem::take(&mut ledger.planned)),
                usage: Usage {
                    wall_time: self.clock.started().elapsed(),
                    approval_time: self.clock.paused(),
                    queue_time: self.clock.started().duration_since(self.queued),
                    cpu_time: measured.cpu_time,
                    memory_bytes: measured.memory_bytes,
                    tool_calls: ledger.calls,
                    tool_result_bytes: ledger.result_bytes,
                    output_bytes_dropped: ledger.output_bytes_dropped,
                    planned_calls_dropped: ledger.planned_dropped,
                },
            }
        };
        self.cancel.cancel();
        result
    }
}

/// A call that counts against the run's bounds for unfinished calls until this is dropped.
struct Admission {
    context: Arc<ExecutionContext>,
    argument_bytes: usize,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut ledger = self.context.ledger.lock();
        ledger.unfinished_calls -= 1;
        ledger.unfinished_argument_bytes -= self.argument_bytes;
    }
}

/// Parses the arguments as an object. Empty text is an empty object.
fn parse_arguments(text: &str) -> Result<Map<String, Value>, ToolError> {
    let invalid = |message: String| ToolError::new(ToolErrorCode::InvalidArguments, message);
    if text.is_empty() {
        return Ok(Map::new());
    }
    match json::tree(text, json::budget(text.len())) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(other) => Err(invalid(format!(
            "expected the arguments as one object, as in `{{\"path\": \"a.txt\"}}`: {}",
            kind(&other)
        ))),
        Err(error @ TreeError::TooMany { .. }) => Err(invalid(format!(
            "the arguments are {error}: send less in one call, or as one string of JSON if the tool takes that"
        ))),
        // `JSON.stringify` produces valid JSON except for lone surrogates and too many levels of
        // nesting.
        Err(TreeError::Invalid(error)) => Err(invalid(format!("the arguments are not valid JSON: {error}"))),
    }
}

fn denied(server: &str, tool: &str) -> ToolError {
    ToolError::new(ToolErrorCode::ToolDenied, format!("this run may not call `{server}.{tool}`"))
        .for_tool(server, tool)
}

fn over() -> ToolError {
    ToolError::new(ToolErrorCode::Cancelled, "the run is over")
}
