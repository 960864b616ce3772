//! Observers of runs: code of this crate that receives the events of runs, for the audit trail and
//! traces. Embedders add a [`CallHook`](crate::run::hooks::CallHook) instead, which can change
//! calls and sees neither refusals nor approvals.
//!
//! Every event is emitted at one place, beside the decision or the measurement that it reports. Times
//! are durations of the monotonic clock.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use crate::json::Json;
use crate::run::entered::entered;
use crate::run::grants::RunGrants;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult, LogLevel, Refusal};
use crate::run::script::{Language, Script};
use crate::text::ids::short_random_id;
use crate::tools::approval::AskReason;
use crate::tools::{RemoteServer, SentRequest, ToolError, ToolErrorCode, TraceContext};

/// Hears what runs do.
pub(crate) trait RunObserver: Send + Sync + 'static {
    /// Called with each event of a run, on the thread where it happens: mostly the script's. Must not
    /// block, and takes microseconds at most.
    ///
    /// The calls that are in flight when a run ends may be reported after its end.
    fn observe(&self, run: &Arc<ObservedRun>, event: &RunEvent<'_>);

    /// Called with what happens to tool definitions, which no run causes. Must not block.
    fn observe_definitions(&self, _event: &DefinitionEvent<'_>) {}

    /// Called with each request of a client when it has been answered. Must not block.
    fn observe_request(&self, _request: &ClientRequest<'_>) {}

    /// Called when the tokens of a server's clients have changed. Must not block.
    fn observe_tokens(&self, _event: &TokenEvent<'_>) {}

    /// Called with a [`RunEvent::Started`], [`RunEvent::Sending`] or [`RunEvent::ModelSending`] that was
    /// observed, directly before the script is run or the request is sent, and awaited. Returns the trace
    /// context of what the request causes, if there is one.
    ///
    /// # Errors
    ///
    /// Refuses the request: the script gets this error, and nothing is sent. Or the run: nothing of it
    /// happens.
    fn before_effect<'a>(
        &'a self,
        _run: &'a Arc<ObservedRun>,
        _event: &'a RunEvent<'a>,
    ) -> BoxFuture<'a, Result<Option<TraceContext>, ToolError>> {
        ready(Ok(None)).boxed()
    }
}

/// The observers of an executor, in order. An empty list costs nothing.
#[derive(Clone, Default)]
pub(crate) struct Observers(Arc<[Arc<dyn RunObserver>]>);

impl fmt::Debug for Observers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Observers").field(&self.0.len()).finish()
    }
}

impl From<Vec<Arc<dyn RunObserver>>> for Observers {
    fn from(observers: Vec<Arc<dyn RunObserver>>) -> Self {
        Self(observers.into())
    }
}

impl Observers {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports what happened to tool definitions.
    pub(crate) fn definitions(&self, event: &DefinitionEvent<'_>) {
        for observer in self.0.iter() {
            observer.observe_definitions(event);
        }
    }

    /// Reports a client's request that has been answered.
    pub(crate) fn request(&self, request: &ClientRequest<'_>) {
        for observer in self.0.iter() {
            observer.observe_request(request);
        }
    }

    /// Reports what happened to the tokens of a server's clients.
    pub(crate) fn tokens(&self, event: &TokenEvent<'_>) {
        for observer in self.0.iter() {
            observer.observe_tokens(event);
        }
    }

    /// Reports that a run was requested, and waits for all observers, any of which may
    /// [refuse](ObservedStart::refusal) it. Its end is reported when the returned value is
    /// [finished](ObservedStart::finish) or dropped.
    pub(crate) async fn start(
        &self,
        script: &Script,
        language: Option<Language>,
        limits: &Limits,
        grants: &RunGrants,
        runtime: &Handle,
    ) -> ObservedStart {
        if self.is_empty() {
            return ObservedStart { observation: Observation::none(), refusal: None, is_finished: true };
        }
        let run = ObservedRun {
            // Without random numbers runs cannot be told apart by their ids; the times still do.
            id: short_random_id().unwrap_or_default(),
            script: script.name.clone(),
            language,
            client: script.client.clone(),
            client_name: script.client_name.clone(),
            is_dry_run: script.is_dry_run,
            trace: script.trace.clone(),
            started: Instant::now(),
        };
        let observation = Observation(Some((self.clone(), Arc::new(run))));
        let input_bytes = script.input.as_ref().map_or(0, |input| input.text().len());
        let mut start = ObservedStart { observation, refusal: None, is_finished: false };
        let started = RunEvent::Started { source: &script.source, limits, grants, input_bytes };
        let refused = entered(runtime, start.observation.before_effect(started)).await;
        start.refusal = refused.err();
        start
    }
}

