//! cx's own file: the keys at its top level.

use std::time::Duration;

use super::clients::Client;
use super::document::{Content, Node};
use super::entry::{self, Dialect, Entry};
use super::error::{Finding, Key, Place};
use super::expand::Text;
use super::values::{At, Fields};
use crate::run::limits::Limits;
use crate::tools::AskAnnotation;

/// Maximum number of servers. Each costs a process or a connection, and a larger number is not
/// intentional.
pub(super) const MAX_SERVERS: usize = 1_000;

/// Every key of the file.
pub(super) const FILE_KEYS: &[&str] =
    &["$schema", "mcpServers", "import", "allow", "deny", "ask", "readOnly", "strict", "limits", "cache"];

/// The keys of a file of servers that is named on the command line.
pub(super) const SERVERS_FILE_KEYS: &[&str] = &["$schema", "mcpServers"];

/// Every key of `cache`.
pub(super) const CACHE_KEYS: &[&str] = &["enabled", "directory"];

/// A limit in the file: its key, its bounds, and its field in [`Limits`].
pub(super) struct LimitKey {
    pub(super) name: &'static str,
    pub(super) least: u64,
    pub(super) most: u64,
    unit: &'static str,
    pub(super) get: fn(&Limits) -> u64,
    pub(super) set: fn(&mut Limits, u64),
}

impl LimitKey {
    /// Whether `value` is at least as strict as the current limits. 0 total calls means no limit.
    pub(super) fn narrows(&self, limits: &Limits, value: u64) -> bool {
        let width =
            |value: u64| if self.least == 0 && self.unit == "calls" && value == 0 { u64::MAX } else { value };
        width(value) <= width((self.get)(limits))
    }
}

macro_rules! limit_keys {
    ($($name:literal: $field:ident, $least:expr, $unit:literal, $to:expr, $from:expr;)*) => {
        &[$(LimitKey {
            name: $name,
            least: $least,
            most: $to(Limits::CEILING.$field),
            unit: $unit,
            get: |limits| $to(limits.$field),
            set: |limits, value| limits.$field = $from(value),
        }),*]
    };
}

const fn milliseconds(time: Duration) -> u64 {
    // No limit comes near the range of 64 bits.
    time.as_secs() * 1_000 + time.subsec_millis() as u64
}

const fn wide(value: usize) -> u64 {
    value as u64
}

