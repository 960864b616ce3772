//! A tool as people and programs outside scripts look at it.

use serde_json::Value;

use super::ToolDefinition;
use super::arguments::ArgumentCheck;
use super::catalog::ResolvedTool;
use super::names::full_name;
use crate::json::Json;

/// A tool of a server, and what is known of its results.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// The server's name as configured.
    pub server: String,
    /// What the server says about the tool. Untrusted text.
    pub definition: ToolDefinition,
    /// A JSON Schema of what the tool was seen to return, if it has no output schema of its own and
    /// was called before. It knows names of fields and types, never values.
    pub observed: Option<Value>,
    /// The tool as a TypeScript function, as a script sees it.
    pub signature: String,
    schema: Json,
}

/// A server and its tools, as far as they are known.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KnownServer {
    /// The server's name as configured.
    pub name: String,
    /// Its tools in its own order; `None` if it was never asked.
    pub tools: Option<Vec<Tool>>,
}

impl Tool {
    pub(crate) fn new(tool: &ResolvedTool) -> Self {
        Self {
            server: tool.server.to_string(),
            definition: tool.definition().clone(),
            observed: tool.observed().map(|shape| shape.to_schema()),
            signature: tool.signature(),
            schema: tool.schema(),
        }
    }

    /// `mcp__server__tool`.
    pub fn full_name(&self) -> String {
        full_name(&self.server, &self.definition.name)
    }

    /// `server.tool`, as allow and deny patterns write it.
    pub fn path(&self) -> String {
        format!("{}.{}", self.server, self.definition.name)
    }

    /// Why the arguments are not checked before a call, if they are not: a schema that is broken, or
    /// that could take too long.
    pub fn unchecked(&self) -> Option<String> {
        ArgumentCheck::compile(&self.definition.input_schema).err()
    }

    /// The object that `getToolSchema` gives a script.
    pub fn to_json(&self) -> &Json {
        &self.schema
    }
}
