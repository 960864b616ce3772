//! Changes one list of servers in a client's file and nothing else: comments, order and formatting stay. The resulting
//! text is parsed again and compared with the intended values.

mod one_line;
mod removal;

use std::collections::VecDeque;

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};

use crate::config::clients::Layout;
use crate::config::document::{Content, JSON, Node, parse_json, parse_toml, parse_yaml, yaml_problem};
use crate::config::error::{Finding, FindingKind};

/// What changes in the list of servers.
#[derive(Debug, Default)]
pub(super) struct Edit {
    /// Entries that are added, or replaced if there is one of the name.
    pub(super) set: Vec<(String, Value)>,
    /// Entries that are removed.
    pub(super) remove: Vec<String>,
}

/// The text after changes of lists, each of which is at the end of its keys.
///
/// # Errors
///
/// Why the lists could not be changed alone.
pub(super) fn apply(layout: Layout, text: &str, edits: &[(Vec<String>, Edit)]) -> Result<String, String> {
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let mut changed = text.to_owned();
    let mut meant = plain(layout, text)?;
    for (keys, edit) in edits.iter().filter(|(_, edit)| !edit.is_empty()) {
        changed = edit.changed(layout, &changed, keys)?;
        meant = edit.meant(meant, keys);
    }
    if plain(layout, &changed)? != meant {
        return Err("the change would change more than the servers that it is about".to_owned());
    }
    Ok(format!("{mark}{changed}"))
}

