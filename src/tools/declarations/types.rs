//! TypeScript types for JSON Schemas.

use std::collections::HashSet;

use serde_json::Value;

use crate::text::{hidden_text, visible};
use crate::tools::names::is_identifier;
use crate::tools::schema::view::SchemaView;

/// Maximum levels of a type, with references followed.
const MAX_DEPTH: usize = 12;

/// Maximum number of schemas in one type. References can double the number at every level.
const MAX_SCHEMAS: usize = 2_000;

/// Maximum bytes of one type.
const MAX_BYTES: usize = 48 << 10;

/// Maximum number of constants in an enumeration. A larger one becomes the constants' type.
const MAX_CONSTANTS: usize = 50;

/// Maximum characters of a description of a tool or a field.
const MAX_DESCRIPTION: usize = 2_000;

/// Maximum characters of a name or a constant.
const MAX_NAME: usize = 256;

/// The layout of a type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout {
    /// On one line, without comments.
    Line,
    /// One line per field, with its description.
    Block {
        /// Indentation, in spaces, of the line on which the type begins.
        indent: usize,
    },
}

/// Operator precedence of a type, for parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Union,
    Intersection,
    Whole,
}

struct Written {
    text: String,
    binding: Binding,
}

impl Written {
    fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), binding: Binding::Whole }
    }

    fn unknown() -> Self {
        Self::whole("unknown")
    }

    /// The text for use as an operand of `outer`, in parentheses if needed.
    fn inside(self, outer: Binding) -> String {
        if self.binding <= outer && self.binding != Binding::Whole {
            format!("({})", self.text)
        } else {
            self.text
        }
    }
}

/// Converts one schema to a type.
pub(crate) struct Types<'a> {
    root: SchemaView<'a>,
    layout: Layout,
    schemas_left: usize,
    bytes_left: usize,
    /// The addresses of the root schema and of the targets of references that are being followed.
    /// A repeated one is a cycle.
    following: HashSet<usize>,
}

impl<'a> Types<'a> {
    pub(crate) fn new(root: &'a Value, layout: Layout) -> Self {
        let root = SchemaView::root(root);
        Self {
            root,
            layout,
            schemas_left: MAX_SCHEMAS,
            bytes_left: MAX_BYTES,
            following: HashSet::from([root.address()]),
        }
    }

    /// The type of a tool's arguments: always an object, even if the schema does not say so.
    pub(crate) fn arguments(mut self) -> String {
        match self.written(self.root, 0).text.as_str() {
            "unknown" => "{ [key: string]: unknown }".to_owned(),
            text => text.to_owned(),
        }
    }

    /// The type of a tool's result.
    pub(crate) fn result(mut self) -> String {
        self.written(self.root, 0).text
    }

    fn written(&mut self, schema: SchemaView<'a>, depth: usize) -> Written {
        let Some(left) = self.schemas_left.checked_sub(1) else {
            return Written::unknown();
        };
        self.schemas_left = left;
        if depth > MAX_DEPTH || self.bytes_left == 0 {
            return Written::unknown();
        }
        if schema.is_false() {
            return Written::whole("never");
        }
        let mut parts: Vec<Written> = Vec::new();
        match schema.reference() {
            Ok(Some(target)) => parts.push(self.referred(target, depth)),
            Err(_) => parts.push(Written::unknown()),
            Ok(None) => {}
        }
        for branches in schema.unions() {
            let branches = branches.map(|branch| self.written(branch, depth + 1)).collect();
            parts.push(union(branches));
        }
        parts.extend(schema.list("allOf").map(|part| self.written(part, depth + 1)));
        // In `{anyOf: […], type: "object"}` the `type` adds no information.
        let says_more = ["properties", "enum", "const"].iter().any(|keyword| schema.get(keyword).is_some());
        let own = self.own(schema, depth);
        if parts.is_empty() || says_more {
            parts.push(own);
        }
        let mut written = intersection(parts);
        if schema.is_nullable() {
            written = union(vec![written, Written::whole("null")]);
        }
        self.bytes_left = self.bytes_left.saturating_sub(written.text.len());
        written
    }

    /// The type of a reference's target. A recursive type is not expanded.
    fn referred(&mut self, target: SchemaView<'a>, depth: usize) -> Written {
        if !self.following.insert(target.address()) {
            return Written::unknown();
        }
        let written = self.written(target, depth + 1);
        self.following.remove(&target.address());
        written
    }

    fn own(&mut self, schema: SchemaView<'a>, depth: usize) -> Written {
        if let Some(value) = schema.get("const") {
            return Written::whole(constant(value));
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array)
            && options.len() <= MAX_CONSTANTS
        {
            return union(options.iter().map(|option| Written::whole(constant(option))).collect());
        }
        let mut types = schema.declared_types();
        if types.is_empty() {
            types.extend(schema.implied_type());
        }
        union(types.into_iter().map(|name| self.typed(name, schema, depth)).collect())
    }

    fn typed(&mut self, name: &str, schema: SchemaView<'a>, depth: usize) -> Written {
        match name {
            "string" => Written::whole("string"),
            "integer" | "number" => Written::whole("number"),
            "boolean" => Written::whole("boolean"),
            "null" => Written::whole("null"),
            "array" => self.array(schema, depth),
            "object" => self.object(schema, depth),
            _ => Written::unknown(),
        }
    }

