//! Completions for Tab: globals, servers, their tools, parameters of a tool, and fields of the last value.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cx::text::{one_line, start};
use cx::{Executor, Language};
use parking_lot::Mutex;
use reedline::{Completer, CompletionResult, Span, Suggestion};
use serde_json::Value;

/// Maximum number of offers at once.
const MAX_OFFERS: usize = 200;

/// Maximum characters of the description of a completion.
const MAX_DESCRIPTION: usize = 100;

/// The names that can be completed. Shared by the prompt and the task that updates them.
#[derive(Default)]
pub(crate) struct Names {
    /// Globals of the language, without servers.
    globals: Vec<String>,
    /// The tools of each server, by the names that scripts use.
    servers: BTreeMap<String, Vec<NamedTool>>,
    /// The value of the last input.
    last: Value,
}

struct NamedTool {
    name: String,
    description: String,
    parameters: Vec<String>,
}

/// Completes inputs of one language.
pub(crate) struct NameCompleter {
    language: Language,
    names: Arc<Mutex<Names>>,
}

/// The completions at the end of a text.
struct Offers<'a> {
    /// The end of the text, which a name replaces.
    replaced: &'a str,
    /// The names, each with its description.
    names: Vec<(String, &'a str)>,
}

impl<'a> Offers<'a> {
    /// The names that begin with `begun`.
    fn starting(begun: &'a str, names: impl IntoIterator<Item = (String, &'a str)>) -> Self {
        let names = names.into_iter().filter(|(name, _)| name.starts_with(begun) && name != begun);
        Self { replaced: begun, names: names.collect() }
    }
}

impl NameCompleter {
    pub(crate) fn new(language: Language, names: Arc<Mutex<Names>>) -> Self {
        Self { language, names }
    }
}

impl Names {
    /// Reads the names of the executor's known tools. Reads files.
    pub(crate) fn read(&mut self, executor: &Executor, language: Language) {
        if self.globals.is_empty() {
            self.globals = globals(executor, language);
        }
        self.servers = BTreeMap::new();
        for server in executor.known_tools() {
            let tools = server.tools.unwrap_or_default();
            let named = tools.iter().map(|tool| NamedTool {
                name: match language {
                    Language::Python => identifier(&tool.definition.name),
                    _ => tool.signature.split(['(', '<']).next().unwrap_or_default().to_owned(),
                },
                description: start(&one_line(&tool.signature), MAX_DESCRIPTION).to_owned(),
                parameters: parameters(&tool.definition.input_schema.to_value()),
            });
            let tools = named.filter(|tool| is_identifier(&tool.name)).collect();
            self.servers.insert(identifier(&server.name), tools);
        }
    }

    pub(crate) fn set_last(&mut self, value: Value) {
        self.last = value;
    }

    /// The completions at the end of `text`.
    fn after<'a>(&'a self, language: Language, text: &'a str) -> Offers<'a> {
        if let Some(offers) = self.fields_at(language, text) {
            return offers;
        }
        let start = text.rfind(|character| !is_path(character)).map_or(0, |at| at + width_at(text, at));
        let path = text.get(start..).unwrap_or_default();
        let (owner, begun) = path.rsplit_once('.').unwrap_or(("", path));
        let servers = || self.servers.keys().map(|name| (name.clone(), "server"));
        if owner.is_empty() {
            let mut offers = self.parameters_at(language, text.get(..start).unwrap_or_default());
            if offers.is_empty() {
                let globals = self.globals.iter().map(|name| (name.clone(), ""));
                offers = globals.chain(servers()).collect();
            }
            return Offers::starting(begun, offers);
        }
        let owner = owner.strip_prefix("tools.").unwrap_or(owner);
        if owner == "tools" {
            return Offers::starting(begun, servers());
        }
        let tools = self.servers.get(owner).into_iter().flatten();
        Offers::starting(begun, tools.map(|tool| (tool.name.clone(), tool.description.as_str())))
    }

    /// The fields of the last value, or of a part of it, after `input.`, `input["` and `input[`. Python has fields only
    /// as keys, so there `inputs.` is completed to `inputs["…"]`.
    fn fields_at<'a>(&'a self, language: Language, text: &'a str) -> Option<Offers<'a>> {
        if let Some(at) = text.rfind(['"', '\''])
            && let Some(value) = text.get(..at).and_then(|before| self.value_of(before.strip_suffix('[')?))
        {
            let (begun, quote) = (text.get(at + 1..)?, text.get(at..=at)?);
            let keys = fields(value, is_plain_key).map(|(name, kind)| (format!("{name}{quote}]"), kind));
            return Some(Offers::starting(begun, keys));
        }
        if let Some(object) = text.strip_suffix('[') {
            let keys = fields(self.value_of(object)?, is_plain_key);
            return Some(Offers::starting("", keys.map(|(name, kind)| (format!("\"{name}\"]"), kind))));
        }
        let (object, begun) = text.rsplit_once('.').filter(|(_, begun)| begun.chars().all(is_path))?;
        let value = self.value_of(object)?;
        if language != Language::Python {
            let names = fields(value, is_identifier).map(|(name, kind)| (name.to_owned(), kind));
            return Some(Offers::starting(begun, names));
        }
        let keys = fields(value, is_plain_key).filter(|(name, _)| name.starts_with(begun));
        let names = keys.map(|(name, kind)| (format!("[\"{name}\"]"), kind)).collect();
        Some(Offers { replaced: text.get(object.len()..)?, names })
    }

