//! `fetch` in a build without the feature of that name.

use std::sync::Arc;

use crate::net::call::FetchCall;
use crate::run::context::ExecutionContext;
use crate::tools::{ToolError, ToolErrorCode};

impl ExecutionContext {
    /// Whether the run has a `fetch`.
    pub(crate) fn may_fetch(&self) -> bool {
        self.tape().is_some_and(|tape| tape.has_network(false))
    }

    /// Refuses: this build sends no requests.
    pub(crate) async fn fetch(self: &Arc<Self>, call: FetchCall) -> Result<String, ToolError> {
        let _held = self.hold_call(call.bytes())?;
        let problem = "this build of cx sends no requests: its feature `fetch` is off";
        Err(ToolError::new(ToolErrorCode::NetDenied, problem))
    }
}
