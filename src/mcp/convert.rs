//! Converts between the protocol's types and the types of `tools`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, CustomResult,
    DiscoverResult, ErrorCode, ErrorData, GetExtensions as _, InitializeResult, JsonObject, JsonRpcMessage,
    ServerResult, ToolAnnotations,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{self, Json, TreeError};
use crate::text::{hidden_text, visible};
use crate::tools::{Schema, ToolDefinition, ToolError, ToolErrorCode, ToolResult};

/// The error codes with which the transport reports its own errors through rmcp, which has no other
/// way to end one request. They are far from the codes of JSON-RPC. If a server uses one of them,
/// it is replaced.
pub(super) const UNREADABLE_ANSWER: ErrorCode = ErrorCode(i32::MIN);
pub(super) const OVERSIZED_ANSWER: ErrorCode = ErrorCode(i32::MIN + 1);

/// Maximum bytes of a description. More does not help a model that reads it.
const DESCRIPTION_BYTES: usize = 64 * 1024;

/// Maximum bytes of a schema. The largest real schemas, generated from whole API descriptions, have
/// about this size.
const SCHEMA_BYTES: usize = 256 * 1024;

/// Maximum bytes of all definitions of one server: an index over them is kept in memory.
pub(super) const SERVER_BYTES: usize = 16 * 1024 * 1024;

/// Maximum bytes of a schema as the server wrote it, with whitespace and escapes. A longer one is
/// not parsed.
const WRITTEN_SCHEMA_BYTES: usize = 4 * SCHEMA_BYTES;

/// Maximum bytes of a schema as a tree: about twelve times [`SCHEMA_BYTES`], as real schemas of
/// that size take.
pub(super) const SCHEMA_TREE_BYTES: usize = 4 << 20;

/// Maximum bytes of a tool's name.
const NAME_BYTES: usize = 256;

/// Maximum bytes of a server's own error message that are passed on.
pub(super) const MESSAGE_BYTES: usize = 16 * 1024;

/// The expected answer to an outgoing request, which determines how the answer is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
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

/// A request to call a tool.
pub(super) fn call_request(tool: &str, arguments: Json) -> ClientRequest {
    let parameters = CallToolRequestParams::new(tool.to_owned()).with_arguments(JsonObject::new());
    let mut request = CallToolRequest::new(parameters);
    request.extensions.insert(CallArguments(arguments));
    ClientRequest::CallToolRequest(request)
}

/// Serializes a message.
///
/// # Errors
///
/// If it cannot be serialized. No message of this client is known to fail.
pub(super) fn encoded(message: &ClientJsonRpcMessage) -> Result<Vec<u8>, serde_json::Error> {
    /// The empty arguments of [`call_request`] as they are serialized. Within a string the quotes
    /// would be escaped, and no other part of the message has such a field.
    const EMPTY: &[u8] = br#""arguments":{}"#;
    let body = serde_json::to_vec(message)?;
    let JsonRpcMessage::Request(request) = message else { return Ok(body) };
    let Some(CallArguments(arguments)) = request.request.extensions().get() else { return Ok(body) };
    let place = body.windows(EMPTY.len()).position(|bytes| bytes == EMPTY);
    let place = place.ok_or_else(|| serde_json::Error::custom("the call has no arguments"))?;
    let (before, after) = (&body[..place + EMPTY.len() - 2], &body[place + EMPTY.len()..]);
    Ok([before, arguments.text().as_bytes(), after].concat())
}

