//! Calls of a run: name resolution, policy, hooks, arguments, approval, and the call itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::json::{self, Json, TreeError, numbers};
use crate::run::approval::{Question, asks_about, effects_of};
use crate::run::context::{ExecutionContext, denied, over};
use crate::run::hooks::{self, HookedCall};
use crate::run::ledger::{Call, CallFacts, Ledger, RecordId};
use crate::run::observer::{Arguments, ObservedCall, Refused, RunEvent, Sending, SentSlot};
use crate::run::result::{LogLevel, PlannedCall, ToolCallStatus};
use crate::run::script::CallProgress;
use crate::text::{preview, preview_bytes, visible};
use crate::tools::approval::{AskReason, Effects};
use crate::tools::catalog::ResolvedTool;
use crate::tools::in_force::ToolsInForce;
use crate::tools::names::kind;
use crate::tools::shape::Shape;
use crate::tools::skill_pins::{SKILL_SCHEME, SkillPin};
use crate::tools::{
    ProgressListener, RemoteServer, RequestContext, Schema, ServerRequest, ToolError, ToolErrorCode,
    ToolKind, ToolRequest, ToolResult, TraceContext, exact_json,
};

/// Maximum bytes of a tool's error message that are kept if it is larger than a script may receive.
/// Enough to read.
const MAX_CUT_MESSAGE_BYTES: usize = 16 << 10;

/// Maximum characters of a resource's address in a line of the output.
const MAX_SHOWN_URI: usize = 120;

/// The name under which requests of `fetch` are called, recorded and matched by rules. The tool is the host.
pub(crate) const FETCH: &str = "fetch";

/// How much later than its run a call ends by itself.
const AFTER_THE_RUN: Duration = Duration::from_millis(500);

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

impl ToolName {
    /// A name that is one text: `mcp__server__tool`, or `server.tool`.
    pub(crate) fn of_text(name: &str) -> Self {
        match name.split_once('.') {
            Some((server, tool)) if !name.starts_with("mcp__") => {
                Self::Pair { server: server.to_owned(), tool: tool.to_owned() }
            }
            _ => Self::Full(name.to_owned()),
        }
    }
}

/// The decision that a call may be sent, and the rules that it was made by.
struct Decided<'a> {
    by: Arc<ToolsInForce>,
    call: Call<'a>,
    /// The tool; `None` for requests for resources and prompts.
    tool: Option<&'a ResolvedTool>,
    permission: Permission,
    /// Where a request of `fetch` goes.
    host: Option<&'a HostRequest<'a>>,
}

/// A request of `fetch`, as the rest of a run knows it.
pub(super) struct HostRequest<'a> {
    /// The host, and the port unless it is the usual one.
    pub(super) name: &'a str,
    /// The host alone: a rule that names it is about each of its ports.
    pub(super) host: &'a str,
    pub(super) remote: RemoteServer,
    pub(super) effects: Effects,
    /// What records have of it: no path and no headers, which may have secrets.
    pub(super) recorded: Map<String, Value>,
}

/// What permits a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Permission {
    /// The rules about the tool, or about the method as if it were one.
    OfMethod,
    /// A tool of the server that may be called. Rules deny the method only by naming it.
    OfTool,
    /// A person has granted the host. Rules deny it only by naming it.
    Granted,
}

/// A call that counts against the run's bounds for unfinished calls until this is dropped.
pub(crate) struct HeldCall {
    context: Arc<ExecutionContext>,
    /// Number of the call in its run, from 1; 0 for an operation that is no call.
    number: u64,
    argument_bytes: usize,
    /// When the script made it.
    made: Instant,
    /// Whether the call was sent, or simulated in a dry run.
    is_made: AtomicBool,
    /// Keeps the tool's own result, for a call whose caller wants that and not a script's value.
    answer: Option<Mutex<Option<ToolAnswer>>>,
}

/// A tool's own result, and what a script would receive of it.
#[derive(Clone)]
struct ToolAnswer {
    result: ToolResult,
    value: Result<Json, ToolError>,
    output_schema: Option<Schema>,
}

