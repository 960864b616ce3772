//! Between the protocol's types and the vocabulary of `tools`.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use rmcp::model::{
    CallToolResponse, CallToolResult, ClientRequest, CreateTaskResult, CustomResult, DiscoverResult,
    ErrorCode, ErrorData, InitializeResult, InputRequiredResult, JsonObject, ListToolsResult, ServerResult,
    Tool,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::tools::names::{hidden_text, visible};
use crate::tools::{Schema, ToolDefinition, ToolError, ToolErrorCode, ToolResult};

/// The error codes under which the transport reports its own findings through rmcp, which has no
/// other way to end one request. Far from JSON-RPC's; a server's own use of them is rewritten.
pub(super) const UNREADABLE_ANSWER: ErrorCode = ErrorCode(i32::MIN);
pub(super) const OVERSIZED_ANSWER: ErrorCode = ErrorCode(i32::MIN + 1);

/// More of a description than this is no help to a model that reads it.
const DESCRIPTION_BYTES: usize = 64 * 1024;

/// The largest honest schemas, generated from whole API descriptions, are about this size.
const SCHEMA_BYTES: usize = 256 * 1024;

/// What all definitions of one server may take together: an index over them is kept in memory.
pub(super) const SERVER_BYTES: usize = 16 * 1024 * 1024;

/// The longest name kept. Names longer than this are no names.
const NAME_BYTES: usize = 256;

/// How much of a server's own error message is passed on.
const MESSAGE_BYTES: usize = 16 * 1024;

/// What an outgoing request expects, which decides how its answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Discover,
    Initialize,
    ListTools,
    CallTool,
    /// The end of a subscription.
    Listen,
    /// Anything else, which goes to the script as it is.
    Other,
}

/// What the answer to a request must be.
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

/// Reads a result as what its request expects.
///
/// rmcp itself would try every result type in turn and take the first that fits, at the cost of a
/// copy; and one malformed tool would make it refuse the whole list.
pub(super) fn read_result(expected: Expected, result: &RawValue) -> Result<ServerResult, serde_json::Error> {
    let text = result.get();
    Ok(match expected {
        Expected::Discover => ServerResult::DiscoverResult(serde_json::from_str::<DiscoverResult>(text)?),
        Expected::Initialize => {
            ServerResult::InitializeResult(serde_json::from_str::<InitializeResult>(text)?)
        }
        Expected::ListTools => ServerResult::ListToolsResult(read_tools(text)?),
        Expected::CallTool => match serde_json::from_str::<CallToolResult>(text) {
            Ok(result) => ServerResult::CallToolResult(result),
            Err(error) => {
                if let Ok(result) = serde_json::from_str::<InputRequiredResult>(text) {
                    ServerResult::InputRequiredResult(result)
                } else if let Ok(result) = serde_json::from_str::<CreateTaskResult>(text) {
                    ServerResult::CreateTaskResult(result)
                } else {
                    return Err(error);
                }
            }
        },
        Expected::Listen => serde_json::from_str(text)?,
        Expected::Other => ServerResult::CustomResult(CustomResult(serde_json::from_str(text)?)),
    })
}

fn read_tools(text: &str) -> Result<ListToolsResult, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
        next_cursor: Option<String>,
        /// Negative values mean that the list holds for no time at all.
        ttl_ms: Option<i64>,
    }
    let page: Page<'_> = serde_json::from_str(text)?;
    let mut result = ListToolsResult::with_all_items(Vec::new());
    result.next_cursor = page.next_cursor;
    result.ttl_ms = page.ttl_ms.map(|milliseconds| u64::try_from(milliseconds).unwrap_or(0));
    let mut malformed = 0_usize;
    for tool in page.tools {
        match serde_json::from_str::<Tool>(tool.get()) {
            Ok(tool) => result.tools.push(tool),
            Err(error) => {
                malformed += 1;
                tracing::debug!(%error, "a malformed tool definition");
            }
        }
    }
    if malformed > 0 {
        tracing::warn!(malformed, "malformed tool definitions were left out");
    }
    Ok(result)
}

/// One server's list of tools as it is put together from pages, held to its bounds.
pub(super) struct ListBuilder<'a> {
    server: &'a str,
    names: HashSet<String>,
    bytes: usize,
    definitions: Vec<ToolDefinition>,
}

impl<'a> ListBuilder<'a> {
    pub(super) fn new(server: &'a str) -> Self {
        Self { server, names: HashSet::new(), bytes: 0, definitions: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.definitions.len()
    }

    /// Whether the definitions take all the memory that one server's may.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= SERVER_BYTES
    }

