//! The front matter of a script: metadata in a comment, or in Python's docstring.
//!
//! The block begins with a line `---` and ends with the next one; between them is YAML. A script
//! without one is described by the first line of that comment or docstring.

use serde_json::{Map, Value};

use crate::config::document::{Content, Node, parse_yaml};
use crate::config::error::ConfigError;
use crate::storage::scripts::Extension;
use crate::text::{MAX_SHOWN_NAME, one_line, preview};
use crate::tools::names::{SuggestionBudget, suggestion};

/// Maximum bytes of a block.
const MAX_BLOCK: usize = 32 << 10;

/// Maximum characters of a description. A list shows only its beginning.
pub(super) const MAX_DESCRIPTION: usize = 1_024;

const FENCE: &str = "---";

/// The keys of a block. The last two belong to the Agent Skills format, and cx does not use them.
const KEYS: [&str; 5] = ["name", "description", "input", "license", "metadata"];

/// The metadata of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FrontMatter {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) input: Option<Value>,
    /// Whether there is a block between fences.
    pub(super) has_block: bool,
}

/// Reads the front matter of a script.
///
/// # Errors
///
/// Why the block cannot be used.
pub(super) fn read(source: &str, extension: Extension) -> Result<FrontMatter, String> {
    if beginning(source).lines().next().is_some_and(|line| line.trim_end() == FENCE) {
        let form = match extension {
            Extension::Py => "put it into the docstring, or `# ` before each of its lines",
            _ => "put `// ` before each of its lines",
        };
        return Err(format!("its front matter stands outside of a comment: {form}"));
    }
    let lines = leading_text(source, extension);
    let mut lines = lines.iter().map(String::as_str).skip_while(|line| line.trim().is_empty());
    let first = lines.next().map(str::trim_end);
    if first != Some(FENCE) {
        let description = first.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty());
        return Ok(FrontMatter { description, ..FrontMatter::default() });
    }
    let (mut block, mut is_closed) = (String::new(), false);
    for line in lines {
        if line.trim_end() == FENCE {
            is_closed = true;
            break;
        }
        block.push_str(line);
        block.push('\n');
        if block.len() > MAX_BLOCK {
            return Err(format!("its front matter has more than {MAX_BLOCK} bytes"));
        }
    }
    if !is_closed {
        return Err("its front matter has no end: expected a second line `---`".to_owned());
    }
    fields(&block)
}

fn fields(block: &str) -> Result<FrontMatter, String> {
    let mut matter = FrontMatter { has_block: true, ..FrontMatter::default() };
    if block.trim().is_empty() {
        return Ok(matter);
    }
    let root = parse_yaml(block).map_err(|findings| {
        let problem = ConfigError::new("its front matter", findings).to_string();
        one_line(&problem)
    })?;
    let Content::Object(members) = root.content else {
        return Err("its front matter has no fields: expected lines such as `description: Lists the issues`"
            .to_owned());
    };
    for member in members {
        let text = |node: &Node| match &node.content {
            Content::String(text) | Content::Number(text) => Ok(text.clone()),
            _ => Err(format!("`{}` in its front matter must be a text", member.name)),
        };
        match member.name.as_str() {
            "name" => matter.name = Some(text(&member.value)?),
            "description" => matter.description = Some(text(&member.value)?),
            "input" => match value(&member.value) {
                schema @ Value::Object(_) => matter.input = Some(schema),
                _ => return Err("`input` in its front matter must be a JSON Schema, an object".to_owned()),
            },
            "license" | "metadata" => {}
            other => {
                let what = ("keys", "which docs/skills.md has");
                let suggestion = suggestion(other, what, KEYS.into_iter(), &SuggestionBudget::of_message());
                let shown = one_line(&preview(other, MAX_SHOWN_NAME));
                return Err(format!("its front matter has an unknown key `{shown}`{suggestion}"));
            }
        }
    }
    if let Some(description) = &matter.description
        && description.chars().count() > MAX_DESCRIPTION
    {
        return Err(format!("its description has more than {MAX_DESCRIPTION} characters"));
    }
    Ok(matter)
}

/// A node as JSON.
pub(super) fn value(node: &Node) -> Value {
    match &node.content {
        Content::Null => Value::Null,
        Content::Bool(value) => Value::from(*value),
        Content::Number(written) => serde_json::from_str(written).unwrap_or_else(|_| written.as_str().into()),
        Content::String(text) => Value::from(text.as_str()),
        Content::Array(items) => items.iter().map(value).collect(),
        Content::Object(members) => {
            let fields = members.iter().map(|member| (member.name.clone(), value(&member.value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

/// The source from its first line that has text and names no interpreter.
fn beginning(source: &str) -> &str {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let source =
        if source.starts_with("#!") { source.split_once('\n').map_or("", |(_, rest)| rest) } else { source };
    source.trim_start()
}

/// The lines of the comment at the top of a script, without comment marks, or the lines of its docstring.
fn leading_text(source: &str, extension: Extension) -> Vec<String> {
    let source = beginning(source);
    let quotes = if extension == Extension::Py { ["\"\"\"", "'''"] } else { ["/**", "/*"] };
    for open in quotes {
        let close = if extension == Extension::Py { open } else { "*/" };
        if let Some(rest) = source.strip_prefix(open) {
            let text = rest.split_once(close).map_or("", |(text, _)| text);
            return bounded(text.lines().map(|line| {
                match extension {
                    Extension::Py => line,
                    // The stars at the left of a block comment are removed.
                    _ => line
                        .trim_start()
                        .strip_prefix('*')
                        .map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest)),
                }
            }));
        }
    }
    let marks = if extension == Extension::Py { ["#", "#"] } else { ["//", "#"] };
    let comment = source.lines().map_while(|line| {
        let rest = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
        Some(rest.strip_prefix(' ').unwrap_or(rest))
    });
    bounded(comment)
}

/// At most as many lines as a block may have.
fn bounded<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut bytes = 0;
    lines
        .take_while(|line| {
            bytes += line.len() + 1;
            // One line more than fits, so that the reader of the block detects the excess.
            bytes <= 2 * MAX_BLOCK
        })
        .map(str::to_owned)
        .collect()
}

/// A block with these fields, as a comment of the language. The values are JSON on one line, which is YAML.
pub(super) fn write(
    extension: Extension,
    name: &str,
    description: Option<&str>,
    input: Option<&Value>,
) -> String {
    let mark = if extension == Extension::Py { "#" } else { "//" };
    let mut text = format!("{mark} {FENCE}\n{mark} name: {name}\n");
    let mut add = |key: &str, value: &Value| {
        text.push_str(&format!("{mark} {key}: {}\n", without_line_separators(&spaced(value))));
    };
    if let Some(description) = description {
        add("description", &description.into());
    }
    if let Some(input) = input {
        add("input", input);
    }
    text.push_str(&format!("{mark} {FENCE}\n"));
    text
}

/// JSON with the separators of lines and paragraphs escaped. JSON has them in strings only. In TypeScript they end a
/// comment: what follows them would be code.
fn without_line_separators(json: &str) -> String {
    json.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// JSON on one line with a space after each colon and comma, as YAML's flow style needs it.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), spaced(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "../../../fuzz/entries/front_matter.rs"]
mod fuzzing;
