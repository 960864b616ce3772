//! A tool that a name was resolved to, with what is known about it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::list::IndexedList;
use super::server::CatalogServer;
use crate::json::Json;
use crate::tools::approval::Effects;
use crate::tools::arguments::ArgumentCheck;
use crate::tools::declarations::{self, ToolTypes};
use crate::tools::dispatch::{ToolDefinition, ToolDispatcher};
use crate::tools::error::ToolError;
use crate::tools::names::{full_name, is_python_identifier, python_name};
use crate::tools::result::ToolResult;
use crate::tools::sample;
use crate::tools::schema::Schema;
use crate::tools::shape::Shape;
use crate::tools::stored_script::ToolKind;
use crate::tools::usage::{self, Detail, Notation, ToolNames};

/// Maximum tokens of the line about a tool that was found, and of its signature in `help`. Four less than documented,
/// because they are estimated.
const MAX_USAGE_TOKENS: usize = 26;
const MAX_SIGNATURE_TOKENS: usize = 32;

/// Maximum characters of what the line says of a deprecated tool: mostly which other one to use.
const MAX_DEPRECATION: usize = 48;

/// A tool that a name was resolved to.
#[derive(Clone)]
pub(crate) struct ResolvedTool {
    pub(crate) server: Arc<str>,
    pub(crate) tool: Arc<str>,
    listed_by: Arc<CatalogServer>,
    tools: Arc<IndexedList>,
    position: usize,
}

impl ResolvedTool {
    /// The tool at `position` of a list of `server`.
    pub(crate) fn new(server: &Arc<CatalogServer>, tools: &Arc<IndexedList>, position: usize) -> Self {
        Self {
            server: Arc::clone(&server.name),
            tool: Arc::clone(&tools.names[position]),
            listed_by: Arc::clone(server),
            tools: Arc::clone(tools),
            position,
        }
    }

    /// Whether it was resolved in this list.
    pub(crate) fn is_from(&self, list: &Arc<IndexedList>) -> bool {
        Arc::ptr_eq(&self.tools, list)
    }

    pub(crate) fn definition(&self) -> &ToolDefinition {
        &self.tools.list.tools[self.position]
    }

    pub(crate) fn dispatcher(&self) -> &Arc<dyn ToolDispatcher> {
        &self.listed_by.dispatcher
    }

    /// The inferred output schema, if the server declares none.
    pub(crate) fn inferred(&self) -> Option<Shape> {
        let is_unknown = self.definition().output_schema.is_none();
        let shape = || {
            self.listed_by.options.inferred.shape(
                &self.server,
                self.listed_by.results_identity.as_deref(),
                &self.tool,
            )
        };
        is_unknown.then(shape).flatten()
    }

    /// Records the shape of a result, if the server declares no output schema. Returns the shape if
    /// it was made.
    pub(crate) fn observe(&self, result: &Json) -> Option<Shape> {
        if self.definition().output_schema.is_some() {
            return None;
        }
        let inferred = &self.listed_by.options.inferred;
        let identity = self.listed_by.results_identity.as_deref();
        if !inferred.wants(&self.server, identity, &self.tool) {
            return None;
        }
        // The result is parsed outside the lock, so that other callers do not wait.
        let shape = Shape::from_text(result);
        if inferred.record(&self.server, identity, &self.tool, shape.clone()) {
            inferred.save_soon(self.listed_by.options.runtime.as_ref());
        }
        Some(shape)
    }

    /// The tool as a TypeScript function, on one line.
    pub(crate) fn signature(&self) -> String {
        let inferred = self.inferred();
        declarations::signature(ToolTypes { definition: self.definition(), inferred: inferred.as_ref() })
    }

    /// How the tool is called in a language and what it does, on one line: see [`usage`].
    pub(crate) fn usage(&self, notation: Notation) -> String {
        let expression = self.expression(notation);
        if let Some(line) = self.deprecated_usage(notation, &expression) {
            return line;
        }
        self.fitting_line(notation, MAX_USAGE_TOKENS, |signature, detail| {
            let summary = if detail.summary == 0 { String::new() } else { self.summary_line(detail.summary) };
            let dash = if summary.is_empty() { "" } else { " - " };
            format!("{expression}{signature}{dash}{summary}")
        })
    }

    /// The line about a deprecated tool, which says so whatever else it says; `None` for other tools, and if even one
    /// word more does not fit.
    fn deprecated_usage(&self, notation: Notation, expression: &str) -> Option<String> {
        let description = self.definition().description.as_deref().unwrap_or_default();
        let sentence = usage::deprecation(description, MAX_DEPRECATION)?;
        [sentence.as_str(), usage::DEPRECATED].into_iter().find_map(|note| {
            let line = self.fitting_line(notation, MAX_USAGE_TOKENS, |signature, _| {
                format!("{expression}{signature} - {note}")
            });
            (usage::estimate(&line) <= MAX_USAGE_TOKENS).then_some(line)
        })
    }

    /// The expression that names the tool in a script: `tools.files.read_file`. It contains the exact names, which
    /// always work, in brackets if they are not identifiers of the language.
    pub(crate) fn expression(&self, notation: Notation) -> String {
        format!("tools{}{}", usage::access(&self.server, notation), usage::access(&self.tool, notation))
    }

    /// How the tool is called in a language, with the types of parameters and result.
    pub(crate) fn call(&self, notation: Notation) -> String {
        let expression = self.expression(notation);
        self.fitting_line(notation, MAX_SIGNATURE_TOKENS, |signature, _| format!("{expression}{signature}"))
    }

    fn fitting_line(&self, notation: Notation, max: usize, write: impl Fn(&str, Detail) -> String) -> String {
        let inferred = self.inferred();
        let types = ToolTypes { definition: self.definition(), inferred: inferred.as_ref() };
        usage::fitting_line(types, notation, max, write)
    }

