//! Errors of calls whose text is the same wherever a run refuses or ends one. They name nothing of a run, so that every
//! file can use them.

use crate::tools::{ToolError, ToolErrorCode};

/// The error of a call, or of another request, whose run has ended or is being stopped.
pub(crate) fn over() -> ToolError {
    ToolError::new(ToolErrorCode::Cancelled, "the run is over")
}

/// The error of a call that the rules do not permit. `tool` is `*` for all tools of a server.
pub(super) fn denied(server: &str, tool: &str) -> ToolError {
    ToolError::new(ToolErrorCode::ToolDenied, format!("this run may not call `{server}.{tool}`"))
        .for_tool(server, tool)
}
