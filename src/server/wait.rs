//! Answers to calls whose runs continue, and the tool `wait`, which returns the rest.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ContentBlock, ErrorData, JsonObject};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::answer::truncation::cut;
use super::answer::{self, Answer, Format, INVALID_ARGUMENTS};
use super::arguments::parameters::MAX_TIMEOUT;
use super::run_in_flight::RunInFlight;
use super::session::McpSession;
use super::shared::Shared;
use super::yielded::NotAwaited;
use crate::text::ids::short_random_id;
use crate::text::{MAX_SHOWN_NAME, preview};
use crate::tools::ToolErrorCode;

/// Default time that a call waits: less than most clients wait for an answer.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// Answers a call with what its run has printed so far, and lets the run continue.
///
/// # Errors
///
/// Returns the run if it cannot continue without its call: too many do so already, or the system provides no random
/// numbers.
pub(crate) fn let_go_on(session: &McpSession, mut run: RunInFlight) -> Result<Answer, Box<RunInFlight>> {
    let Some((after, printed)) = run.yields.take() else { return Err(Box::new(run)) };
    let Some(id) = short_random_id().ok().filter(|id| session.yielded.reserve(id, &printed)) else {
        run.yields = Some((after, printed));
        return Err(Box::new(run));
    };
    let output = printed.deliver();
    session.yielded.start(id.clone(), run, printed);
    Ok(running(&session.shared, &id, output))
}

/// Waits for a run of this session that continued after its answer. Cancelling the call does not
/// end the run.
///
/// # Errors
///
/// If the client has cancelled the call. The client ignores the answer in that case.
pub(crate) async fn wait(
    session: &McpSession,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let format = session.shared.options.format;
    let invalid = |problem: &str| Ok(answer::refusal(format, INVALID_ARGUMENTS, problem, None).into());
    if session.has_many_clients {
        return invalid(
            "runs go on only for clients with a session: without one, use tasks, or a longer timeout of the call",
        );
    }
    let (id, time) = match read(&arguments) {
        Ok(read) => read,
        Err(problem) => return invalid(&problem),
    };
    let mut awaited = match session.yielded.claim(id).await {
        Ok(awaited) => awaited,
        Err(error) => {
            return Ok(not_awaited(format, &error));
        }
    };
    let replaced = awaited.replaced();
    let Some(yielded) = awaited.run() else { return invalid("the run has ended") };
    // A server that is draining waits for this run too.
    let _counted = session.calls.begin();
    let notifications = &mut yielded.run.notifications;
    notifications.redirect(session.wanted(context), context);
    let elapsed = tokio::time::sleep(time);
    tokio::pin!(elapsed);
    let result = loop {
        tokio::select! {
            biased;
            // The run is kept for a later call.
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            // Its client has lost this call's connection, or does not want its answer.
            () = replaced.cancelled() => {
                return Ok(not_awaited(format, &NotAwaited::Awaited(yielded.id.clone())));
            }
            result = &mut yielded.run.run => break result,
            notification = notifications.next() => notifications.send(notification).await,
            () = &mut elapsed => {
                let output = yielded.printed.deliver();
                return Ok(running(&session.shared, &yielded.id, output).into());
            }
        }
    };
    notifications.finish().await;
    Ok(awaited.end(result).into())
}

/// The answer to a call that does not get its run.
fn not_awaited(format: Format, error: &NotAwaited) -> CallToolResponse {
    answer::refusal(format, ToolErrorCode::RunNotFound.as_str(), &error.to_string(), None).into()
}

/// Reads the arguments of `wait`.
fn read(arguments: &JsonObject) -> Result<(&str, Duration), String> {
    let mut time = DEFAULT_WAIT;
    for (name, value) in arguments {
        match (&**name, value) {
            ("runId", _) | ("timeoutMs", Value::Null) => {}
            ("timeoutMs", value) => {
                let milliseconds = value.as_u64().map(Duration::from_millis);
                time = milliseconds.filter(|time| *time <= MAX_TIMEOUT).ok_or_else(|| {
                    let max = MAX_TIMEOUT.as_millis();
                    format!("`timeoutMs`: expected a whole number of milliseconds from 0 to {max}")
                })?;
            }
            (other, _) => {
                let shown = preview(other, MAX_SHOWN_NAME);
                return Err(format!("unknown parameter `{shown}`: `wait` takes `runId` and `timeoutMs`"));
            }
        }
    }
    let id = arguments.get("runId").and_then(Value::as_str);
    id.map(|id| (id, time)).ok_or_else(|| "`runId`: expected the id of a run, a string".to_owned())
}

/// The answer to a call whose run continues.
fn running(shared: &Shared, id: &str, mut output: String) -> Answer {
    let note = format!("; when the run has ended, the next script gets all with await mcp.run({id:?})");
    if let Some((kept, _)) = cut(&output, shared.options.max_value, &note) {
        output = kept;
    }
    let mut structured = json!({ "running": true, "runId": id });
    if !output.is_empty() {
        structured["output"] = output.clone().into();
    }
    let text = shared.options.format.render(&structured, || {
        let gap = if output.is_empty() { "" } else { "\n" };
        format!("{output}{gap}[running] wait({{\"runId\": {id:?}}}) returns the rest")
    });
    Answer { structured, content: vec![ContentBlock::text(text)], is_error: false }
}
