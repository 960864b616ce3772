//! The language models of one run: which it may ask, its budget, the calls in flight, and their record.

mod measured;
mod permitted;
pub(super) mod streams;
mod words;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use self::measured::MeasuredRequest;
use self::permitted::Permitted;
use crate::llm::budget::{Budget, Reservation, Wanted};
use crate::llm::setup::{LlmSetup, ProviderState};
use crate::llm::{
    ContentFilter, FilterMode, LlmAccess, ModelAnswer, ModelError, ModelErrorKind, ModelMessage,
    ModelRequest, ModelRole, NamedModel, Violations, estimate,
};
use crate::run::activity::{Activity, Busy, CHECK_INTERVAL, Watch};
use crate::run::clock::Pause;
use crate::run::errors::over;
use crate::run::observer::Observation;
use crate::run::observer::sent::{ModelEnd, ObservedModelRequest};
use crate::run::sampling::{
    CallNumber, ContentViolation, ModelCall, ModelCallStatus, ModelCalls, SamplingOptions, SamplingReport,
};
use crate::text::panic_message;
use crate::tools::{ToolError, ToolErrorCode};

/// How many checks in a row may find no progress of other answers before a waiting call is refused. High enough that a
/// script which works for some seconds between two pieces still reads its answer.
const MAX_IDLE_CHECKS: u32 = 10;

/// The language models of one run.
pub(super) struct RunModels {
    requested: SamplingOptions,
    /// The model of the client, if it offers one.
    client: Option<NamedModel>,
    shared: Arc<Shared>,
}

/// What a call needs until it ends. A streamed answer keeps it.
struct Shared {
    setup: Arc<LlmSetup>,
    budget: Arc<Budget>,
    activity: Arc<Activity>,
    calls: Mutex<ModelCalls>,
}

/// A provider that a call can use.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) model: NamedModel,
    /// Whether the client asks its own model, and perhaps its user.
    pub(super) is_client: bool,
}

/// How an answer reaches the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Whole,
    Pieces,
}

/// The budget of a call that has not begun.
pub(super) struct Reserved {
    reservation: Reservation,
    /// Tokens of the prompt, estimated.
    prompt: u64,
    busy: Busy,
}

impl RunModels {
    pub(super) fn new(setup: Arc<LlmSetup>, requested: SamplingOptions, client: Option<NamedModel>) -> Self {
        let rounds = setup.options.rounds_of_run(requested.max_rounds);
        let tokens = setup.options.tokens_of_run(requested.max_tokens);
        let budget = Budget::new(rounds, tokens);
        let shared = Shared { setup, budget, activity: Arc::default(), calls: Mutex::default() };
        Self { requested, client, shared: Arc::new(shared) }
    }

    /// Whether the run's clock may be paused, because a client asks its user.
    pub(super) fn may_pause(&self) -> bool {
        self.client.is_some() && self.is_enabled()
    }

    /// Whether the script may ask a model, if there is one.
    pub(super) fn is_enabled(&self) -> bool {
        match self.shared.setup.options.access {
            LlmAccess::Never => false,
            LlmAccess::Always => self.requested.enabled != Some(false),
            LlmAccess::OnRequest => self.requested.enabled == Some(true),
        }
    }

    /// The report of the run's calls; `None` if it made none.
    pub(super) fn report(&self) -> Option<SamplingReport> {
        self.shared.calls.lock().report(self.shared.budget.quota())
    }

    /// Reserves the budget of a call. If only the end of calls in flight can make room, waits for it. Answers that the
    /// script does not read make no room: if only they are in the way, and the script does not wait for tools either
    /// (`is_waiting`), the call is refused after some seconds. Dropping the future stops the wait.
    pub(super) async fn reserve(
        &self,
        request: &ModelRequest,
        may_shrink: bool,
        is_waiting: impl Fn() -> bool,
    ) -> Result<Reserved, ToolError> {
        let prompt = estimate::request_tokens(request, self.shared.budget.max_tokens());
        let wanted = Wanted { prompt, answer: request.max_tokens, may_shrink };
        let Shared { budget, activity, .. } = &*self.shared;
        let mut reserving = std::pin::pin!(budget.reserve(wanted));
        let mut watch = Watch::new(MAX_IDLE_CHECKS);
        let exceeded = loop {
            match tokio::time::timeout(CHECK_INTERVAL, &mut reserving).await {
                Ok(Ok(reservation)) => return Ok(Reserved { reservation, prompt, busy: activity.begin() }),
                Ok(Err(exceeded)) => break exceeded,
                Err(_elapsed) if watch.is_idle(activity, is_waiting()) => break budget.unread(),
                Err(_elapsed) => {}
            }
        };
        Err(ToolError::new(ToolErrorCode::ModelBudgetExceeded, exceeded.to_string()))
    }

