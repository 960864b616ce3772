//! A call of a tool that runs a script, or of one that is shown directly: from the client's
//! arguments to an answer, a prompt or a task.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt as _;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, InputRequiredResult, InputResponses,
    JsonObject, ProtocolVersion,
};
use rmcp::service::RequestContext;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answer::{self, Answer, INVALID_ARGUMENTS};
use super::approval::approver;
use super::arguments::RunArguments;
use super::arguments::parameters::MAX_TIMEOUT;
use super::direct_call;
use super::elicitation::elicitor;
use super::fingerprint::Fingerprint;
use super::hung_workers::SERVER_ENDS;
use super::incoming::{CountedBody, DetachedInput};
use super::notifications::{ProgressOf, RunNotifications};
use super::pending::{KeyedPrompts, NotResumed, with_keys};
use super::prepare::{PreparedRun, admit_run, prepare};
use super::prompt::{Elicitation, Prompt};
use super::run_answer::{TRY_AGAIN, answer_run};
use super::run_in_flight::RunInFlight;
use super::sampling::ClientModel;
use super::session::{McpSession, client_name};
use super::wait;
use super::yielded::Printed;
use crate::json::Json;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, Output};
use crate::run::script::{Language, Script, WhileQueued};
use crate::run::tool_call::ToolCall;
use crate::tools::TraceContext;

/// A run that takes longer than this becomes a task, if the client supports tasks.
const TASK_AFTER: Duration = Duration::from_secs(2);

/// What a client calls.
#[derive(Clone)]
pub(crate) enum Called {
    /// A script in this language.
    Script(Language),
    /// A tool of a server.
    Tool { server: Arc<str>, tool: Arc<str> },
}

/// Runs a script, or calls a tool, for a client. Invalid arguments and failures of the script are
/// answers, so that the model can read them. Dropping the future cancels the run.
///
/// # Errors
///
/// If the client has cancelled the call, and then ignores the answer, or sends a state that this server never gave.
pub(crate) async fn run(
    session: &McpSession,
    called: Called,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    trace: Option<TraceContext>,
) -> Result<CallToolResponse, ErrorData> {
    let shared = &session.shared;
    let format = shared.options.format;
    let arguments = request.arguments.unwrap_or_default();
    let input = DetachedInput::from_extensions(&context.extensions);
    shared.hung_workers.watch();
    if shared.hung_workers.server_must_end() {
        let code = ErrorCode::EngineUnavailable.as_str();
        return Ok(refused(&called, answer::refusal(format, code, SERVER_ENDS, Some(TRY_AGAIN))));
    }
    if let Some(name) = &request.request_state {
        let call = Fingerprint::new(&request.name, &arguments, input.as_ref());
        return match shared.pending.remove(&session.client, call, name) {
            Ok((run, prompts)) => {
                let responses = request.input_responses.unwrap_or_default();
                resume(session, run, prompts, responses, context).await
            }
            Err(error @ NotResumed::Forged) => Err(ErrorData::invalid_params(error.to_string(), None)),
            Err(error) => {
                let refusal = answer::refusal(format, INVALID_ARGUMENTS, &error.to_string(), None);
                Ok(refused(&called, refusal))
            }
        };
    }
    let started = match &called {
        Called::Script(language) => {
            start(session, *language, &request.name, arguments, input, context, trace)
        }
        Called::Tool { server, tool } => {
            let call = ToolCall::new(&**server, &**tool);
            start_call(session, call, &request.name, arguments, input, context, trace)
        }
    };
    match started {
        Ok(run) => await_run(session, run, context).await,
        Err(refusal) => Ok(refused(&called, refusal)),
    }
}

/// The answer to a call that did not become a run. It has no structured content if the call is of a server's tool,
/// because that content would not match the tool's output schema.
fn refused(called: &Called, refusal: Answer) -> CallToolResponse {
    let mut result = CallToolResult::from(refusal);
    if matches!(called, Called::Tool { .. }) {
        result.structured_content = None;
    }
    result.into()
}

