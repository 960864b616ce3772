//! Converts the results of tool calls to the types of `tools`.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::errors::unreadable;
use crate::json::{self, Json};
use crate::text;
use crate::tools::{ToolError, ToolErrorCode, ToolResult};

/// The result of `tools/call`, each part as its JSON text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenResult<'a> {
    #[serde(borrow)]
    result_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    /// An explicit `null` is a result.
    #[serde(borrow, default, deserialize_with = "json::present")]
    structured_content: Option<&'a RawValue>,
    is_error: Option<bool>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    // The input that a server requests instead of answering.
    #[serde(borrow)]
    input_requests: Option<&'a RawValue>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
    #[serde(borrow)]
    task_id: Option<&'a RawValue>,
}

/// The answer to a call.
#[derive(Debug)]
pub(crate) enum CallAnswer {
    Complete(ToolResult),
    /// The server needs input before it makes the call (the stateless revision).
    InputRequired(RequiredInput),
}

/// The input that a server requires before it makes a call.
#[derive(Debug)]
pub(crate) struct RequiredInput {
    /// Its requests by their keys, as their JSON text. At most [`MAX_REQUESTS`].
    pub(crate) requests: Vec<(String, String)>,
    /// The server's state, which is sent back unchanged.
    pub(crate) state: Option<String>,
}

/// Maximum number of requests for input in one answer.
const MAX_REQUESTS: usize = 16;

/// Maximum bytes of all requests for input in one answer, and of the state beside them.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// Converts the result of a call to the types of `tools`. Requests for input exist only in the stateless revision.
///
/// Content blocks keep the keys of MCP, so images, audio and resources reach the script unchanged.
pub(crate) fn call_answer(server: &str, text: &str, is_stateless: bool) -> Result<CallAnswer, ToolError> {
    let read = |text: &str| -> Result<Option<CallAnswer>, serde_json::Error> {
        let result: WrittenResult<'_> = serde_json::from_str(text)?;
        let is_complete = result.result_type.as_deref().is_none_or(|kind| kind == "complete");
        let is_empty =
            result.content.is_none() && result.structured_content.is_none() && result.is_error.is_none();
        let asks = [result.input_requests, result.request_state, result.task_id].iter().any(Option::is_some);
        match (is_complete, is_empty) {
            (true, false) => {}
            _ if is_stateless && result.result_type.as_deref() == Some("input_required") => {
                return required_input(&result).map(|input| Some(CallAnswer::InputRequired(input)));
            }
            _ if asks => return Ok(None),
            _ => {
                return Err(serde_json::Error::custom(
                    "expected `content`, `structuredContent` or `isError`",
                ));
            }
        }
        if let Some(content) = result.content {
            json::each_item(content.get(), check_block)?;
        }
        let parsed = |part: Option<&RawValue>| part.map(|part| Json::parse_marked(part.get())).transpose();
        Ok(Some(CallAnswer::Complete(ToolResult {
            content: parsed(result.content)?,
            structured: parsed(result.structured_content)?,
            is_error: result.is_error.unwrap_or(false),
            meta: parsed(result.meta.filter(|meta| meta.get().starts_with('{')))?,
        })))
    };
    match read(text) {
        Ok(Some(result)) => Ok(result),
        Ok(None) => Err(ToolError::new(
            ToolErrorCode::UpstreamProtocol,
            format!(
                "server `{server}` starts a task or asks out of turn, which this client does not support"
            ),
        )),
        Err(error) => Err(unreadable(server, &error.to_string())),
    }
}

/// Whether an answer to a request other than a call asks for input.
///
/// # Errors
///
/// If the answer is no object.
pub(crate) fn asks_for_input(text: &str) -> Result<bool, serde_json::Error> {
    let mut asks = false;
    json::each_field(text, |field, value| {
        asks |= field == "resultType" && value.get() == "\"input_required\"";
    })?;
    Ok(asks)
}

