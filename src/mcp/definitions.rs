//! Converts the pages of a server's list of tools to the types of `tools`, within bounds.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use rmcp::model::ToolAnnotations;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::errors::shortened;
use super::task_state::requires_task;
use crate::json;
use crate::text::{hidden_text, one_line, preview, visible};
use crate::tools::{Schema, ToolDefinition};

/// Maximum number of tools. No known server has more; an endless list is cut here.
pub(crate) const MAX_TOOLS: usize = 10_000;

/// Maximum bytes of a description. More does not help a model that reads it.
const DESCRIPTION_BYTES: usize = 64 * 1024;

/// Maximum bytes of a schema. The largest real schemas, generated from whole API descriptions, have
/// about this size.
const SCHEMA_BYTES: usize = 256 * 1024;

/// Maximum bytes of all definitions of one server: an index over them is kept in memory.
pub(crate) const SERVER_BYTES: usize = 16 * 1024 * 1024;

/// Maximum bytes of a schema as the server wrote it, with whitespace and escapes. A longer one is
/// not parsed.
const WRITTEN_SCHEMA_BYTES: usize = 4 * SCHEMA_BYTES;

/// Maximum bytes of a schema as a tree: about twelve times [`SCHEMA_BYTES`], as real schemas of
/// that size take.
pub(crate) const SCHEMA_TREE_BYTES: usize = 4 << 20;

/// Maximum bytes of a tool's `_meta`, and of that as a tree. A larger one is left out.
const META_BYTES: usize = 64 << 10;
const META_TREE_BYTES: usize = 1 << 20;

/// Maximum bytes of a tool's name.
const NAME_BYTES: usize = 256;

/// A page of a list of tools, each tool as its JSON text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPage<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
    next_cursor: Option<String>,
    /// A negative value means that the list may not be cached.
    ttl_ms: Option<i64>,
}

/// A page of a list of tools. Its tools are parsed one by one by [`ListBuilder::push`].
pub(crate) struct ToolPage<'a> {
    pub(crate) tools: Vec<&'a RawValue>,
    pub(crate) next_cursor: Option<String>,
    pub(crate) ttl: Option<Duration>,
}

/// Parses a page of a list of tools, and at most `max` of its tools.
///
/// # Errors
///
/// If it is not such a page.
pub(crate) fn read_tools(text: &str, max: usize) -> Result<ToolPage<'_>, serde_json::Error> {
    let page: WrittenPage<'_> = serde_json::from_str(text)?;
    let ttl = page.ttl_ms.map(|milliseconds| Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0)));
    Ok(ToolPage { tools: json::items(page.tools.get(), max)?, next_cursor: page.next_cursor, ttl })
}

/// A tool as a server describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTool<'a> {
    name: String,
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input_schema: &'a RawValue,
    #[serde(borrow)]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    execution: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// Parses a schema, if it is an object and not too large.
pub(crate) fn schema_tree(schema: &RawValue) -> Option<Value> {
    let text = schema.get();
    let tree =
        if text.len() > WRITTEN_SCHEMA_BYTES { None } else { json::tree(text, SCHEMA_TREE_BYTES).ok() };
    tree.filter(Value::is_object)
}

/// Builds one server's list of tools from its pages, within the bounds.
pub(crate) struct ListBuilder<'a> {
    server: &'a str,
    names: HashSet<String>,
    bytes: usize,
    definitions: Vec<ToolDefinition>,
    /// The names of those that run only as tasks.
    task_tools: HashSet<String>,
    /// What was left out and why: the first few problems, and their total number.
    problems: Vec<String>,
    problem_count: usize,
}

/// Maximum number of problems of a list that are described.
const MAX_PROBLEMS: usize = 3;

/// Maximum characters of a name in such a description, and of a parser's message.
const MAX_SHOWN: usize = 100;

/// The name of a tool whose definition cannot be read otherwise.
#[derive(Deserialize)]
struct NamedTool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl<'a> ListBuilder<'a> {
    pub(crate) fn new(server: &'a str) -> Self {
        Self {
            server,
            names: HashSet::new(),
            bytes: 0,
            definitions: Vec::new(),
            task_tools: HashSet::new(),
            problems: Vec::new(),
            problem_count: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.definitions.len()
    }

    /// Whether the definitions have reached the maximum of bytes of one server.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= SERVER_BYTES
    }

