//! Parses JSON with comments, TOML and YAML into a tree of values with their locations.

use std::collections::HashSet;
use std::panic::catch_unwind;

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions};
use yaml_edit::{Scalar, YamlNode};

use super::error::{Finding, FindingKind, Key, Location};
use crate::text::one_line;

/// A value, and its location if the parser provides it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) location: Option<Location>,
    /// Whether the content is the text of an environment variable, which may represent a number or a boolean and is
    /// never shown.
    pub(super) from_variable: bool,
}

#[derive(Debug)]
pub(super) enum Content {
    Null,
    Bool(bool),
    /// The number as written.
    Number(String),
    String(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

/// A key with its value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) location: Option<Location>,
    pub(super) value: Node,
}

impl Node {
    /// The value's type, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match &self.content {
            _ if self.from_variable => "another text in the variable",
            Content::Null => "null",
            Content::Bool(_) => "a boolean",
            Content::Number(_) => "a number",
            Content::String(_) => "a string",
            Content::Array(_) => "an array",
            Content::Object(_) => "an object",
        }
    }

    pub(super) fn as_object(&self) -> Option<&[Member]> {
        match &self.content {
            Content::Object(members) => Some(members),
            _ => None,
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.content {
            Content::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value with this path of keys, separated by dots.
    pub(super) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, Self::get)
    }

    /// The location of the value with this path of keys, separated by dots.
    pub(super) fn locate(&self, path: &str) -> Option<Location> {
        self.at(path)?.location
    }

    /// The text of an environment variable.
    pub(super) fn of_variable(text: &str, location: Option<Location>) -> Self {
        Self { content: Content::String(text.to_owned()), location, from_variable: true }
    }

    /// The value of a key, if this is an object that has it.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.iter().find(|member| member.name == name).map(|member| &member.value)
    }
}

/// Comments and trailing commas, and no other extension of JSON: another program might read it
/// differently.
pub(super) const JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// What an object literal of JavaScript may have beyond JSON.
const LITERAL: ParseOptions = ParseOptions {
    allow_loose_object_property_names: true,
    allow_single_quoted_strings: true,
    allow_extended_string_escapes: true,
    ..JSON
};

/// Parses an object literal of JavaScript that has only literals. As [`parse_json`] else.
pub(super) fn parse_literal(text: &str) -> Result<Node, Vec<Finding>> {
    parse_with(text, &LITERAL)
}

/// Parses JSON with what [`JSON`] says. Duplicate keys are refused: the last one would win, while a
/// reader of the file sees the first one.
pub(super) fn parse_json(text: &str) -> Result<Node, Vec<Finding>> {
    parse_with(text, &JSON)
}

/// Maximum number of keys that are there twice, of which an error keeps each. It shows fewer.
const MAX_FINDINGS: usize = 1_000;

fn parse_with(text: &str, options: &ParseOptions) -> Result<Node, Vec<Finding>> {
    // Editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = Lines::new(text);
    let syntax = |message: String, offset: usize| {
        vec![Finding {
            kind: FindingKind::Syntax { format: "JSON", message },
            location: Some(lines.location(offset)),
            hint: None,
        }]
    };
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), options)
        .map_err(|error| syntax(error.kind().to_string().to_lowercase(), error.range().start))?;
    let Some(value) = parsed.value else {
        return Err(syntax("the file is empty".to_owned(), 0));
    };
    let mut findings = Vec::new();
    let node = json_node(value, &Key::default(), &lines, &mut findings);
    if findings.is_empty() { Ok(node) } else { Err(findings) }
}

fn json_node(value: ast::Value<'_>, key: &Key, lines: &Lines<'_>, findings: &mut Vec<Finding>) -> Node {
    use jsonc_parser::common::Ranged as _;
    let location = Some(lines.location(value.range().start));
    let content = match value {
        ast::Value::NullKeyword(_) => Content::Null,
        ast::Value::BooleanLit(literal) => Content::Bool(literal.value),
        ast::Value::NumberLit(literal) => Content::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Content::String(literal.value.into_owned()),
        ast::Value::Array(array) => {
            let items = array.elements.into_iter().enumerate();
            Content::Array(
                items.map(|(position, item)| json_node(item, &key.item(position), lines, findings)).collect(),
            )
        }
        ast::Value::Object(object) => {
            let mut members = Vec::with_capacity(object.properties.len());
            let mut names = HashSet::new();
            for property in object.properties {
                let location = Some(lines.location(property.range.start));
                let name = property.name.into_string();
                let key = key.child(&name);
                if !names.insert(name.clone()) && findings.len() < MAX_FINDINGS {
                    let kind = FindingKind::Twice { key: key.clone() };
                    findings.push(Finding { kind, location, hint: Some("remove one of the two".to_owned()) });
                }
                members.push(Member {
                    name,
                    location,
                    value: json_node(property.value, &key, lines, findings),
                });
            }
            Content::Object(members)
        }
    };
    Node { content, location, from_variable: false }
}

/// Parses TOML, whose parser refuses duplicate keys. The values have no locations.
pub(super) fn parse_toml(text: &str) -> Result<Node, Vec<Finding>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.parse::<toml::Table>().map(|table| toml_node(toml::Value::Table(table))).map_err(|error| {
        // The complete message would contain the line, which may hold a secret.
        let kind = FindingKind::Syntax { format: "TOML", message: one_line(error.message()) };
        let location = error.span().map(|span| Lines::new(text).location(span.start));
        vec![Finding { kind, location, hint: None }]
    })
}

