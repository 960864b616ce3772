//! One line for a model about how a tool is called and what it does, as short as is readable.
//!
//! The line is a notation and not code. A type that is too long or too deep for it is shortened to `{…}`; the schema
//! has the complete type. All names and texts come from a server, so names that are not identifiers are written as
//! strings, without line breaks and hidden characters.

mod tokens;

use std::collections::HashSet;

use serde_json::Value;

use super::declarations::{ToolTypes, parsed, property, string};
use super::dispatch::ToolDefinition;
use super::names::{is_identifier, is_python_identifier};
use super::schema::view::SchemaView;
use crate::text::{self, preview, visible};

pub(crate) use self::tokens::estimate;

/// The language whose names of types are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    TypeScript,
    Python,
}

/// Levels of objects whose fields are named.
const MAX_LEVELS: usize = 2;

/// Maximum number of fields and of alternatives on each level.
const MAX_FIELDS: usize = 12;
const MAX_ALTERNATIVES: usize = 6;

/// Maximum number of schemas that are examined for one line. Alternatives and references could multiply them.
const MAX_SCHEMAS: usize = 200;

/// That many names of fields count as one schema more: those of a schema are read as often as it is looked at.
const NAMES_OF_A_SCHEMA: usize = 64;

/// Maximum characters of a tool's name in a line; real ones are shorter.
const MAX_NAME: usize = 64;

/// What says of a tool that another one should be used.
pub(crate) const DEPRECATED: &str = "deprecated";

/// How much of a tool a line shows, in characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    parameters: usize,
    result: usize,
    pub(crate) summary: usize,
}

/// Levels of detail, from the highest: first the summary is shortened, then types, then names are left out. A tool with
/// a short name needs only the first.
pub(crate) const DETAILS: [Detail; 10] = {
    const fn detail(parameters: usize, result: usize, summary: usize) -> Detail {
        Detail { parameters, result, summary }
    }
    [
        detail(240, 120, 80),
        detail(240, 80, 60),
        detail(120, 60, 48),
        detail(120, 24, 36),
        detail(80, 24, 28),
        detail(60, 8, 24),
        detail(48, 8, 0),
        detail(32, 8, 0),
        detail(24, 0, 0),
        detail(0, 0, 0),
    ]
};

/// A server and the names of its tools, if they are known.
pub(crate) struct IndexedServer {
    pub(crate) name: String,
    pub(crate) tools: Option<Vec<ToolNames>>,
}

/// A tool's name and those of its parameters.
pub(crate) struct ToolNames {
    pub(crate) name: String,
    pub(crate) parameters: Vec<String>,
}

/// A tool's name with as many of its parameters as fit into `max` characters: `read(path, …)`. A name is shortened only
/// beyond [`MAX_NAME`], because a shortened name cannot be called.
pub(crate) fn name_and_parameters(tool: &ToolNames, max: usize) -> String {
    /// The mark for further parameters, with the bracket.
    const MORE: &str = ", …)";
    let mut text = format!("{}(", preview(&visible(&tool.name), MAX_NAME));
    let mut length = text.chars().count();
    for (place, parameter) in tool.parameters.iter().enumerate() {
        let before = if place == 0 { "" } else { ", " };
        let after = if place + 1 == tool.parameters.len() { 1 } else { MORE.chars().count() };
        let own = before.len() + parameter.chars().count();
        if length + own + after > max {
            text.push_str(before);
            text.push('…');
            break;
        }
        length += own;
        text.push_str(before);
        text.push_str(parameter);
    }
    text.push(')');
    text
}

/// Returns the line that `write` makes with the highest detail for which it takes at most `max` estimated tokens; with
/// the lowest detail if none fits.
pub(crate) fn fitting_line(
    tool: ToolTypes<'_>,
    notation: Notation,
    max: usize,
    write: impl Fn(&str, Detail) -> String,
) -> String {
    let input = parsed(&tool.definition.input_schema);
    let output = tool.output_schema();
    let mut line = String::new();
    for detail in DETAILS {
        line = write(&signature(&input, output.as_ref(), notation, detail), detail);
        if estimate(&line) <= max {
            break;
        }
    }
    line
}