/// The expected answer to a request.
pub(super) fn expected(request: &ClientRequest) -> Expected {
    match request.method() {
        "server/discover" => Expected::Discover,
        "initialize" => Expected::Initialize,
        "tools/list" => Expected::ListTools,
        "tools/call" => Expected::CallTool,
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
pub(super) fn read_result(expected: Expected, result: &RawValue) -> Result<ServerResult, TreeError> {
    let text = result.get();
    if matches!(expected, Expected::ListTools | Expected::CallTool | Expected::Other) {
        return Ok(ServerResult::CustomResult(CustomResult(Value::String(text.to_owned()))));
    }
    json::check(text, json::budget(text.len()))?;
    Ok(match expected {
        Expected::Discover => ServerResult::DiscoverResult(serde_json::from_str::<DiscoverResult>(text)?),
        Expected::Initialize => {
            ServerResult::InitializeResult(serde_json::from_str::<InitializeResult>(text)?)
        }
        _ => serde_json::from_str(text)?,
    })
}

/// The text of a result that [`read_result`] has not parsed.
pub(super) fn result_text(result: ServerResult) -> Option<String> {
    match result {
        ServerResult::CustomResult(CustomResult(Value::String(text))) => Some(text),
        _ => None,
    }
}

/// Calls a tool as [`Connection`](super::client::Connection) does: rmcp's own function expects a
/// result that rmcp has parsed.
#[cfg(test)]
pub(super) async fn call_tool(
    peer: &rmcp::Peer<rmcp::RoleClient>,
    parameters: rmcp::model::CallToolRequestParams,
) -> Result<serde_json::Value, rmcp::ServiceError> {
    let request = rmcp::model::CallToolRequest::new(parameters);
    let result = peer.send_request(rmcp::model::ClientRequest::CallToolRequest(request)).await?;
    let text = result_text(result).ok_or(rmcp::ServiceError::UnexpectedResponse)?;
    Ok(serde_json::from_str(&text).expect("the test's server sends JSON"))
}

/// A page of a list of tools, each tool as its JSON text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPage<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
    next_cursor: Option<String>,
    /// A negative value means that the list may not be cached.
    ttl_ms: Option<i64>,
}

/// A page of a list of tools. Its tools are parsed one by one by [`ListBuilder::push`].
pub(super) struct ToolPage<'a> {
    pub(super) tools: Vec<&'a RawValue>,
    pub(super) next_cursor: Option<String>,
    pub(super) ttl: Option<Duration>,
}

/// Parses a page of a list of tools, and at most `most` of its tools.
///
/// # Errors
///
/// If it is not such a page.
pub(super) fn read_tools(text: &str, most: usize) -> Result<ToolPage<'_>, serde_json::Error> {
    let page: WrittenPage<'_> = serde_json::from_str(text)?;
    let ttl = page.ttl_ms.map(|milliseconds| Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0)));
    Ok(ToolPage { tools: json::items(page.tools.get(), most)?, next_cursor: page.next_cursor, ttl })
}

/// A tool as a server describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTool<'a> {
    name: String,
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input_schema: &'a RawValue,
    #[serde(borrow)]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

/// Parses a schema, if it is an object and not too large.
pub(super) fn schema_tree(schema: &RawValue) -> Option<Value> {
    let text = schema.get();
    let tree =
        if text.len() > WRITTEN_SCHEMA_BYTES { None } else { json::tree(text, SCHEMA_TREE_BYTES).ok() };
    tree.filter(Value::is_object)
}

/// Builds one server's list of tools from its pages, within the bounds.
pub(super) struct ListBuilder<'a> {
    server: &'a str,
    names: HashSet<String>,
    bytes: usize,
    definitions: Vec<ToolDefinition>,
    malformed: usize,
}

impl<'a> ListBuilder<'a> {
    pub(super) fn new(server: &'a str) -> Self {
        Self { server, names: HashSet::new(), bytes: 0, definitions: Vec::new(), malformed: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.definitions.len()
    }

    /// Whether the definitions have reached the maximum of bytes of one server.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= SERVER_BYTES
    }