/// Starts a run.
///
/// # Errors
///
/// The answer to invalid arguments, or to a run that is not admitted.
fn start(
    session: &McpSession,
    language: Language,
    tool: &str,
    arguments: JsonObject,
    input: Option<Json>,
    context: &RequestContext<RoleServer>,
    trace: Option<TraceContext>,
) -> Result<RunInFlight, Answer> {
    let executor = session.shared.executor.clone();
    let elicitation = Elicitation::from_context(context);
    let call = fingerprint(elicitation.as_ref(), tool, &arguments, input.as_ref());
    let arguments = RunArguments::read(arguments, input).map_err(|problems| {
        let format = session.shared.options.format;
        answer::refusal(format, INVALID_ARGUMENTS, &problems.to_string(), None)
    })?;
    // Counted before: a server that is draining waits for each run that it has admitted.
    let guard = session.calls.begin();
    admit_run(session, session.client_of(context))?;
    let yields = yields(session, arguments.yield_after, context)?;
    let PreparedRun { script, language, limits } = prepare(session, arguments, language)?;
    let cancel = session.cancellation(context);
    let script = in_request(script, context, trace);
    let (script, prompts) = for_client(session, script, elicitation, &cancel);
    let (mut script, notifications) =
        RunNotifications::attach(session.wanted(context), context, script, ProgressOf::Script);
    let printed = yields.as_ref().map(|(_, printed)| printed.clone());
    if let Some(printed) = printed.clone() {
        let earlier = script.on_kept_output.take();
        script.on_kept_output = Some(Arc::new(move |entry: &Output| {
            printed.add(entry);
            earlier.iter().for_each(|listener| listener(entry));
        }));
    }
    let (shared, client) = (Arc::clone(&session.shared), session.client.clone());
    let run = async move {
        let result = executor.run(script).await;
        let answer = answer_run(&shared, &client, language, result, printed.as_ref()).await;
        if let Some(printed) = &printed {
            printed.note_end();
        }
        answer.into()
    };
    Ok(RunInFlight {
        run: run.boxed(),
        _cancel_on_drop: cancel.clone().drop_guard(),
        cancel,
        limits,
        notifications,
        prompts,
        call,
        guard: Some(guard),
        yields,
    })
}

/// The time after which the run yields; `None` if it does not. A run yields if the operator allows it, and the client
/// has a session and does not support tasks. `asked` is the call's own request.
///
/// # Errors
///
/// The answer to a call that requests it where it is not allowed.
fn yields(
    session: &McpSession,
    asked: Option<Duration>,
    context: &RequestContext<RoleServer>,
) -> Result<Option<(Duration, Printed)>, Answer> {
    let asked_for_some = asked.is_some_and(|after| !after.is_zero());
    let Some(default) = session.shared.options.yield_after else {
        if asked_for_some {
            let problem = "`yieldAfterMs`: this server does not let runs go on after their answer";
            return Err(answer::refusal(session.shared.options.format, INVALID_ARGUMENTS, problem, None));
        }
        return Ok(None);
    };
    let after = asked.unwrap_or(default);
    let may_yield = !after.is_zero() && !session.has_many_clients && !knows_tasks(context);
    Ok(may_yield.then(|| (after, Printed::default())))
}

fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    // rmcp needs a time after 1970 for tasks.
    SystemTime::now() >= UNIX_EPOCH
        && context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

/// Starts the call of a tool that is shown directly.
///
/// # Errors
///
/// The answer to a call that is not admitted.
fn start_call(
    session: &McpSession,
    mut call: ToolCall,
    name: &str,
    arguments: JsonObject,
    input: Option<Json>,
    context: &RequestContext<RoleServer>,
    trace: Option<TraceContext>,
) -> Result<RunInFlight, Answer> {
    let executor = session.shared.executor.clone();
    let elicitation = Elicitation::from_context(context);
    let fingerprint = fingerprint(elicitation.as_ref(), name, &arguments, input.as_ref());
    // Counted before: a server that is draining waits for each run that it has admitted.
    let guard = session.calls.begin();
    admit_run(session, session.client_of(context))?;
    let (default, max) = (executor.limits(), executor.max_limits());
    let limits = Limits { wall_time: default.wall_time.min(max.wall_time), ..default };
    let cancel = session.cancellation(context);
    let options = in_request(call.options.limits(limits), context, trace);
    let (options, prompts) = for_client(session, options, elicitation, &cancel);
    let (options, notifications) =
        RunNotifications::attach(session.wanted(context), context, options, ProgressOf::Tool);
    call.options = options;
    call.arguments = Some(direct_call::arguments(arguments, input));
    let (shared, client) = (Arc::clone(&session.shared), session.client.clone());
    let takes_any_structure = is_stateless(context);
    let run = async move {
        let result = executor.call(call).await;
        direct_call::answer(&shared, &client, result, takes_any_structure).await
    };
    Ok(RunInFlight {
        run: run.boxed(),
        _cancel_on_drop: cancel.clone().drop_guard(),
        cancel,
        limits,
        notifications,
        prompts,
        call: fingerprint,
        guard: Some(guard),
        yields: None,
    })
}

/// The fingerprint that a repetition of the call must have, if the run's prompts are sent in results.
fn fingerprint(
    elicitation: Option<&Elicitation>,
    name: &str,
    arguments: &JsonObject,
    input: Option<&Json>,
) -> Option<Fingerprint> {
    let asks_in_results = elicitation.is_some_and(|client| client.in_results.is_some());
    asks_in_results.then(|| Fingerprint::new(name, arguments, input))
}