/// Parameters and result: `({path: string, head?: number}): {content: string}`, in Python `(path: str, head?: int) ->
/// {content: str}`. An unknown result is left out.
fn signature(input: &Value, output: Option<&Value>, notation: Notation, detail: Detail) -> String {
    let mut fields = parameters(input, notation, detail.parameters);
    if fields.is_empty() && takes_anything(SchemaView::root(input)) {
        fields.push('…');
    }
    let parameters = match notation {
        _ if fields.is_empty() => String::new(),
        Notation::TypeScript => format!("{{{fields}}}"),
        Notation::Python => fields,
    };
    let arrow = match notation {
        Notation::TypeScript => ": ",
        Notation::Python => " -> ",
    };
    let result = output.and_then(|schema| fitting(schema, notation, detail.result, Line::result));
    let result = result.filter(|result| *result != words(notation).unknown);
    format!("({parameters}){}", result.map(|result| format!("{arrow}{result}")).unwrap_or_default())
}

/// The parameters with their types, or without if that is too long, or only the first of them.
fn parameters(input: &Value, notation: Notation, max: usize) -> String {
    if let Some(fields) = fitting(input, notation, max, Line::fields) {
        return fields;
    }
    let all = fields(SchemaView::root(input));
    let count = all.len();
    let mut text = String::new();
    for (place, (name, _, is_required)) in all.into_iter().enumerate() {
        let name = format!("{}{}", property(name), if is_required { "" } else { "?" });
        // After the last parameter no space is needed for the mark of further ones.
        let more = if place + 1 == count { 0 } else { ", …".len() };
        if text.len() + name.len() + more > max {
            text.push('…');
            break;
        }
        text.push_str(&name);
        text.push_str(if place + 1 == count { "" } else { ", " });
    }
    text
}

/// Whether a schema that names no fields allows any. Servers use empty `properties` for a tool without parameters.
fn takes_anything(schema: SchemaView<'_>) -> bool {
    schema.get("properties").is_none()
        && !schema.one("additionalProperties").is_some_and(SchemaView::is_false)
}

/// How a name is used as a member: `.files`, or in brackets if it is no identifier.
pub(crate) fn access(name: &str, notation: Notation) -> String {
    let is_identifier = match notation {
        Notation::TypeScript => is_identifier(name),
        Notation::Python => is_python_identifier(name),
    };
    if is_identifier { format!(".{name}") } else { format!("[{}]", string(name)) }
}

/// The names of a tool's parameters, required ones first: `path`, `head?`. Only `…` if the schema names none and allows
/// any.
pub(crate) fn parameter_names(definition: &ToolDefinition) -> Vec<String> {
    let input = parsed(&definition.input_schema);
    if takes_anything(SchemaView::root(&input)) {
        return vec!["…".to_owned()];
    }
    fields(SchemaView::root(&input))
        .into_iter()
        .take(MAX_FIELDS)
        .map(|(name, _, is_required)| format!("{}{}", property(name), if is_required { "" } else { "?" }))
        .collect()
}

/// The names of the parameters that have descriptions, with at most `max` characters of each.
pub(crate) fn parameter_descriptions(definition: &ToolDefinition, max: usize) -> Vec<(String, String)> {
    let input = parsed(&definition.input_schema);
    fields(SchemaView::root(&input))
        .into_iter()
        .filter_map(|(name, field, _)| Some((property(name), summary(field.text("description")?, 0, max))))
        .filter(|(_, description)| !description.is_empty())
        .take(MAX_FIELDS)
        .collect()
}

/// The fields of an object and whether they are required. Required fields come first, because the others may be left
/// out.
fn fields(schema: SchemaView<'_>) -> Vec<(&str, SchemaView<'_>, bool)> {
    let required: HashSet<&str> = schema.required().collect();
    let mut fields: Vec<_> =
        schema.properties().map(|(name, field)| (name, field, required.contains(name))).collect();
    fields.sort_by_key(|&(_, _, is_required)| !is_required);
    fields
}

/// The beginning of a description after its first `shared` bytes (see [`shared_beginning`]): at most `max` characters
/// of the first sentence or paragraph.
pub(crate) fn summary(description: &str, shared: usize, max: usize) -> String {
    let own = description.get(shared..).unwrap_or(description).trim_start();
    let paragraph = own.split("\n\n").next().unwrap_or_default();
    // Bounded before it is copied.
    let start = text::start(paragraph, 4 * max + 4);
    let line = visible(&start.split_whitespace().collect::<Vec<_>>().join(" "));
    let sentence = line.find(". ").map_or(&*line, |end| &line[..end]).trim_end_matches('.');
    if sentence.chars().count() <= max {
        return sentence.to_owned();
    }
    let cut = text::start(sentence, max.saturating_sub(1));
    let words = cut.rfind(' ').map_or(cut, |end| &cut[..end]);
    format!("{}…", words.trim_end_matches([',', ';', ':']))
}

