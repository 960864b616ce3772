//! Declarations of tools in TypeScript and Python, from their declared and inferred schemas.
//!
//! Schemas are untrusted text that is shown to authors and models, so no part of them is inserted
//! verbatim. Names and constants are written as JSON strings, descriptions as comments that they
//! cannot terminate, and invisible characters are escaped. The output has declarations and no code.
//! It is bounded: types that are too deep or too long to be readable become `unknown`.
//!
//! `typify` and similar crates generate Rust; generators of TypeScript and Python from schemas are programs for Node
//! or Python. They trust the schema, and bound neither their work nor their output.

mod model;
pub(crate) mod python;
mod types;

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use self::types::{Aliases, Layout, arguments_of, comment, type_of};
pub(crate) use self::types::{property, string};
use super::dispatch::ToolDefinition;
use super::names::{forms, is_identifier, is_reserved, typescript_binding, typescript_name};
use super::schema::Schema;
use super::schema::view::SchemaView;
use super::shape::Shape;

/// The globals of scripts besides tools.
const GLOBALS: &str = include_str!("declarations/globals.d.ts");

/// Variables of cx, of the language and of browsers, which are not declared again for a server of that name.
#[rustfmt::skip]
const GLOBAL_NAMES: &[&str] = &[
    "addEventListener", "alert", "atob", "blur", "btoa", "caches", "callMCPTool",
    "cancelAnimationFrame", "cancelIdleCallback", "captureEvents", "clearInterval", "clearTimeout",
    "clientInformation", "close", "closed", "confirm", "console", "cookieStore",
    "createImageBitmap", "crossOriginIsolated", "crypto", "customElements", "decodeURI",
    "decodeURIComponent", "devicePixelRatio", "discoverMCPTools", "dispatchEvent", "document",
    "emit", "encodeURI", "encodeURIComponent", "escape", "eval", "event", "exports", "external",
    "fetch", "focus", "frameElement", "frames", "getComputedStyle", "getSelection", "getToolSchema",
    "global", "globalThis", "help", "history", "indexedDB", "innerHeight", "innerWidth", "input",
    "inputs", "isFinite", "isNaN", "isSecureContext", "length", "llm", "localStorage", "location",
    "locationbar", "matchMedia", "mcp", "menubar", "module", "moveBy", "moveTo", "name",
    "navigation", "navigator", "open", "opener", "orientation", "origin", "originAgentCluster",
    "outerHeight", "outerWidth", "pageXOffset", "pageYOffset", "parent", "parseFloat", "parseInt",
    "performance", "personalbar", "postMessage", "print", "process", "progress", "prompt",
    "queueMicrotask", "releaseEvents", "removeEventListener", "reportError",
    "requestAnimationFrame", "requestIdleCallback", "require", "resizeBy", "resizeTo", "scheduler", "screen", "screenLeft",
    "screenTop", "screenX", "screenY", "scroll", "scrollBy", "scrollTo", "scrollX", "scrollY",
    "scrollbars", "searchTools", "self", "sessionStorage", "setInterval", "setTimeout",
    "speechSynthesis", "state", "status", "statusbar", "stop", "structuredClone", "toString",
    "toolbar", "tools", "top", "undefined", "unescape", "visualViewport", "webkitURL", "window",
];

/// Maximum bytes of one tool's declaration.
const MAX_TOOL_BYTES: usize = 64 << 10;

/// Maximum bytes of all declarations. Tools beyond it are left out, and a comment says so.
const MAX_BYTES: usize = 16 << 20;

