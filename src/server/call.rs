//! A call of a tool that runs a script: from the client's arguments to an answer, a prompt
//! or a task.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, InputRequiredResult, InputResponses, JsonObject,
};
use rmcp::service::RequestContext;
use tokio::sync::mpsc;

use super::answer::{self, Answer, INVALID_ARGUMENTS};
use super::approval::approver;
use super::arguments::RunArguments;
use super::elicitation::elicitor;
use super::fingerprint::Fingerprint;
use super::incoming::DetachedInput;
use super::metrics;
use super::notifications::RunNotifications;
use super::pending::KEY;
use super::prompt::{Elicitation, Prompt};
use super::run_answer::{TRY_AGAIN, answer_run};
use super::run_in_flight::RunInFlight;
use super::session::McpSession;
use crate::json::Json;
use crate::run::result::ErrorCode;
use crate::run::script::Language;
use crate::tools::ToolErrorCode;

/// A run that takes longer than this becomes a task, if the client supports tasks.
const TASK_AFTER: Duration = Duration::from_secs(2);

/// Runs a script for a client. Invalid arguments and failures of the script are answers, so that
/// the model can read them. Dropping the future cancels the run.
///
/// # Errors
///
/// If the client has cancelled the call. It ignores the answer then.
pub(crate) async fn run_script(
    session: &McpSession,
    language: Language,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let shared = &session.shared;
    let format = shared.options.format;
    let arguments = request.arguments.unwrap_or_default();
    let input = DetachedInput::from_extensions(&context.extensions);
    shared.hung_workers.watch();
    if shared.hung_workers.server_must_end() {
        let problem = "the server is about to end: too many threads run scripts that cannot be stopped";
        let code = ErrorCode::EngineUnavailable.as_str();
        return Ok(answer::refusal(format, code, problem, Some(TRY_AGAIN)).into());
    }
    if let Some(name) = &request.request_state {
        let call = Fingerprint::new(&request.name, &arguments, input.as_ref());
        return match shared.pending.remove(&session.client, call, name) {
            Ok((run, prompt)) => {
                let responses = request.input_responses.unwrap_or_default();
                resume(session, run, prompt, responses, context).await
            }
            Err(error) => Ok(answer::refusal(format, INVALID_ARGUMENTS, &error.to_string(), None).into()),
        };
    }
    match start(session, language, &request.name, arguments, input, context) {
        Ok(run) => await_run(session, run, context).await,
        Err(refusal) => Ok(refusal.into()),
    }
}

/// Starts a run.
///
/// # Errors
///
/// The answer to invalid arguments, or to a run beyond a rate limit.
fn start(
    session: &McpSession,
    language: Language,
    tool: &str,
    arguments: JsonObject,
    input: Option<Json>,
    context: &RequestContext<RoleServer>,
) -> Result<RunInFlight, Answer> {
    let executor = session.shared.executor.clone();
    let elicitation = Elicitation::from_context(context);
    let asks_in_results = elicitation.as_ref().is_some_and(|client| client.in_results.is_some());
    let call = asks_in_results.then(|| Fingerprint::new(tool, &arguments, input.as_ref()));
    let arguments = RunArguments::read(arguments, input).map_err(|problems| {
        let format = session.shared.options.format;
        answer::refusal(format, INVALID_ARGUMENTS, &problems.to_string(), None)
    })?;
    session.rates.take(session.client_of(context)).map_err(|exceeded| {
        metrics::count_rate_limited();
        let code = ToolErrorCode::RateLimited.as_str();
        answer::refusal_for_now(session.shared.options.format, code, &exceeded.message, exceeded.retry_after)
    })?;
    let limits = arguments.limits(executor.limits(), &executor.max_limits());
    let cancel = session.runs.child_token();
    let mut script = arguments
        .into_script(language)
        .limits(limits)
        .client(&*session.client)
        .default_scope(session.default_scope.clone())
        .cancel_with(cancel.clone());
    let mut prompts = mpsc::channel(1).1;
    if let Some(client) = elicitation {
        if let Some(approver) = approver(&client) {
            script = script.approver(approver);
        }
        script = script.elicitor(elicitor(&client));
        prompts = client.in_results.unwrap_or(prompts);
    }
    let (script, notifications) = RunNotifications::attach(session.wanted(context), context, script);
    Ok(RunInFlight {
        run: async move { executor.run(script).await }.boxed(),
        _cancel_on_drop: cancel.clone().drop_guard(),
        cancel,
        language,
        limits,
        notifications,
        prompts,
        call,
        guard: Some(session.calls.begin()),
    })
}

/// Resumes a run whose client was sent a prompt.
async fn resume(
    session: &McpSession,
    mut run: RunInFlight,
    prompt: Prompt,
    mut responses: InputResponses,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    run.guard = Some(session.calls.begin());
    run.notifications.redirect(session.wanted(context), context);
    match responses.remove(KEY) {
        Some(response) => prompt.answer(response),
        // The client has repeated the call without an answer, so it is asked again.
        None => match suspend(session, run, prompt, context) {
            Ok(asking) => return Ok(asking.into()),
            Err(again) => run = *again,
        },
    }
    await_run(session, run, context).await
}

/// Waits until the run ends, asks the user, or becomes a task.
async fn await_run(
    session: &McpSession,
    mut run: RunInFlight,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let knows_tasks = context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
    let mut may_become_task = knows_tasks;
    let task_due = tokio::time::sleep(TASK_AFTER);
    tokio::pin!(task_due);
    let result = loop {
        tokio::select! {
            biased;
            () = context.ct.cancelled() => {
                run.cancel.cancel();
                // The run's slot is released when it has ended.
                let _not_needed = run.run.await;
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            result = &mut run.run => break result,
            Some(prompt) = run.prompts.recv() => match suspend(session, run, prompt, context) {
                Ok(asking) => return Ok(asking.into()),
                Err(again) => run = *again,
            },
            notification = run.notifications.next() => run.notifications.send(notification).await,
            () = &mut task_due, if may_become_task => {
                // Taken now: other runs that were waiting too may have become tasks since this one began.
                let Some(slot) = session.tasks.slot(session.client_of(context)) else {
                    may_become_task = false;
                    continue;
                };
                let (shared, client) = (Arc::clone(&session.shared), session.client.clone());
                return Ok(session.tasks.start(slot, run, shared, client).into());
            }
        }
    };
    run.notifications.finish().await;
    // The guard is dropped after the answer is made. Otherwise a server that ends because of hung
    // workers could end before this answer.
    Ok(answer_run(&session.shared, &session.client, run.language, result).into())
}

/// Suspends the run until the client repeats the call, and returns the prompt for it.
///
/// # Errors
///
/// Returns the run if it cannot be suspended. The prompt is dropped then: the user cannot be asked.
fn suspend(
    session: &McpSession,
    run: RunInFlight,
    prompt: Prompt,
    context: &RequestContext<RoleServer>,
) -> Result<InputRequiredResult, Box<RunInFlight>> {
    let Some(call) = run.call else { return Err(Box::new(run)) };
    session.shared.pending.add(&session.client, session.client_of(context), call, run, prompt)
}