    /// The part of the last value that is written at the end of `text`, such as `inputs["rows"][0]`.
    fn value_of(&self, text: &str) -> Option<&Value> {
        let start = ["inputs", "input"].iter().find_map(|name| {
            let start = text.rfind(name)?;
            let is_whole = !text.get(..start)?.ends_with(is_path);
            is_whole.then_some(start + name.len())
        })?;
        // Each part is `.name`, `["name"]` or `[0]`.
        let mut value = &self.last;
        let mut rest = text.get(start..)?;
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let (index, behind) = inner.split_once(']')?;
                value = match index.parse::<usize>() {
                    Ok(position) => value.get(position)?,
                    Err(_) => value.get(index.trim_matches(['"', '\'']))?,
                };
                rest = behind;
            } else {
                let named = rest.strip_prefix('.')?;
                let end = named.find(['.', '[']).unwrap_or(named.len());
                value = value.get(named.get(..end)?)?;
                rest = named.get(end..)?;
            }
        }
        Some(value)
    }

    /// The parameters of the tool whose call is open at the end of `text`, as they are written there.
    fn parameters_at(&self, language: Language, text: &str) -> Vec<(String, &str)> {
        let is_python = language == Language::Python;
        let inner = if is_python { text.rsplit_once('(') } else { text.rsplit_once("({") };
        let Some((callee, arguments)) = inner else { return Vec::new() };
        let ends_a_value = !matches!(arguments.trim_end().chars().next_back(), None | Some(','));
        if ends_a_value || arguments.contains([')', '}']) {
            return Vec::new();
        }
        let path = callee.rsplit(|character| !is_path(character)).next().unwrap_or_default();
        let Some((server, name)) = path.rsplit_once('.') else { return Vec::new() };
        let server = server.strip_prefix("tools.").unwrap_or(server);
        let tools = self.servers.get(server).into_iter().flatten();
        let tool = tools.into_iter().find(|tool| tool.name == name);
        let written = |parameter: &String| {
            if is_python { format!("{parameter}=") } else { format!("{parameter}: ") }
        };
        tool.map(|tool| tool.parameters.iter().map(|name| (written(name), "parameter")).collect())
            .unwrap_or_default()
    }
}

impl Completer for NameCompleter {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let known = self.names.lock();
        let text = line.get(..position).unwrap_or_default();
        let Offers { replaced, names } = known.after(self.language, text);
        let span = Span { start: position.saturating_sub(replaced.len()), end: position };
        let mut suggestions: Vec<Suggestion> = names
            .into_iter()
            .take(MAX_OFFERS)
            .map(|(value, description)| Suggestion {
                value,
                description: (!description.is_empty()).then(|| description.to_owned()),
                span,
                ..Suggestion::default()
            })
            .collect();
        suggestions.sort_by(|one, other| one.value.cmp(&other.value));
        CompletionResult::fresh(suggestions)
    }
}

/// The globals of a language, from its declarations.
fn globals(executor: &Executor, language: Language) -> Vec<String> {
    let (text, starts): (String, &[&str]) = match language {
        Language::Python => {
            let stubs = executor.python_stubs();
            let builtins = stubs.into_iter().find(|(name, _)| *name == "__builtins__.pyi");
            (builtins.map(|(_, text)| text).unwrap_or_default(), &["async def ", "def ", ""])
        }
        _ => (executor.declarations(), &["declare const ", "declare function ", "declare class "]),
    };
    let name = |line: &str| {
        let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
        let (name, rest) = rest.split_at(rest.find(|character| !is_path(character))?);
        let is_declared = rest.starts_with([':', '(', '<', ' ']);
        (is_declared && is_identifier(name) && !name.starts_with('_')).then(|| name.to_owned())
    };
    let mut names: Vec<String> =
        text.lines().filter(|line| !line.starts_with(' ')).filter_map(name).collect();
    names.retain(|name| !matches!(name.as_str(), "class" | "import" | "from" | "async" | "def"));
    names.sort();
    names.dedup();
    names
}

/// The required parameters of an input schema first.
fn parameters(schema: &Value) -> Vec<String> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    // A set, because a server chooses the number of both.
    let required: HashSet<&str> = required.filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut names: Vec<String> = properties.into_iter().flatten().map(|(name, _)| name.clone()).collect();
    names.retain(|name| is_identifier(name));
    names.sort_by_key(|name| !required.contains(&name.as_str()));
    names
}

