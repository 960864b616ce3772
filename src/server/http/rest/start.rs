//! Starts a run over REST, as `call.rs` does over MCP.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;

use super::events::RunEvents;
use super::request::RunRequest;
use crate::run::result::ErrorCode;
use crate::server::answer::{self, Answer};
use crate::server::answer_size::AnswerSize;
use crate::server::call::for_client;
use crate::server::client_slots::ClientSlot;
use crate::server::http::rest_runs::answers::RunAnswer;
use crate::server::http::rest_runs::{FinishedRun, KeyedBody, RestRun};
use crate::server::http::tenant_state::Requester;
use crate::server::prepare::{PreparedRun, admit_run, prepare};
use crate::server::request_span::ObservedRequest;
use crate::server::run_answer::{TRY_AGAIN, answer_run};
use crate::server::session::McpSession;
use crate::server::yielded::Printed;
use crate::text::ids::short_random_id;
use crate::text::preview;

/// Maximum characters of a caller's name.
const MAX_NAME: usize = 100;

/// The permits that a run holds until it ends, and who is told then how large its answer is.
pub(super) struct RequestPermits {
    /// Counts the bytes of its input.
    pub(super) _body: Vec<OwnedSemaphorePermit>,
    /// The slot of a run in the background.
    pub(super) _slot: Option<ClientSlot>,
    pub(super) size: Option<AnswerSize>,
}

/// Starts a run, and returns it with its events. Must be called in a tokio runtime.
///
/// # Errors
///
/// The answer to invalid arguments, or to a run that is not admitted.
pub(super) fn start(
    requester: &Requester,
    request: RunRequest,
    headers: &HeaderMap,
    key: Option<KeyedBody>,
    held: RequestPermits,
) -> Result<(RestRun, RunEvents), Answer> {
    let RunRequest { arguments, language, stream, background } = request;
    let session = &*requester.tenant.session;
    admit_run(session, &requester.client_name())?;
    let PreparedRun { script, language, .. } = prepare(session, arguments, language)?;
    // A caller that gets the id before the answer can ask for the run by it.
    let id = if stream || background { Some(short_random_id().map_err(|_| no_id(session))?) } else { None };
    let printed = id.clone().map(Printed::of_run);
    let observed = ObservedRequest::begin_rest(&session.shared, headers);
    let cancel = session.cancellation_with(requester.revoked());
    let ended = cancel.clone().drop_guard();
    let mut script = script.client_name(caller_name(headers));
    if let Some(trace) = observed.context() {
        script = script.trace_context(trace);
    }
    // REST has no approval prompts.
    let (script, _no_prompts) = for_client(session, script, None, &cancel);
    let (script, events) = RunEvents::attach(script, printed.clone());
    let (sender, answer) = watch::channel(None);
    let (shared, owner) = (Arc::clone(&session.shared), session.client.clone());
    let (executor, of_answer) = (shared.executor.clone(), printed.clone());
    // A run in the background has no request that counts as a call.
    let call = session.calls.begin();
    let mut task = JoinSet::new();
    task.spawn(async move {
        let result = executor.run(script).await;
        drop(ended);
        let size = held.size.clone();
        drop(held);
        let answer = answer_run(&shared, &owner, language, result, of_answer.as_ref()).await;
        observed.end_rest(answer.is_error);
        let record = answer.structured["runId"].as_str().map(str::to_owned);
        let answer = RunAnswer::new(answer);
        if let Some(size) = size {
            size.note(answer.bytes());
        }
        sender.send_replace(Some(FinishedRun::new(answer, record)));
        drop(call);
    });
    let run = RestRun::new(id, key, cancel, printed.unwrap_or_default(), answer, task);
    Ok((run, events))
}

/// The caller's name, as its headers give it. Untrusted.
pub(super) fn caller_name(headers: &HeaderMap) -> Option<String> {
    let name = headers.get(USER_AGENT)?.to_str().ok()?;
    Some(preview(name, MAX_NAME))
}

fn no_id(session: &McpSession) -> Answer {
    let code = ErrorCode::EngineUnavailable.as_str();
    let problem = "the system provides no random numbers for the run's id";
    answer::refusal(session.shared.options.format, code, problem, Some(TRY_AGAIN))
}