    /// Begins a call of a model. All calls begin here and end in [`BegunCall::end`] or [`BegunCall::fail`].
    pub(super) fn begin(
        &self,
        candidate: &Candidate,
        request: &ModelRequest,
        reserved: Reserved,
        slot: OwnedSemaphorePermit,
        client: Option<(Pause, Duration)>,
        observation: &Observation,
    ) -> BegunCall {
        let (pause, time) = client.unzip();
        let Reserved { reservation, prompt, busy } = reserved;
        let round = u64::from(reservation.round);
        let default_model = candidate.model.default_model.as_deref();
        let model = request.model.as_deref().or(default_model).map(str::to_owned);
        let record = ModelCall::begin(&candidate.model.name, model.as_deref(), &reservation);
        BegunCall {
            shared: Arc::clone(&self.shared),
            name: Arc::clone(&candidate.model.name),
            model,
            number: self.shared.calls.lock().begin(record),
            prompt_tokens: prompt,
            started: Instant::now(),
            time: time.unwrap_or(self.shared.setup.options.call_time),
            answer_tokens: reservation.answer,
            reservation: Some(reservation),
            observed: ObservedModelRequest::new(observation, round, &candidate.model.name),
            measured: MeasuredRequest::begin(&candidate.model.name),
            answer: ModelAnswer::default(),
            slot: Some(slot),
            busy: Some(busy),
            pause,
        }
    }

    /// The providers to try, in order.
    pub(super) fn candidates(&self) -> Result<Vec<Candidate>, ToolError> {
        if !self.is_enabled() {
            return Err(unavailable(match self.shared.setup.options.access {
                LlmAccess::Never => {
                    "scripts may not ask a language model here: whoever runs cx has switched it off"
                }
                LlmAccess::Always | LlmAccess::OnRequest => {
                    "this run may not ask a language model: pass `enableSampling: true` with the script, or set \
                     `llm.enabled` in the user's configuration (`cx run --llm`)"
                }
            }));
        }
        if self.shared.setup.filter().is_none() {
            return Err(unavailable("this build of cx has no language models: its feature `llm` is off"));
        }
        let (provider, problem) = match self.shared.setup.provider() {
            ProviderState::Ready(model) => (Some(Candidate { model: model.clone(), is_client: false }), None),
            ProviderState::Unusable(problem) => (None, Some(problem)),
            ProviderState::NotConfigured => (None, None),
        };
        let client = self.client.clone().map(|model| Candidate { model, is_client: true });
        let mut candidates: Vec<Candidate> = provider.into_iter().chain(client).collect();
        if self.shared.setup.options.prefer_client {
            candidates.reverse();
        }
        match (candidates.is_empty(), problem) {
            (false, _) => Ok(candidates),
            (true, Some(problem)) => Err(unavailable(format!("the provider cannot be used: {problem}"))),
            (true, None) => Err(unavailable(
                "there is no language model to ask. Ways to one: `llm.provider` and `llm.model` in the user's \
                 configuration, with the key in the provider's variable (such as ANTHROPIC_API_KEY), or a model of \
                 this machine with `\"provider\": \"ollama\"`; or a client that offers its own (sampling)",
            )),
        }
    }

    /// Applies the run's own options, and the lists of permitted models and system prompts, to a request.
    pub(super) fn permit(&self, request: &mut ModelRequest) -> Result<(), ToolError> {
        let permitted = Permitted { options: &self.shared.setup.options, requested: &self.requested };
        permitted.apply(request)
    }
}

/// A call of a model that has begun. If it is dropped without an end, it stays in flight in the record and its
/// reservation counts in full.
pub(super) struct BegunCall {
    shared: Arc<Shared>,
    name: Arc<str>,
    /// The model that is asked, if it is known.
    model: Option<String>,
    number: CallNumber,
    prompt_tokens: u64,
    started: Instant,
    time: Duration,
    answer_tokens: u32,
    reservation: Option<Reservation>,
    observed: ObservedModelRequest,
    measured: MeasuredRequest,
    /// The fields of the answer other than its text.
    answer: ModelAnswer,
    slot: Option<OwnedSemaphorePermit>,
    /// `None` while the script has not asked for the next piece.
    busy: Option<Busy>,
    pause: Option<Pause>,
}

