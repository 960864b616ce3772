//! One tool list with its names indexed, and a tool resolved from it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::{Value, json};

use super::server::Server;
use crate::json::Json;
use crate::text::preview;
use crate::tools::approval::Effects;
use crate::tools::arguments::ArgumentCheck;
use crate::tools::declarations::{self, ToolTypes};
use crate::tools::names::{full_name, python_name, suggestion, typescript_name};
use crate::tools::sample;
use crate::tools::shape::Shape;
use crate::tools::{Schema, ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList, ToolResult};

/// One server's tools with their names indexed. Immutable; a changed list makes a new one.
pub(crate) struct ServerTools {
    pub(super) list: Arc<ToolList>,
    pub(super) names: Vec<Arc<str>>,
    pub(super) exact: HashMap<Arc<str>, usize>,
    /// Identifiers in both languages. `None` if two tools have the same identifier: it then refers
    /// to neither.
    pub(super) forms: HashMap<String, Option<usize>>,
    /// The tools that differ from their pinned definitions; set at the first lookup.
    pub(super) changed: OnceLock<HashSet<String>>,
}

/// A tool that a name was resolved to.
#[derive(Clone)]
pub(crate) struct ResolvedTool {
    pub(crate) server: Arc<str>,
    pub(crate) tool: Arc<str>,
    pub(super) host: Arc<Server>,
    pub(super) tools: Arc<ServerTools>,
    pub(super) position: usize,
}

impl ResolvedTool {
    pub(crate) fn definition(&self) -> &ToolDefinition {
        &self.tools.list.tools[self.position]
    }

    pub(crate) fn dispatcher(&self) -> &Arc<dyn ToolDispatcher> {
        &self.host.dispatcher
    }

    /// The inferred output schema, if the server declares none.
    pub(crate) fn observed(&self) -> Option<Shape> {
        let is_unknown = self.definition().output_schema.is_none();
        let shape =
            || self.host.options.observed.shape(&self.server, self.host.identity.as_deref(), &self.tool);
        is_unknown.then(shape).flatten()
    }

    /// Records the shape of a result, if the server declares no output schema.
    pub(crate) fn observe(&self, result: &Json) {
        if self.definition().output_schema.is_some() {
            return;
        }
        let observed = &self.host.options.observed;
        let identity = self.host.identity.as_deref();
        // The result is parsed outside the lock, so that other callers do not wait.
        if observed.wants(&self.server, identity, &self.tool)
            && observed.record(&self.server, identity, &self.tool, Shape::of_text(result))
        {
            observed.save_soon(self.host.options.runtime.as_ref());
        }
    }

    /// The tool as a TypeScript function, on one line.
    pub(crate) fn signature(&self) -> String {
        let observed = self.observed();
        declarations::signature(ToolTypes { definition: self.definition(), observed: observed.as_ref() })
    }

    /// The tool as a TypeScript function, with the descriptions of the tool and its fields.
    pub(crate) fn declaration(&self) -> String {
        let observed = self.observed();
        declarations::declaration(ToolTypes { definition: self.definition(), observed: observed.as_ref() })
    }

    /// The compiled check of the tool's arguments; `None` if its schema cannot be used for one.
    pub(crate) fn argument_check(&self) -> Option<Arc<ArgumentCheck>> {
        self.host.options.checks.get(&self.tools, self.position, &self.server)
    }

    /// The effects of a call by the tool's annotations. If the tool's definition differs from the
    /// pinned one, its annotations are ignored. May read a file.
    pub(crate) fn effects(&self) -> Effects {
        if self.tools.is_as_accepted(&self.host, self.position) {
            Effects::of(self.definition().annotations.as_ref())
        } else {
            Effects::UNKNOWN
        }
    }

    /// A sample of the tool's result, for a dry run.
    pub(crate) fn sample(&self) -> Result<Json, ToolError> {
        match &self.definition().output_schema {
            Some(schema) => {
                ToolResult::structured(sample::of_schema(Some(&schema.to_value()))).into_value(Some(schema))
            }
            None => Ok(sample::of_schema(self.observed().map(|shape| shape.to_schema()).as_ref()).into()),
        }
    }

