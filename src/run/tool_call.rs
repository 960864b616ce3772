//! A call of one tool without a script.

use crate::json::Json;
use crate::run::result::ExecuteResult;
use crate::run::script::Script;
use crate::tools::{ToolError, ToolResult};

/// The name of a run without a script, which hooks and approval prompts see as the script's name.
pub(crate) const NAME: &str = "tools/call";

/// A call of one tool without a script, for [`Executor::call`](crate::Executor::call).
///
/// ```
/// # use cx::{Limits, ToolCall};
/// # use std::time::Duration;
/// let call = ToolCall::new("weather", "forecast")
///     .arguments(serde_json::json!({ "city": "Bern" }))
///     .options(|run| run.limits(Limits { wall_time: Duration::from_secs(5), ..Limits::default() }));
/// ```
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: Option<Json>,
    pub(crate) options: Script,
}

impl ToolCall {
    /// A call without arguments. The names are those that scripts use: exact, or in camelCase.
    pub fn new(server: impl Into<String>, tool: impl Into<String>) -> Self {
        let options = Script::typescript("").named(NAME);
        Self { server: server.into(), tool: tool.into(), arguments: None, options }
    }

    /// Sets the arguments, an object.
    #[must_use]
    pub fn arguments(mut self, arguments: impl Into<Json>) -> Self {
        self.arguments = Some(arguments.into());
        self
    }

    /// Sets options of the call as those of a script's run: limits, rules, approver, listeners,
    /// client, cancellation. [`Script::input`] and [`Script::session`] have no effect.
    #[must_use]
    pub fn options(mut self, options: impl FnOnce(Script) -> Script) -> Self {
        self.options = options(self.options);
        self
    }
}

/// The result of a [`ToolCall`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallResult {
    /// The tool's own result, which may [report a failure](ToolResult::is_error); or why there is
    /// none.
    pub result: Result<ToolResult, ToolError>,
    /// The result of the equivalent run of a script that makes only this call: its record, the planned call of a dry
    /// run, and the resources that were used. The value is the tool's result as JSON.
    pub run: ExecuteResult,
}

/// A result in the protocol's JSON form.
pub(crate) fn to_json(result: &ToolResult) -> Json {
    let mut fields = Vec::with_capacity(4);
    let content = result.content.as_ref().map_or("[]", Json::text);
    fields.push(format!(r#""content":{content}"#));
    for (name, part) in [("structuredContent", &result.structured), ("_meta", &result.meta)] {
        fields.extend(part.as_ref().map(|part| format!(r#""{name}":{}"#, part.text())));
    }
    if result.is_error {
        fields.push(r#""isError":true"#.to_owned());
    }
    // Its parts are JSON already.
    Json::parse(&format!("{{{}}}", fields.join(","))).unwrap_or_else(|_| serde_json::Value::Null.into())
}