/// Whether a request is of the stateless revision (2026-07-28) or a later one.
pub(crate) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// The run's options with the details of its request: for observers, and what counts its body.
fn in_request(options: Script, context: &RequestContext<RoleServer>, trace: Option<TraceContext>) -> Script {
    let mut options = options.client_name(client_name(context));
    let body = CountedBody::take(&context.extensions);
    options.while_queued = body.map(|permits| -> WhileQueued { Arc::new(permits) });
    match trace {
        Some(trace) => options.trace_context(trace),
        None => options,
    }
}

/// The options of every run of a client, and the prompts of the run that are sent in results.
pub(crate) fn for_client(
    session: &McpSession,
    options: Script,
    elicitation: Option<Elicitation>,
    cancel: &CancellationToken,
) -> (Script, mpsc::Receiver<Prompt>) {
    let mut options = options.client(&*session.client).cancel_with(cancel.clone());
    options.client_is_many = session.has_many_clients;
    options.tenant.clone_from(&session.tenant);
    let mut prompts = mpsc::channel(1).1;
    if let Some(client) = elicitation {
        if let Some(user) = &client.user {
            if session.shared.options.clients_approve
                && let Some(approver) = approver(user)
            {
                options = options.approver(approver);
            }
            options = options.elicitor(elicitor(user));
        }
        if let Some(ask) = client.model {
            options = options.client_model(ClientModel { ask });
        }
        prompts = client.in_results.unwrap_or(prompts);
    }
    (options, prompts)
}

/// Resumes a suspended run whose client has received prompts.
async fn resume(
    session: &McpSession,
    mut run: RunInFlight,
    prompts: KeyedPrompts,
    mut responses: InputResponses,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    run.guard = Some(session.calls.begin());
    run.notifications.redirect(session.wanted(context), context);
    let mut open = KeyedPrompts::new();
    for (key, prompt) in prompts {
        match responses.remove(&key) {
            Some(response) => prompt.answer(response),
            None => open.push((key, prompt)),
        }
    }
    // The client has repeated the call without some of the answers, so it gets these prompts again.
    if !open.is_empty() {
        match suspend(session, run, open, context) {
            Ok(asking) => return Ok(asking.into()),
            Err(again) => run = *again,
        }
    }
    await_run(session, run, context).await
}

/// Waits until the run ends, asks the user, or becomes a task.
async fn await_run(
    session: &McpSession,
    mut run: RunInFlight,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let mut may_become_task = knows_tasks(context);
    let mut may_yield = run.yields.is_some();
    let yield_after = run.yields.as_ref().map_or(Duration::MAX, |(after, _)| *after);
    // Bounded, because the timer has a maximum; twice the time of any run.
    let yield_due = tokio::time::sleep(yield_after.min(2 * MAX_TIMEOUT));
    tokio::pin!(yield_due);
    let task_due = tokio::time::sleep(TASK_AFTER);
    tokio::pin!(task_due);
    let result = loop {
        tokio::select! {
            biased;
            () = context.ct.cancelled() => {
                run.cancel.cancel();
                // The run's slot is released when the run has ended.
                let _not_needed = run.run.await;
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            result = &mut run.run => break result,
            Some(first) = run.prompts.recv() => {
                let prompts = with_keys(run.with_all_open(first).await);
                match suspend(session, run, prompts, context) {
                    Ok(asking) => return Ok(asking.into()),
                    Err(again) => run = *again,
                }
            }
            notification = run.notifications.next() => run.notifications.send(notification).await,
            () = &mut task_due, if may_become_task => {
                // Taken only now: other waiting runs may have become tasks since this one began.
                let Some(slot) = session.tasks.slot(session.client_of(context)) else {
                    may_become_task = false;
                    continue;
                };
                return Ok(session.tasks.start(slot, run).into());
            }
            () = &mut yield_due, if may_yield => {
                match wait::let_go_on(session, run) {
                    Ok(answer) => return Ok(answer.into()),
                    Err(again) => run = *again,
                }
                may_yield = false;
            }
        }
    };
    run.notifications.finish().await;
    // The guard is dropped after the answer is made. Otherwise a server that ends because of hung
    // workers could end before this answer.
    Ok(result.into())
}

/// Suspends the run until the client repeats the call, and returns the prompts for it.
///
/// # Errors
///
/// Returns the run if it cannot be suspended. The prompts are dropped then, so no user can be
/// asked.
fn suspend(
    session: &McpSession,
    run: RunInFlight,
    prompts: KeyedPrompts,
    context: &RequestContext<RoleServer>,
) -> Result<InputRequiredResult, Box<RunInFlight>> {
    let Some(call) = run.call else { return Err(Box::new(run)) };
    session.shared.pending.add(&session.client, session.client_of(context), call, run, prompts)
}
