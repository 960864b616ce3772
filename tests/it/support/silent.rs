use std::sync::Arc;
use std::time::Instant;

use cx::{BoxFuture, ToolDispatcher, ToolError, ToolList, ToolRequest, ToolResult};

/// A server that answers nothing: its list of tools never comes.
pub(crate) struct Silent;

impl ToolDispatcher for Silent {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["silent".into()]
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        Box::pin(std::future::pending())
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(std::future::pending())
    }
}
