//! TypeScript types for JSON Schemas.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::text::{hidden_text, visible};
use crate::tools::arguments::resolve;
use crate::tools::names::is_identifier;

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
pub(super) enum Layout {
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
pub(super) struct Types<'a> {
    root: &'a Value,
    layout: Layout,
    schemas_left: usize,
    bytes_left: usize,
    /// References that are being followed, including the root schema. A repeated one is a cycle.
    following: HashSet<&'a str>,
}

impl<'a> Types<'a> {
    pub(super) fn of(root: &'a Value, layout: Layout) -> Self {
        Self {
            root,
            layout,
            schemas_left: MAX_SCHEMAS,
            bytes_left: MAX_BYTES,
            following: HashSet::from(["#"]),
        }
    }

    /// The type of a tool's arguments: always an object, even if the schema does not say so.
    pub(super) fn arguments(mut self) -> String {
        match self.written(self.root, 0).text.as_str() {
            "unknown" => "{ [key: string]: unknown }".to_owned(),
            text => text.to_owned(),
        }
    }

    /// The type of a tool's result. For a wrapper `{"result": x}` it is the type of `x`, which is
    /// what scripts receive.
    pub(super) fn result(mut self) -> String {
        let properties = self.root.get("properties").and_then(Value::as_object);
        let lone = properties
            .filter(|properties| properties.len() == 1)
            .and_then(|properties| properties.get("result"));
        let required = self.root.get("x-observed").is_none();
        let schema = lone.filter(|_| required).unwrap_or(self.root);
        self.written(schema, 0).text
    }