/// The input that a server requires before it answers a request other than a call; `None` if this is the answer.
///
/// # Errors
///
/// If the answer is no object, or asks for something that cannot be read or in another revision.
pub(crate) fn input_before(
    server: &str,
    text: &str,
    is_stateless: bool,
) -> Result<Option<RequiredInput>, ToolError> {
    let read = |text: &str| -> Result<Option<RequiredInput>, serde_json::Error> {
        match (asks_for_input(text)?, is_stateless) {
            (false, _) => Ok(None),
            (true, true) => required_input(&serde_json::from_str(text)?).map(Some),
            (true, false) => Err(serde_json::Error::custom(
                "it asks for input in its answer, which is not of the revision that it speaks",
            )),
        }
    };
    read(text).map_err(|error| unreadable(server, &error.to_string()))
}

/// The requests for input in an object, by their keys, within the bounds.
pub(crate) fn input_requests(all: &RawValue) -> Result<Vec<(String, String)>, serde_json::Error> {
    if all.get().len() > MAX_REQUEST_BYTES {
        return Err(serde_json::Error::custom(format!("more than {MAX_REQUEST_BYTES} bytes of requests")));
    }
    let mut requests = Vec::new();
    json::each_field(all.get(), |key, request| {
        if requests.len() <= MAX_REQUESTS {
            requests.push((key.to_owned(), request.get().to_owned()));
        }
    })?;
    if requests.len() > MAX_REQUESTS {
        return Err(serde_json::Error::custom(format!("more than {MAX_REQUESTS} requests for input")));
    }
    Ok(requests)
}

fn required_input(result: &WrittenResult<'_>) -> Result<RequiredInput, serde_json::Error> {
    let size = |part: Option<&RawValue>| part.map_or(0, |part| part.get().len());
    if size(result.input_requests) + size(result.request_state) > MAX_REQUEST_BYTES {
        return Err(serde_json::Error::custom(format!("more than {MAX_REQUEST_BYTES} bytes of requests")));
    }
    let state = result.request_state.map(|state| serde_json::from_str(state.get())).transpose()?;
    let requests = result.input_requests.map(input_requests).transpose()?.unwrap_or_default();
    if requests.is_empty() && state.is_none() {
        return Err(serde_json::Error::custom("expected `inputRequests` or `requestState`"));
    }
    Ok(RequiredInput { requests, state })
}

/// Checks that a content block is of a type of the protocol and has its required fields.
fn check_block(block: &RawValue) -> Result<(), serde_json::Error> {
    /// Accepts any string without storing it.
    struct Text;
    impl<'de> Deserialize<'de> for Text {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let raw = <&RawValue>::deserialize(deserializer)?;
            if raw.get().starts_with('"') { Ok(Self) } else { Err(D::Error::custom("expected a string")) }
        }
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Block<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
        text: Option<Text>,
        data: Option<Text>,
        mime_type: Option<Text>,
        #[serde(borrow)]
        resource: Option<&'a RawValue>,
        uri: Option<Text>,
        name: Option<Text>,
    }
    #[derive(Deserialize)]
    struct Contents {
        uri: Option<Text>,
        text: Option<Text>,
        blob: Option<Text>,
    }
    let missing = |field: &str| Err(serde_json::Error::custom(format!("missing field `{field}`")));
    let found: Block<'_> = serde_json::from_str(block.get())?;
    match &*found.kind {
        "text" if found.text.is_none() => missing("text"),
        "image" | "audio" if found.data.is_none() => missing("data"),
        "image" | "audio" if found.mime_type.is_none() => missing("mimeType"),
        "resource_link" if found.uri.is_none() => missing("uri"),
        "resource_link" if found.name.is_none() => missing("name"),
        "resource" => {
            let Some(resource) = found.resource else { return missing("resource") };
            let contents: Contents = serde_json::from_str(resource.get())?;
            match contents {
                Contents { uri: None, .. } => missing("uri"),
                Contents { text: None, blob: None, .. } => missing("text"),
                _ => Ok(()),
            }
        }
        "text" | "image" | "audio" | "resource_link" => Ok(()),
        other => {
            let shown = text::start(other, 40);
            Err(serde_json::Error::custom(format!("unknown type of content: `{shown}`")))
        }
    }
}