impl HeldCall {
    /// Records a failure: whether the call was refused, and when to try again.
    pub(super) fn note_failure<T>(&self, result: &Result<T, ToolError>) {
        let Err(error) = result else { return };
        if !self.is_made.load(Ordering::Relaxed) {
            self.context.count_refusal(Some(self.number), error);
        }
        if let Some(time) = error.retry_after {
            self.context.ledger.lock().note_retry(error.code, time);
        }
    }
}

impl Drop for HeldCall {
    fn drop(&mut self) {
        self.context.ledger.lock().release(self.argument_bytes);
    }
}

/// Arguments as they are sent.
struct ExactArguments {
    tree: Map<String, Value>,
    /// The digits of numbers that the tree has lost, in their order.
    numbers: Vec<Box<str>>,
}

impl ExecutionContext {
    /// Calls a tool and returns its value.
    ///
    /// The number of calls, the arguments' size and the state of the run are checked before this
    /// returns, so that a flood of calls that are not awaited is refused call by call. The rest
    /// happens in the future. Dropping the future cancels the call.
    pub(crate) fn call(
        self: &Arc<Self>,
        name: ToolName,
        arguments: String,
    ) -> impl Future<Output = Result<Json, ToolError>> + Send + use<> {
        let held = self.hold_call(arguments.len());
        let context = Arc::clone(self);
        let call = async move {
            let held = held?;
            // Of a batch of calls that are polled in one go, a run that is over begins no more.
            if held.context.cancel.is_cancelled() {
                return Err(over());
            }
            tokio::select! {
                biased;
                result = held.context.call_tool(&held, name, arguments) => {
                    held.note_failure(&result);
                    result
                }
                () = held.context.cancel.cancelled() => Err(over()),
            }
        };
        context.in_runtime(call)
    }