    /// Adds a tool, truncated to the bounds. Skips entries that are not tools, and tools whose name
    /// is already in the list.
    pub(super) fn push(&mut self, tool: &RawValue) {
        let tool = match serde_json::from_str::<WrittenTool<'_>>(tool.get()) {
            Ok(tool) if tool.input_schema.get().starts_with('{') => tool,
            malformed => {
                self.malformed += 1;
                let problem = malformed.err().map(|error| error.to_string());
                tracing::debug!(server = self.server, problem, "a malformed tool definition");
                return;
            }
        };
        let name = tool.name;
        if name.is_empty() || name.len() > NAME_BYTES {
            let bytes = name.len();
            tracing::warn!(server = self.server, bytes, "a tool with an unusable name was left out");
            return;
        }
        if !self.names.insert(name.clone()) {
            tracing::warn!(server = self.server, tool = name, "a second tool of this name was left out");
            return;
        }
        let description = tool.description.map(|text| shortened(&visible(&text), DESCRIPTION_BYTES));
        let input_schema = self.schema(&name, tool.input_schema).unwrap_or_else(Schema::any_object);
        let output_schema = tool.output_schema.and_then(|schema| self.schema(&name, schema));
        // The annotations contain a title, which is free text too.
        let annotations = tool.annotations.filter(|annotations| annotations.get().len() <= DESCRIPTION_BYTES);
        let annotations = annotations
            .and_then(|annotations| serde_json::from_str::<ToolAnnotations>(annotations.get()).ok())
            .and_then(|annotations| serde_json::to_value(annotations).ok());
        self.bytes += name.len() + description.as_ref().map_or(0, String::len);
        self.bytes += annotations.as_ref().map_or(0, |annotations| annotations.to_string().len());
        self.definitions.push(ToolDefinition { name, description, input_schema, output_schema, annotations });
    }

    /// Returns the schema unless it is too large. Without it, arguments and results are not
    /// checked, which is better than omitting the tool.
    fn schema(&mut self, tool: &str, schema: &RawValue) -> Option<Schema> {
        let text = schema_tree(schema).map(|mut schema| {
            show_hidden(&mut schema);
            schema.to_string()
        });
        let Some(text) = text.filter(|text| text.len() <= SCHEMA_BYTES) else {
            let bytes = schema.get().len();
            tracing::warn!(server = self.server, tool, bytes, "a schema was too large and was left out");
            return None;
        };
        self.bytes += text.len();
        serde_json::from_str(&text).ok()
    }

    pub(super) fn finish(self, ttl: Option<Duration>) -> crate::tools::ToolList {
        if self.malformed > 0 {
            let malformed = self.malformed;
            tracing::warn!(server = self.server, malformed, "malformed tool definitions were left out");
        }
        crate::tools::ToolList { tools: self.definitions, ttl }
    }
}

/// Escapes invisible characters in the descriptive texts of a schema. Names, patterns and values
/// stay unchanged.
fn show_hidden(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if ["description", "title", "$comment"].contains(&name.as_str()) => {
                        if hidden_text(text) {
                            *text = visible(text);
                        }
                    }
                    value => show_hidden(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(show_hidden),
        _ => {}
    }
}

/// The result of `tools/call`, each part as its JSON text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenResult<'a> {
    #[serde(borrow)]
    result_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    /// An explicit `null` is a result.
    #[serde(borrow, default, deserialize_with = "present")]
    structured_content: Option<&'a RawValue>,
    is_error: Option<bool>,
    // The input that a server requests instead of answering.
    #[serde(borrow)]
    input_requests: Option<&'a RawValue>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
    #[serde(borrow)]
    task_id: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Converts the result of a call to the types of `tools`.
