//! The unchanged result of a tool, for callers that need it instead of the value that a script would receive.

use crate::json::Json;
use crate::tools::{Schema, ToolError, ToolResult};

/// A tool's own result, and what a script would receive of it.
#[derive(Clone)]
pub(super) struct ToolAnswer {
    pub(super) result: ToolResult,
    pub(super) value: Result<Json, ToolError>,
    pub(super) output_schema: Option<Schema>,
}

/// The tool's own result. If hooks have changed the value, or the call was not made, a result that is made from
/// `received`, the value that a script would receive.
pub(super) fn own_result(
    answer: Option<ToolAnswer>,
    received: Result<Json, ToolError>,
) -> Result<ToolResult, ToolError> {
    match (received, answer) {
        (received, Some(answer)) if answer.value == received => Ok(answer.result),
        (Ok(value), answer) => {
            let schema = answer.as_ref().and_then(|answer| answer.output_schema.as_ref());
            Ok(ToolResult::with_value(answer.as_ref().map(|answer| &answer.result), schema, &value))
        }
        (Err(error), _) => Err(error),
    }
}
