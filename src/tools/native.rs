//! Tools written in Rust by the embedder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

use super::dispatch::{ToolDefinition, ToolDispatcher, ToolList, ToolRequest};
use super::error::{ToolError, ToolErrorCode};
use super::result::ToolResult;
use super::schema::Schema;
use crate::json::Json;

/// The server of native tools whose name has no server part.
pub(crate) const DEFAULT_SERVER: &str = "native";

type NativeFunction = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Json, ToolError>> + Send + Sync>;

/// The native tools of one executor, by server.
#[derive(Clone, Default)]
pub(crate) struct NativeTools {
    servers: BTreeMap<Arc<str>, NativeServer>,
}

#[derive(Clone)]
struct NativeServer {
    list: Arc<ToolList>,
    functions: BTreeMap<Arc<str>, NativeFunction>,
}

impl NativeTools {
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Adds a tool. `name` is `server.tool`, or `tool` on [`DEFAULT_SERVER`]. A second tool of the
    /// same name replaces the first.
    pub(crate) fn add(&mut self, name: &str, definition: ToolDefinition, function: NativeFunction) {
        let (server, tool) = split_name(name);
        let server = self
            .servers
            .entry(server.into())
            .or_insert_with(|| NativeServer { list: Arc::default(), functions: BTreeMap::new() });
        server.functions.insert(tool.into(), function);
        let list = Arc::make_mut(&mut server.list);
        list.tools.retain(|present| present.name != tool);
        list.tools.push(ToolDefinition { name: tool.to_owned(), ..definition });
    }

    /// Adds all tools of `other`, as [`add`](Self::add) does.
    pub(crate) fn extend(&mut self, other: &Self) {
        for (server, tools) in &other.servers {
            for definition in &tools.list.tools {
                if let Some(function) = tools.functions.get(&*definition.name) {
                    let name = format!("{server}.{}", definition.name);
                    self.add(&name, definition.clone(), Arc::clone(function));
                }
            }
        }
    }

    /// The tools without those of `server`; `None` if `server` has none.
    pub(crate) fn without_server(&self, server: &str) -> Option<Self> {
        let mut left = self.clone();
        left.servers.remove(server).map(|_removed| left)
    }

    /// The tools without one of them; `None` if there is no such tool.
    pub(crate) fn without_tool(&self, name: &str) -> Option<Self> {
        let (server, tool) = split_name(name);
        let mut left = self.clone();
        let tools = left.servers.get_mut(server)?;
        tools.functions.remove(tool)?;
        Arc::make_mut(&mut tools.list).tools.retain(|present| present.name != tool);
        if tools.functions.is_empty() {
            left.servers.remove(server);
        }
        Some(left)
    }
}

/// Splits a native tool's name into its server and tool.
fn split_name(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((DEFAULT_SERVER, name))
}

impl ToolDispatcher for NativeTools {
    fn servers(&self) -> Vec<Arc<str>> {
        self.servers.keys().cloned().collect()
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        let list = self.servers.get(server).map(|server| Arc::clone(&server.list));
        futures::future::ready(list.ok_or_else(|| unknown(server, ""))).boxed()
    }

    fn may_change_tools(&self, _server: &str) -> bool {
        // Tools that are added apply to later runs.
        false
    }

    fn tools_now(&self, server: &str) -> Option<Arc<ToolList>> {
        self.servers.get(server).map(|server| Arc::clone(&server.list))
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let function =
            self.servers.get(&request.server).and_then(|server| server.functions.get(&request.tool));
        let Some(function) = function else {
            return futures::future::ready(Err(unknown(&request.server, &request.tool))).boxed();
        };
        let call = function(Value::Object(request.arguments));
        async move { call.await.map(ToolResult::structured) }.boxed()
    }
}

fn unknown(server: &str, tool: &str) -> ToolError {
    ToolError::new(ToolErrorCode::ToolNotFound, format!("no native tool `{server}.{tool}`"))
}

/// Erases the types of an embedder's async function. The function may take any deserializable
/// arguments and return any serializable value.
pub(crate) fn erase<Arguments, Output, Failure, Function, Returned>(function: Function) -> NativeFunction
where
    Arguments: serde::de::DeserializeOwned,
    Output: serde::Serialize,
    Failure: std::fmt::Display,
    Function: Fn(Arguments) -> Returned + Send + Sync + 'static,
    Returned: Future<Output = Result<Output, Failure>> + Send + 'static,
{
    Arc::new(move |arguments| {
        let arguments = match serde_json::from_value::<Arguments>(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return futures::future::ready(Err(ToolError::unreadable(&error))).boxed(),
        };
        let call = function(arguments);
        async move {
            let output = call
                .await
                .map_err(|failure| ToolError::new(ToolErrorCode::ToolError, failure.to_string()))?;
            Json::from_serialize(&output).map_err(|error| {
                ToolError::new(ToolErrorCode::ToolError, format!("its result is not JSON: {error}"))
            })
        }
        .boxed()
    })
}

/// The definition of a native tool.
pub(crate) fn definition(input_schema: Value) -> ToolDefinition {
    let description = input_schema["description"].as_str().map(str::to_owned);
    ToolDefinition {
        name: String::new(),
        description,
        input_schema: match input_schema {
            Value::Null => Schema::any_object(),
            schema => schema.into(),
        },
        output_schema: None,
        annotations: None,
        meta: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error of serde quotes what it did not expect.
    #[tokio::test]
    async fn v_763_arguments_that_cannot_be_read_are_not_quoted_as_a_whole() {
        let tool = erase(|_number: u64| std::future::ready(Ok::<_, String>(())));
        let error = tool(Value::from("a".repeat(1 << 20))).await.err().unwrap();
        assert!(error.message.starts_with("invalid type: string \"aaa"), "{error:?}");
        assert!(error.message.len() < 2_000, "{}", error.message.len());
    }
}