/// A run, as every event of it refers to it.
#[derive(Debug)]
pub(crate) struct ObservedRun {
    /// 16 random letters, which cannot be guessed.
    pub(crate) id: String,
    /// The script's name, as in stack traces.
    pub(crate) script: String,
    /// `None` for a call without a script.
    pub(crate) language: Option<Language>,
    /// The client that requested the run, as [`Script::client`] names it.
    pub(crate) client: Option<String>,
    /// What that client calls itself: name and version. Untrusted.
    pub(crate) client_name: Option<String>,
    pub(crate) is_dry_run: bool,
    /// The span that has caused it.
    pub(crate) trace: Option<TraceContext>,
    /// When the run was requested.
    pub(crate) started: Instant,
}

/// A request of a client that has been answered. What it ran is a run with events of its own.
pub(crate) struct ClientRequest<'a> {
    pub(crate) method: &'a str,
    /// The tool of a call.
    pub(crate) tool: Option<&'a str>,
    /// The id of the run that a request over REST names or is told. Untrusted.
    pub(crate) run_id: Option<&'a str>,
    /// As in [`ObservedRun::client`].
    pub(crate) client: &'a str,
    /// As in [`ObservedRun::client_name`].
    pub(crate) client_name: Option<&'a str>,
    /// Why it failed: the code of the answer's error, or the number of a JSON-RPC error.
    pub(crate) code: Option<&'a str>,
    pub(crate) duration: Duration,
}

/// What happens to the tokens of a server over HTTP, while it serves.
pub(crate) enum TokenEvent<'a> {
    /// Some were added or revoked. `in_force` counts those of this owner.
    Changed { owner: TokenOwner, added: usize, revoked: usize, in_force: usize },
    /// What was read cannot be used, so the last tokens stay in force.
    Refused { owner: TokenOwner, reason: &'a str },
}

/// Whose tokens they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenOwner {
    /// Of all clients of a server without tenants, which send the same one.
    Clients,
    /// Of the operator: of a server with tenants, or of a metrics page.
    Operator,
    /// Of the tenants.
    Tenants,
}

impl TokenOwner {
    /// As the audit trail says it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Operator => "operator",
            Self::Tenants => "tenants",
        }
    }
}