/// A text with the line ends that another has. `toml_edit` writes line feeds only, and a file of Windows is to stay
/// one.
fn with_line_ends_of(other: &str, text: String) -> String {
    let of_windows = other.matches("\r\n").count();
    if of_windows == 0 || of_windows != other.matches('\n').count() {
        return text;
    }
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

impl Edit {
    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }

    /// The text after the change of the list at the end of these keys. An empty text becomes a file with the
    /// list.
    ///
    /// # Errors
    ///
    /// Why the list could not be changed alone.
    fn changed(&self, layout: Layout, text: &str, keys: &[String]) -> Result<String, String> {
        match (layout, keys) {
            (Layout::Toml, [key]) => Ok(with_line_ends_of(text, self.toml(text, key)?)),
            (Layout::Yaml, [key]) => self.yaml(text, key),
            (Layout::Json | Layout::JsonWithProjects | Layout::Directory, _) => self.json(text, keys),
            _ => Err("it has no such list".to_owned()),
        }
    }

    /// The values that the file must have after the change.
    fn meant(&self, mut root: Value, keys: &[String]) -> Value {
        let mut list = Some(&mut root);
        for key in keys {
            let object = list.and_then(Value::as_object_mut);
            list = object.map(|object| object.entry(key).or_insert(Value::Null));
            // In YAML an empty list of servers is often no value at all.
            if let Some(missing @ Value::Null) = list.as_deref_mut() {
                *missing = Value::Object(Map::new());
            }
        }
        if let Some(list) = list.and_then(Value::as_object_mut) {
            self.remove.iter().for_each(|name| {
                list.shift_remove(name);
            });
            list.extend(self.set.iter().map(|(name, entry)| (name.clone(), numbers_as_text(entry))));
        }
        root
    }

    fn json(&self, text: &str, keys: &[String]) -> Result<String, String> {
        if text.trim().is_empty() {
            let list: Map<String, Value> = self.set.iter().cloned().collect();
            let nested = keys.iter().rev().fold(Value::Object(list), |value, key| {
                Value::Object(Map::from_iter([(key.clone(), value)]))
            });
            return Ok(format!("{nested:#}\n"));
        }
        let mut text = text.to_owned();
        // Added first: an object that is temporarily empty has no style to continue.
        for (name, entry) in &self.set {
            text = match one_line::set(&text, keys, name, entry) {
                Some(text) => text,
                None => in_lines(&text, keys, |list| match list.get(name) {
                    Some(known) => known.set_value(json_input(entry)),
                    None => drop(list.append(name, json_input(entry))),
                })?,
            };
        }
        // All at once: the text can have megabytes, and is parsed each time.
        if !self.remove.is_empty() {
            text = removal::remove(&text, keys, &self.remove)?;
        }
        Ok(text)
    }

    fn toml(&self, text: &str, key: &str) -> Result<String, String> {
        let mut document =
            text.parse::<toml_edit::DocumentMut>().map_err(|error| error.message().to_owned())?;
        let list = document.entry(key).or_insert_with(|| {
            let mut table = toml_edit::Table::new();
            // Otherwise its header would be a separate line without meaning.
            table.set_implicit(true);
            toml_edit::Item::Table(table)
        });
        let is_inline = list.is_inline_table();
        let list = list.as_table_like_mut().ok_or_else(|| format!("`{key}` in it is not a table"))?;
        let mut removed = Vec::new();
        for name in &self.remove {
            let comment = list.key(name).and_then(|key| comment(key.leaf_decor()));
            let item = list.remove(name).ok_or_else(|| format!("`{name}` is not in it any more"))?;
            removed.push((comment, item));
        }
        for (name, entry) in &self.set {
            let value = toml_value(entry).ok_or("its entry cannot be written in TOML")?;
            let item = match value {
                toml_edit::Value::InlineTable(table) if !is_inline => {
                    toml_edit::Item::Table(table.into_table())
                }
                value => toml_edit::Item::Value(value),
            };
            list.insert(name, item);
        }
        for (comment, item) in removed {
            keep_comments(&mut document, comment, &item);
        }
        Ok(document.to_string())
    }

    fn yaml(&self, text: &str, key: &str) -> Result<String, String> {
        let text = if text.trim().is_empty() { format!("{key}:\n") } else { text.to_owned() };
        let document = text.parse::<yaml_edit::Document>().map_err(|error| yaml_problem(&error))?;
        let root = document.as_mapping().ok_or("it is not a mapping")?;
        if root.get_mapping(key).is_none() {
            if root.get(key).is_some_and(|node| !node.as_scalar().is_some_and(|scalar| scalar.is_null())) {
                return Err(format!("`{key}` in it is not a mapping"));
            }
            let mut entries = String::new();
            for (name, entry) in &self.set {
                entries.push_str(&format!("{}:\n{}", Value::from(name.as_str()), yaml_lines(entry, 2)?));
            }
            root.set(key, &yaml_mapping(&entries)?);
            return Ok(document.to_string());
        }
        let list = root.get_mapping(key).ok_or("it has no list of servers")?;
        for name in &self.remove {
            list.remove(name.as_str()).ok_or_else(|| format!("`{name}` is not in it any more"))?;
        }
        for (name, entry) in &self.set {
            list.set(name.as_str(), &yaml_mapping(&yaml_lines(entry, 0)?)?);
        }
        Ok(document.to_string())
    }
}

/// The text of a JSON file after a change of the list at the end of these keys, which is made if it is missing.
fn in_lines(text: &str, keys: &[String], change: impl FnOnce(&CstObject)) -> Result<String, String> {
    let root = CstRootNode::parse(text, &JSON).map_err(|error| error.to_string())?;
    let mut list = root.object_value().ok_or("it is not an object")?;
    for key in keys {
        list = list.object_value_or_create(key).ok_or_else(|| format!("`{key}` in it is not an object"))?;
    }
    change(&list);
    Ok(root.to_string())
}

/// The lines before a key or a table, if there is a comment among them.
fn comment(decor: &toml_edit::Decor) -> Option<String> {
    decor.prefix()?.as_str().filter(|text| text.contains('#')).map(str::to_owned)
}

