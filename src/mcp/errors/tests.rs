use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};

use super::{begun, call_error};
use crate::tools::{ToolError, ToolErrorCode};

#[test]
fn protocol_errors_have_codes() {
    for (code, message, expected) in [
        (-32602, "Unknown tool: nope", ToolErrorCode::ToolNotFound),
        (-32602, "MCP error -32602: Tool nope not found", ToolErrorCode::ToolNotFound),
        (-32602, "Tool 'nope' does not exist", ToolErrorCode::ToolNotFound),
        (
            -32602,
            "Input validation error: Invalid arguments for tool nope: path",
            ToolErrorCode::InvalidArguments,
        ),
        (-32602, "file not found", ToolErrorCode::InvalidArguments),
        (-32601, "Method not found", ToolErrorCode::ToolNotFound),
        (-32603, "", ToolErrorCode::ToolError),
        (0, "Unknown tool: nope", ToolErrorCode::ToolError),
    ] {
        let error = ErrorData::new(ErrorCode(code), message, None);
        assert_eq!(call_error("s", "nope", &error).code, expected, "{code} {message}");
    }
}

/// A later request for the call was refused; the call was not.
#[test]
fn a_call_that_has_begun_is_not_refused() {
    for (code, message, expected) in [
        (ToolErrorCode::RateLimited, "m", "m; whether the call took effect is unknown"),
        (ToolErrorCode::UpstreamUnavailable, "m", "m; whether the call took effect is unknown"),
        (
            ToolErrorCode::UpstreamUnavailable,
            "m; the call did not run",
            "m; whether the call took effect is unknown",
        ),
        (
            ToolErrorCode::UpstreamUnavailable,
            "whether it took effect is unknown: m",
            "whether it took effect is unknown: m",
        ),
    ] {
        let error = ToolError { retry_after: Some(Duration::ZERO), ..ToolError::new(code, message) };
        let error = begun(error);
        assert_eq!((error.code, &*error.message), (ToolErrorCode::UpstreamUnavailable, expected));
        assert_eq!(error.retry_after, None);
    }
    let own = ToolError::new(ToolErrorCode::ToolError, "m");
    assert_eq!(begun(own).message, "m");
}
