//! Arguments of a tool call: read as an object, and checked against the tool's schema.

use serde_json::{Map, Value};

use crate::json::{self, TreeError};
use crate::run::context::ExecutionContext;
use crate::tools::catalog::ResolvedTool;
use crate::tools::names::kind;
use crate::tools::{ToolError, ToolErrorCode};

/// Arguments as they are sent.
pub(in crate::run) struct ExactArguments {
    pub(in crate::run) tree: Map<String, Value>,
    /// The digits of numbers that the tree has lost, in their order.
    pub(in crate::run) numbers: Vec<Box<str>>,
}

impl ExecutionContext {
    /// Checks the arguments against the tool's schema and returns them. If they do not match a
    /// schema that the server has not just sent, the tool is resolved again at its server, because
    /// it may have changed.
    pub(super) async fn check_arguments(
        &self,
        resolved: ResolvedTool,
        text: &str,
    ) -> Result<(ResolvedTool, Map<String, Value>), ToolError> {
        let named = |error: ToolError| error.for_tool(&resolved.server, &resolved.tool);
        let arguments = parse_arguments(text).map_err(named)?;
        let Some(check) = resolved.argument_check() else { return Ok((resolved, arguments)) };
        let refusal = match check.check(arguments) {
            Ok(arguments) => return Ok((resolved, arguments)),
            Err(error) => named(error),
        };
        let in_force = self.in_force();
        let again = in_force.catalog.resolve_again(&resolved, self.latest_deadline(), &self.suggestions);
        let Ok(Some(again)) = again.await else {
            return Err(refusal);
        };
        let arguments = parse_arguments(text).map_err(named)?;
        match again.argument_check() {
            Some(check) => check.check(arguments).map_err(named).map(|arguments| (again, arguments)),
            None => Ok((again, arguments)),
        }
    }
}

/// Parses the arguments as an object. Empty text is an empty object.
pub(super) fn parse_arguments(text: &str) -> Result<Map<String, Value>, ToolError> {
    let invalid = |message: String| ToolError::new(ToolErrorCode::InvalidArguments, message);
    if text.is_empty() {
        return Ok(Map::new());
    }
    match json::tree(text, json::budget(text.len())) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(other) => Err(invalid(format!(
            "expected the arguments as one object, as in `{{\"path\": \"a.txt\"}}`: {}",
            kind(&other)
        ))),
        Err(error @ TreeError::TooMany { .. }) => Err(invalid(format!(
            "the arguments are {error}: send less in one call, or as one string of JSON if the tool takes that"
        ))),
        Err(TreeError::NumberOutOfRange(_)) => {
            Err(invalid("the arguments have a number beyond 10^308: send it as text".to_owned()))
        }
        // Guests serialize valid JSON except for too many levels of nesting.
        Err(TreeError::Invalid(error)) => Err(invalid(format!("the arguments are not valid JSON: {error}"))),
    }
}
