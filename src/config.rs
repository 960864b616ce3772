//! Configuration files: text, then settled values, then what the rest of the crate takes. The only
//! reader of files and environment in the library.
//!
//! So far there is one file, the `mcpServers` JSON that MCP clients share:
//!
//! ```json
//! {"mcpServers": {"files": {"command": "npx", "args": ["-y", "some-server", "${HOME}/notes"]}}}
//! ```
//!
//! Whoever names a file on the command line or in code trusts it: it starts programs. Nothing is
//! looked for in a workspace.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::mcp::{McpServer, McpTransport};
use crate::tools::names::kind;

/// Real files have a few kilobytes. What is larger is not a configuration.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Each server costs a process. Nobody has named this many on purpose.
const MOST_SERVERS: usize = 256;

/// What model providers accept as a part of a tool's name.
const LONGEST_NAME: usize = 64;

/// An hour: longer than any run, so that a larger number can only be a mistake in the unit.
const LONGEST_CALL_TIMEOUT: Duration = Duration::from_secs(60 * 60);

const FILE_KEYS: &[&str] = &["mcpServers"];
const SERVER_KEYS: &[&str] = &["type", "command", "args", "env", "cwd", "timeoutMs", "enabled"];

/// A configuration that cannot be used: which file, which key, what was expected and what came.
///
/// Values are never shown: they may be secrets.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct ConfigError {
    origin: String,
    problem: Problem,
    hint: Option<String>,
}

impl ConfigError {
    /// What to do about it, where that can be said.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("failed to read: {0}")]
    Unreadable(#[source] io::Error),
    #[error("expected a regular file, found {0}")]
    NotAFile(&'static str),
    #[error("is larger than {} MB", LARGEST_FILE / (1024 * 1024))]
    TooLarge,
    #[error("is not UTF-8: byte {0} cannot be read")]
    NotUtf8(usize),
    #[error("is not valid JSON: {0}")]
    Syntax(#[source] serde_json::Error),
    #[error("`{key}`: expected {expected}, found {found}")]
    Unexpected { key: Key, expected: String, found: String },
    #[error("`{key}`: unknown key")]
    UnknownKey { key: Key },
    #[error("`{key}`: the environment variable `{name}` is not set")]
    MissingVariable { key: Key, name: String },
    #[error("`{key}`: only servers over stdio can be used so far")]
    NotStdio { key: Key },
}

/// Where in the file a value stands: `mcpServers.fs.args[1]`.
#[derive(Clone, Debug, Default)]
struct Key(String);

impl Key {
    fn child(&self, name: &str) -> Self {
        let separator = if self.0.is_empty() { "" } else { "." };
        // A name may be anything that JSON allows; what is shown is short and printable.
        let name: String = name.escape_debug().take(80).collect();
        Self(format!("{}{separator}{name}", self.0))
    }

    fn item(&self, position: usize) -> Self {
        Self(format!("{}[{position}]", self.0))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "(the whole file)" } else { &self.0 })
    }
}

/// A problem without its file, with what to do about it.
struct Finding {
    problem: Problem,
    hint: Option<String>,
}

impl From<Problem> for Finding {
    fn from(problem: Problem) -> Self {
        Self { problem, hint: None }
    }
}

impl Finding {
    fn at(self, origin: &str) -> ConfigError {
        ConfigError { origin: origin.to_owned(), problem: self.problem, hint: self.hint }
    }
}

/// Reads the servers of an `mcpServers` file, with `${NAME}` taken from the environment.
///
/// The file is read once. It must be a regular file of at most 1 MB.
///
/// # Errors
///
/// Names the file, the key, and what was expected.
pub(crate) fn read_mcp_config(path: &Path) -> Result<Vec<McpServer>, ConfigError> {
    let origin = path.display().to_string();
    let text = read_text(path).map_err(|problem| Finding::from(problem).at(&origin))?;
    #[expect(clippy::disallowed_methods, reason = "this is the one file that reads the environment")]
    let environment = |name: &str| std::env::var(name).ok();
    parse_mcp_config(&origin, &text, &environment)
}

/// The same from text. `origin` stands for the file in errors.
///
/// # Errors
///
/// As [`read_mcp_config`].
pub(crate) fn parse_mcp_config(
    origin: &str,
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<McpServer>, ConfigError> {
    resolve(text, environment).map_err(|finding| finding.at(origin))
}

fn read_text(path: &Path) -> Result<String, Problem> {
    // Looked at before it is opened, because opening a pipe waits until somebody writes to it.
    check_is_file(&path.metadata().map_err(Problem::Unreadable)?)?;
    let file = File::open(path).map_err(Problem::Unreadable)?;
    // And again, because it may have been replaced in between.
    check_is_file(&file.metadata().map_err(Problem::Unreadable)?)?;
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(Problem::Unreadable)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(Problem::TooLarge);
    }
    String::from_utf8(bytes).map_err(|error| Problem::NotUtf8(error.utf8_error().valid_up_to()))
}

fn check_is_file(metadata: &Metadata) -> Result<(), Problem> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(Problem::NotAFile(if metadata.is_dir() { "a directory" } else { "a device or a pipe" }))
}

