//! User interfaces of tools (MCP Apps): the `ui://` resources of the servers whose tools name them.
//!
//! A resource belongs to the server whose tool names it, and is passed on unchanged. Only its address may differ: see
//! [`ShownTools`].

use std::time::Duration;

use futures::future::join_all;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, ReadResourceResult, Resource};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::call::for_client;
use super::prompt::{Elicitation, Prompt};
use super::session::McpSession;
use super::shown::{self, Interface, ShownTools};
use crate::json::{self, Json};
use crate::run::limits::Limits;
use crate::run::script::Script;
use crate::run::tool_call;
use crate::tools::{INTERFACE_TYPE, ServerRequest, ToolError, ToolErrorCode};

/// How long listing waits for a server. For a slower server only the addresses of its interfaces are listed.
const MAX_LIST_TIME: Duration = Duration::from_secs(5);

/// Maximum bytes of a resource, and of the list of a server's resources.
const MAX_BYTES: usize = 8 << 20;

/// The interfaces that a client can read, as their servers list them. Empty for a client that shows none.
pub(crate) async fn list(session: &McpSession, context: &RequestContext<RoleServer>) -> Vec<Resource> {
    if !shown::shows_interfaces(context.client_capabilities().as_ref()) {
        return Vec::new();
    }
    let tools = session.shared.asked_tools(true).await;
    let all = tools.interfaces();
    let mut servers: Vec<&str> = all.iter().map(|(_, at)| &*at.server).collect();
    servers.sort_unstable();
    servers.dedup();
    let listing = servers.iter().map(|server| async move {
        let listed = request(session, context, server, ServerRequest::ListResources, MAX_LIST_TIME).await;
        (*server, listed.ok().and_then(|list| parsed::<Vec<Value>>(&list)).unwrap_or_default())
    });
    let listed: Vec<(&str, Vec<Value>)> = join_all(listing).await;
    all.into_iter().map(|(address, at)| resource(address, at, &listed)).collect()
}

/// A resource as its server lists it, under the address that clients see.
fn resource(address: &str, at: &Interface, listed: &[(&str, Vec<Value>)]) -> Resource {
    let of_server = listed.iter().filter(|(server, _)| *server == &*at.server).flat_map(|(_, list)| list);
    let mut found = of_server.filter(|entry| entry["uri"] == *at.address);
    let listed = found.next().and_then(|entry| {
        let mut entry = entry.clone();
        entry["uri"] = address.into();
        serde_json::from_value::<Resource>(entry).ok()
    });
    listed.unwrap_or_else(|| Resource::new(address, at.address.clone()).with_mime_type(INTERFACE_TYPE))
}

/// Reads an interface from its server.
///
/// # Errors
///
/// If no tool names it, or its server does not return it.
pub(crate) async fn read(
    session: &McpSession,
    address: &str,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResult, ErrorData> {
    let Interface { server, address: own } = find(session, address).await?;
    let wall_time = session.shared.executor.limits().wall_time;
    let wanted = ServerRequest::ReadResource { uri: own.clone() };
    let answer = request(session, context, &server, wanted, wall_time).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let unreadable = || {
        let problem = format!("server `{server}` has sent a resource that cannot be read: {address}");
        ErrorData::internal_error(problem, None)
    };
    let mut answer: Value = parsed(&answer).ok_or_else(unreadable)?;
    readdress(&mut answer, &own, address);
    serde_json::from_value(answer).map_err(|_| unreadable())
}

/// Replaces the server's own address in its answer, which can be any value, by the one that clients see.
fn readdress(answer: &mut Value, own: &str, address: &str) {
    let contents = answer.get_mut("contents").and_then(Value::as_array_mut);
    for contents in contents.into_iter().flatten().filter(|contents| contents["uri"] == own) {
        contents["uri"] = address.into();
    }
}

/// The interface at an address as clients see it.
///
/// # Errors
///
/// If no tool names it.
pub(crate) async fn find(session: &McpSession, address: &str) -> Result<Interface, ErrorData> {
    let mut tools = session.shared.tools();
    if tools.interface(address).is_none() {
        tools = session.shared.asked_tools(true).await;
    }
    tools.interface(address).cloned().ok_or_else(|| {
        let problem = format!("{}: {address}", missing(&tools, address));
        ErrorData::resource_not_found(problem, Some(json!({ "uri": address })))
    })
}

/// Why there is no interface at an address.
fn missing(tools: &ShownTools, address: &str) -> &'static str {
    let is_shared = tools.interfaces().iter().any(|(_, at)| at.address == address);
    if is_shared {
        "several servers have an interface at this address; the definitions of their tools name one for each"
    } else {
        "no tool that is shown names this interface"
    }
}

/// Sends a request about an interface to its server, for a client.
pub(crate) async fn request(
    session: &McpSession,
    context: &RequestContext<RoleServer>,
    server: &str,
    request: ServerRequest,
    wall_time: Duration,
) -> Result<Json, ToolError> {
    let executor = &session.shared.executor;
    let cancel = session.cancellation(context);
    let _cancel_on_drop = cancel.clone().drop_guard();
    // A prompt that would have to be sent in a result cannot be sent here: its receiver is dropped.
    let elicitation = Elicitation::from_context(context).filter(|client| client.in_results.is_none());
    let (options, _prompts) = options(session, elicitation, wall_time, &cancel);
    tokio::select! {
        answer = executor.request_resource(options, server, request) => answer,
        () = context.ct.cancelled() => Err(ToolError::new(ToolErrorCode::Cancelled, "the request was cancelled")),
    }
}

/// The options of such a request, and the prompts that would have to be sent in a result.
pub(crate) fn options(
    session: &McpSession,
    elicitation: Option<Elicitation>,
    wall_time: Duration,
    cancel: &CancellationToken,
) -> (Script, mpsc::Receiver<Prompt>) {
    let limits = session.shared.executor.limits();
    let limits = Limits {
        wall_time: wall_time.min(limits.wall_time),
        result_bytes: limits.result_bytes.min(MAX_BYTES),
        ..limits
    };
    let options = Script::typescript("").named(tool_call::NAME).limits(limits);
    for_client(session, options, elicitation, cancel)
}

/// Parses an answer, unless it would take far more memory than its text.
fn parsed<T: serde::de::DeserializeOwned>(answer: &Json) -> Option<T> {
    let text = answer.text();
    json::check(text, json::budget(text.len())).ok()?;
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::readdress;

    /// Threat 737.
    #[test]
    fn v_737_an_interface_that_is_no_object_is_no_panic() {
        for text in ["[]", "1", "null", r#"{"contents":1}"#, r#"{"contents":[1,"ui://a",[]]}"#] {
            let mut answer = serde_json::from_str(text).unwrap();
            readdress(&mut answer, "ui://a", "ui://cx/a");
            assert_eq!(answer.to_string(), text);
        }
        let mut answer = json!({ "contents": [{ "uri": "ui://a" }, { "uri": "ui://b" }] });
        readdress(&mut answer, "ui://a", "ui://cx/a");
        assert_eq!(answer, json!({ "contents": [{ "uri": "ui://cx/a" }, { "uri": "ui://b" }] }));
    }
}