/// What happens in a run.
pub(crate) enum RunEvent<'a> {
    /// The run was requested. It may still wait for its engine and its turn.
    Started { source: &'a str, limits: &'a Limits, grants: &'a RunGrants, input_bytes: usize },
    /// The run is over. Without a result it was dropped by its caller, or the executor failed.
    Ended { result: Option<&'a ExecuteResult>, code: Option<ErrorCode>, duration: Duration },
    /// A call is about to be sent. [`RunEvent::Answered`] follows with the same number.
    Sending(Sending<'a>),
    /// A call that was about to be sent has ended.
    Answered(Answered<'a>),
    /// A dry run does not make a call.
    Simulated { call: u64, server: &'a str, tool: &'a str, arguments: &'a str },
    /// The script has printed a line that is kept for its result, or emitted a block: its JSON, without
    /// a level.
    Printed { level: Option<LogLevel>, text: &'a str },
    /// The script has asked which tools there are.
    Discovered(Discovered<'a>),
    /// A call of the script was not sent, or the limits of its server refused it.
    Refused(Refused<'a>),
    /// A call waits for the user's approval from now on.
    ApprovalAsked {
        call: u64,
        server: &'a str,
        tool: &'a str,
        arguments: Arguments<'a>,
        reason: &'a AskReason,
    },
    /// The approval was given or not.
    ApprovalAnswered(ApprovalAnswered<'a>),
    /// A request to a language model is about to be sent. [`RunEvent::ModelAnswered`] follows with the
    /// same number.
    ModelSending(ModelSending<'a>),
    /// The request to a language model has ended.
    ModelAnswered(ModelAnswered<'a>),
}

/// A call that is about to be sent.
pub(crate) struct Sending<'a> {
    /// Number of the call in its run, from 1. All events of a call have the same.
    pub(crate) call: u64,
    pub(crate) server: &'a str,
    /// The tool, or the method of a request for resources or prompts.
    pub(crate) tool: &'a str,
    /// Bytes of the arguments as the script wrote them.
    pub(crate) argument_bytes: usize,
    /// As they are sent.
    pub(crate) arguments: Arguments<'a>,
    /// The policy's rule that permits it.
    pub(crate) rule: &'a str,
    /// The kind of approver, if it needed an approval.
    pub(crate) approver: Option<ApproverKind>,
    /// How long it has waited since the script made it.
    pub(crate) waited: Duration,
    /// Where its server is; `None` for tools of this process.
    pub(crate) remote: Option<RemoteServer>,
}

/// A call that has ended.
pub(crate) struct Answered<'a> {
    pub(crate) call: u64,
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    /// The result, or why there is none: `Cancelled` if the run ended first.
    pub(crate) result: Result<&'a Json, ToolErrorCode>,
    /// The error's message.
    pub(crate) message: Option<&'a str>,
    /// The code of the JSON-RPC error with which the server answered, if it did.
    pub(crate) json_rpc_code: Option<i32>,
    /// What was sent, if it is known.
    pub(crate) sent: Option<&'a SentRequest>,
    /// From when it was sent.
    pub(crate) duration: Duration,
}

/// A question of the script about tools.
pub(crate) struct Discovered<'a> {
    /// `search`, `list` or `describe`.
    pub(crate) kind: &'static str,
    pub(crate) query: Option<&'a str>,
    pub(crate) server: Option<&'a str>,
    /// How many tools were found, or why none.
    pub(crate) found: Result<usize, ToolErrorCode>,
    pub(crate) duration: Duration,
}

/// A call that was refused.
pub(crate) struct Refused<'a> {
    /// `None` if it was refused before it was counted.
    pub(crate) call: Option<u64>,
    /// As far as they were resolved.
    pub(crate) server: Option<&'a str>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) code: ToolErrorCode,
    /// The policy's rule that refuses it, if it was the policy.
    pub(crate) rule: Option<&'a str>,
}

/// An answer to an approval prompt.
pub(crate) struct ApprovalAnswered<'a> {
    pub(crate) call: u64,
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) approver: ApproverKind,
    /// Why the call was not approved. `None` if it was.
    pub(crate) refusal: Option<Refusal>,
    /// How long the call waited for it.
    pub(crate) duration: Duration,
}

/// Whose approver was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApproverKind {
    /// The run's own: the user of the client that requested it.
    Client,
    /// The executor's: the user at the terminal, or code of the embedder.
    Executor,
    /// There is none.
    None,
}

impl ApproverKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Executor => "executor",
            Self::None => "none",
        }
    }
}

/// A request to a language model that is about to be sent.
pub(crate) struct ModelSending<'a> {
    /// Number of the request in its run, from 1.
    pub(crate) request: u64,
    /// Where it goes: the provider's name, or `client` for the client's sampling.
    pub(crate) provider: &'a str,
    pub(crate) model: Option<&'a str>,
    /// All messages as JSON text.
    pub(crate) messages: &'a str,
    pub(crate) system_prompt: Option<&'a str>,
}

/// A request to a language model that has ended.
pub(crate) struct ModelAnswered<'a> {
    pub(crate) request: u64,
    pub(crate) provider: &'a str,
    /// As the answer names it.
    pub(crate) model: Option<&'a str>,
    /// The answer's text, which is not kept of an answer in pieces, or the code of why there is none.
    pub(crate) result: Result<Option<&'a str>, &'a str>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) finish_reason: Option<&'a str>,
    /// What the content filter found, by kind.
    pub(crate) violations: &'a [&'a str],
    pub(crate) duration: Duration,
}