/// What a description says of the tool being deprecated, in at most `max` characters: the first sentence that begins
/// with the word. `None` if there is none.
pub(crate) fn deprecation(description: &str, max: usize) -> Option<String> {
    deprecation_note(description).map(|note| summary(note, 0, max))
}

/// The first 1,000 characters of a description from the sentence on that begins with the word. `None` if there is none.
pub(crate) fn deprecation_note(description: &str) -> Option<&str> {
    const MAX_READ: usize = 1_000;
    let start = text::start(description, MAX_READ);
    // `**Deprecated**` and `[DEPRECATED]` count. A bracket stays, because it is closed.
    let is_mark = |letter: char| !letter.is_alphanumeric() && !matches!(letter, '[' | '(');
    let mut sentences =
        std::iter::once(0).chain(sentence_ends(start)).map(|at| start[at..].trim_start_matches(is_mark));
    let is_note = |sentence: &&str| {
        let words = sentence.trim_start_matches(['[', '(']);
        words.get(..DEPRECATED.len()).is_some_and(|word| word.eq_ignore_ascii_case(DEPRECATED))
    };
    sentences.find(is_note)
}

/// The beginning that at least three and at least half of the descriptions share: whole sentences that do not
/// characterize a single tool. Empty if there is none.
pub(crate) fn shared_beginning<'a>(descriptions: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    /// How many descriptions are examined for beginnings.
    const CANDIDATES: usize = 4;
    const MAX_BYTES: usize = 1_000;
    /// How many beginnings of each are compared with all descriptions.
    const MAX_SENTENCES: usize = 20;
    let count = descriptions.clone().count();
    let needed = count.div_ceil(2).max(3);
    let mut longest = "";
    for candidate in descriptions.clone().take(CANDIDATES) {
        let ends = sentence_ends(candidate).take_while(|&end| end <= MAX_BYTES);
        for end in ends.take(MAX_SENTENCES) {
            let beginning = &candidate[..end];
            let sharing = || descriptions.clone().filter(|text| text.starts_with(beginning)).count();
            if end > longest.len() && sharing() >= needed {
                longest = beginning;
            }
        }
    }
    longest
}

/// Where sentences and labels (`Tool description: `) end, with the space behind them.
fn sentence_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.match_indices(['.', ':'])
        .map(|(at, _)| at + 2)
        .filter(|&end| text.get(end - 1..end).is_some_and(|space| [" ", "\n"].contains(&space)))
}

/// The names of types.
struct Words {
    string: &'static str,
    integer: &'static str,
    number: &'static str,
    boolean: &'static str,
    null: &'static str,
    unknown: &'static str,
    object: &'static str,
}

fn words(notation: Notation) -> &'static Words {
    match notation {
        Notation::TypeScript => &Words {
            string: "string",
            integer: "number",
            number: "number",
            boolean: "boolean",
            null: "null",
            unknown: "any",
            object: "object",
        },
        Notation::Python => &Words {
            string: "str",
            integer: "int",
            number: "float",
            boolean: "bool",
            null: "None",
            unknown: "Any",
            object: "dict",
        },
    }
}

