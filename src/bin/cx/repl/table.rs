//! Lists of objects as tables.

use std::collections::BTreeSet;

use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use cx::text::preview;
use serde_json::{Map, Value};

use crate::text::printable;

/// Maximum rows that are shown. More do not fit on a screen.
const MAX_ROWS: usize = 50;

/// Maximum columns that are shown.
const MAX_COLUMNS: usize = 12;

/// Maximum characters of a cell.
const MAX_CELL: usize = 60;

/// One line below the column names, and no other lines.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The value as a table of this width, with a note of what was left out; `None` if it is not a list of at least two
/// objects. `variable` contains the whole value in the next input.
pub(crate) fn render(value: &Value, width: usize, variable: &str) -> Option<String> {
    let rows: Vec<&Map<String, Value>> =
        value.as_array()?.iter().map(Value::as_object).collect::<Option<_>>()?;
    if rows.len() < 2 {
        return None;
    }
    let shown = rows.get(..MAX_ROWS.min(rows.len()))?;
    let mut names: Vec<&str> = Vec::new();
    let mut known = BTreeSet::new();
    for name in shown.iter().flat_map(|row| row.keys()) {
        if known.insert(name) {
            names.push(name);
        }
    }
    let columns = names.get(..MAX_COLUMNS.min(names.len()))?;
    if columns.is_empty() {
        return None;
    }
    let mut table = Table::new();
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(columns.iter().map(|name| cut(name)));
    for row in shown {
        table.add_row(columns.iter().map(|&name| row.get(name).map(cell).unwrap_or_default()));
    }
    let mut text = table.trim_fmt();
    let left_out = [(rows.len() - shown.len(), "rows"), (names.len() - columns.len(), "columns")];
    let left_out: Vec<String> = left_out
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} more {what}"))
        .collect();
    if !left_out.is_empty() {
        text.push_str(&format!("\n… {}: `{variable}` has them", left_out.join(", ")));
    }
    Some(text)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => cut(text),
        other => cut(&other.to_string()),
    }
}

/// The first line of the text, truncated to a cell. Characters that could move the cursor are escaped.
fn cut(text: &str) -> String {
    printable(&preview(text, MAX_CELL)).replace('\n', "⏎").replace('\t', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MAX_ROWS, render};

    #[test]
    fn lists_of_objects_are_tables() {
        let table =
            render(&json!([{ "name": "a", "size": 1 }, { "name": "b\nc", "more": [1, null] }]), 80, "input")
                .unwrap();
        let lines: Vec<&str> = table.lines().collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(lines[0]), ["name", "size", "more"], "{table}");
        assert_eq!(words(lines[2]), ["a", "1"], "{table}");
        assert_eq!(words(lines[3]), ["b⏎c", "[1,null]"], "{table}");
    }

    #[test]
    fn other_values_are_none() {
        for value in [
            json!(1),
            json!({ "a": 1 }),
            json!([]),
            json!([{ "a": 1 }]),
            json!([{ "a": 1 }, 2]),
            json!([{}, {}]),
        ] {
            assert_eq!(render(&value, 80, "input"), None, "{value}");
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let wide: Value =
            (0..20).map(|column| (format!("c{column}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
        let table = render(&Value::from(vec![wide; MAX_ROWS + 3]), 200, "inputs").unwrap();
        assert!(table.ends_with("… 3 more rows, 8 more columns: `inputs` has them"), "{table}");
        let hostile =
            render(&json!([{ "a": "\u{1b}[2J" }, { "a": "x".repeat(1_000_000) }]), 80, "input").unwrap();
        assert!(!hostile.contains('\u{1b}'), "{hostile:?}");
        assert!(hostile.len() < 3_000);
    }
}