    /// Adds a tool, without what is too much of it. A second tool of the same name is left out.
    pub(super) fn push(&mut self, tool: Tool) {
        let name = tool.name.into_owned();
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
        let input_schema = self.schema(&name, &tool.input_schema).unwrap_or_else(Schema::any_object);
        let output_schema = tool.output_schema.and_then(|schema| self.schema(&name, &schema));
        let annotations = tool.annotations.and_then(|annotations| serde_json::to_value(annotations).ok());
        // A title is free text too.
        let annotations =
            annotations.filter(|annotations: &Value| annotations.to_string().len() <= DESCRIPTION_BYTES);
        self.bytes += name.len() + description.as_ref().map_or(0, String::len);
        self.bytes += annotations.as_ref().map_or(0, |annotations| annotations.to_string().len());
        self.definitions.push(ToolDefinition { name, description, input_schema, output_schema, annotations });
    }

    /// The schema, unless it is too large: arguments and results are then not checked, which is
    /// better than a tool that is missing.
    fn schema(&mut self, tool: &str, schema: &JsonObject) -> Option<Schema> {
        let mut schema = Value::Object(schema.clone());
        show_hidden(&mut schema);
        let text = serde_json::to_string(&schema).ok()?;
        let bytes = text.len();
        if bytes > SCHEMA_BYTES {
            tracing::warn!(server = self.server, tool, bytes, "a schema was too large and was left out");
            return None;
        }
        self.bytes += bytes;
        serde_json::from_str(&text).ok()
    }

    pub(super) fn finish(self, ttl: Option<Duration>) -> crate::tools::ToolList {
        crate::tools::ToolList { tools: self.definitions, ttl }
    }
}

/// Writes out what nobody sees in the words of a schema. Not in its other parts: names, patterns and
/// values have to be what they are.
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

/// A finished call's result in the vocabulary's terms.
///
/// Content blocks keep MCP's own keys, so images, audio and resources reach the script as they are.
pub(super) fn tool_result(server: &str, response: CallToolResponse) -> Result<ToolResult, ToolError> {
    let CallToolResponse::Complete(result) = response else {
        return Err(ToolError::new(
            ToolErrorCode::UpstreamProtocol,
            format!("server `{server}` asks for input or starts a task, which this client does not support"),
        ));
    };
    let content = result
        .content
        .into_iter()
        .map(serde_json::to_value)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unreadable(server, &error.to_string()))?;
    Ok(ToolResult {
        content,
        structured: result.structured_content,
        is_error: result.is_error.unwrap_or(false),
    })
}

/// An answer that is not what the protocol says.
pub(super) fn unreadable(server: &str, problem: &str) -> ToolError {
    ToolError::new(
        ToolErrorCode::UpstreamProtocol,
        format!("server `{server}` sent an answer that cannot be read: {problem}"),
    )
}

/// A JSON-RPC error as the answer to `tools/call`.
pub(super) fn call_error(server: &str, tool: &str, error: &ErrorData) -> ToolError {
    if let Some(own) = own_error(server, error) {
        return own;
    }
    let message = message(error);
    let code = match error.code {
        ErrorCode::METHOD_NOT_FOUND => ToolErrorCode::ToolNotFound,
        // MCP gives an unknown tool the same code as bad arguments; only the words differ.
        ErrorCode::INVALID_PARAMS if says_unknown_tool(&message, tool) => ToolErrorCode::ToolNotFound,
        ErrorCode::INVALID_PARAMS => ToolErrorCode::InvalidArguments,
        _ => ToolErrorCode::ToolError,
    };
    ToolError::new(code, message)
}

/// A JSON-RPC error as the answer to `tools/list`.
pub(super) fn list_error(server: &str, error: &ErrorData) -> ToolError {
    own_error(server, error).unwrap_or_else(|| {
        ToolError::new(
            ToolErrorCode::UpstreamProtocol,
            format!("server `{server}` does not list its tools: {}", message(error)),
        )
    })
}

/// What the transport itself found wrong with an answer.
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

/// A server's error message, with its data, at a length that can be read.
pub(super) fn message(error: &ErrorData) -> String {
    let text = match &error.data {
        Some(data) if !data.is_null() => format!("{} ({data})", error.message),
        _ if error.message.trim().is_empty() => format!("error {} without a message", error.code.0),
        _ => error.message.to_string(),
    };
    shortened(&text, MESSAGE_BYTES)
}

/// Whether an error about parameters is about the tool's name. Says so in as many words, or quotes
/// the name right beside them: `file not found` is about an argument.
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

/// The size of a value's text, without making it.
pub(super) fn json_bytes(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Neither a value nor a counter can fail.
    let _written = serde_json::to_writer(&mut counter, value);
    counter.0
}

fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most);
    format!("{} [{} more bytes]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests;