    /// Calls a tool as [`call`](Self::call) does and returns its own result, for a run without a
    /// script. What hooks change of the value changes the result.
    ///
    /// Ends at the run's deadline, which no watchdog observes here.
    pub(crate) async fn call_alone(
        self: &Arc<Self>,
        name: ToolName,
        arguments: String,
    ) -> Result<ToolResult, ToolError> {
        let mut held = self.hold_call(arguments.len())?;
        held.answer = Some(Mutex::default());
        let call = async {
            tokio::select! {
                biased;
                result = self.call_tool(&held, name, arguments) => result,
                () = self.cancel.cancelled() => Err(over()),
                () = self.passed_deadline() => Err(self.too_late()),
            }
        };
        let result = Arc::clone(self).in_runtime(call).await;
        held.note_failure(&result);
        let answer = held.answer.as_ref().and_then(|answer| answer.lock().take());
        match (result, answer) {
            (result, Some(answer)) if answer.value == result => Ok(answer.result),
            (Ok(value), answer) => {
                let schema = answer.as_ref().and_then(|answer| answer.output_schema.as_ref());
                Ok(ToolResult::with_value(answer.as_ref().map(|answer| &answer.result), schema, &value))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The contents of a resource that belongs to a tool which may be called, or the list of
    /// resources, for a run without a script. An allow list need not name the method; deny lists are
    /// obeyed. As [`request`](Self::request) else, and ends at the run's deadline.
    pub(crate) async fn read_alone(
        self: &Arc<Self>,
        server: &str,
        request: ServerRequest,
    ) -> Result<Json, ToolError> {
        let held = self.hold_call(0)?;
        let call = async {
            tokio::select! {
                biased;
                result = self.send_request(&held, server, request, Permission::OfTool) => result,
                () = self.cancel.cancelled() => Err(over()),
                () = self.passed_deadline() => Err(self.too_late()),
            }
        };
        let result = Arc::clone(self).in_runtime(call).await;
        held.note_failure(&result);
        result
    }

    /// Completes at the run's deadline, which moves while a prompt is open, and when an operator lowers the limits.
    async fn passed_deadline(&self) {
        let mut lowered = self.environment.limits.changes();
        loop {
            lowered.mark_unchanged();
            let deadline = self.deadline();
            if Instant::now() >= deadline {
                return;
            }
            // A closed channel means that the executor has ended, and with it the run.
            let _ = tokio::time::timeout_at(deadline.into(), lowered.changed()).await;
        }
    }

    fn too_late(&self) -> ToolError {
        let message = format!("no answer within {} ms", self.limits().wall_time.as_millis());
        ToolError::new(ToolErrorCode::ToolTimeout, message)
    }

    /// Sends a request for something other than a tool to a server and returns the answer as JSON
    /// text. Counts as a call. The policy treats the method as the name of a tool, so lists that
    /// name individual tools do not allow it.
    ///
    /// Unlike [`call`](Self::call) it does not end with the run: the caller stops polling it.
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
        let held = self.hold_call(argument_bytes)?;
        let result = self.send_request(&held, server, request, Permission::OfMethod).await;
        held.note_failure(&result);
        result.map(Json::into_text)
    }

    async fn send_request(
        &self,
        held: &HeldCall,
        server: &str,
        request: ServerRequest,
        permission: Permission,
    ) -> Result<Json, ToolError> {
        let in_force = self.in_force();
        let (server, dispatcher) = in_force
            .catalog
            .dispatcher(server)
            .ok_or_else(|| self.unknown_server(&in_force.catalog, server))?;
        let call = Call { server, tool: request.method(), argument_bytes: held.argument_bytes };
        match permission {
            Permission::OfMethod => self.check_policy(call.server, call.tool)?,
            Permission::OfTool | Permission::Granted => {
                if !in_force.may_permit_server(call.server) || in_force.denies(call.server, call.tool) {
                    return Err(denied(call.server, call.tool));
                }
            }
        }
        let parameters = request.parameters();
        let send = async |parameters: Map<String, Value>| {
            let request = request.with_parameters(parameters)?;
            let parameters = request.parameters();
            let decided = Decided { by: Arc::clone(&in_force), call, tool: None, permission, host: None };
            let reason = in_force.asks(call.server, call.tool, Effects::OF_REQUESTS);
            let answer = async |_parameters, trace, sent| {
                let name = Arc::clone(server);
                let skill = match &request {
                    ServerRequest::ReadResource { uri } if uri.starts_with(SKILL_SCHEME) => Some(uri.clone()),
                    _ => None,
                };
                let mut context = RequestContext::new(self.call_deadline());
                context.cancel = self.cancel.clone();
                (context.trace, context.sent) = (trace, sent);
                let value = dispatcher.request(name, request, context).await?;
                self.check_result_bytes("the answer", value.text().len())?;
                if let Some(uri) = skill {
                    self.check_skill(&in_force, server, &uri, &value)?;
                }
                Ok(value)
            };
            let parameters = ExactArguments { tree: parameters, numbers: Vec::new() };
            self.send(held, decided, reason, parameters, answer).await
        };
        self.with_hooks(call, parameters, send).await
    }

    /// Sends a request of `fetch` to a host that is granted: a call of the server [`FETCH`], with
    /// approval if rules ask for it. `shown` is what hooks and approvers see; changes that hooks
    /// make to it have no effect.
    pub(super) async fn send_to_host(
        &self,
        held: &HeldCall,
        host: &HostRequest<'_>,
        shown: Map<String, Value>,
        send: impl AsyncFnOnce() -> Result<Json, ToolError>,
    ) -> Result<Json, ToolError> {
        let in_force = self.in_force();
        let call = Call { server: FETCH, tool: host.name, argument_bytes: held.argument_bytes };
        if [host.name, host.host].iter().any(|name| in_force.denies(FETCH, name)) {
            return Err(denied(FETCH, host.name));
        }
        let reason = in_force
            .asks(FETCH, host.name, host.effects)
            .or_else(|| in_force.asks(FETCH, host.host, host.effects));
        let send = async |shown: Map<String, Value>| {
            let decided =
                Decided { by: in_force, call, tool: None, permission: Permission::Granted, host: Some(host) };
            let shown = ExactArguments { tree: shown, numbers: Vec::new() };
            self.send(held, decided, reason, shown, async |_shown, _trace, _sent| send().await).await
        };
        self.with_hooks(call, shown, send).await
    }

    /// Compares a skill with the pinned one. A line of the output says that it differs.
    fn check_skill(
        &self,
        in_force: &ToolsInForce,
        server: &str,
        uri: &str,
        answer: &Json,
    ) -> Result<(), ToolError> {
        // Only its contents: a server may say something else beside them each time.
        let contents = answer.field("contents").unwrap_or_else(|| answer.clone());
        if in_force.catalog.check_skill(server, uri, contents.text())? == SkillPin::Different {
            let shown = visible(&preview(uri, MAX_SHOWN_URI));
            self.log(
                LogLevel::Warn,
                format!(
                    "the skill `{shown}` of `{server}` is not the one that was pinned when it was first read"
                ),
            );
        }
        Ok(())
    }

    /// Counts a call, and counts it as unfinished until the returned value is dropped.
    pub(super) fn hold_call(self: &Arc<Self>, argument_bytes: usize) -> Result<HeldCall, ToolError> {
        let counted = self.count_at_callers();
        let held =
            counted.and_then(|()| self.hold(argument_bytes, |ledger| ledger.count_call(&self.limits())));
        held.inspect_err(|error| self.count_refusal(None, error))
    }

    /// Counts a call that failed before it was sent, unless that is because the run is over.
    fn count_refusal(&self, call: Option<u64>, error: &ToolError) {
        if error.code == ToolErrorCode::Cancelled {
            return;
        }
        self.ledger.lock().count_refused();
        if self.observation().is_on() {
            let (server, tool) = (error.server.as_deref(), error.tool.as_deref());
            let names = server.zip(tool).filter(|_| error.code == ToolErrorCode::ToolDenied);
            let rule = names.and_then(|(server, tool)| self.in_force().refusing_rule(server, tool));
            let rule = rule.as_deref();
            self.observation()
                .emit(|| RunEvent::Refused(Refused { call, server, tool, code: error.code, rule }));
        }
    }

    /// As [`hold_call`](Self::hold_call), for an operation that does not count as a call.
    pub(crate) fn hold_state_call(self: &Arc<Self>, argument_bytes: usize) -> Result<HeldCall, ToolError> {
        self.hold(argument_bytes, |_ledger| Ok(0))
    }

    fn hold(
        self: &Arc<Self>,
        argument_bytes: usize,
        count: impl FnOnce(&mut Ledger) -> Result<u64, ToolError>,
    ) -> Result<HeldCall, ToolError> {
        let mut ledger = self.ledger.lock();
        // A script that is being stopped may still run for a moment; its calls are refused.
        if ledger.is_over() || self.cancel.is_cancelled() {
            return Err(over());
        }
        let number = count(&mut ledger)?;
        ledger.hold(argument_bytes, &self.limits())?;
        Ok(HeldCall {
            context: Arc::clone(self),
            number,
            argument_bytes,
            made: Instant::now(),
            is_made: AtomicBool::new(false),
            answer: None,
        })
    }

    async fn call_tool(&self, held: &HeldCall, name: ToolName, arguments: String) -> Result<Json, ToolError> {
        let resolved = self.resolve(name).await?;
        self.check_policy(&resolved.server, &resolved.tool)?;
        let resolved = self.present(resolved).await?;
        if self.environment.hooks.is_empty() {
            return self.call_resolved(held, resolved, &arguments).await;
        }
        let (server, tool) = (Arc::clone(&resolved.server), Arc::clone(&resolved.tool));
        let call = Call { server: &server, tool: &tool, argument_bytes: held.argument_bytes };
        let exact = numbers::exact_numbers(&arguments);
        let arguments = parse_arguments(&arguments).map_err(|error| error.for_tool(&server, &tool))?;
        let send = async |arguments: Map<String, Value>| {
            let arguments = numbers::with_exact_numbers(Value::Object(arguments).to_string(), &exact);
            self.call_resolved(held, resolved, &arguments).await
        };
        self.with_hooks(call, arguments, send).await
    }

    /// Calls the hooks before and after `send`, which gets the arguments that the hooks leave.
    async fn with_hooks(
        &self,
        call: Call<'_>,
        arguments: Map<String, Value>,
        send: impl AsyncFnOnce(Map<String, Value>) -> Result<Json, ToolError>,
    ) -> Result<Json, ToolError> {
        let hooks = &self.environment.hooks;
        if hooks.is_empty() {
            let value = send(arguments).await?;
            self.note_returned(call, &value, None);
            return Ok(value);
        }
        let mut hooked = HookedCall {
            server: call.server.to_owned(),
            tool: call.tool.to_owned(),
            arguments,
            script: self.script.name.clone(),
            client: self.script.client.clone(),
            is_dry_run: self.script.is_dry_run,
        };
        let (called, permitted) = hooks::before(hooks, &mut hooked).await;
        let mut result = match permitted {
            Ok(()) => send(hooked.arguments.clone()).await,
            Err(error) => Err(error),
        }
        .map_err(|error| error.for_tool(call.server, call.tool));
        hooks::after(hooks, called, &hooked, &mut result).await;
        let value = result.map_err(|error| error.for_tool(call.server, call.tool))?;
        self.check_result_bytes("the result", value.text().len())?;
        self.note_returned(call, &value, None);
        Ok(value)
    }

    /// Keeps the shape of a value that the script receives. `shape` is its shape, if it is known.
    fn note_returned(&self, call: Call<'_>, value: &Json, shape: Option<Shape>) {
        let is_wanted = self.ledger.lock().wants_shape(call.server, call.tool);
        if is_wanted {
            let shape = shape.unwrap_or_else(|| Shape::from_text(value));
            self.ledger.lock().add_shape(call.server, call.tool, shape);
        }
    }

    /// The same for the result of a tool, unless there are hooks: they may change what the script
    /// receives, so it is noted after them.
    fn note_result(&self, call: Call<'_>, value: &Json, shape: Option<Shape>) {
        if self.environment.hooks.is_empty() {
            self.note_returned(call, value, shape);
        }
    }

    /// What the calls have come to so far.
    pub(crate) fn call_facts(&self) -> CallFacts {
        self.ledger.lock().facts()
    }

    /// Whether a value that the script received has a field of this name, at any level.
    pub(crate) fn has_returned_field(&self, name: &str) -> bool {
        self.ledger.lock().has_returned_field(name)
    }

    /// Checks the arguments, then sends the call, or plans it in a dry run.
    async fn call_resolved(
        &self,
        held: &HeldCall,
        resolved: ResolvedTool,
        arguments: &str,
    ) -> Result<Json, ToolError> {
        let exact = numbers::exact_numbers(arguments);
        let (resolved, arguments) = self.check_arguments(resolved, arguments).await?;
        let argument_bytes = held.argument_bytes;
        let call = Call { server: &resolved.server, tool: &resolved.tool, argument_bytes };
        // Checked again, because in a new tool list the same name may refer to another tool.
        let in_force = self.in_force();
        if !in_force.permits(call.server, call.tool) {
            return Err(denied(call.server, call.tool));
        }
        let mut reason = None;
        let is_ordinary = resolved.kind() == ToolKind::Ordinary;
        if self.script.is_dry_run || in_force.may_ask() || !is_ordinary {
            let effects = effects_of(&in_force, &resolved);
            if self.script.is_dry_run && effects.writes {
                let planned = self.plan(held, &resolved, call, exact_json(&arguments, &exact));
                return planned.map_err(|error| error.for_tool(call.server, call.tool));
            }
            reason = asks_about(&in_force, &resolved, effects);
        }
        let permission = Permission::OfMethod;
        let decided = Decided { by: in_force, call, tool: Some(&resolved), permission, host: None };
        let dispatch =
            async |arguments, trace, sent| self.dispatch(held, call, &resolved, arguments, trace, sent).await;
        self.send(held, decided, reason, ExactArguments { tree: arguments, numbers: exact }, dispatch).await
    }

    /// Requests approval if there is a reason to, waits for a slot, and records the call and what
    /// `answer` becomes, which is called with the arguments directly before the call is sent.
    async fn send(
        &self,
        held: &HeldCall,
        decided: Decided<'_>,
        reason: Option<AskReason>,
        arguments: ExactArguments,
        answer: impl AsyncFnOnce(
            ExactArguments,
            Option<TraceContext>,
            Option<SentSlot>,
        ) -> Result<Json, ToolError>,
    ) -> Result<Json, ToolError> {
        let call = decided.call;
        let question = reason.map(|reason| Question {
            number: held.number,
            call,
            tool: decided.tool,
            arguments: &arguments.tree,
            exact: &arguments.numbers,
            recorded: decided.host.map_or(&arguments.tree, |host| &host.recorded),
            reason,
        });
        let approved = match question {
            Some(question) => Some(self.approved(question).await?),
            None => None,
        };
        // A stored script has no slot while it runs: its own calls need slots. `run::nested` bounds it.
        let _slot = match decided.tool.map(ResolvedTool::kind) {
            Some(ToolKind::Script) => None,
            _ => Some(self.slots.acquire().await.map_err(|_closed| over())?),
        };
        if let Err(error) = self.check_still_permitted(&decided, approved.is_some()) {
            if let Some(record) = approved {
                self.end_record(record, ToolCallStatus::Failed(error.code), 0);
            }
            return Err(error);
        }
        let observed = ObservedCall::new(self.observation(), held.number, call.server, call.tool);
        let trace = match self.before_sending(held, &decided, &arguments.tree, approved.is_some()).await {
            Ok(trace) => trace,
            Err(error) => {
                if let Some(record) = approved {
                    self.end_record(record, ToolCallStatus::Failed(error.code), 0);
                }
                let refused = Err(error.for_tool(call.server, call.tool));
                observed.end(&refused);
                return refused;
            }
        };
        let record = self.record_sent(approved, call);
        held.is_made.store(true, Ordering::Relaxed);
        let result = answer(arguments, trace, observed.slot()).await;
        observed.end(&result);
        self.record_result(held, record, &result);
        result.map_err(|error| error.for_tool(call.server, call.tool))
    }

    /// Tells the observers that the call is about to be sent, and waits for them. Returns its trace context.
    async fn before_sending(
        &self,
        held: &HeldCall,
        decided: &Decided<'_>,
        arguments: &Map<String, Value>,
        is_approved: bool,
    ) -> Result<Option<TraceContext>, ToolError> {
        if !self.observation().is_on() {
            return Ok(None);
        }
        let Call { server, tool, argument_bytes } = decided.call;
        let in_force = self.in_force();
        let rule = match decided.host {
            Some(_) => "grant".to_owned(),
            None => in_force.permitting_rule(server, tool),
        };
        let remote = match decided.host {
            Some(host) => Some(host.remote.clone()),
            None => {
                let dispatcher = in_force.catalog.dispatcher(server);
                dispatcher.and_then(|(name, dispatcher)| dispatcher.details(name).remote)
            }
        };
        let arguments = decided.host.map_or(arguments, |host| &host.recorded);
        let sending = Sending {
            call: held.number,
            server,
            tool,
            argument_bytes,
            arguments: Arguments::new(arguments),
            rule: &rule,
            approver: is_approved.then_some(self.approver_kind),
            waited: held.made.elapsed(),
            remote,
        };
        self.observation().before_effect(RunEvent::Sending(sending)).await
    }

    /// Checks a decision again if the configuration has changed while the call waited for an
    /// approval or a slot.
    fn check_still_permitted(&self, decided: &Decided<'_>, is_approved: bool) -> Result<(), ToolError> {
        let Decided { by, call, tool, permission, host } = decided;
        let now = self.in_force();
        if now.is_same_as(by) {
            return Ok(());
        }
        let (server, tool_name) = (call.server, call.tool);
        let is_permitted = match permission {
            Permission::OfMethod => now.permits(server, tool_name),
            Permission::OfTool => now.may_permit_server(server) && !now.denies(server, tool_name),
            Permission::Granted => !now.denies(server, tool_name),
        };
        if !is_permitted {
            return Err(denied(server, tool_name));
        }
        if host.is_none() && now.catalog.server_name(server).is_none() {
            return Err(self.unknown_server(&now.catalog, server));
        }
        let effects = match (tool, host) {
            (_, Some(host)) => host.effects,
            (Some(tool), None) => effects_of(&now, tool),
            (None, None) => now.effects(server, tool_name, Effects::OF_REQUESTS),
        };
        let is_same_server = tool.is_none_or(|tool| now.catalog.has_server_of(tool));
        let asks = || match tool {
            Some(tool) => asks_about(&now, tool, effects),
            None => now.asks(server, tool_name, effects),
        };
        let needs_approval = !is_approved && asks().is_some();
        if !is_same_server || needs_approval || (self.script.is_dry_run && effects.writes) {
            let message = format!(
                "the configuration of `{server}.{tool_name}` changed while the call waited; call it again"
            );
            return Err(ToolError::new(ToolErrorCode::ToolDenied, message).for_tool(server, tool_name));
        }
        Ok(())
    }

    /// The permitted tool with this name.
    ///
    /// # Errors
    ///
    /// As [`Catalog::resolve`](crate::tools::catalog::Catalog::resolve); `ToolDenied` for a tool
    /// that the run may not call.
    pub(crate) async fn permitted_tool(&self, name: ToolName) -> Result<ResolvedTool, ToolError> {
        let tool = self.resolve(name).await?;
        if self.permits(&tool.server, &tool.tool) { Ok(tool) } else { Err(denied(&tool.server, &tool.tool)) }
    }

    /// The permitted tool with this name, or `None` if there is none.
    pub(crate) async fn tool(&self, name: ToolName) -> Result<Option<ResolvedTool>, ToolError> {
        match self.permitted_tool(name).await {
            Ok(tool) => Ok(Some(tool)),
            Err(error) if matches!(error.code, ToolErrorCode::ToolNotFound | ToolErrorCode::ToolDenied) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn resolve(&self, name: ToolName) -> Result<ResolvedTool, ToolError> {
        let (in_force, deadline) = (self.in_force(), self.latest_deadline());
        let catalog = &in_force.catalog;
        match name {
            ToolName::Pair { server, tool } => {
                // Checked first, so that a server that the policy denies is not started just to
                // find that out.
                if let Some(server) = catalog.server_name(&server)
                    && (!in_force.may_permit_server(server) || in_force.denies(server, &tool))
                {
                    return Err(denied(server, &tool));
                }
                catalog.resolve(&server, &tool, deadline, &self.suggestions).await
            }
            ToolName::Full(name) => {
                let is_out_of_reach = |server: &str, tool: &str| {
                    let server = catalog.server_name(server);
                    server.is_some_and(|server| {
                        !in_force.may_permit_server(server) || in_force.denies(server, tool)
                    })
                };
                catalog.resolve_full_name(&name, is_out_of_reach, deadline, &self.suggestions).await
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
        let in_force = self.in_force();
        let again = in_force.catalog.resolve_again(&resolved, self.latest_deadline(), &self.suggestions);
        let Ok(Some(again)) = again.await else {
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
        held: &HeldCall,
        call: Call<'_>,
        resolved: &ResolvedTool,
        arguments: ExactArguments,
        trace: Option<TraceContext>,
        sent: Option<SentSlot>,
    ) -> Result<Json, ToolError> {
        let in_force = self.in_force();
        let caller = (resolved.kind() != ToolKind::Ordinary).then(|| held.context.as_caller(trace.as_ref()));
        let request = ToolRequest {
            server: Arc::clone(&resolved.server),
            tool: Arc::clone(&resolved.tool),
            arguments: arguments.tree,
            exact_numbers: arguments.numbers,
            deadline: self.call_deadline(),
            cancel: self.cancel.clone(),
            on_progress: self.progress_listener(resolved),
            on_elicitation: self.on_elicitation.clone(),
            trace,
            sent,
            caller,
        };
        let result = resolved.dispatcher().call(request).await?;
        // A stored list may be older than the server's output schema, and the value must not depend
        // on its age. An error leaves the list that is there.
        let again = if result.may_be_wrapped() {
            let again = in_force.catalog.resolve_again(resolved, self.latest_deadline(), &self.suggestions);
            again.await.ok().flatten()
        } else {
            None
        };
        let resolved = again.as_ref().unwrap_or(resolved);
        let output_schema = resolved.definition().output_schema.as_ref();
        if held.answer.is_some() {
            self.check_result_bytes("the result", result.bytes())?;
        }
        let kept = held.answer.is_some().then(|| result.clone());
        let value = result.into_value(output_schema).map_err(|error| self.bounded(error));
        if let (Some(answer), Some(result)) = (&held.answer, kept) {
            // As the error will have become on its way.
            let value = value.clone().map_err(|error| error.for_tool(call.server, call.tool));
            let output_schema = output_schema.cloned();
            *answer.lock() = Some(ToolAnswer { result, value, output_schema });
        }
        let value = value?;
        self.check_result_bytes("the result", value.text().len())?;
        self.note_result(call, &value, resolved.observe(&value));
        Ok(value)
    }

    /// When a call must have ended, also if nothing cancels it. It is a little after the run's end,
    /// which cancels its calls: so a run that ends because its time is over says so, and not that
    /// its last call took too long.
    fn call_deadline(&self) -> Instant {
        self.latest_deadline() + AFTER_THE_RUN
    }

    /// Truncates an error message of a tool that is larger than a result may be.
    fn bounded(&self, mut error: ToolError) -> ToolError {
        let max = self.limits().result_bytes;
        if error.message.len() > max {
            error.message = preview_bytes(&error.message, max.min(MAX_CUT_MESSAGE_BYTES)).into_owned();
        }
        if error.content.as_ref().is_some_and(|content| content.text().len() > max) {
            error.content = None;
        }
        error
    }

    /// Records a call that a dry run does not make, and returns a sample of the tool's result.
    fn plan(
        &self,
        held: &HeldCall,
        resolved: &ResolvedTool,
        call: Call<'_>,
        arguments: Json,
    ) -> Result<Json, ToolError> {
        let sample = resolved.sample()?;
        self.check_result_bytes("the result", sample.text().len())?;
        let record = self.begin_record(call, ToolCallStatus::Simulated);
        self.end_record(record, ToolCallStatus::Simulated, sample.text().len());
        held.is_made.store(true, Ordering::Relaxed);
        let (server, tool) = (call.server, call.tool);
        self.observation().emit(|| RunEvent::Simulated {
            call: held.number,
            server,
            tool,
            arguments: arguments.text(),
        });
        self.ledger.lock().plan(PlannedCall {
            server: call.server.to_owned(),
            tool: call.tool.to_owned(),
            // As they would be sent, which differs from how the script wrote them.
            arguments,
        });
        self.note_result(call, &sample, None);
        Ok(sample)
    }

    /// Returns a listener that forwards the tool's progress reports, if the run has a progress
    /// listener.
    fn progress_listener(&self, resolved: &ResolvedTool) -> Option<ProgressListener> {
        let listener = Arc::clone(self.script.on_progress.as_ref()?);
        let (server, tool) = (Arc::clone(&resolved.server), Arc::clone(&resolved.tool));
        Some(Arc::new(move |progress| {
            listener(&CallProgress { server: server.to_string(), tool: tool.to_string(), progress });
        }))
    }

    pub(crate) fn begin_record(&self, call: Call<'_>, status: ToolCallStatus) -> RecordId {
        self.ledger.lock().begin(call, status)
    }

    /// Records that a call is sent now. `approved` is its existing record, if it needed an
    /// approval.
    fn record_sent(&self, approved: Option<RecordId>, call: Call<'_>) -> RecordId {
        let Some(record) = approved else { return self.begin_record(call, ToolCallStatus::InFlight) };
        self.ledger.lock().send_approved(record);
        record
    }

    fn record_result(&self, held: &HeldCall, record: RecordId, result: &Result<Json, ToolError>) {
        let bytes = result.as_ref().map_or(0, |value| value.text().len());
        let is_unsent = result.as_ref().is_err_and(|error| error.code.is_before_sending());
        held.is_made.store(!is_unsent, Ordering::Relaxed);
        {
            let mut ledger = self.ledger.lock();
            ledger.count_result(bytes);
            if is_unsent {
                ledger.uncount_sent();
            }
        }
        let status = match result {
            Ok(_) => ToolCallStatus::Ok,
            Err(error) => ToolCallStatus::Failed(error.code),
        };
        self.end_record(record, status, bytes);
    }

    pub(crate) fn end_record(&self, record: RecordId, status: ToolCallStatus, result_bytes: usize) {
        let listener = self.script.on_call.as_ref();
        let ended = {
            let mut ledger = self.ledger.lock();
            let ended = ledger.end(record, status, result_bytes);
            listener.zip(ended.cloned())
        };
        // The listener may call functions that lock the ledger.
        if let Some((listener, record)) = ended {
            listener(&record);
        }
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
        Err(TreeError::NumberOutOfRange(_)) => {
            Err(invalid("the arguments have a number beyond 10^308: send it as text".to_owned()))
        }
        // `JSON.stringify` produces valid JSON except for lone surrogates and too many levels of
        // nesting.
        Err(TreeError::Invalid(error)) => Err(invalid(format!("the arguments are not valid JSON: {error}"))),
    }
}