    /// The tool's name with as many of its parameters as fit into `max` characters: see
    /// [`usage::name_and_parameters`].
    pub(crate) fn name_and_parameters(&self, max: usize) -> String {
        usage::name_and_parameters(&self.names(), max)
    }

    /// The tool's name as lists show it, and those of its parameters.
    pub(crate) fn names(&self) -> ToolNames {
        ToolNames { name: self.listed_name(), parameters: usage::parameter_names(self.definition()) }
    }

    /// The name for lists, which scripts of both languages can write after `tools.server.`: the exact name if it is an
    /// identifier, else its Python identifier, which TypeScript accepts too; else the exact name in brackets.
    fn listed_name(&self) -> String {
        if is_python_identifier(&self.tool) {
            return self.tool.to_string();
        }
        let identifier = python_name(&self.tool);
        let is_own = self.tools.refers_to(&identifier, self.position);
        if is_own { identifier } else { usage::access(&self.tool, Notation::Python) }
    }

    /// The names of the parameters that have descriptions, with at most `max` characters of each.
    pub(crate) fn parameter_descriptions(&self, max: usize) -> Vec<(String, String)> {
        usage::parameter_descriptions(self.definition(), max)
    }

    /// What the tool does, in at most `max` characters, without the beginning that the descriptions of its server
    /// share.
    pub(crate) fn summary_line(&self, max: usize) -> String {
        let description = self.definition().description.as_deref().unwrap_or_default();
        usage::summary(description, self.tools.shared_part(description), max)
    }

    /// The name of the tool in Python scripts: its identifier, or the exact name if another tool has the same
    /// identifier.
    pub(crate) fn python_alias(&self) -> String {
        let identifier = python_name(&self.tool);
        let is_own = self.tools.refers_to(&identifier, self.position);
        if is_own { identifier } else { self.tool.to_string() }
    }

    /// The compiled check of the tool's arguments; `None` if its schema cannot be used for a check.
    pub(crate) fn argument_check(&self) -> Option<Arc<ArgumentCheck>> {
        self.listed_by.options.checks.get(&self.tools, self.position, &self.server)
    }

    /// What a call of the tool does.
    pub(crate) fn kind(&self) -> ToolKind {
        self.dispatcher().kind(&self.server, &self.tool)
    }

    /// The effects of a call by the tool's annotations. If the tool's definition differs from the
    /// pinned one, its annotations are ignored. May read a file.
    pub(crate) fn effects(&self) -> Effects {
        if self.listed_by.matches_pin(&self.tools, self.position) {
            Effects::from_annotations(self.definition().annotations.as_ref())
        } else {
            Effects::UNKNOWN
        }
    }

    /// A sample of the tool's result, for a dry run.
    pub(crate) fn sample(&self) -> Result<Json, ToolError> {
        match &self.definition().output_schema {
            Some(schema) => {
                ToolResult::structured(sample::from_schema(Some(&schema.to_value()))).into_value(Some(schema))
            }
            None => Ok(sample::from_schema(self.inferred().map(|shape| shape.to_schema()).as_ref()).into()),
        }
    }

    /// The `ToolSchema` object that scripts receive, as JSON text. With a notation it has `usage`: see
    /// [`ResolvedTool::usage`].
    pub(crate) fn schema(&self, usage: Option<Notation>) -> Json {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ToolSchema<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            usage: Option<String>,
            name: String,
            server: &'a str,
            description: &'a str,
            parameters: &'a Schema,
            #[serde(skip_serializing_if = "Option::is_none")]
            output_schema: Option<Schema>,
            #[serde(skip_serializing_if = "Option::is_none")]
            inferred_output_schema: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            annotations: Option<&'a Value>,
        }
        let definition = self.definition();
        let output_schema = definition.output_schema.as_ref().map(Schema::unwrapped);
        let inferred = if output_schema.is_none() { self.inferred() } else { None };
        let schema = ToolSchema {
            usage: usage.map(|notation| self.usage(notation)),
            name: full_name(&self.server, &self.tool),
            server: &self.server,
            description: definition.description.as_deref().unwrap_or_default(),
            parameters: &definition.input_schema,
            output_schema,
            inferred_output_schema: inferred.map(|shape| shape.to_schema()),
            annotations: definition.annotations.as_ref(),
        };
        // Strings, and schemas that are JSON, can always be serialized.
        Json::from_serialize(&schema).unwrap_or_else(|_| Value::Null.into())
    }

    /// [`schema`](Self::schema) with the tool's declaration in a language, as `typescript` or `python`.
    pub(crate) fn schema_with_declaration(&self, notation: Notation) -> Json {
        let inferred = self.inferred();
        let types = ToolTypes { definition: self.definition(), inferred: inferred.as_ref() };
        let (name, text) = match notation {
            Notation::TypeScript => ("typescript", declarations::typescript_tool(types)),
            Notation::Python => ("python", declarations::python::tool_stub(types)),
        };
        let schema = self.schema(None).into_text();
        let Some(fields) = schema.strip_suffix('}') else { return Value::Null.into() };
        let text = Value::from(text);
        Json::parse(&format!("{fields},\"{name}\":{text}}}")).unwrap_or_else(|_| Value::Null.into())
    }

    /// Name, server and description only.
    pub(crate) fn summary(&self) -> Value {
        let mut summary = self.name_and_server();
        summary["description"] = self.definition().description.clone().unwrap_or_default().into();
        summary
    }

    /// The full name and the server.
    pub(crate) fn name_and_server(&self) -> Value {
        json!({ "name": full_name(&self.server, &self.tool), "server": &*self.server })
    }
}
