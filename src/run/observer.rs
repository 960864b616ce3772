//! Observers of runs: code of this crate that receives the events of runs, for the audit trail and
//! traces. Embedders add a [`CallHook`](crate::run::hooks::CallHook) instead, which can change
//! calls and sees neither refusals nor approvals.
//!
//! Every event is emitted in one place, next to the decision or the measurement that it reports. Durations are measured
//! with the monotonic clock.

mod event;
pub(crate) mod sent;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use futures::future::{BoxFuture, Either, Ready, ready};
use tokio::runtime::Handle;

pub(crate) use self::event::{
    Answered, ApprovalAnswered, ApproverKind, Arguments, ClientRequest, DefinitionEvent, Discovered,
    ModelAnswered, ModelSending, Refused, RunEvent, Sending, TokenEvent, TokenOwner,
};
use crate::run::entered::entered;
use crate::run::grants::RunGrants;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult};
use crate::run::script::{Language, Script};
use crate::text::ids::short_random_id;
use crate::tools::{ToolError, TraceContext};

/// What an observer answers before an effect: the trace context of what is caused, or why nothing may be.
pub(crate) type EffectAnswer = Result<Option<TraceContext>, ToolError>;

/// That answer, at once or later. Most observers have nothing to wait for, and a boxed future would be an
/// allocation for each of them and each call.
pub(crate) type BeforeEffect<'a> = Either<Ready<EffectAnswer>, BoxFuture<'a, EffectAnswer>>;

/// An answer that needs no wait.
pub(crate) fn at_once<'a>(answer: EffectAnswer) -> BeforeEffect<'a> {
    Either::Left(ready(answer))
}

/// Hears what runs do.
pub(crate) trait RunObserver: Send + Sync + 'static {
    /// Called with each event of a run, on the thread where it happens: mostly the script's. Must not
    /// block, and takes microseconds at most.
    ///
    /// The calls that are in flight when a run ends may be reported after its end.
    fn observe(&self, run: &Arc<ObservedRun>, event: &RunEvent<'_>);

    /// Called with each event about tool definitions. Such an event belongs to no run. Must not block.
    fn observe_definitions(&self, _event: &DefinitionEvent<'_>) {}

    /// Called with each request of a client when it has been answered. Must not block.
    fn observe_request(&self, _request: &ClientRequest<'_>) {}

    /// Called when the tokens of a server's clients have changed. Must not block.
    fn observe_tokens(&self, _event: &TokenEvent<'_>) {}

    /// Called with a [`RunEvent::Started`], [`RunEvent::Sending`] or [`RunEvent::ModelSending`] that was observed, and
    /// awaited directly before the script is run or the request is sent. Returns the trace context for what follows, if
    /// there is one.
    ///
    /// # Errors
    ///
    /// Refuses the request: the script gets this error, and nothing is sent. Or the run: nothing of it
    /// happens.
    fn before_effect<'a>(&'a self, _run: &'a Arc<ObservedRun>, _event: &'a RunEvent<'a>) -> BeforeEffect<'a> {
        at_once(Ok(None))
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
    /// The span that has requested the run.
    pub(crate) trace: Option<TraceContext>,
    /// When the run was requested.
    pub(crate) started: Instant,
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

    /// Reports that a run or a request is about to begin, and waits for all observers. Returns the trace context for
    /// what follows; if several observers return one, the last is used.
    ///
    /// # Errors
    ///
    /// That of the first observer which refuses.
    pub(crate) async fn before_effect(&self, event: RunEvent<'_>) -> EffectAnswer {
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
    /// Reports a run whose caller has dropped it.
    fn drop(&mut self) {
        self.end(None, Some(ErrorCode::Cancelled));
    }
}
