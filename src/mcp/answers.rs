//! Requests, and the form in which their answers pass through rmcp: as text where rmcp would make
//! trees.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, CustomRequest, CustomResult,
    DiscoverResult, GetExtensions as _, InitializeResult, InputResponses, JsonObject, JsonRpcMessage,
    ServerResult,
};
use serde::de::Error as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::questions::Caller;
use crate::durations::milliseconds;
use crate::json::{self, Json, TreeError};
use crate::tools::{SentRequest, TraceContext};

/// The expected answer to an outgoing request, which determines how the answer is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Discover,
    Initialize,
    ListTools,
    CallTool,
    /// The end of a subscription.
    Listen,
    /// Any other result, which is passed to the script unchanged.
    Other,
}

/// The arguments of a call as JSON text, attached to a request whose own arguments are empty. rmcp
/// would keep them as a tree, and make a second tree when it serializes them.
#[derive(Clone)]
struct CallArguments(Json);

/// How long the server is asked to keep the task of a call. A call that has it attached is made as a task, for which
/// rmcp's type has no field.
#[derive(Clone)]
struct TaskTime(Duration);

/// Attached to a request that declares that this client supports tasks of the stateless revision (SEP-2663).
#[derive(Clone)]
struct SupportsTasks;

/// The extension under which [`read_result`] keeps that a server makes tasks of calls: rmcp's types have no field for
/// the capability of revision 2025-11-25.
pub(crate) const TASKS_OF_CALLS: &str = "cx/tasks.requests.tools.call";

/// Maximum bytes of the protocol version that a server names, which is a date. Each later request may repeat it.
const MAX_VERSION: usize = 64;

/// What connects a request with the trace of its caller.
#[derive(Clone, Default)]
pub(crate) struct RequestTrace {
    /// The position of the request, which is sent to the server.
    pub(crate) context: Option<TraceContext>,
    /// Receives what was sent.
    pub(crate) sent: Option<Arc<OnceLock<SentRequest>>>,
}

/// The trace context of a request, attached to it until [`encoded`] writes it. As fields of rmcp's
/// `_meta` it would be cloned three times.
#[derive(Clone)]
struct AttachedContext(TraceContext);

/// Attaches the trace context to the request that carries it.
pub(crate) fn attach_context(request: &mut ClientRequest, context: TraceContext) {
    request.extensions_mut().insert(AttachedContext(context));
}

/// A request to call a tool, for `caller`. `more` has the input that the server asked for before it answers.
pub(crate) fn call_request(
    tool: &str,
    arguments: Json,
    caller: Arc<Caller>,
    more: Option<(InputResponses, Option<String>)>,
) -> ClientRequest {
    let mut parameters = CallToolRequestParams::new(tool.to_owned()).with_arguments(JsonObject::new());
    if let Some((responses, state)) = more {
        parameters.input_responses = (!responses.is_empty()).then_some(responses);
        parameters.request_state = state;
    }
    let mut request = CallToolRequest::new(parameters);
    request.extensions.insert(CallArguments(arguments));
    request.extensions.insert(caller);
    ClientRequest::CallToolRequest(request)
}

/// A request other than a call, for `caller`, whom the server may ask before it answers. `more` is as in
/// [`call_request`].
pub(crate) fn request_for(
    method: &str,
    mut parameters: JsonObject,
    caller: Arc<Caller>,
    more: Option<(InputResponses, Option<String>)>,
) -> ClientRequest {
    if let Some((responses, state)) = more {
        if !responses.is_empty() {
            parameters.insert("inputResponses".to_owned(), json!(responses));
        }
        if let Some(state) = state {
            parameters.insert("requestState".to_owned(), Value::from(state));
        }
    }
    let mut request = CustomRequest::new(method, Some(Value::Object(parameters)));
    request.extensions.insert(caller);
    ClientRequest::CustomRequest(request)
}

