//! Recorded lists of tools as a dispatcher, for the bench and the tests of search.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use cx::{Schema, ToolDefinition, ToolDispatcher, ToolError, ToolList, ToolRequest, ToolResult};
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde::Deserialize;
use serde_json::Value;

/// Servers that list what was recorded, and answer every call with nothing.
pub(crate) struct Recorded(BTreeMap<String, Arc<ToolList>>);

/// As in `tools.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedTool {
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) input_schema: Schema,
    pub(crate) output_schema: Option<Schema>,
}

impl Recorded {
    /// Without `details`, tools have no description and take any arguments.
    pub(crate) fn new(tools: &[RecordedTool], details: bool) -> Self {
        let mut lists: BTreeMap<String, ToolList> = BTreeMap::new();
        for tool in tools {
            let mut definition = ToolDefinition::new(tool.name.clone());
            if details {
                definition.description.clone_from(&tool.description);
                definition.input_schema = tool.input_schema.clone();
                definition.output_schema.clone_from(&tool.output_schema);
            }
            lists.entry(tool.server.clone()).or_default().tools.push(definition);
        }
        Self(lists.into_iter().map(|(server, list)| (server, Arc::new(list))).collect())
    }
}

impl ToolDispatcher for Recorded {
    fn servers(&self) -> Vec<Arc<str>> {
        self.0.keys().map(|server| server.as_str().into()).collect()
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        ready(Ok(Arc::clone(&self.0[server]))).boxed()
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        ready(Ok(ToolResult::structured(Value::Null))).boxed()
    }
}