/// Moves the comments before a removed item to the item that follows it. A comment before the first server is often not
/// about that server: it is the head of the file, or disabled settings.
fn keep_comments(document: &mut toml_edit::DocumentMut, before: Option<String>, removed: &toml_edit::Item) {
    let mut kept = before.unwrap_or_default();
    let mut position = None;
    let mut tables: VecDeque<&toml_edit::Table> = removed.as_table().into_iter().collect();
    while let Some(table) = tables.pop_front() {
        kept.push_str(&comment(table.decor()).unwrap_or_default());
        position = position.max(table.position());
        tables.extend(table.iter().filter_map(|(_, item)| item.as_table()));
    }
    if kept.is_empty() {
        return;
    }
    match following(document.as_table_mut(), position.unwrap_or(-1)) {
        Some(table) => {
            let own = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            let prefix = format!("{kept}{own}");
            table.decor_mut().set_prefix(prefix);
        }
        None => {
            let trailing = format!("{kept}{}", document.trailing().as_str().unwrap_or_default());
            document.set_trailing(trailing);
        }
    }
}

/// The first table with a header after `position`.
fn following(table: &mut toml_edit::Table, position: isize) -> Option<&mut toml_edit::Table> {
    fn all(table: &toml_edit::Table) -> Vec<isize> {
        let own = table.position().filter(|_| !table.is_implicit());
        let below = table.iter().filter_map(|(_, item)| item.as_table()).flat_map(all);
        own.into_iter().chain(below).collect()
    }
    fn find(table: &mut toml_edit::Table, wanted: isize) -> Option<&mut toml_edit::Table> {
        if table.position() == Some(wanted) && !table.is_implicit() {
            return Some(table);
        }
        let items = table.iter_mut().filter_map(|(_, item)| item.as_table_mut());
        items.into_iter().find_map(|table| find(table, wanted))
    }
    let wanted = all(table).into_iter().filter(|other| *other > position).min()?;
    find(table, wanted)
}

fn yaml_mapping(text: &str) -> Result<yaml_edit::Mapping, String> {
    let document = text.parse::<yaml_edit::Document>().map_err(|error| yaml_problem(&error))?;
    document.as_mapping().ok_or_else(|| "its entry cannot be written in YAML".to_owned())
}

/// The members of an entry as lines. Values are JSON, which is YAML too.
fn yaml_lines(entry: &Value, indent: usize) -> Result<String, String> {
    let members = entry.as_object().ok_or("its entry cannot be written in YAML")?;
    Ok(members.iter().map(|(name, value)| format!("{:indent$}{name}: {value}\n", "")).collect())
}

fn json_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(json_input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(name, value)| (name.clone(), json_input(value))).collect(),
        ),
    }
}

fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        // TOML has no null.
        Value::Null => return None,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            let items = items.iter().map(toml_value).collect::<Option<toml_edit::Array>>()?;
            toml_edit::Value::Array(items)
        }
        Value::Object(members) => {
            let mut table = toml_edit::InlineTable::new();
            for (name, value) in members {
                table.insert(name, toml_value(value)?);
            }
            toml_edit::Value::InlineTable(table)
        }
    })
}

/// The values of a text, without comments and formatting. Numbers are kept as the text that was written.
fn plain(layout: Layout, text: &str) -> Result<Value, String> {
    let parsed = match layout {
        _ if text.trim().is_empty() => return Ok(Value::Object(Map::new())),
        Layout::Toml => parse_toml(text),
        Layout::Yaml => parse_yaml(text),
        Layout::Json | Layout::JsonWithProjects | Layout::Directory => parse_json(text),
    };
    parsed.map(values).map_err(|findings| reason(&findings))
}

fn reason(findings: &[Finding]) -> String {
    let kind: Option<&FindingKind> = findings.first().map(|finding| &finding.kind);
    kind.map(ToString::to_string).unwrap_or_default()
}

fn values(node: Node) -> Value {
    match node.content {
        Content::Null => Value::Null,
        Content::Bool(value) => Value::Bool(value),
        Content::Number(written) => Value::String(format!("number {written}")),
        Content::String(text) => Value::String(text),
        Content::Array(items) => items.into_iter().map(values).collect(),
        Content::Object(members) => {
            Value::Object(members.into_iter().map(|member| (member.name, values(member.value))).collect())
        }
    }
}

fn numbers_as_text(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::String(format!("number {number}")),
        Value::Array(items) => items.iter().map(numbers_as_text).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(name, value)| (name.clone(), numbers_as_text(value))).collect(),
        ),
        value => value.clone(),
    }
}