fn identifier(name: &str) -> String {
    name.chars()
        .map(|character| if is_path(character) && character != '.' { character } else { '_' })
        .collect()
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|character: char| character.is_ascii_digit())
        && name.chars().all(|character| is_path(character) && character != '.')
}

fn is_path(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$' | '.')
}

fn width_at(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}

/// The fields of an object whose names can be written, with the kind of each.
fn fields(value: &Value, can_be_written: fn(&str) -> bool) -> impl Iterator<Item = (&str, &'static str)> {
    let fields = value.as_object().into_iter().flatten();
    fields.filter(move |(name, _)| can_be_written(name)).map(|(name, value)| (name.as_str(), kind(value)))
}

/// Whether a key can be typed without escapes. Others are left out.
fn is_plain_key(name: &str) -> bool {
    !name.contains(|character: char| character.is_control() || matches!(character, '"' | '\'' | '\\'))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cx::Language;
    use parking_lot::Mutex;
    use reedline::Completer as _;
    use serde_json::json;

    use super::{NameCompleter, NamedTool, Names};

    fn offers(language: Language, text: &str) -> Vec<String> {
        let tool = |name: &str| NamedTool {
            name: name.to_owned(),
            description: String::new(),
            parameters: vec!["path".to_owned(), "depth".to_owned()],
        };
        let names = Names {
            globals: vec!["tools".to_owned(), "help".to_owned()],
            servers: [("fs".to_owned(), vec![tool("read"), tool("list")]), ("git".to_owned(), vec![])].into(),
            last: json!({
                "rows": { "first": 1, "odd name": 2, "\u{1b}[0m": 3, "a\"b": 4 },
                "items": [{ "name": 1 }],
            }),
        };
        let mut completer = NameCompleter::new(language, Arc::new(Mutex::new(names)));
        let offers = completer.complete(text, text.len());
        let offers = offers.suggestions().iter();
        offers.map(|offer| format!("{}{}", &text[..offer.span.start], offer.value)).collect()
    }

    #[test]
    fn required_parameters_come_first() {
        let schema =
            json!({ "properties": { "a": {}, "b": {}, "c": {}, "d-e": {} }, "required": ["c", "b", "x"] });
        assert_eq!(super::parameters(&schema), ["b", "c", "a"]);
    }

    #[test]
    fn names_are_completed_where_they_stand() {
        let ts = |text| offers(Language::TypeScript, text);
        assert_eq!(ts("he"), ["help"]);
        assert_eq!(ts(""), ["fs", "git", "help", "tools"]);
        assert_eq!(ts("await tools."), ["await tools.fs", "await tools.git"]);
        assert_eq!(ts("await tools.fs.r"), ["await tools.fs.read"]);
        assert_eq!(ts("é(fs.l"), ["é(fs.list"]);
        assert_eq!(ts("fs.read({"), ["fs.read({depth: ", "fs.read({path: "]);
        assert_eq!(ts("fs.read({ path: a, d"), ["fs.read({ path: a, depth: "]);
        assert_eq!(ts("fs.read({ path: h"), ["fs.read({ path: help"]);
        assert_eq!(ts("fs.read({}); h"), ["fs.read({}); help"]);
        assert_eq!(ts("input.rows."), ["input.rows.first"]);
        assert_eq!(ts("input.rows.first."), [""; 0]);
        let py = |text| offers(Language::Python, text);
        assert_eq!(py("await fs.read("), ["await fs.read(depth=", "await fs.read(path="]);
        assert_eq!(py("await fs.read(path=1, d"), ["await fs.read(path=1, depth="]);
        assert_eq!(py("absent.x"), [""; 0]);
        assert_eq!(py("inputs['r"), ["inputs['rows']"]);
        assert_eq!(py("print(inputs[\"rows\"][\"o"), ["print(inputs[\"rows\"][\"odd name\"]"]);
        assert_eq!(py("inputs['items'][0]['n"), ["inputs['items'][0]['name']"]);
        // Python has no attributes for fields, so that a dot becomes a key.
        assert_eq!(py("len(inputs.r"), ["len(inputs[\"rows\"]"]);
        assert_eq!(py("inputs['rows'].odd"), ["inputs['rows'][\"odd name\"]"]);
        assert_eq!(py("inputs["), ["inputs[\"items\"]", "inputs[\"rows\"]"]);
        assert_eq!(ts("input.items[0].n"), ["input.items[0].name"]);
        assert_eq!(ts("input.rows[\"odd"), ["input.rows[\"odd name\"]"]);
        for other in
            ["myinputs['r", "inputs['none']['r", "inputs['rows'] + ['r", "inputs['items']['n", "x['r"]
        {
            assert_eq!(py(other), [""; 0], "{other}");
        }
    }
}
