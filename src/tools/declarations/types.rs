//! The types of [`model`](super::model) in TypeScript.

use std::collections::HashSet;

use serde_json::Value;

use super::model::{Field, MAX_DESCRIPTION, Model, Object, Type};
use crate::text::{hidden_text, preview, visible};
use crate::tools::names::is_identifier;

/// Maximum characters of a name or a constant.
pub(super) const MAX_NAME: usize = 256;

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

    /// The text for use as an operand of `outer`, in parentheses if needed.
    fn inside(self, outer: Binding) -> String {
        if self.binding <= outer && self.binding != Binding::Whole {
            format!("({})", self.text)
        } else {
            self.text
        }
    }
}

/// The names of recursive types.
#[derive(Debug)]
pub(super) struct Aliases {
    prefix: String,
    count: usize,
    /// Their declarations.
    pub(super) text: String,
}

impl Aliases {
    /// Names that begin with `prefix`, which must be an identifier.
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix, count: 0, text: String::new() }
    }
}

/// Writes types.
pub(super) struct Types<'a> {
    layout: Layout,
    /// The names of the model's named types.
    names: &'a [String],
}

/// The type of a schema. Without `aliases` recursive types are cut.
pub(super) fn type_of(schema: &Value, layout: Layout, aliases: Option<&mut Aliases>) -> String {
    let model = Model::new(schema, aliases.is_some());
    let Some(aliases) = aliases else { return Types { layout, names: &[] }.written(&model.root).text };
    let names: Vec<String> =
        (1..=model.named.len()).map(|at| format!("{}{}", aliases.prefix, aliases.count + at)).collect();
    aliases.count += names.len();
    for (name, body) in names.iter().zip(&model.named) {
        let body = Types { layout: Layout::Block { indent: 0 }, names: &names }.written(body).text;
        aliases.text.push_str(&format!("type {name} = {body};\n"));
    }
    Types { layout, names: &names }.written(&model.root).text
}

/// The type of a tool's arguments: always an object, even if the schema does not say so.
pub(super) fn arguments_of(schema: &Value, layout: Layout, aliases: Option<&mut Aliases>) -> String {
    match type_of(schema, layout, aliases) {
        text if text == "unknown" => "{ [key: string]: unknown }".to_owned(),
        text => text,
    }
}

impl Types<'_> {
    fn written(&mut self, of: &Type) -> Written {
        match of {
            Type::Unknown => Written::whole("unknown"),
            Type::Never => Written::whole("never"),
            Type::String => Written::whole("string"),
            Type::Integer | Type::Number => Written::whole("number"),
            Type::Boolean => Written::whole("boolean"),
            Type::Null => Written::whole("null"),
            Type::Constant(Value::String(text)) => Written::whole(string(text)),
            Type::Constant(value) => Written::whole(value.to_string()),
            Type::Array(element) => {
                Written::whole(format!("{}[]", self.written(element).inside(Binding::Intersection)))
            }
            Type::Tuple(first, rest) => self.tuple(first, rest.as_deref()),
            Type::Object(object) => self.object(object),
            Type::Union(branches) => union(branches.iter().map(|branch| self.written(branch)).collect()),
            Type::Intersection(parts) => intersection(parts.iter().map(|part| self.written(part)).collect()),
            Type::Named(at) => Written::whole(self.names.get(*at).map_or("unknown", String::as_str)),
        }
    }

    fn tuple(&mut self, first: &[Type], rest: Option<&Type>) -> Written {
        let mut texts: Vec<String> = first.iter().map(|element| self.written(element).text).collect();
        if let Some(rest) = rest {
            texts.push(format!("...{}[]", self.written(rest).inside(Binding::Intersection)));
        }
        Written::whole(format!("[{}]", texts.join(", ")))
    }

    fn object(&mut self, object: &Object) -> Written {
        let outer = self.layout;
        let inner = match outer {
            Layout::Line => None,
            Layout::Block { indent } => Some(indent + 2),
        };
        if let Some(indent) = inner {
            self.layout = Layout::Block { indent };
        }
        let mut members: Vec<String> = Vec::new();
        for Field { name, is_optional, description, value } in &object.fields {
            let optional = if *is_optional { "?" } else { "" };
            let written = self.written(value).text;
            let remark = inner.map_or_else(String::new, |indent| comment(description, indent));
            members.push(format!("{remark}{}{}{optional}: {written};", spaces(inner), property(name)));
        }
        if let Some(others) = &object.others {
            // TypeScript requires named fields to match the type of the index signature, so next to
            // named fields it is `unknown`.
            let value = if members.is_empty() { self.written(others) } else { Written::whole("unknown") };
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

/// `A | B` without duplicates.
fn union(branches: Vec<Written>) -> Written {
    combined(branches, " | ", Binding::Union)
}

fn intersection(parts: Vec<Written>) -> Written {
    combined(parts, " & ", Binding::Intersection)
}

fn combined(parts: Vec<Written>, separator: &str, binding: Binding) -> Written {
    let mut seen = HashSet::new();
    let mut parts: Vec<Written> = parts.into_iter().filter(|part| seen.insert(part.text.clone())).collect();
    match parts.len() {
        0 => Written::whole("unknown"),
        1 => parts.remove(0),
        _ => {
            let texts: Vec<String> = parts
                .into_iter()
                .map(|part| if part.binding < binding { part.inside(binding) } else { part.text })
                .collect();
            Written { text: texts.join(separator), binding }
        }
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
    let start = preview(text, MAX_DESCRIPTION);
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
