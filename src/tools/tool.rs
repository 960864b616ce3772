//! A tool as embedders and the command line see it.

use serde_json::Value;

use super::arguments::ArgumentCheck;
use super::catalog::ResolvedTool;
use super::dispatch::ToolDefinition;
use super::names::full_name;
use crate::json::Json;

/// A tool of a server, with the inferred schema of its results.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// The server's name as configured.
    pub server: String,
    /// The server's definition of the tool. Untrusted text.
    pub definition: ToolDefinition,
    /// The output schema inferred from earlier results, if the tool declares no output schema and
    /// was called before. It contains field names and types, never values.
    pub inferred_output_schema: Option<Value>,
    /// The tool as a TypeScript function, as a script sees it.
    pub signature: String,
    schema: Json,
}

/// A server and its tools, if they are known.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KnownServer {
    /// The server's name as configured.
    pub name: String,
    /// Its tools in the server's order; `None` if they were never listed.
    pub tools: Option<Vec<Tool>>,
    /// How many more tools it has that the rules (`allow`, `deny`) hide from scripts.
    pub hidden: usize,
    /// What was left out of the tools, and why; `None` if nothing was.
    pub problem: Option<String>,
    /// Whether the list is that of a client whose user the server may not ask, as of `cx run` without a terminal, so
    /// that the server may show this one [more tools](crate::ToolList::with_elicitation).
    pub is_partial: bool,
}

impl Tool {
    pub(crate) fn new(tool: &ResolvedTool) -> Self {
        Self {
            server: tool.server.to_string(),
            definition: tool.definition().clone(),
            inferred_output_schema: tool.inferred().map(|shape| shape.to_schema()),
            signature: tool.signature(),
            schema: tool.schema(None),
        }
    }

    /// `mcp__server__tool`.
    pub fn full_name(&self) -> String {
        full_name(&self.server, &self.definition.name)
    }

    /// `server.tool`, as in allow and deny patterns.
    pub fn path(&self) -> String {
        format!("{}.{}", self.server, self.definition.name)
    }

    /// Why arguments are not checked before a call, such as a schema that is invalid or could take too long to check;
    /// `None` if they are checked.
    pub fn unchecked(&self) -> Option<String> {
        ArgumentCheck::compile(&self.definition.input_schema).err()
    }

    /// The object that `getToolSchema` returns to a script.
    pub fn to_json(&self) -> &Json {
        &self.schema
    }
}