/// A request to make a task of a call, which the server is asked to keep for this long.
pub(crate) fn task_request(
    tool: &str,
    arguments: Json,
    caller: Arc<Caller>,
    keep: Duration,
) -> ClientRequest {
    let mut request = call_request(tool, arguments, caller, None);
    request.extensions_mut().insert(TaskTime(keep));
    request
}

/// A request about the task of a call, such as `tasks/get`, with the input that the task waits for, if it is that.
pub(crate) fn request_about_task(
    method: &str,
    task: &str,
    caller: Option<Arc<Caller>>,
    input: Option<InputResponses>,
) -> ClientRequest {
    let mut parameters = json!({ "taskId": task });
    if let Some(input) = input {
        parameters["inputResponses"] = json!(input);
    }
    let mut request = CustomRequest::new(method, Some(parameters));
    if let Some(caller) = caller {
        request.extensions.insert(caller);
    }
    request.extensions.insert(SupportsTasks);
    ClientRequest::CustomRequest(request)
}

/// Declares with a request that this client supports tasks, so that the server may make one.
pub(crate) fn declare_tasks(request: &mut ClientRequest) {
    request.extensions_mut().insert(SupportsTasks);
}

/// Whether a request declares that this client supports tasks.
pub(crate) fn declares_tasks(request: &ClientRequest) -> bool {
    request.extensions().get::<SupportsTasks>().is_some()
}

/// The call that a request belongs to.
pub(crate) fn caller(request: &ClientRequest) -> Option<Arc<Caller>> {
    request.extensions().get().cloned()
}

/// Serializes a message.
///
/// # Errors
///
/// If it cannot be serialized. No message of this client is known to fail.
pub(crate) fn encoded(message: &ClientJsonRpcMessage) -> Result<Vec<u8>, serde_json::Error> {
    /// The empty arguments of [`call_request`] as they are serialized. Within a string the quotes
    /// would be escaped, and no part of the message before it has such a field.
    const EMPTY: &[u8] = br#""arguments":{}"#;
    /// The first of the parameters: only the id and the method are before it.
    const META: &[u8] = br#""_meta":{"#;
    let mut body = serde_json::to_vec(message)?;
    let JsonRpcMessage::Request(request) = message else { return Ok(body) };
    let extensions = request.request.extensions();
    // The end of the first such field from this offset on.
    let end_of = |body: &[u8], from: usize, field: &[u8]| {
        let offset = body[from..].windows(field.len()).position(|bytes| bytes == field);
        let missing = || serde_json::Error::custom("the request does not have the fields that it must have");
        offset.map(|offset| from + offset + field.len()).ok_or_else(missing)
    };
    let mut context_end = 0;
    if let Some(AttachedContext(context)) = extensions.get() {
        let begin = end_of(&body, 0, META)?;
        let mut fields = context.to_meta_fields();
        if body.get(begin) != Some(&b'}') {
            fields.push(',');
        }
        context_end = begin + fields.len();
        body.splice(begin..begin, fields.into_bytes());
    }
    let Some(CallArguments(arguments)) = extensions.get() else { return Ok(body) };
    // A context, which may have 9 KB, is not searched.
    let end = end_of(&body, context_end, EMPTY)?;
    let (before, after) = (&body[..end - 2], &body[end..]);
    let task = extensions.get::<TaskTime>().map(|TaskTime(keep)| {
        let ttl = milliseconds(*keep);
        format!(r#","task":{{"ttl":{ttl}}}"#)
    });
    let task = task.unwrap_or_default();
    Ok([before, arguments.text().as_bytes(), task.as_bytes(), after].concat())
}

/// The expected answer to a request.
pub(crate) fn expected(request: &ClientRequest) -> Expected {
    match request.method() {
        "server/discover" => Expected::Discover,
        "initialize" => Expected::Initialize,
        "tools/list" => Expected::ListTools,
        // The result of a task is that of its call.
        "tools/call" | "tasks/result" => Expected::CallTool,
        "subscriptions/listen" => Expected::Listen,
        _ => Expected::Other,
    }
}

/// Parses a result as the type that its request expects. Results that may be large pass through
/// rmcp as text ([`result_text`]), because rmcp's types hold trees.
///
/// # Errors
///
/// If the result is not of the expected type, or would take far more memory than its text.
pub(crate) fn read_result(expected: Expected, result: &RawValue) -> Result<ServerResult, TreeError> {
    let text = result.get();
    if matches!(expected, Expected::ListTools | Expected::CallTool | Expected::Other) {
        return Ok(ServerResult::CustomResult(CustomResult(Value::String(text.to_owned()))));
    }
    json::check(text, json::budget(text.len()))?;
    Ok(match expected {
        Expected::Discover => ServerResult::DiscoverResult(serde_json::from_str::<DiscoverResult>(text)?),
        Expected::Initialize => {
            let mut result = serde_json::from_str::<InitializeResult>(text)?;
            let version = result.protocol_version.as_str();
            if version.len() > MAX_VERSION || !version.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
                return Err(serde_json::Error::custom("its protocol version is too long, or no text").into());
            }
            if makes_tasks(text) {
                let extensions = result.capabilities.extensions.get_or_insert_default();
                extensions.insert(TASKS_OF_CALLS.to_owned(), JsonObject::new());
            }
            ServerResult::InitializeResult(result)
        }
        _ => serde_json::from_str(text)?,
    })
}