/// What happens to tool definitions.
pub(crate) enum DefinitionEvent<'a> {
    /// The definitions of a server's tools differ from the pinned ones since its last list.
    Changed { server: &'a str, tools: &'a [String] },
    /// The user has accepted the current definition of one tool, or of all.
    Accepted { server: &'a str, tool: Option<&'a str>, count: usize },
}

/// Arguments of a call, whose text is made when an observer first wants it.
pub(crate) struct Arguments<'a> {
    tree: &'a Map<String, Value>,
    text: OnceLock<Arc<str>>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(tree: &'a Map<String, Value>) -> Self {
        Self { tree, text: OnceLock::new() }
    }

    /// The argument `name`, if it is a string.
    pub(crate) fn string(&self, name: &str) -> Option<&'a str> {
        self.tree.get(name)?.as_str()
    }

    /// The arguments as JSON text, in the order in which they are sent.
    pub(crate) fn text(&self) -> Arc<str> {
        // A map of JSON values can always be serialized.
        let text = || serde_json::to_string(self.tree).unwrap_or_default().into();
        Arc::clone(self.text.get_or_init(text))
    }
}

/// The observers of one run.
#[derive(Clone)]
pub(crate) struct Observation(Option<(Observers, Arc<ObservedRun>)>);

impl Observation {
    /// An observation without observers.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Whether the run has observers.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Reports an event. It is constructed only if the run has observers.
    pub(crate) fn emit<'a>(&self, event: impl FnOnce() -> RunEvent<'a>) {
        let Some((observers, run)) = &self.0 else { return };
        let event = event();
        for observer in observers.0.iter() {
            observer.observe(run, &event);
        }
    }

    /// Reports that a run or a request is about to begin, and waits for all observers. Returns the trace
    /// context of what it causes; of two the later observer's counts.
    ///
    /// # Errors
    ///
    /// That of the first observer which refuses.
    pub(crate) async fn before_effect(&self, event: RunEvent<'_>) -> Result<Option<TraceContext>, ToolError> {
        let mut trace = None;
        let Some((observers, run)) = &self.0 else { return Ok(trace) };
        for observer in observers.0.iter() {
            observer.observe(run, &event);
        }
        for observer in observers.0.iter() {
            trace = observer.before_effect(run, &event).await?.or(trace);
        }
        Ok(trace)
    }
}

/// A run whose start was reported.
pub(crate) struct ObservedStart {
    observation: Observation,
    refusal: Option<ToolError>,
    is_finished: bool,
}

impl ObservedStart {
    pub(crate) fn observation(&self) -> &Observation {
        &self.observation
    }

    /// Why the run must not happen.
    pub(crate) fn refusal(&self) -> Option<&ToolError> {
        self.refusal.as_ref()
    }

    /// Reports the run's end. `Err` is for runs that have no result, because of the executor.
    pub(crate) fn finish(mut self, result: Result<&ExecuteResult, ErrorCode>) {
        let code = match result {
            Ok(result) => result.error().map(|error| error.code),
            Err(code) => Some(code),
        };
        self.end(result.ok(), code);
    }

    fn end(&mut self, result: Option<&ExecuteResult>, code: Option<ErrorCode>) {
        if std::mem::replace(&mut self.is_finished, true) {
            return;
        }
        let duration = self.observation.0.as_ref().map(|(_, run)| run.started.elapsed());
        self.observation.emit(|| RunEvent::Ended { result, code, duration: duration.unwrap_or_default() });
    }
}

impl Drop for ObservedStart {
    /// The caller has dropped the run.
    fn drop(&mut self) {
        self.end(None, Some(ErrorCode::Cancelled));
    }
}

/// Where a dispatcher says what it has sent.
pub(crate) type SentSlot = Arc<OnceLock<SentRequest>>;

/// A call whose sending was reported. Its end is reported once, also if its future is dropped.
pub(crate) struct ObservedCall<'a> {
    observation: &'a Observation,
    call: u64,
    server: &'a str,
    tool: &'a str,
    /// `None` once its end is reported, and without observers.
    sent: Option<Instant>,
    /// What the dispatcher has sent.
    slot: Option<SentSlot>,
}