fn resolve(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Vec<McpServer>, Finding> {
    // Editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Strict(file) = serde_json::from_str(text)
        .map_err(|error| Finding { hint: comment_hint(text), problem: Problem::Syntax(error) })?;
    let root = Key::default();
    let file = object(&root, &file)?;
    check_keys(&root, file, FILE_KEYS)?;
    let key = root.child("mcpServers");
    let Some(servers) = file.get("mcpServers") else {
        return Err(unexpected(&root, "an object with the key `mcpServers`", "an object without it"));
    };
    let servers = object(&key, servers)?;
    if servers.len() > MOST_SERVERS {
        let expected = format!("at most {MOST_SERVERS} servers");
        return Err(unexpected(&key, &expected, &servers.len().to_string()));
    }
    let mut resolved = Vec::with_capacity(servers.len());
    for (name, server) in servers {
        resolved.extend(resolve_server(&key, name, server, environment)?);
    }
    Ok(resolved)
}

/// One server, or none if it is switched off. A server that is off is checked all the same, so that
/// switching it on is no surprise; but it needs no variables.
fn resolve_server(
    servers: &Key,
    name: &str,
    server: &Value,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<McpServer>, Finding> {
    let key = servers.child(name);
    check_name(&key, name)?;
    let fields = object(&key, server)?;
    check_transport(&key, fields)?;
    check_keys(&key, fields, SERVER_KEYS)?;
    let enabled = match fields.get("enabled") {
        None => true,
        Some(Value::Bool(enabled)) => *enabled,
        Some(other) => return Err(unexpected(&key.child("enabled"), "true or false", kind(other))),
    };
    let anything = |_: &str| Some("x".to_owned());
    let environment: &dyn Fn(&str) -> Option<String> = if enabled { environment } else { &anything };
    let string = |key: &Key, value: &Value| expand(key, string(key, value)?, environment);

    let command_key = key.child("command");
    let Some(command) = fields.get("command") else {
        return Err(unexpected(&key, "an object with the key `command`", "an object without it"));
    };
    let command = string(&command_key, command)?;
    if command.trim().is_empty() {
        return Err(unexpected(&command_key, "the name or path of a program", "an empty string"));
    }
    let mut resolved = McpServer::stdio(name, command);
    let McpTransport::Stdio(stdio) = &mut resolved.transport else { return Ok(None) };
    if let Some(args) = fields.get("args") {
        let key = key.child("args");
        let Value::Array(args) = args else {
            return Err(unexpected(&key, "an array of strings", kind(args)));
        };
        for (position, argument) in args.iter().enumerate() {
            stdio.args.push(string(&key.item(position), argument)?);
        }
    }
    if let Some(variables) = fields.get("env") {
        let key = key.child("env");
        stdio.env = object(&key, variables)?
            .iter()
            .map(|(name, value)| {
                let key = key.child(name);
                check_variable_name(&key, name)?;
                let value = match value.as_str().and_then(|value| value.strip_prefix("env:")) {
                    Some(name) => variable(&key, name, None, environment)?,
                    None => string(&key, value)?,
                };
                Ok((name.clone(), value))
            })
            .collect::<Result<BTreeMap<_, _>, Finding>>()?;
    }
    if let Some(directory) = fields.get("cwd") {
        stdio.cwd = Some(PathBuf::from(string(&key.child("cwd"), directory)?));
    }
    if let Some(timeout) = fields.get("timeoutMs") {
        resolved.call_timeout = timeout_of(&key.child("timeoutMs"), timeout)?;
    }
    Ok(enabled.then_some(resolved))
}

fn check_name(key: &Key, name: &str) -> Result<(), Finding> {
    let is_known = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    let is_name = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(is_known)
        && name.starts_with(|character: char| character.is_ascii_alphanumeric() || character == '_')
        // Scripts reach servers as properties.
        && name != "__proto__";
    if is_name {
        return Ok(());
    }
    let expected = format!(
        "a server's name of 1 to {LONGEST_NAME} letters, digits, `_`, `-` and `.`, not `.` or `-` first"
    );
    Err(unexpected(key, &expected, "another"))
}

fn check_transport(key: &Key, fields: &Map<String, Value>) -> Result<(), Finding> {
    let not_stdio = |key: Key| Finding {
        problem: Problem::NotStdio { key },
        hint: Some("give the `command` that starts a server on this machine".to_owned()),
    };
    match fields.get("type") {
        None => {}
        Some(Value::String(transport)) if transport == "stdio" => {}
        Some(Value::String(transport))
            if ["http", "sse", "streamable-http", "streamableHttp"].contains(&transport.as_str()) =>
        {
            return Err(not_stdio(key.child("type")));
        }
        Some(Value::String(_)) => return Err(unexpected(&key.child("type"), "`stdio`", "another word")),
        Some(other) => return Err(unexpected(&key.child("type"), "`stdio`", kind(other))),
    }
    match ["url", "serverUrl", "httpUrl"].iter().find(|name| fields.contains_key(**name)) {
        Some(name) => Err(not_stdio(key.child(name))),
        None => Ok(()),
    }
}

fn check_variable_name(key: &Key, name: &str) -> Result<(), Finding> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(unexpected(key, "a variable's name without `=` and NUL", "another"));
    }
    Ok(())
}

