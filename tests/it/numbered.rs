//! A server whose tools all carry one number, or that cannot be reached.

use std::sync::Arc;
use std::time::Instant;

use cx::{
    Schema, ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList, ToolRequest, ToolResult,
};
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};

/// How many tools there are: enough for a file of several pages.
pub(crate) const TOOLS: usize = 40;

pub(crate) struct Numbered {
    /// What the descriptions say; `None` for a server that is down.
    pub(crate) number: Option<u64>,
}

impl ToolDispatcher for Numbered {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["numbered".into()]
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        let Some(number) = self.number else {
            return ready(Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, "down"))).boxed();
        };
        let tool = |position: usize| ToolDefinition {
            name: format!("tool{position}"),
            description: Some(number.to_string()),
            input_schema: Schema::from(json!({ "type": "object", "description": "x".repeat(500) })),
            output_schema: None,
            annotations: None,
        };
        ready(Ok(Arc::new(ToolList { tools: (0..TOOLS).map(tool).collect(), ttl: None }))).boxed()
    }

    fn identity(&self, _server: &str) -> Option<String> {
        Some("0123456789abcdef0123456789abcdef".to_owned())
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        ready(Ok(ToolResult::structured(Value::Null))).boxed()
    }
}