impl<'a> ObservedCall<'a> {
    pub(crate) fn new(observation: &'a Observation, call: u64, server: &'a str, tool: &'a str) -> Self {
        let sent = observation.is_on().then(Instant::now);
        Self { observation, call, server, tool, sent, slot: sent.map(|_| SentSlot::default()) }
    }

    /// Where the dispatcher says what it has sent.
    pub(crate) fn slot(&self) -> Option<SentSlot> {
        self.slot.clone()
    }

    pub(crate) fn end(mut self, result: &Result<Json, ToolError>) {
        let error = result.as_ref().err();
        self.report(result.as_ref().map_err(|error| error.code), error);
    }

    fn report(&mut self, result: Result<&Json, ToolErrorCode>, error: Option<&ToolError>) {
        let Some(sent) = self.sent.take() else { return };
        let message = error.map(|error| &*error.message);
        let json_rpc_code = error.and_then(|error| error.json_rpc_code);
        let (call, server, tool, duration) = (self.call, self.server, self.tool, sent.elapsed());
        let sent = self.slot.as_ref().and_then(|slot| slot.get());
        self.observation.emit(|| {
            let answered = Answered { call, server, tool, result, message, json_rpc_code, sent, duration };
            RunEvent::Answered(answered)
        });
    }
}

impl Drop for ObservedCall<'_> {
    /// The run has ended, or the script has given the call up.
    fn drop(&mut self) {
        self.report(Err(ToolErrorCode::Cancelled), None);
    }
}

/// A request to a language model whose sending was reported. Its end is reported once, also if its future
/// is dropped.
pub(crate) struct ObservedModelRequest {
    observation: Observation,
    request: u64,
    provider: Arc<str>,
    /// `None` before it is sent, once its end is reported, and without observers.
    sent: Option<Instant>,
}

impl ObservedModelRequest {
    pub(crate) fn new(observation: &Observation, request: u64, provider: &Arc<str>) -> Self {
        Self { observation: observation.clone(), request, provider: Arc::clone(provider), sent: None }
    }

    /// Reports that the request is about to be sent, and waits for the observers.
    ///
    /// # Errors
    ///
    /// That of the first observer which refuses.
    pub(crate) async fn send(
        &mut self,
        model: Option<&str>,
        messages: impl FnOnce() -> String,
        system_prompt: Option<&str>,
    ) -> Result<(), ToolError> {
        if !self.observation.is_on() {
            return Ok(());
        }
        self.sent = Some(Instant::now());
        let (request, provider, messages) = (self.request, &*self.provider, messages());
        let sending = ModelSending { request, provider, model, messages: &messages, system_prompt };
        self.observation.before_effect(RunEvent::ModelSending(sending)).await.map(drop)
    }

    pub(crate) fn end(&mut self, model: Option<&str>, end: ModelEnd<'_>) {
        let Some(sent) = self.sent.take() else { return };
        self.observation.emit(|| {
            RunEvent::ModelAnswered(ModelAnswered {
                request: self.request,
                provider: &self.provider,
                model,
                result: end.result,
                input_tokens: end.tokens.map(|(input, _)| input),
                output_tokens: end.tokens.map(|(_, output)| output),
                finish_reason: end.finish_reason,
                violations: end.violations,
                duration: sent.elapsed(),
            })
        });
    }
}

/// How a request to a language model has ended.
pub(crate) struct ModelEnd<'a> {
    pub(crate) result: Result<Option<&'a str>, &'a str>,
    /// Tokens of the prompt and of the answer, as the provider counts them.
    pub(crate) tokens: Option<(u64, u64)>,
    pub(crate) finish_reason: Option<&'a str>,
    pub(crate) violations: &'a [&'a str],
}

impl From<ToolErrorCode> for ModelEnd<'_> {
    fn from(code: ToolErrorCode) -> Self {
        Self { result: Err(code.as_str()), tokens: None, finish_reason: None, violations: &[] }
    }
}

impl Drop for ObservedModelRequest {
    /// The run has ended, or the script has given the answer up.
    fn drop(&mut self) {
        self.end(None, ToolErrorCode::Cancelled.into());
    }
}
