//! Calls and requests whose sending was reported to the observers of a run. Ensures that their end is reported too.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::{Answered, ModelAnswered, ModelSending, Observation, RunEvent};
use crate::json::Json;
use crate::tools::{SentRequest, ToolError, ToolErrorCode};

/// The slot in which a dispatcher stores what it has sent.
pub(crate) type SentSlot = Arc<OnceLock<SentRequest>>;

/// A call whose sending was reported. Its end is reported once, even if its future is dropped.
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

    /// The slot for the dispatcher.
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
    /// Reports the end of a call that has no answer: the run has ended, or the script has dropped the call.
    fn drop(&mut self) {
        self.report(Err(ToolErrorCode::Cancelled), None);
    }
}

/// A request to a language model whose sending was reported. Its end is reported once, even if its future is dropped.
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
        is_stream: bool,
    ) -> Result<(), ToolError> {
        if !self.observation.is_on() {
            return Ok(());
        }
        self.sent = Some(Instant::now());
        let (request, provider, messages) = (self.request, &*self.provider, messages());
        let messages = &*messages;
        let sending = ModelSending { request, provider, model, messages, system_prompt, is_stream };
        self.observation.before_effect(RunEvent::ModelSending(sending)).await.map(drop)
    }

    /// Whether its sending was reported and its end was not.
    pub(crate) fn is_reported(&self) -> bool {
        self.sent.is_some()
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
    pub(crate) result: Result<Option<&'a str>, &'static str>,
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
    /// Reports the end of a request that has no answer: the run has ended, or the script has dropped the answer.
    fn drop(&mut self) {
        self.end(None, ToolErrorCode::Cancelled.into());
    }
}