fn timeout_of(key: &Key, value: &Value) -> Result<Duration, Finding> {
    let timeout = value.as_u64().map(Duration::from_millis);
    timeout
        .filter(|timeout| (1..=LONGEST_CALL_TIMEOUT.as_millis()).contains(&timeout.as_millis()))
        .ok_or_else(|| {
            let expected =
                format!("a whole number of milliseconds from 1 to {}", LONGEST_CALL_TIMEOUT.as_millis());
            let found = value.as_number().map_or_else(|| kind(value).to_owned(), Number::to_string);
            unexpected(key, &expected, &found)
        })
}

fn check_keys(key: &Key, fields: &Map<String, Value>, known: &[&str]) -> Result<(), Finding> {
    let Some(unknown) = fields.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &unknown.to_lowercase()), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len() / 2)
        .map(|(_, name)| format!("did you mean `{name}`?"));
    let hint = match unknown.as_str() {
        "disabled" => Some("write `\"enabled\": false`".to_owned()),
        "timeout" => Some("write `timeoutMs`, in milliseconds".to_owned()),
        _ => nearest.or_else(|| Some(format!("known keys: {}", known.join(", ")))),
    };
    Err(Finding { problem: Problem::UnknownKey { key: key.child(unknown) }, hint })
}

fn object<'a>(key: &Key, value: &'a Value) -> Result<&'a Map<String, Value>, Finding> {
    value.as_object().ok_or_else(|| unexpected(key, "an object", kind(value)))
}

fn string<'a>(key: &Key, value: &'a Value) -> Result<&'a str, Finding> {
    let text = value.as_str().ok_or_else(|| unexpected(key, "a string", kind(value)))?;
    without_nul(key, text)
}

fn without_nul<'a>(key: &Key, text: &'a str) -> Result<&'a str, Finding> {
    if text.contains('\0') {
        return Err(unexpected(key, "text", "a NUL character, which no program can be given"));
    }
    Ok(text)
}

/// Replaces `${NAME}` and `${NAME:-default}`. A lone `$` is itself. What a variable holds is not
/// looked at again.
fn expand(key: &Key, text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, Finding> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((reference, after)) = reference.split_once('}') else {
            return Err(unexpected(key, "a `}` after `${`", "none"));
        };
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        expanded.push_str(&variable(key, name, default, environment)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// A variable's value. As in shells, an empty one counts as missing where there is a default.
fn variable(
    key: &Key,
    name: &str,
    default: Option<&str>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Finding> {
    let is_name = !name.is_empty()
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !is_name {
        return Err(unexpected(key, "a variable's name of letters, digits and `_`", "another"));
    }
    match (environment(name), default) {
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (Some(value), None) => Ok(value),
        (None, None) => Err(Finding {
            problem: Problem::MissingVariable { key: key.clone(), name: name.to_owned() },
            hint: Some(format!("set it, or give a default: `${{{name}:-default}}`")),
        }),
    }
}

fn unexpected(key: &Key, expected: &str, found: &str) -> Finding {
    Problem::Unexpected { key: key.clone(), expected: expected.to_owned(), found: found.to_owned() }.into()
}

fn comment_hint(text: &str) -> Option<String> {
    let has_comment =
        text.lines().any(|line| line.trim_start().starts_with("//") || line.trim_start().starts_with("/*"));
    has_comment.then(|| "JSON has no comments".to_owned())
}

/// JSON in which no object has a key twice. Otherwise the last would win, and what a person reads
/// first would not be what runs.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = sequence.next_element()? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if object.contains_key(&name) {
                let name: String = name.escape_debug().take(80).collect();
                return Err(A::Error::custom(format!("the key `{name}` is there twice")));
            }
            let Strict(value) = entries.next_value()?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests;
