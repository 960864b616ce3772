//! A shape as a short text: `{issues: {id: number, title?: string}[], next: string | null}`.

use super::node::{Field, Node, kind};
use super::sampling::MAX_DEPTH;
use crate::text::{preview, visible};
use crate::tools::names::is_identifier;

/// Renders the shape at a location and below it, in at most `max` characters. If that is too short for all levels,
/// inner levels are left out: `{issues: {…}[]}`.
pub(super) fn render(node: &Node, max: usize) -> String {
    let mut text = String::new();
    for depth in (1..=MAX_DEPTH + 1).rev() {
        text = rendered(node, depth);
        if text.chars().count() <= max {
            return text;
        }
    }
    preview(&text, max.saturating_sub(1))
}

fn rendered(node: &Node, depth: usize) -> String {
    if node.is_unknown() {
        return "unknown".to_owned();
    }
    let mut kinds: Vec<String> = Vec::new();
    if let Some(fields) = &node.fields {
        let mut fields: Vec<String> = match depth.checked_sub(1) {
            Some(depth) => fields.iter().map(|(name, value)| field(name, value, depth)).collect(),
            None if fields.is_empty() => Vec::new(),
            None => vec!["…".to_owned()],
        };
        if let (Some(values), Some(depth)) = (&node.values, depth.checked_sub(1)) {
            fields.push(format!("[key]: {}", rendered(values, depth)));
        }
        kinds.push(format!("{{{}}}", fields.join(", ")));
    }
    if let (Some(values), None) = (&node.values, &node.fields) {
        let values = depth.checked_sub(1).map_or_else(|| "…".to_owned(), |depth| rendered(values, depth));
        kinds.push(format!("{{[key]: {values}}}"));
    }
    if let Some(elements) = &node.elements {
        // An array adds no field names, so it does not count as a level.
        let is_empty = **elements == Node::default();
        kinds.push(if is_empty { "[]".to_owned() } else { array_of(elements, depth) });
    }
    kinds.extend(scalars(node).map(str::to_owned));
    kinds.join(" | ")
}

fn array_of(elements: &Node, depth: usize) -> String {
    let has_object = elements.fields.is_some() || elements.values.is_some();
    let containers = [has_object, elements.elements.is_some()];
    let kinds = containers.into_iter().filter(|&is_there| is_there).count() + scalars(elements).count();
    let element = rendered(elements, depth);
    if kinds > 1 { format!("({element})[]") } else { format!("{element}[]") }
}

/// The types of the values without parts.
fn scalars(node: &Node) -> impl Iterator<Item = &'static str> {
    let names = [
        (kind::BOOLEAN, "boolean"),
        (kind::INTEGER | kind::FRACTION, "number"),
        (kind::STRING, "string"),
        (kind::NULL, "null"),
    ];
    names.into_iter().filter(move |(bits, _)| node.kinds & bits != 0).map(|(_, name)| name)
}

/// `name: type`. Names come from servers, so hidden characters are written out.
fn field(name: &str, field: &Field, depth: usize) -> String {
    let shown = if is_identifier(name) { name.to_owned() } else { serde_json::Value::from(name).to_string() };
    let optional = if field.optional { "?" } else { "" };
    format!("{}{optional}: {}", visible(&shown), rendered(&field.node, depth))
}
