use rmcp::model::{ErrorCode, ErrorData};

use super::call_error;
use crate::tools::ToolErrorCode;

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