fn narrow(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

const fn calls(value: u32) -> u64 {
    value as u64
}

/// The ceiling of total calls; 0 means that there is none.
const fn all_calls(value: u32) -> u64 {
    value as u64
}

fn number(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Every key of `limits`.
pub(super) const LIMIT_KEYS: &[LimitKey] = limit_keys! {
    "timeoutMs": wall_time, 1, "milliseconds", milliseconds, Duration::from_millis;
    "cpuTimeMs": cpu_time, 1, "milliseconds", milliseconds, Duration::from_millis;
    "memoryBytes": memory_bytes, Limits::MIN_MEMORY_BYTES as u64, "bytes", wide, narrow;
    "maxToolCalls": tool_calls, 0, "calls", all_calls, number;
    "maxCallsInFlight": calls_in_flight, 1, "calls", calls, number;
    "maxSourceBytes": source_bytes, 1, "bytes", wide, narrow;
    "maxArgumentBytes": argument_bytes, 2, "bytes", wide, narrow;
    "maxResultBytes": result_bytes, 2, "bytes", wide, narrow;
    "maxOutputBytes": output_bytes, 0, "bytes", wide, narrow;
    "answerTimeoutMs": answer_time, 1, "milliseconds", milliseconds, Duration::from_millis;
    "maxPausedMs": paused_time, 0, "milliseconds", milliseconds, Duration::from_millis;
    "maxQuestions": questions, 0, "questions", calls, number;
};

/// A value with its location.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) place: Option<Place>,
}

/// The parsed file.
#[derive(Debug, Default)]
pub(super) struct OwnFile {
    pub(super) servers: Vec<Entry>,
    pub(super) import: Option<Placed<Vec<Client>>>,
    pub(super) allow: Option<Placed<Vec<String>>>,
    pub(super) deny: Option<Placed<Vec<String>>>,
    pub(super) ask: Option<Placed<Vec<String>>>,
    pub(super) read_only: Option<Placed<Vec<String>>>,
    pub(super) strict: Option<Placed<bool>>,
    /// By index in [`LIMIT_KEYS`].
    pub(super) limits: Vec<(usize, Placed<u64>)>,
    pub(super) cache_enabled: Option<Placed<bool>>,
    pub(super) cache_directory: Option<Placed<Text>>,
}

/// Parses the file. `known` are the keys that are valid at its top level.
pub(super) fn parse(root: &Node, known: &[&str], findings: &mut Vec<Finding>) -> OwnFile {
    let key = Key::default();
    let mut file = OwnFile::default();
    let members = match (At { key: key.clone(), node: root }).object() {
        Ok(members) => members,
        Err(finding) => {
            findings.push(finding);
            return file;
        }
    };
    let mut fields = Fields { key: &key, members, findings };
    fields.check_names(known);
    if let Some((_, node)) = fields.find(&["mcpServers"]) {
        file.servers = servers(Dialect::Own, &key.child("mcpServers"), node, fields.findings);
    }
    file.import = placed(&mut fields, "import", clients);
    file.allow = placed(&mut fields, "allow", |at| patterns(at, &[]));
    file.deny = placed(&mut fields, "deny", |at| patterns(at, &[]));
    file.ask = placed(&mut fields, "ask", |at| patterns(at, &AskAnnotation::ALL));
    file.read_only = placed(&mut fields, "readOnly", |at| patterns(at, &[]));
    file.strict = placed(&mut fields, "strict", At::boolean);
    if let Some((_, node)) = fields.find(&["limits"]) {
        let key = key.child("limits");
        match (At { key: key.clone(), node }).object() {
            Ok(members) => {
                file.limits = limits(&mut Fields { key: &key, members, findings: &mut *fields.findings });
            }
            Err(finding) => fields.findings.push(finding),
        }
    }
    if let Some((_, node)) = fields.find(&["cache"]) {
        let key = key.child("cache");
        match (At { key: key.clone(), node }).object() {
            Ok(members) => {
                let mut fields = Fields { key: &key, members, findings: &mut *fields.findings };
                fields.check_names(CACHE_KEYS);
                file.cache_enabled = placed(&mut fields, "enabled", At::boolean);
                file.cache_directory = placed(&mut fields, "directory", At::text);
            }
            Err(finding) => fields.findings.push(finding),
        }
    }
    file
}

fn placed<'a, T>(
    fields: &mut Fields<'a, '_>,
    name: &str,
    read: impl FnOnce(&At<'a>) -> Result<T, Finding>,
) -> Option<Placed<T>> {
    fields.read(&[name], |at| Ok(Placed { value: read(at)?, place: at.node.place }))
}

fn limits(fields: &mut Fields<'_, '_>) -> Vec<(usize, Placed<u64>)> {
    let names: Vec<&str> = LIMIT_KEYS.iter().map(|limit| limit.name).collect();
    fields.check_names(&names);
    let read = |(position, limit): (usize, &LimitKey)| {
        // There is no ceiling on total calls.
        let most = if limit.most == 0 { u64::from(u32::MAX) } else { limit.most };
        let value = placed(fields, limit.name, |at| at.number(limit.least, most, limit.unit))?;
        Some((position, value))
    };
    LIMIT_KEYS.iter().enumerate().filter_map(read).collect()
}

fn clients(at: &At<'_>) -> Result<Vec<Client>, Finding> {
    at.texts()?
        .into_iter()
        .map(|text| {
            Client::from_name(&text.raw).ok_or_else(|| {
                let names: Vec<String> =
                    Client::ALL.iter().map(|client| format!("`{}`", client.name())).collect();
                let expected = format!("one of {}", names.join(", "));
                Finding::unexpected(&text.key, text.place, expected, "another word")
            })
        })
        .collect()
}

/// Patterns, or keywords from `words`.
fn patterns(at: &At<'_>, words: &[AskAnnotation]) -> Result<Vec<String>, Finding> {
    at.texts()?
        .into_iter()
        .map(|text| {
            let is_word = words.iter().any(|word| word.as_str() == text.raw);
            if is_word || super::patterns::normal(&text.raw).is_some() {
                return Ok(text.raw);
            }
            let words = words.iter().map(|word| format!(", `{word}`")).collect::<String>();
            let expected = format!("a pattern `server.tool`, `server.*`, `mcp__server__tool` or `*`{words}");
            Err(Finding::unexpected(&text.key, text.place, expected, "another text"))
        })
        .collect()
}

/// Parses a list of servers: an object by name or, as in some programs, an array of objects with
/// `name`.
pub(super) fn servers(dialect: Dialect, key: &Key, node: &Node, findings: &mut Vec<Finding>) -> Vec<Entry> {
    let count = match &node.content {
        Content::Object(members) => members.len(),
        Content::Array(items) => items.len(),
        _ => {
            findings.push(At { key: key.clone(), node }.unexpected("an object"));
            return Vec::new();
        }
    };
    if count > MAX_SERVERS {
        let expected = format!("at most {MAX_SERVERS} servers");
        findings.push(Finding::unexpected(key, node.place, expected, count.to_string()));
        return Vec::new();
    }
    match &node.content {
        Content::Object(members) => members
            .iter()
            .filter_map(|member| {
                entry::parse(dialect, &key.child(&member.name), &member.name, &member.value, findings)
            })
            .collect(),
        Content::Array(items) => {
            let mut names = std::collections::HashSet::new();
            let entry = |(position, node): (usize, &Node)| {
                let key = key.item(position);
                let Some(name) = node.get("name").and_then(Node::as_str) else {
                    let expected = "an object with the key `name`";
                    findings.push(Finding::unexpected(&key, node.place, expected, "one without it"));
                    return None;
                };
                if !names.insert(name.to_owned()) {
                    let found = "one that is there twice";
                    findings.push(Finding::unexpected(
                        &key.child("name"),
                        node.place,
                        "a name of its own",
                        found,
                    ));
                }
                // This form belongs to other programs, and so do its other keys.
                entry::parse(Dialect::Common, &key, name, node, findings)
            };
            items.iter().enumerate().filter_map(entry).collect()
        }
        _ => Vec::new(),
    }
}