/// Why a call of a model has no answer.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// The model could not be reached and has received nothing.
    Unreached(ModelError),
    Failed(ModelError),
    Timeout(Duration),
    TooLarge(usize),
    /// It was not sent, because an observer of the run refused it.
    Refused(ToolError),
}

impl From<ModelError> for CallFailure {
    fn from(error: ModelError) -> Self {
        if error.kind == ModelErrorKind::Unavailable { Self::Unreached(error) } else { Self::Failed(error) }
    }
}

impl BegunCall {
    /// The request as it is sent.
    pub(super) fn request(&self, request: &ModelRequest) -> ModelRequest {
        ModelRequest { max_tokens: self.answer_tokens, ..request.clone() }
    }

    /// Informs the observers of the run that the request is about to be sent, and waits for them. Ends the call if an
    /// observer refuses it.
    pub(super) async fn announced(
        mut self,
        request: &ModelRequest,
        delivery: Delivery,
    ) -> Result<Self, ToolError> {
        let messages = || {
            let message = |message: &ModelMessage| {
                let role = match message.role {
                    ModelRole::User => "user",
                    ModelRole::Assistant => "assistant",
                };
                json!({ "role": role, "content": message.text })
            };
            Value::Array(request.messages.iter().map(message).collect()).to_string()
        };
        let system_prompt = request.system_prompt.as_deref();
        let model = self.model.as_deref();
        match self.observed.send(model, messages, system_prompt, delivery == Delivery::Pieces).await {
            Ok(()) => Ok(self),
            Err(error) => Err(self.fail(&CallFailure::Refused(error))),
        }
    }

    /// Releases the slot and resumes the run's clock: the answer has begun, and the script has to read it.
    pub(super) fn release(&mut self) {
        self.slot = None;
        self.busy = None;
        self.pause = None;
    }