/// Whether a server declares in its handshake that it makes tasks of calls.
fn makes_tasks(text: &str) -> bool {
    let capability = "/capabilities/tasks/requests/tools/call";
    serde_json::from_str::<Value>(text)
        .is_ok_and(|result| result.pointer(capability).is_some_and(Value::is_object))
}

/// The text of a result that [`read_result`] has not parsed.
pub(crate) fn result_text(result: ServerResult) -> Option<String> {
    match result {
        ServerResult::CustomResult(CustomResult(Value::String(text))) => Some(text),
        _ => None,
    }
}

/// Whether the result of a call says that it is an error.
pub(crate) fn is_tool_error(text: &str) -> bool {
    // Results take megabytes, and most say that they are none: those are not read again.
    let begins_true = |(position, name): (usize, &str)| {
        let value = text[position + name.len()..].trim_start().strip_prefix(':');
        value.is_some_and(|value| value.trim_start().starts_with("true"))
    };
    if !text.match_indices("\"isError\"").any(begins_true) {
        return false;
    }
    let mut is_error = false;
    let read = json::each_field(text, |name, value| is_error |= name == "isError" && value.get() == "true");
    read.is_ok() && is_error
}

/// Calls a tool as `Connection` does: rmcp's own function expects a
/// result that rmcp has parsed.
#[cfg(test)]
pub(crate) async fn call_tool(
    peer: &rmcp::Peer<rmcp::RoleClient>,
    parameters: rmcp::model::CallToolRequestParams,
) -> Result<serde_json::Value, rmcp::ServiceError> {
    let request = rmcp::model::CallToolRequest::new(parameters);
    let result = peer.send_request(rmcp::model::ClientRequest::CallToolRequest(request)).await?;
    let text = result_text(result).ok_or(rmcp::ServiceError::UnexpectedResponse)?;
    Ok(serde_json::from_str(&text).expect("the test's server sends JSON"))
}

#[cfg(test)]
mod tests {
    use super::is_tool_error;

    #[test]
    fn only_the_field_of_the_result_says_that_it_is_an_error() {
        for (text, expected) in [
            (r#"{"content":[],"isError":true}"#, true),
            (" {\"isError\" :\n true , \"content\":[]}", true),
            (r#"{"isError":false,"structuredContent":{"isError":false}}"#, false),
            (r#"{"isError":false,"structuredContent":{"isError":true}}"#, false),
            (r#"{"content":[{"type":"text","text":"\"isError\":true"}]}"#, false),
            (r#"{"isError":"true"}"#, false),
            (r#"{"isError":"#, false),
            (r#"[{"isError":true}]"#, false),
            ("", false),
        ] {
            assert_eq!(is_tool_error(text), expected, "{text}");
        }
    }
}
