//! Adds to objects of a JSON text that are on one line, so that they stay on one line. `jsonc-parser` would split such
//! an object into lines.

use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde_json::Value;

use crate::config::document::JSON;

/// How the members of an object are written.
#[derive(Clone, Copy)]
struct Style {
    /// A space after `:` and `,`.
    is_spaced: bool,
    /// A space after `{` and before `}`.
    is_padded: bool,
}

/// The text with a member of the object at the end of `keys`: with a new value if it is there, else behind the
/// others. Objects that are missing are made. `None` if what changes has several lines, or is an empty object
/// in several.
pub(super) fn set(text: &str, keys: &[String], name: &str, value: &Value) -> Option<String> {
    with_root(text, |root| {
        let (mut object, mut parent) = (root, None);
        let mut missing = keys;
        while let [key, rest @ ..] = missing {
            let Some(member) = object.get(key) else { break };
            parent = Some(object);
            object = member.value.as_object()?;
            missing = rest;
        }
        let style = style(text, object, parent)?;
        if missing.is_empty()
            && let Some(known) = object.get(name)
        {
            let range = known.value.range();
            let old = text.get(range.start..range.end)?;
            return (!old.contains('\n'))
                .then(|| spliced(text, range.start..range.end, &written(value, style)))?;
        }
        let names: Vec<&str> = missing.iter().map(String::as_str).chain([name]).collect();
        let (first, inner) = names.split_first()?;
        let nested = inner.iter().rev().fold(value.clone(), |value, name| {
            Value::Object(serde_json::Map::from_iter([((*name).to_owned(), value)]))
        });
        is_one_line(text, object).then(|| append(text, object, first, &nested, style))?
    })
}

/// Adds a member after the others.
fn append(text: &str, object: &ast::Object<'_>, name: &str, value: &Value, style: Style) -> Option<String> {
    let (start, end) = inside(object);
    let space = if style.is_spaced { " " } else { "" };
    let colon = if style.is_spaced { ": " } else { ":" };
    let member = format!("{}{colon}{}", Value::from(name), written(value, style));
    let Some(last) = object.properties.last() else {
        let pad = if style.is_padded { " " } else { "" };
        let inner = text.get(start..end)?.trim();
        let between = if inner.is_empty() { "" } else { " " };
        return spliced(text, start..end, &format!("{pad}{inner}{between}{member}{pad}"));
    };
    let behind = last.range().end;
    match comma(text.get(behind..end)?) {
        // A trailing comma stays after the last member.
        Some(offset) => spliced(text, behind + offset + 1..behind + offset + 1, &format!("{space}{member},")),
        None => spliced(text, behind..behind, &format!(",{space}{member}")),
    }
}

/// Calls a function with the root object of the text.
fn with_root(text: &str, use_root: impl FnOnce(&ast::Object<'_>) -> Option<String>) -> Option<String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &JSON).ok()?;
    use_root(parsed.value.as_ref()?.as_object()?)
}

/// The first and the last byte between the braces.
fn inside(object: &ast::Object<'_>) -> (usize, usize) {
    (object.range.start + 1, object.range.end.saturating_sub(1))
}

fn is_one_line(text: &str, object: &ast::Object<'_>) -> bool {
    text.get(object.range.start..object.range.end).is_some_and(|text| !text.contains('\n'))
}

/// The style of the object. An empty object gets the style of its parent; `None` if the parent has several lines, or
/// there is none.
fn style(text: &str, object: &ast::Object<'_>, parent: Option<&ast::Object<'_>>) -> Option<Style> {
    let of = match object.properties.is_empty() {
        true => parent.filter(|parent| is_one_line(text, parent))?,
        false => object,
    };
    let member = of.properties.first()?;
    let colon = text.get(member.name.range().end..member.value.range().start)?;
    let is_space = |text: &str| text.starts_with([' ', '\t']);
    Some(Style {
        is_spaced: colon.split_once(':').is_some_and(|(_, after)| is_space(after)),
        is_padded: text.get(of.range.start + 1..).is_some_and(is_space),
    })
}

/// The position of the comma in the text after a member, which may also contain comments and white space.
fn comma(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        let found = rest.find([',', '/'])?;
        if rest.get(found..)?.starts_with(',') {
            return Some(at + found);
        }
        at += found + rest.get(found..)?.find("*/")? + 2;
    }
}

fn written(value: &Value, style: Style) -> String {
    let separator = if style.is_spaced { ", " } else { "," };
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| written(item, style)).collect();
            format!("[{}]", items.join(separator))
        }
        Value::Object(members) if !members.is_empty() => {
            let (colon, pad) =
                (if style.is_spaced { ": " } else { ":" }, if style.is_padded { " " } else { "" });
            let member = |(name, value): (&String, &Value)| {
                format!("{}{colon}{}", Value::from(name.as_str()), written(value, style))
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{pad}{}{pad}}}", members.join(separator))
        }
        value => value.to_string(),
    }
}

fn spliced(text: &str, range: Range<usize>, new: &str) -> Option<String> {
    Some(format!("{}{new}{}", text.get(..range.start)?, text.get(range.end..)?))
}