    /// Waits for `call` within the time limit of the call. A panic is a failure of the model.
    pub(super) async fn within<T>(
        &mut self,
        call: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, CallFailure> {
        let _busy = self.busy.is_none().then(|| self.shared.activity.begin());
        let left = self.time.saturating_sub(self.started.elapsed());
        match tokio::time::timeout(left, AssertUnwindSafe(call).catch_unwind()).await {
            Ok(Ok(answer)) => answer.map_err(CallFailure::from),
            Ok(Err(panic)) => {
                tracing::error!(model = &*self.name, panic = panic_message(&*panic), "a model has panicked");
                Err(CallFailure::Failed(ModelError::new(ModelErrorKind::Failed, "the model has panicked")))
            }
            Err(_elapsed) => Err(CallFailure::Timeout(self.time)),
        }
    }

    /// Ends the call with its answer after the filter has checked it. Returns the text.
    pub(super) fn end_with(mut self, mut answer: ModelAnswer) -> Result<String, ToolError> {
        let shared = Arc::clone(&self.shared);
        let filter = shared.setup.filter().ok_or_else(over)?;
        let text = std::mem::take(&mut answer.text);
        let tokens = if answer.usage.is_some() { 0 } else { estimate::tokens(&text) };
        self.answer = answer;
        match filter.apply(shared.setup.options.content_filter, text) {
            Ok((text, violations)) => {
                self.end(tokens, &violations, Ok(Some(&text)));
                Ok(text)
            }
            Err(violations) => {
                self.end(tokens, &violations, Err(ToolErrorCode::ModelDenied));
                Err(refusal(&violations))
            }
        }
    }

    /// Ends a call that was answered, with the text if observers of the run need it, or with the error's code instead.
    /// `text_tokens` are the estimated tokens of the text, for providers that do not report usage.
    pub(super) fn end(
        mut self,
        text_tokens: u64,
        violations: &Violations,
        result: Result<Option<&str>, ToolErrorCode>,
    ) {
        let found: Vec<&str> = violations.found.iter().map(|&(pattern, _)| pattern).collect();
        for word in [&mut self.answer.model, &mut self.answer.stop_reason].into_iter().flatten() {
            *word = words::filtered(word, &self.shared.setup);
        }
        let end = ModelEnd {
            result: result.map_err(ToolErrorCode::as_str),
            tokens: self.answer.usage.as_ref().map(|usage| (usage.input_tokens, usage.output_tokens)),
            finish_reason: self.answer.stop_reason.as_deref(),
            violations: &found,
        };
        self.observed.end(self.answer.model.as_deref(), end);
        self.measured.end(self.answer.usage.as_ref(), result.err());
        let (used, is_estimated) = match self.answer.usage {
            Some(usage) => (usage.input_tokens.saturating_add(usage.output_tokens), false),
            None => (self.prompt_tokens.saturating_add(text_tokens), true),
        };
        if let Some(reservation) = self.reservation.take() {
            reservation.record_usage(used);
        }
        self.shared.calls.lock().end(self.number, |call| {
            call.status = match result {
                Ok(_) => ModelCallStatus::Ok,
                Err(code) => ModelCallStatus::Failed(code),
            };
            call.tokens = used;
            call.is_estimated = is_estimated;
            call.duration = self.started.elapsed();
            if self.answer.model.is_some() {
                call.model.clone_from(&self.answer.model);
            }
            call.stop_reason.clone_from(&self.answer.stop_reason);
            call.violations = ContentViolation::list(violations);
        });
    }

    /// Ends a call without an answer, and returns the script's error.
    pub(super) fn fail(mut self, failure: &CallFailure) -> ToolError {
        let error = failure.to_tool_error(&self.name);
        self.observed.end(None, error.code.into());
        match failure {
            CallFailure::Refused(_) => self.measured.discard(),
            _ => self.measured.end(None, Some(error.code)),
        }
        // A request that was refused or never arrived cost nothing. For any other failure that is unknown.
        let is_free = match failure {
            CallFailure::Unreached(_) | CallFailure::Refused(_) => true,
            CallFailure::Failed(error) => {
                error.is_free || matches!(error.kind, ModelErrorKind::RateLimited | ModelErrorKind::Refused)
            }
            CallFailure::Timeout(_) | CallFailure::TooLarge(_) => false,
        };
        let reservation = self.reservation.take();
        let used = reservation.as_ref().map_or(0, |reserved| if is_free { 0 } else { reserved.tokens() });
        if let Some(reservation) = reservation {
            reservation.record_usage(used);
        }
        self.shared.calls.lock().end(self.number, |call| {
            call.status = ModelCallStatus::Failed(error.code);
            call.tokens = used;
            call.is_estimated = true;
            call.duration = self.started.elapsed();
        });
        error
    }
}

impl CallFailure {
    fn to_tool_error(&self, name: &str) -> ToolError {
        match self {
            Self::Unreached(error) => ToolError::new(ToolErrorCode::ModelUnavailable, &error.message),
            Self::Refused(error) => error.clone(),
            Self::Failed(error) => {
                let code = match error.kind {
                    ModelErrorKind::Unavailable => ToolErrorCode::ModelUnavailable,
                    ModelErrorKind::Refused => ToolErrorCode::ModelDenied,
                    ModelErrorKind::RateLimited => ToolErrorCode::RateLimited,
                    ModelErrorKind::Failed => ToolErrorCode::ModelError,
                };
                let mut failure = ToolError::new(code, &error.message);
                failure.retry_after = error.retry_after;
                failure
            }
            Self::Timeout(time) => {
                let message = format!("`{name}` did not answer within {time:?}");
                ToolError::new(ToolErrorCode::ModelTimeout, message)
            }
            Self::TooLarge(max) => {
                let message = format!("the model's answer is larger than {max} bytes");
                ToolError::new(ToolErrorCode::ResultTooLarge, message)
            }
        }
    }
}

fn refusal(violations: &Violations) -> ToolError {
    let names: Vec<&str> = violations.found.iter().map(|(name, _)| *name).collect();
    denied(format!("the content filter refused the answer: {}", names.join(", ")))
}

fn unavailable(problem: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorCode::ModelUnavailable, problem)
}

fn denied(problem: String) -> ToolError {
    ToolError::new(ToolErrorCode::ModelDenied, problem)
}

/// Returns what the filter leaves of a piece, depending on its mode. `Err` if the answer is refused.
fn filter_piece(
    filter: &ContentFilter,
    mode: FilterMode,
    piece: String,
    violations: &mut Violations,
) -> Result<String, ToolError> {
    match filter.apply(mode, piece) {
        Ok((text, found)) => {
            violations.merge(found);
            Ok(text)
        }
        Err(found) => {
            let error = refusal(&found);
            violations.merge(found);
            Err(error)
        }
    }
}