fn toml_node(value: toml::Value) -> Node {
    let content = match value {
        toml::Value::String(text) => Content::String(text),
        toml::Value::Integer(number) => Content::Number(number.to_string()),
        toml::Value::Float(number) => Content::Number(number.to_string()),
        toml::Value::Boolean(value) => Content::Bool(value),
        toml::Value::Datetime(moment) => Content::String(moment.to_string()),
        toml::Value::Array(items) => Content::Array(items.into_iter().map(toml_node).collect()),
        toml::Value::Table(table) => Content::Object(
            table
                .into_iter()
                .map(|(name, value)| Member { name, location: None, value: toml_node(value) })
                .collect(),
        ),
    };
    Node { content, location: None, from_variable: false }
}

/// Parses YAML. The values have no locations. An alias counts as null: expanding aliases would repeat their content as
/// often as a file likes.
pub(super) fn parse_yaml(text: &str) -> Result<Node, Vec<Finding>> {
    if text.split('\n').any(|line| line.matches('!').count() > MAX_TAGS) {
        return Err(no_yaml(format!("a line has more than {MAX_TAGS} `!`")));
    }
    // Some input may trigger a panic in the parser.
    catch_unwind(|| read_yaml(text)).unwrap_or_else(|_panic| Err(no_yaml("it cannot be read".to_owned())))
}

fn no_yaml(message: String) -> Vec<Finding> {
    vec![Finding { kind: FindingKind::Syntax { format: "YAML", message }, location: None, hint: None }]
}

/// What the parser says, without the text of the file: it quotes all that it could not read, which may be long, and a
/// secret, and has a token that it found in place of another without quotes.
pub(super) fn yaml_problem(error: &yaml_edit::YamlError) -> String {
    let message = error.to_string();
    let said = message.split('"').next().unwrap_or_default();
    let said = said.split("Found: ").next().unwrap_or_default();
    one_line(said.trim_end_matches([':', '.', ' ']))
}

fn read_yaml(text: &str) -> Result<Node, Vec<Finding>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = text.parse::<yaml_edit::Document>().map_err(|error| no_yaml(yaml_problem(&error)))?;
    let mut findings = Vec::new();
    let root = document.as_mapping().map(YamlNode::Mapping);
    let node = yaml_node(root.as_ref(), &Key::default(), MAX_YAML_DEPTH, &mut findings);
    if findings.is_empty() { Ok(node) } else { Err(findings) }
}

/// Deeper than any real configuration.
const MAX_YAML_DEPTH: usize = 64;

/// Maximum number of `!` in a line. Each can be a tag, and the parser recurses for each tag of a key, which its own
/// bound on depth does not count. A key and its tags are on one line. A stack overflow ends the process and, unlike a
/// panic, cannot be caught.
const MAX_TAGS: usize = 128;

fn yaml_node(value: Option<&YamlNode>, key: &Key, depth: usize, findings: &mut Vec<Finding>) -> Node {
    let Some(below) = depth.checked_sub(1) else {
        findings.push(Finding::unexpected(key, None, "fewer levels", format!("more than {MAX_YAML_DEPTH}")));
        return Node { content: Content::Null, location: None, from_variable: false };
    };
    let content = match value {
        Some(YamlNode::Scalar(scalar)) if !scalar.is_quoted() && !scalar.is_block() => {
            let written = scalar.as_string();
            match written.as_str() {
                "" | "~" | "null" => Content::Null,
                "true" => Content::Bool(true),
                "false" => Content::Bool(false),
                _ if written.parse::<f64>().is_ok_and(f64::is_finite) => Content::Number(written),
                _ => Content::String(written),
            }
        }
        Some(YamlNode::Scalar(scalar)) => Content::String(scalar.as_string()),
        Some(YamlNode::Sequence(items)) => {
            let item = |(position, value)| yaml_node(Some(&value), &key.item(position), below, findings);
            Content::Array(items.values().enumerate().map(item).collect())
        }
        Some(YamlNode::Mapping(mapping)) => {
            let mut members: Vec<Member> = Vec::new();
            let mut names = HashSet::new();
            for (name, value) in mapping.iter() {
                let Some(name) = name.as_scalar().map(Scalar::as_string) else { continue };
                let key = key.child(&name);
                if !names.insert(name.clone()) && findings.len() < MAX_FINDINGS {
                    findings.push(FindingKind::Twice { key: key.clone() }.into());
                }
                let value = yaml_node(Some(&value), &key, below, findings);
                members.push(Member { name, location: None, value });
            }
            Content::Object(members)
        }
        Some(YamlNode::Alias(_) | YamlNode::TaggedNode(_)) | None => Content::Null,
    };
    Node { content, location: None, from_variable: false }
}

/// The offsets at which the lines of a text begin.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    fn location(&self, offset: usize) -> Location {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        // A minified file has up to a megabyte on one line. Counting its characters for each value
        // would take quadratic time, so beyond this length the column is in bytes.
        let before = self.text.get(start..offset).unwrap_or_default();
        let column = 1 + if before.len() > 4_096 { before.len() } else { before.chars().count() };
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Location { line: number(line), column: number(column) }
    }
}
