//! TypeScript declarations of tools, from their declared and inferred schemas.
//!
//! Schemas are untrusted text that is shown to authors and models, so no part of them is inserted
//! verbatim. Names and constants are written as JSON strings, descriptions as comments that they
//! cannot terminate, and invisible characters are escaped. The output has declarations and no code.
//! It is bounded: types that are too deep or too long to be readable become `unknown`.

mod types;

use std::fmt::Write as _;

use serde_json::Value;

use self::types::{Layout, Types, comment};
pub(crate) use self::types::{property, string};
use super::dispatch::ToolDefinition;
use super::names::{forms, is_identifier, is_reserved, typescript_name};
use super::schema::Schema;
use super::schema::view::SchemaView;
use super::shape::Shape;

/// Maximum bytes of one tool's declaration.
const MAX_TOOL_BYTES: usize = 64 << 10;

/// Maximum bytes of all declarations. Tools beyond it are left out, and a comment says so.
const MAX_BYTES: usize = 16 << 20;

/// A server with the tools that are to be declared.
#[derive(Debug)]
pub(crate) struct ServerTools<'a> {
    /// The server's name as configured.
    pub(crate) name: &'a str,
    /// Its tools.
    pub(crate) tools: Vec<ToolTypes<'a>>,
}

/// What is known about a tool's types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolTypes<'a> {
    /// The tool's definition.
    pub(crate) definition: &'a ToolDefinition,
    /// The inferred output schema. Used if the server declares none.
    pub(crate) inferred: Option<&'a Shape>,
}

/// The declarations of everything that scripts see of `servers`: the global `tools`, and one module
/// `mcp:<server>` per server.
pub(crate) fn typescript<'a>(servers: impl Iterator<Item = ServerTools<'a>>) -> String {
    let servers: Vec<ServerTools<'_>> = servers.collect();
    let mut text = "// The tools that scripts can call. Written by `cx types`.\n".to_owned();
    let server_forms = forms(servers.iter().map(|server| server.name), typescript_name);
    let mut members = String::new();
    for (position, (server, form)) in servers.iter().zip(&server_forms).enumerate() {
        // A generated name, because two servers' names can have the same identifier.
        let interface = format!("McpServer{}", position + 1);
        let _ = writeln!(members, "  readonly {}: {interface};", property(server.name));
        if let Some(form) = form {
            let _ = writeln!(members, "  readonly {}: {interface};", property(form));
        }
        let tool_forms = forms(server.tools.iter().map(|tool| &*tool.definition.name), typescript_name);
        let _ = write!(text, "\ninterface {interface} {{\n");
        let mut exports = Exports::default();
        for (tool, form) in server.tools.iter().zip(&tool_forms) {
            let name = &*tool.definition.name;
            if exports.seen.contains(name) {
                // If two tools have the same name, only the first can be called.
                continue;
            }
            if text.len() > MAX_BYTES {
                text.push_str("  // More tools are left out: these are too many to declare.\n");
                break;
            }
            let shown = form.as_deref().unwrap_or(name);
            text.push_str(&member(*tool, shown));
            exports.add(shown, &interface);
            if shown != name {
                let _ = writeln!(text, "  {}: {interface}[{}];", property(name), string(shown));
                exports.add(name, &interface);
            }
            exports.seen.insert(name.to_owned());
        }
        text.push_str("}\n");
        let _ = write!(
            text,
            "\ndeclare module {} {{\n  const server: {interface};\n  export default server;\n{}}}\n",
            string(&format!("mcp:{}", server.name)),
            exports.text
        );
    }
    let _ = write!(text, "\ndeclare const tools: {{\n{members}}};\n");
    text
}

/// One tool on one line: `readFile(args: { path: string; limit?: number }): Promise<string>`.
/// Without comments.
pub(crate) fn signature(tool: ToolTypes<'_>) -> String {
    let form = typescript_name(&tool.definition.name);
    let name = if is_identifier(&tool.definition.name) { &tool.definition.name } else { &form };
    let line = format!("{name}{}", parameters_and_result(tool, Layout::Line));
    if line.len() > MAX_TOOL_BYTES { format!("{name}(args: unknown): Promise<unknown>") } else { line }
}

/// The exports of a module other than its default export.
#[derive(Default)]
struct Exports {
    seen: std::collections::HashSet<String>,
    taken: std::collections::HashSet<String>,
    text: String,
}

impl Exports {
    /// Exports `name` if an import can name it. Other names are only properties of the default
    /// export.
    fn add(&mut self, name: &str, interface: &str) {
        // An export `then` would make the module a thenable.
        if !is_identifier(name) || matches!(name, "then" | "default") || !self.taken.insert(name.to_owned()) {
            return;
        }
        let member = string(name);
        // Exported through a generated variable name, because names such as `delete` and `server`
        // cannot be used for the variable.
        let variable = format!("tool{}", self.taken.len());
        let plain = !is_reserved(name) && name != "server" && !name.starts_with("tool");
        let _ = if plain {
            writeln!(self.text, "  export const {name}: {interface}[{member}];")
        } else {
            writeln!(
                self.text,
                "  const {variable}: {interface}[{member}];\n  export {{ {variable} as {name} }};"
            )
        };
    }
}

/// The tool as a member of its server's interface, with its description.
fn member(tool: ToolTypes<'_>, shown: &str) -> String {
    let mut remarks = tool.definition.description.clone().unwrap_or_default();
    if let Some(shape) = tool.used_shape() {
        let calls = shape.calls();
        let _ = write!(remarks, "\n@returns inferred in {calls} call{}", if calls == 1 { "" } else { "s" });
    }
    let head = comment(&remarks, 2);
    let body = parameters_and_result(tool, Layout::Block { indent: 2 });
    let name = property(shown);
    if head.len() + body.len() > MAX_TOOL_BYTES {
        return format!("{head}  {name}(args?: any): Promise<any>;\n");
    }
    format!("{head}  {name}{body};\n")
}

impl<'a> ToolTypes<'a> {
    /// The inferred output schema, if it is the one that counts.
    fn used_shape(self) -> Option<&'a Shape> {
        self.inferred.filter(|shape| self.definition.output_schema.is_none() && shape.calls() > 0)
    }

    /// The schema of what scripts receive: by the declared output schema, or the inferred one. `None`
    /// if nothing is known.
    pub(crate) fn output_schema(self) -> Option<Value> {
        match &self.definition.output_schema {
            Some(schema) => Some(parsed(&schema.unwrapped())),
            None => self.used_shape().map(Shape::to_schema),
        }
    }
}

fn parameters_and_result(tool: ToolTypes<'_>, layout: Layout) -> String {
    let input = parsed(&tool.definition.input_schema);
    let is_required = SchemaView::root(&input).required().next().is_some();
    let parameter = if is_required { "args" } else { "args?" };
    let arguments = Types::new(&input, layout).arguments();
    let result = match tool.output_schema() {
        Some(schema) => Types::new(&schema, layout).result(),
        // Not `unknown`: authors who have seen a result should not need type assertions.
        None => "any".to_owned(),
    };
    format!("({parameter}: {arguments}): Promise<{result}>")
}

/// The parsed schema, or one that permits anything if the schema is too large to be parsed for
/// this.
pub(crate) fn parsed(schema: &Schema) -> Value {
    const MAX_SCHEMA_BYTES: usize = 1 << 20;
    if schema.text().len() > MAX_SCHEMA_BYTES {
        return Value::Bool(true);
    }
    serde_json::from_str(schema.text()).unwrap_or(Value::Bool(true))
}

#[cfg(test)]
mod tests;