/// A server with the tools that are to be declared.
#[derive(Debug)]
pub(crate) struct ServerTools<'a> {
    /// The server's name as configured.
    pub(crate) name: &'a str,
    /// Its tools; `None` if they were never listed. The server then has no types, and everything is allowed.
    pub(crate) tools: Option<Vec<ToolTypes<'a>>>,
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
    let mut text = format!("// The tools that scripts can call. Written by `cx types`.\n{GLOBALS}");
    let mut variables = String::new();
    let server_forms = forms(servers.iter().map(|server| server.name), typescript_name);
    let (mut members, mut full_names) = (String::new(), String::new());
    for (position, (server, form)) in servers.iter().zip(&server_forms).enumerate() {
        // A generated name, because two servers' names can have the same identifier.
        let interface = format!("McpServer{}", position + 1);
        let variable = typescript_binding(server.name);
        let typed = if server.tools.is_some() { &*interface } else { "any" };
        if form_is_free(&servers, position, &variable) {
            let _ = writeln!(variables, "declare const {variable}: {typed};");
        }
        let _ = writeln!(members, "  readonly {}: {typed};", property(server.name));
        if let Some(form) = form {
            let _ = writeln!(members, "  readonly {}: {typed};", property(form));
        }
        let _ = write!(full_names, "\n  & CxFullNames<{}, {typed}>", string(server.name));
        declare_server(&mut text, server, &interface);
    }
    // The end on a line of its own, so that another server changes no line of the others.
    let _ = write!(text, "\ndeclare const tools: {{\n{members}}}{full_names};\n{variables}");
    text
}

/// Writes the interface of a server, with the recursive types that it refers to, and the module that exports its tools.
fn declare_server(text: &mut String, server: &ServerTools<'_>, interface: &str) {
    let module = string(&format!("mcp:{}", server.name));
    let Some(tools) = &server.tools else {
        let _ = write!(text, "\n// Its tools are not known yet.\ndeclare module {module};\n");
        return;
    };
    let tool_forms = forms(tools.iter().map(|tool| &*tool.definition.name), typescript_name);
    let mut aliases = Aliases::new(format!("{interface}Type"));
    let mut body = format!("\ninterface {interface} {{\n");
    let mut exports = Exports::default();
    for (tool, form) in tools.iter().zip(&tool_forms) {
        let name = &*tool.definition.name;
        if exports.seen.contains(name) {
            // If two tools have the same name, only the first can be called.
            continue;
        }
        if text.len() + body.len() > MAX_BYTES {
            body.push_str("  // More tools are left out: these are too many to declare.\n");
            break;
        }
        let shown = form.as_deref().unwrap_or(name);
        body.push_str(&member(*tool, shown, OPTIONS, &mut aliases));
        exports.add(shown, interface);
        if shown != name {
            let _ = writeln!(body, "  {}: {interface}[{}];", property(name), string(shown));
            exports.add(name, interface);
        }
        exports.seen.insert(name.to_owned());
    }
    if !aliases.text.is_empty() {
        let _ = write!(text, "\n{}", aliases.text);
    }
    text.push_str(&body);
    text.push_str("}\n");
    let _ = write!(
        text,
        "\ndeclare module {module} {{\n  const server: {interface};\n  export default server;\n{}}}\n",
        exports.text
    );
}