/// Returns the text that `write` makes with the most levels for which it has at most `max` characters.
fn fitting(
    root: &Value,
    notation: Notation,
    max: usize,
    write: impl Fn(&mut Line, SchemaView<'_>) -> String,
) -> Option<String> {
    (0..=MAX_LEVELS).rev().find_map(|levels| {
        let mut line = Line { notation, levels, left: MAX_SCHEMAS, following: HashSet::new() };
        let text = write(&mut line, SchemaView::root(root));
        (text.chars().count() <= max).then_some(text)
    })
}

/// Writes the types of one line.
struct Line {
    notation: Notation,
    /// Levels of objects below the parameters or the result whose fields are named.
    levels: usize,
    /// Number of schemas that may still be examined.
    left: usize,
    /// The targets of references that are being followed. A repeated one is a cycle.
    following: HashSet<usize>,
}

impl Line {
    /// The fields of an object: `path: string, head?: number`. Empty if it names none.
    fn fields(&mut self, schema: SchemaView<'_>) -> String {
        self.members(schema, 0)
    }

    fn result(&mut self, schema: SchemaView<'_>) -> String {
        self.written(schema, 0)
    }

    fn written(&mut self, schema: SchemaView<'_>, level: usize) -> String {
        let words = words(self.notation);
        let Some(left) = self.left.checked_sub(1) else { return words.unknown.to_owned() };
        self.left = left;
        if let Ok(Some(target)) = schema.reference() {
            if !self.following.insert(target.address()) {
                return words.unknown.to_owned();
            }
            let written = self.written(target, level);
            self.following.remove(&target.address());
            return written;
        }
        let mut alternatives: Vec<String> = Vec::new();
        for branches in schema.unions() {
            alternatives
                .extend(branches.take(MAX_ALTERNATIVES + 1).map(|branch| self.written(branch, level)));
        }
        if alternatives.is_empty() {
            alternatives = self.own(schema, level);
        }
        if schema.is_nullable() {
            alternatives.push(words.null.to_owned());
        }
        self.union(alternatives)
    }

    /// The alternatives that the schema itself names: constants or types.
    fn own(&mut self, schema: SchemaView<'_>, level: usize) -> Vec<String> {
        if let Some(value) = schema.get("const") {
            return vec![self.constant(value)];
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            return options.iter().take(MAX_ALTERNATIVES + 1).map(|option| self.constant(option)).collect();
        }
        let mut types = schema.declared_types();
        types.extend(if types.is_empty() { schema.implied_type() } else { None });
        types.into_iter().take(MAX_ALTERNATIVES).map(|name| self.typed(name, schema, level)).collect()
    }

    fn union(&self, alternatives: Vec<String>) -> String {
        let mut seen = HashSet::new();
        let mut alternatives: Vec<_> =
            alternatives.into_iter().filter(|alternative| seen.insert(alternative.clone())).collect();
        let unknown = words(self.notation).unknown;
        if alternatives.is_empty() || seen.contains(unknown) {
            return unknown.to_owned();
        }
        if alternatives.len() > MAX_ALTERNATIVES {
            alternatives.truncate(MAX_ALTERNATIVES);
            alternatives.push("…".to_owned());
        }
        alternatives.join("|")
    }

    fn typed(&mut self, name: &str, schema: SchemaView<'_>, level: usize) -> String {
        let words = words(self.notation);
        match name {
            "string" => words.string.to_owned(),
            "integer" => words.integer.to_owned(),
            "number" => words.number.to_owned(),
            "boolean" => words.boolean.to_owned(),
            "null" => words.null.to_owned(),
            "array" => self.array(schema, level),
            "object" if level >= self.levels => "{…}".to_owned(),
            "object" => {
                let members = self.members(schema, level + 1);
                if members.is_empty() { words.object.to_owned() } else { format!("{{{members}}}") }
            }
            _ => words.unknown.to_owned(),
        }
    }

    fn array(&mut self, schema: SchemaView<'_>, level: usize) -> String {
        let elements = schema.elements();
        let element = match (elements.tuple, elements.rest) {
            (None, Some(rest)) => self.written(rest, level),
            _ => words(self.notation).unknown.to_owned(),
        };
        match self.notation {
            Notation::TypeScript if element.contains('|') => format!("({element})[]"),
            Notation::TypeScript => format!("{element}[]"),
            Notation::Python => format!("list[{element}]"),
        }
    }

    fn members(&mut self, schema: SchemaView<'_>, level: usize) -> String {
        let fields = fields(schema);
        let names = fields.len() + schema.required().count();
        self.left = self.left.saturating_sub(names / NAMES_OF_A_SCHEMA);
        let more = fields.len() > MAX_FIELDS;
        let mut members: Vec<String> = fields
            .into_iter()
            .take(MAX_FIELDS)
            .map(|(name, field, is_required)| {
                let optional = if is_required { "" } else { "?" };
                format!("{}{optional}: {}", property(name), self.written(field, level))
            })
            .collect();
        if more {
            members.push("…".to_owned());
        }
        members.join(", ")
    }

    /// A constant as a type. For a container or a long text only its kind.
    fn constant(&self, value: &Value) -> String {
        const MAX_TEXT: usize = 40;
        let words = words(self.notation);
        match (value, self.notation) {
            (Value::String(text), _) if text.chars().count() > MAX_TEXT => words.string.to_owned(),
            (Value::String(text), _) => string(text),
            (Value::Array(_) | Value::Object(_), _) => words.unknown.to_owned(),
            (Value::Null, _) => words.null.to_owned(),
            (Value::Bool(true), Notation::Python) => "True".to_owned(),
            (Value::Bool(false), Notation::Python) => "False".to_owned(),
            (value, _) => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