    /// Adds a tool, truncated to the bounds. Skips entries that are not tools, and tools whose name
    /// is already in the list.
    pub(crate) fn push(&mut self, tool: &RawValue) {
        let tool = match serde_json::from_str::<WrittenTool<'_>>(tool.get()) {
            Ok(tool) if tool.input_schema.get().starts_with('{') => tool,
            Ok(tool) => return self.leave_out(&tool.name, "its `inputSchema` is not an object"),
            Err(error) => {
                let name = serde_json::from_str::<NamedTool<'_>>(tool.get()).map(|tool| tool.name);
                return self.leave_out(&name.unwrap_or_default(), &preview(&error.to_string(), MAX_SHOWN));
            }
        };
        let name = tool.name;
        if name.is_empty() || name.len() > NAME_BYTES {
            return self.leave_out(&name, &format!("its name has {} bytes", name.len()));
        }
        if !self.names.insert(name.clone()) {
            return self.leave_out(&name, "there is another one of this name");
        }
        if tool.execution.is_some_and(requires_task) {
            self.task_tools.insert(name.clone());
        }
        let description = tool.description.map(|text| shortened(&visible(&text), DESCRIPTION_BYTES));
        let input_schema = self.schema(&name, tool.input_schema).unwrap_or_else(Schema::any_object);
        let output_schema = tool.output_schema.and_then(|schema| self.schema(&name, schema));
        // The annotations contain a title, which is free text too.
        let annotations = tool.annotations.filter(|annotations| annotations.get().len() <= DESCRIPTION_BYTES);
        let annotations = annotations
            .and_then(|annotations| serde_json::from_str::<ToolAnnotations>(annotations.get()).ok())
            .and_then(|annotations| serde_json::to_value(annotations).ok());
        let meta = tool.meta.filter(|meta| meta.get().len() <= META_BYTES);
        let meta =
            meta.and_then(|meta| json::tree(meta.get(), META_TREE_BYTES).ok()).filter(Value::is_object);
        self.bytes += meta.as_ref().map_or(0, |meta| meta.to_string().len());
        self.bytes += name.len() + description.as_ref().map_or(0, String::len);
        self.bytes += annotations.as_ref().map_or(0, |annotations| annotations.to_string().len());
        self.definitions.push(ToolDefinition {
            name,
            description,
            input_schema,
            output_schema,
            annotations,
            meta,
        });
    }

    /// Returns the schema unless it is too large. Without it, arguments and results are not
    /// checked, which is better than omitting the tool.
    fn schema(&mut self, tool: &str, schema: &RawValue) -> Option<Schema> {
        let text = schema_tree(schema).map(|mut schema| {
            show_hidden(&mut schema);
            schema.to_string()
        });
        let Some(text) = text.filter(|text| text.len() <= SCHEMA_BYTES) else {
            let bytes = schema.get().len();
            let name = preview(&one_line(tool), MAX_SHOWN);
            self.note(format!(
                "a schema of `{name}` was left out, so that it is not checked: it is too deep or too large \
                 ({bytes} bytes)"
            ));
            return None;
        };
        self.bytes += text.len();
        serde_json::from_str(&text).ok()
    }

    fn leave_out(&mut self, tool: &str, why: &str) {
        let name = preview(&one_line(tool), MAX_SHOWN);
        self.note(format!("the tool `{name}` was left out: {why}"));
    }

    fn note(&mut self, problem: String) {
        tracing::warn!(server = self.server, "{problem}");
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// The names of the tools that run only as tasks.
    pub(crate) fn take_task_tools(&mut self) -> HashSet<String> {
        std::mem::take(&mut self.task_tools)
    }

    pub(crate) fn finish(self, ttl: Option<Duration>) -> crate::tools::ToolList {
        let mut problem = self.problems.join("; ");
        if self.problem_count > self.problems.len() {
            problem.push_str(&format!("; and {} more", self.problem_count - self.problems.len()));
        }
        let problem = (!problem.is_empty()).then_some(problem);
        crate::tools::ToolList { ttl, problem, ..crate::tools::ToolList::new(self.definitions) }
    }
}

/// Escapes invisible characters in the descriptive texts of a schema. Names, patterns and values
/// stay unchanged.
fn show_hidden(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if ["description", "title", "$comment"].contains(&name.as_str()) => {
                        if hidden_text(text) {
                            *text = visible(text);
                        }
                    }
                    value => show_hidden(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(show_hidden),
        _ => {}
    }
}