    /// The `ToolSchema` object that scripts receive, as JSON text.
    pub(crate) fn schema(&self) -> Json {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ToolSchema<'a> {
            name: String,
            server: &'a str,
            description: &'a str,
            parameters: &'a Schema,
            #[serde(skip_serializing_if = "Option::is_none")]
            output_schema: Option<&'a Schema>,
            #[serde(skip_serializing_if = "Option::is_none")]
            observed: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            annotations: Option<&'a Value>,
        }
        let definition = self.definition();
        let output_schema = definition.output_schema.as_ref();
        let observed = if output_schema.is_none() { self.observed() } else { None };
        let schema = ToolSchema {
            name: full_name(&self.server, &self.tool),
            server: &self.server,
            description: definition.description.as_deref().unwrap_or_default(),
            parameters: &definition.input_schema,
            output_schema,
            observed: observed.map(|shape| shape.to_schema()),
            annotations: definition.annotations.as_ref(),
        };
        // Strings, and schemas that are JSON, can always be serialized.
        Json::of(&schema).unwrap_or_else(|_| Value::Null.into())
    }

    /// Name, server and description only.
    pub(crate) fn summary(&self) -> Value {
        json!({
            "name": full_name(&self.server, &self.tool),
            "server": &*self.server,
            "description": self.definition().description.clone().unwrap_or_default(),
        })
    }
}

impl ServerTools {
    /// Indexes a list. Without `changed`, the differences from the pins are looked up when first
    /// needed.
    pub(super) fn new(list: Arc<ToolList>, changed: Option<HashSet<String>>) -> Self {
        let names: Vec<Arc<str>> = list.tools.iter().map(|definition| Arc::from(&*definition.name)).collect();
        let mut exact = HashMap::new();
        let mut forms = HashMap::new();
        for (position, name) in names.iter().enumerate() {
            // If two tools have the same name, only the first can be called.
            exact.entry(Arc::clone(name)).or_insert(position);
            for form in [typescript_name(name), python_name(name)] {
                let entry = forms.entry(form).or_insert(Some(position));
                if *entry != Some(position) {
                    *entry = None;
                }
            }
        }
        Self { list, names, exact, forms, changed: changed.map_or_else(OnceLock::new, OnceLock::from) }
    }

    /// Whether the tool may be used: its definition equals the pinned one, or strict mode is off.
    pub(super) fn is_usable(&self, server: &Server, position: usize) -> bool {
        !server.options.strict || self.is_as_accepted(server, position)
    }

    /// Whether the tool's definition equals the pinned one; true if no pins are kept for the
    /// server. May read a file, once per list.
    fn is_as_accepted(&self, server: &Server, position: usize) -> bool {
        let changed = self.changed.get_or_init(|| server.differing(&self.list));
        !changed.contains(&*self.names[position])
    }

    pub(super) fn position(&self, server: &str, tool: &str) -> Result<usize, ToolError> {
        if let Some(&position) = self.exact.get(tool) {
            return Ok(position);
        }
        let message = match self.forms.get(tool) {
            Some(&Some(position)) => return Ok(position),
            Some(None) => {
                let names = self.names.iter().map(AsRef::as_ref).filter(|name| {
                    [typescript_name(name), python_name(name)].iter().any(|form| form == tool)
                });
                let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                format!("`{tool}` on server `{server}` could be {names}; use the exact name")
            }
            None => {
                let names = self.names.iter().map(AsRef::as_ref);
                format!(
                    "no tool `{}` on server `{server}`{}",
                    shown_name(tool),
                    suggestion(tool, "tools", names)
                )
            }
        };
        Err(ToolError::new(ToolErrorCode::ToolNotFound, message).for_tool(server, tool))
    }
}

/// The start of a name that came from a script, for a message.
pub(super) fn shown_name(name: &str) -> String {
    preview(name, 100)
}