///
/// Content blocks keep the keys of MCP, so images, audio and resources reach the script unchanged.
pub(super) fn tool_result(server: &str, text: &str) -> Result<ToolResult, ToolError> {
    let read = |text: &str| -> Result<Option<ToolResult>, serde_json::Error> {
        let result: WrittenResult<'_> = serde_json::from_str(text)?;
        let is_complete = result.result_type.as_deref().is_none_or(|kind| kind == "complete");
        let is_empty =
            result.content.is_none() && result.structured_content.is_none() && result.is_error.is_none();
        let asks = [result.input_requests, result.request_state, result.task_id].iter().any(Option::is_some);
        match (is_complete, is_empty) {
            (true, false) => {}
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
        let parsed = |part: Option<&RawValue>| part.map(|part| Json::parse(part.get())).transpose();
        Ok(Some(ToolResult {
            content: parsed(result.content)?,
            structured: parsed(result.structured_content)?,
            is_error: result.is_error.unwrap_or(false),
        }))
    };
    match read(text) {
        Ok(Some(result)) => Ok(result),
        Ok(None) => Err(ToolError::new(
            ToolErrorCode::UpstreamProtocol,
            format!("server `{server}` asks for input or starts a task, which this client does not support"),
        )),
        Err(error) => Err(unreadable(server, &error.to_string())),
    }
}

/// Checks that a content block is of a type of the protocol and has its required fields.
fn check_block(block: &RawValue) -> Result<(), serde_json::Error> {
    /// A string whose value is not needed.
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
            let shown: String = other.chars().take(40).collect();
            Err(serde_json::Error::custom(format!("unknown type of content: `{shown}`")))
        }
    }
}

/// The error for an answer that violates the protocol.
pub(super) fn unreadable(server: &str, problem: &str) -> ToolError {
    ToolError::new(
        ToolErrorCode::UpstreamProtocol,
        format!("server `{server}` sent an answer that cannot be read: {problem}"),
    )
}

/// Converts a JSON-RPC error that answers `tools/call`.
pub(super) fn call_error(server: &str, tool: &str, error: &ErrorData) -> ToolError {
    if let Some(own) = own_error(server, error) {
        return own;
    }
    let message = message(error);
    let code = match error.code {
        ErrorCode::METHOD_NOT_FOUND => ToolErrorCode::ToolNotFound,
        // MCP uses the same code for an unknown tool as for invalid arguments; only the text
        // differs.
        ErrorCode::INVALID_PARAMS if says_unknown_tool(&message, tool) => ToolErrorCode::ToolNotFound,
        ErrorCode::INVALID_PARAMS => ToolErrorCode::InvalidArguments,
        _ => ToolErrorCode::ToolError,
    };
    ToolError::new(code, message)
}

/// Converts a JSON-RPC error that answers `tools/list`.
pub(super) fn list_error(server: &str, error: &ErrorData) -> ToolError {
    own_error(server, error).unwrap_or_else(|| {
        ToolError::new(
            ToolErrorCode::UpstreamProtocol,
            format!("server `{server}` does not list its tools: {}", message(error)),
        )
    })
}

/// The transport's own error about an answer, if `error` is one.
pub(super) fn own_error(server: &str, error: &ErrorData) -> Option<ToolError> {
    match error.code {
        UNREADABLE_ANSWER => Some(unreadable(server, &error.message)),
        OVERSIZED_ANSWER => Some(ToolError::new(
            ToolErrorCode::ResultTooLarge,
            format!("server `{server}` sent an answer that is too large: {}", error.message),
        )),
        _ => super::http::tool_error(error),
    }
}

/// Formats a server's error message and its data, truncated.
pub(super) fn message(error: &ErrorData) -> String {
    let text = match &error.data {
        Some(data) if !data.is_null() => format!("{} ({data})", error.message),
        _ if error.message.trim().is_empty() => format!("error {} without a message", error.code.0),
        _ => error.message.to_string(),
    };
    shortened(&text, MESSAGE_BYTES)
}

/// Whether an invalid-parameters error is about the tool's name: it says so, or quotes the name
/// next to it. `file not found`, in contrast, is about an argument.
fn says_unknown_tool(message: &str, tool: &str) -> bool {
    let message = message.to_lowercase();
    let tool = tool.to_lowercase();
    let is_missing = ["unknown", "not found", "no such", "does not exist"];
    message.contains("unknown tool")
        || message.contains("no such tool")
        || (message.contains("tool")
            && message.contains(&tool)
            && is_missing.iter().any(|words| message.contains(words)))
}

pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most);
    format!("{} [{} more bytes]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests;