/// Whether `variable`, the identifier of a server's name, is used by no other server and is no global of a browser,
/// whose types an editor may know.
fn form_is_free(servers: &[ServerTools<'_>], position: usize, variable: &str) -> bool {
    variable.starts_with(|first: char| first.is_ascii_lowercase())
        && variable.is_ascii()
        && !GLOBAL_NAMES.contains(&variable)
        && !servers
            .iter()
            .enumerate()
            .any(|(at, server)| at != position && typescript_binding(server.name) == variable)
}

/// One tool: an interface with its declaration, and the recursive types that it refers to.
pub(crate) fn typescript_tool(tool: ToolTypes<'_>) -> String {
    let mut aliases = Aliases::new("Type".to_owned());
    let form = typescript_name(&tool.definition.name);
    let member = member(tool, &form, "", &mut aliases);
    format!("{}interface Tools {{\n{member}}}\n", aliases.text)
}

/// One tool on one line: `readFile(args: { path: string; limit?: number }): Promise<string>`.
/// Without comments.
pub(crate) fn signature(tool: ToolTypes<'_>) -> String {
    let form = typescript_name(&tool.definition.name);
    let name = if is_identifier(&tool.definition.name) { &tool.definition.name } else { &form };
    let line = format!("{name}{}", parameters_and_result(tool, "", Layout::Line, None));
    if line.len() > MAX_TOOL_BYTES { format!("{name}(args: unknown): Promise<unknown>") } else { line }
}

/// The exports of a module other than its default export.
#[derive(Default)]
struct Exports {
    /// The exact names of tools that are declared already.
    seen: HashSet<String>,
    /// The names that are exported already.
    taken: HashSet<String>,
    /// The declarations.
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

/// The second parameter of every tool, for editors. A model that looks at one tool is not told of it: most calls need
/// no options.
const OPTIONS: &str = ", options?: CxCallOptions | number";

/// The tool as a member of its server's interface, with its description.
fn member(tool: ToolTypes<'_>, shown: &str, options: &str, aliases: &mut Aliases) -> String {
    let head = comment(&tool.remarks(), 2);
    let aliases_before = aliases.text.len();
    let body = parameters_and_result(tool, options, Layout::Block { indent: 2 }, Some(&mut *aliases));
    let name = property(shown);
    if head.len() + body.len() + aliases.text.len() - aliases_before > MAX_TOOL_BYTES {
        aliases.text.truncate(aliases_before);
        return format!("{head}  {name}(args?: any{options}): Promise<any>;\n");
    }
    format!("{head}  {name}{body};\n")
}

impl<'a> ToolTypes<'a> {
    /// The inferred output schema, if it is used.
    fn used_shape(self) -> Option<&'a Shape> {
        self.inferred.filter(|shape| self.definition.output_schema.is_none() && shape.calls() > 0)
    }

    /// The tool's description, and the origin of its result's type.
    fn remarks(self) -> String {
        let mut remarks = self.definition.description.clone().unwrap_or_default();
        if let Some(shape) = self.used_shape() {
            let calls = shape.calls();
            let _ =
                write!(remarks, "\n@returns inferred in {calls} call{}", if calls == 1 { "" } else { "s" });
        }
        remarks
    }

    /// The schema of the value that scripts receive: from the declared output schema or the inferred one. `None` if
    /// neither is known.
    pub(crate) fn output_schema(self) -> Option<Value> {
        match &self.definition.output_schema {
            Some(schema) => Some(parsed(&schema.unwrapped())),
            None => self.used_shape().map(Shape::to_schema),
        }
    }
}

fn parameters_and_result(
    tool: ToolTypes<'_>,
    options: &str,
    layout: Layout,
    mut aliases: Option<&mut Aliases>,
) -> String {
    let input = parsed(&tool.definition.input_schema);
    let mut left = MAX_READ;
    let parameter = if needs_fields(SchemaView::root(&input), &mut left) { "args" } else { "args?" };
    let arguments = arguments_of(&input, layout, aliases.as_deref_mut());
    let result = match tool.output_schema() {
        Some(schema) => type_of(&schema, layout, aliases),
        // Not `unknown`: authors who have seen a result should not need type assertions.
        None => "any".to_owned(),
    };
    format!("({parameter}: {arguments}{options}): Promise<{result}>")
}

/// Maximum number of schemas that are read for what a tool requires. Real ones have a few alternatives.
const MAX_READ: usize = 64;

/// Whether each object of the schema has a field that is required, in each alternative at least one. `left` is the
/// number of schemas that may still be read: references can lead back, and to some schemas often.
fn needs_fields(schema: SchemaView<'_>, left: &mut usize) -> bool {
    let Some(others) = left.checked_sub(1) else { return false };
    *left = others;
    schema.required().next().is_some()
        || schema.reference().is_ok_and(|target| target.is_some_and(|target| needs_fields(target, left)))
        || schema.list("allOf").any(|part| needs_fields(part, left))
        || schema.unions().any(|alternatives| {
            let mut alternatives = alternatives.peekable();
            alternatives.peek().is_some() && alternatives.all(|one| needs_fields(one, left))
        })
}

/// The parsed schema, or a schema that permits anything if it is too large to be parsed here.
pub(crate) fn parsed(schema: &Schema) -> Value {
    const MAX_SCHEMA_BYTES: usize = 1 << 20;
    if schema.text().len() > MAX_SCHEMA_BYTES {
        return Value::Bool(true);
    }
    serde_json::from_str(schema.text()).unwrap_or(Value::Bool(true))
}

#[cfg(test)]
mod tests;