    fn written(&mut self, schema: &'a Value, depth: usize) -> Written {
        let Some(left) = self.schemas_left.checked_sub(1) else {
            return Written::unknown();
        };
        self.schemas_left = left;
        if depth > MAX_DEPTH || self.bytes_left == 0 {
            return Written::unknown();
        }
        let keywords = match schema {
            Value::Bool(false) => return Written::whole("never"),
            Value::Object(keywords) => keywords,
            _ => return Written::unknown(),
        };
        let mut parts: Vec<Written> = Vec::new();
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            parts.push(self.referred(reference, depth));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = keywords.get(keyword).and_then(Value::as_array) {
                let branches = branches.iter().map(|branch| self.written(branch, depth + 1)).collect();
                parts.push(union(branches));
            }
        }
        if let Some(all) = keywords.get("allOf").and_then(Value::as_array) {
            parts.extend(all.iter().map(|part| self.written(part, depth + 1)));
        }
        let own = self.own(keywords, depth);
        // In `{anyOf: […], type: "object"}` the `type` adds no information.
        let says_more = keywords.contains_key("properties")
            || keywords.contains_key("enum")
            || keywords.contains_key("const");
        if parts.is_empty() || says_more {
            parts.push(own);
        }
        let mut written = intersection(parts);
        if keywords.get("nullable") == Some(&Value::Bool(true)) {
            written = union(vec![written, Written::whole("null")]);
        }
        self.bytes_left = self.bytes_left.saturating_sub(written.text.len());
        written
    }

    fn referred(&mut self, reference: &'a str, depth: usize) -> Written {
        // Another document is never read, and a recursive type is not expanded.
        let target = reference.strip_prefix('#').and_then(|pointer| resolve(self.root, pointer));
        let Some(target) = target.filter(|_| self.following.insert(reference)) else {
            return Written::unknown();
        };
        let written = self.written(target, depth + 1);
        self.following.remove(reference);
        written
    }

    fn own(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Written {
        if let Some(value) = keywords.get("const") {
            return Written::whole(constant(value));
        }
        if let Some(options) = keywords.get("enum").and_then(Value::as_array)
            && options.len() <= MAX_CONSTANTS
        {
            return union(options.iter().map(|option| Written::whole(constant(option))).collect());
        }
        let has = |names: &[&str]| names.iter().any(|name| keywords.contains_key(*name));
        match keywords.get("type") {
            Some(Value::String(name)) => self.typed(name, keywords, depth),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                union(names.map(|name| self.typed(name, keywords, depth)).collect())
            }
            _ if has(&["properties", "additionalProperties", "patternProperties"]) => {
                self.object(keywords, depth)
            }
            _ if has(&["items", "prefixItems"]) => self.array(keywords, depth),
            _ => Written::unknown(),
        }
    }

    fn typed(&mut self, name: &str, keywords: &'a Map<String, Value>, depth: usize) -> Written {
        match name {
            "string" => Written::whole("string"),
            "integer" | "number" => Written::whole("number"),
            "boolean" => Written::whole("boolean"),
            "null" => Written::whole("null"),
            "array" => self.array(keywords, depth),
            "object" => self.object(keywords, depth),
            _ => Written::unknown(),
        }
    }

    fn array(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Written {
        let items = keywords.get("items");
        let (tuple, rest) = match (keywords.get("prefixItems").and_then(Value::as_array), items) {
            (Some(tuple), rest) => (Some(tuple), rest),
            // Drafts before 2020-12.
            (None, Some(Value::Array(tuple))) => (Some(tuple), keywords.get("additionalItems")),
            (None, rest) => (None, rest),
        };
        let Some(tuple) = tuple else {
            let element = rest.map_or_else(Written::unknown, |items| self.written(items, depth + 1));
            return Written::whole(format!("{}[]", element.inside(Binding::Intersection)));
        };
        let mut elements: Vec<String> =
            tuple.iter().map(|element| self.written(element, depth + 1).text).collect();
        match rest {
            Some(Value::Bool(false)) => {}
            Some(rest) => {
                let rest = self.written(rest, depth + 1).inside(Binding::Intersection);
                elements.push(format!("...{rest}[]"));
            }
            None => elements.push("...unknown[]".to_owned()),
        }
        Written::whole(format!("[{}]", elements.join(", ")))
    }

    fn object(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Written {
        let outer = self.layout;
        let inner = match outer {
            Layout::Line => None,
            Layout::Block { indent } => Some(indent + 2),
        };
        if let Some(indent) = inner {
            self.layout = Layout::Block { indent };
        }
        let required: HashSet<&str> = keywords
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut members: Vec<String> = Vec::new();
        let properties = keywords.get("properties").and_then(Value::as_object).filter(|map| !map.is_empty());
        for (name, schema) in properties.into_iter().flatten() {
            let optional = if required.contains(name.as_str()) { "" } else { "?" };
            let written = self.written(schema, depth + 1).text;
            let remark = match (inner, schema.get("description").and_then(Value::as_str)) {
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
        let patterns =
            keywords.get("patternProperties").and_then(Value::as_object).filter(|map| !map.is_empty());
        let others = keywords.get("additionalProperties");
        let open = match others {
            Some(Value::Bool(false)) => patterns.is_some(),
            Some(_) => true,
            None => patterns.is_some() || properties.is_none(),
        };
        if open && self.bytes_left > 0 {
            // TypeScript requires named fields to match the type of the index signature, so next to
            // named fields it is `unknown`.
            let value = if properties.is_some() {
                Written::unknown()
            } else {
                let others = others.filter(|others| !others.is_boolean());
                let schemas: Vec<&'a Value> =
                    patterns.into_iter().flat_map(Map::values).chain(others).collect();
                union(schemas.into_iter().map(|schema| self.written(schema, depth + 1)).collect())
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
pub(super) fn string(text: &str) -> String {
    visible(&Value::from(text).to_string())
}

/// A name as a property or method name, quoted if needed.
pub(super) fn property(name: &str) -> String {
    // A bare `new(…)` in an interface is a construct signature, not a method of that name.
    if is_identifier(name) && name.len() <= MAX_NAME && name != "new" {
        name.to_owned()
    } else {
        string(name)
    }
}

/// `text` as a comment on lines of its own, which the text cannot terminate. Empty if there is no
/// text.
pub(super) fn comment(text: &str, indent: usize) -> String {
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