    fn array(&mut self, schema: SchemaView<'a>, depth: usize) -> Written {
        let elements = schema.elements();
        let Some(tuple) = elements.tuple else {
            let element = elements.rest.map_or_else(Written::unknown, |rest| self.written(rest, depth + 1));
            return Written::whole(format!("{}[]", element.inside(Binding::Intersection)));
        };
        let mut texts: Vec<String> =
            tuple.iter().map(|element| self.written(schema.at(element), depth + 1).text).collect();
        match elements.rest {
            Some(rest) if rest.is_false() => {}
            Some(rest) => {
                let rest = self.written(rest, depth + 1).inside(Binding::Intersection);
                texts.push(format!("...{rest}[]"));
            }
            None => texts.push("...unknown[]".to_owned()),
        }
        Written::whole(format!("[{}]", texts.join(", ")))
    }

    fn object(&mut self, schema: SchemaView<'a>, depth: usize) -> Written {
        let outer = self.layout;
        let inner = match outer {
            Layout::Line => None,
            Layout::Block { indent } => Some(indent + 2),
        };
        if let Some(indent) = inner {
            self.layout = Layout::Block { indent };
        }
        let required: HashSet<&str> = schema.required().collect();
        let mut members: Vec<String> = Vec::new();
        for (name, field) in schema.properties() {
            let optional = if required.contains(name) { "" } else { "?" };
            let written = self.written(field, depth + 1).text;
            let remark = match (inner, field.text("description")) {
                (Some(indent), Some(description)) => comment(description, indent),
                _ => String::new(),
            };
            self.bytes_left = self.bytes_left.saturating_sub(remark.len() + name.len());
            members.push(format!("{remark}{}{}{optional}: {written};", spaces(inner), property(name)));
            if self.bytes_left == 0 {
                members.push(format!("{}[key: string]: unknown;", spaces(inner)));
                break;
            }
        }
        let is_named = !members.is_empty();
        let others = schema.one("additionalProperties");
        let has_patterns = schema.map("patternProperties").next().is_some();
        let is_open = match others {
            Some(others) if others.is_false() => has_patterns,
            Some(_) => true,
            None => has_patterns || !is_named,
        };
        if is_open && self.bytes_left > 0 {
            // TypeScript requires named fields to match the type of the index signature, so next to
            // named fields it is `unknown`.
            let value = if is_named {
                Written::unknown()
            } else {
                let patterns = schema.map("patternProperties").map(|(_, schema)| schema);
                let others = others.filter(|others| others.keywords().is_some());
                union(patterns.chain(others).map(|schema| self.written(schema, depth + 1)).collect())
            };
            members.push(format!("{}[key: string]: {};", spaces(inner), value.text));
        }
        self.layout = outer;
        Written::whole(match outer {
            _ if members.is_empty() => "{}".to_owned(),
            Layout::Line => format!("{{ {} }}", members.join(" ").trim_end_matches(';')),
            Layout::Block { indent } => format!("{{\n{}\n{}}}", members.join("\n"), spaces(Some(indent))),
        })
    }
}

fn spaces(indent: Option<usize>) -> String {
    " ".repeat(indent.unwrap_or(0))
}

/// `A | B` without duplicates. `unknown` if a branch is `unknown` or there are no branches.
fn union(branches: Vec<Written>) -> Written {
    combined(branches, " | ", Binding::Union)
}

fn intersection(mut parts: Vec<Written>) -> Written {
    // `unknown & T` is `T`.
    if parts.iter().any(|part| part.text != "unknown") {
        parts.retain(|part| part.text != "unknown");
    }
    combined(parts, " & ", Binding::Intersection)
}

fn combined(parts: Vec<Written>, separator: &str, binding: Binding) -> Written {
    let mut seen = HashSet::new();
    let mut parts: Vec<Written> = parts.into_iter().filter(|part| seen.insert(part.text.clone())).collect();
    match parts.len() {
        0 => Written::unknown(),
        1 => parts.remove(0),
        _ if binding == Binding::Union && seen.contains("unknown") => Written::unknown(),
        _ => {
            let texts: Vec<String> = parts
                .into_iter()
                .map(|part| if part.binding < binding { part.inside(binding) } else { part.text })
                .collect();
            Written { text: texts.join(separator), binding }
        }
    }
}

/// A constant as a type. For a container only its kind.
fn constant(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > MAX_NAME => "string".to_owned(),
        Value::String(text) => string(text),
        Value::Array(_) => "unknown[]".to_owned(),
        Value::Object(_) => "{ [key: string]: unknown }".to_owned(),
        _ => value.to_string(),
    }
}

/// `text` as a TypeScript string literal. JSON's escapes are valid in TypeScript, and invisible
/// characters are escaped.
pub(crate) fn string(text: &str) -> String {
    visible(&Value::from(text).to_string())
}

/// A name as a property or method name, quoted if needed.
pub(crate) fn property(name: &str) -> String {
    // A bare `new(…)` in an interface is a construct signature, not a method of that name.
    if is_identifier(name) && name.len() <= MAX_NAME && name != "new" {
        name.to_owned()
    } else {
        string(name)
    }
}

/// `text` as a comment on lines of its own, which the text cannot terminate. Empty if there is no
/// text.
pub(crate) fn comment(text: &str, indent: usize) -> String {
    let mut start: String = text.chars().take(MAX_DESCRIPTION).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    let mut shown = visible(&start.replace("\r\n", "\n").replace('\r', "\n")).replace("*/", "*\\/");
    if hidden_text(&start) {
        shown.push_str("\n(The server's text has hidden characters, written out here.)");
    }
    let lines: Vec<&str> = shown.trim().lines().map(str::trim_end).collect();
    let margin = spaces(Some(indent));
    match lines[..] {
        [] => String::new(),
        [line] => format!("{margin}/** {line} */\n"),
        _ => {
            let lines: String = lines.iter().map(|line| format!("{margin} * {line}\n")).collect();
            format!("{margin}/**\n{lines}{margin} */\n").replace(" * \n", " *\n")
        }
    }
}
