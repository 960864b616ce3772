//! cx's own file: the keys at its top level.

use std::time::Duration;

use super::clients::Client;
use super::document::Node;
use super::entry::ServerEntry;
use super::error::{Finding, Key};
use super::expand::Text;
use super::formats::{Dialect, servers};
use super::limits::{LimitKey, limits};
use super::reader::{At, Fields};
use crate::tools::AskAnnotation;
use crate::tools::policy::is_pattern;

/// One second, in microseconds.
const MAX_CLOCK_RESOLUTION: u64 = 1_000_000;

/// Every key of the file.
pub(super) const FILE_KEYS: &[&str] = &[
    "$schema",
    "mcpServers",
    "import",
    "allow",
    "deny",
    "ask",
    "readOnly",
    "strict",
    "limits",
    "clockResolutionUs",
    "cache",
];

/// The keys of a file of servers that is named on the command line.
const SERVERS_FILE_KEYS: &[&str] = &["$schema", "mcpServers"];

/// Every key of `cache`.
pub(super) const CACHE_KEYS: &[&str] = &["enabled", "directory"];

/// A file that was read.
#[derive(Debug)]
pub(super) struct OwnFile {
    /// For the locations of the settings.
    pub(super) root: Node,
    pub(super) servers: Vec<ServerEntry>,
    pub(super) settings: Settings,
}

/// The settings other than servers.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) import: Option<Vec<&'static Client>>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Option<Vec<String>>,
    pub(super) ask: Option<Vec<String>>,
    pub(super) read_only: Option<Vec<String>>,
    pub(super) strict: Option<bool>,
    pub(super) limits: Vec<(&'static LimitKey, u64)>,
    pub(super) clock_resolution: Option<Duration>,
    pub(super) cache_enabled: Option<bool>,
    pub(super) cache_directory: Option<Text>,
}

/// Reads the file and records all mistakes.
pub(super) fn own_file(root: Node, findings: &mut Vec<Finding>) -> OwnFile {
    let fields = Fields::of(Key::default(), &root, findings);
    let (servers, settings) = fields.map(|mut fields| own_fields(&mut fields)).unwrap_or_default();
    OwnFile { root, servers, settings }
}

fn own_fields(fields: &mut Fields<'_, '_>) -> (Vec<ServerEntry>, Settings) {
    fields.check_names(FILE_KEYS);
    let servers = own_servers(fields);
    let mut settings = Settings {
        import: fields.read(&["import"], clients),
        allow: fields.read(&["allow"], |at| patterns_or_keywords(at, &[])),
        deny: fields.read(&["deny"], |at| patterns_or_keywords(at, &[])),
        ask: fields.read(&["ask"], |at| patterns_or_keywords(at, &AskAnnotation::ALL)),
        read_only: fields.read(&["readOnly"], |at| patterns_or_keywords(at, &[])),
        strict: fields.read(&["strict"], At::boolean),
        clock_resolution: fields
            .read(&["clockResolutionUs"], |at| at.number(0, MAX_CLOCK_RESOLUTION, "microseconds"))
            .map(Duration::from_micros),
        ..Settings::default()
    };
    if let Some(mut section) = fields.section("limits") {
        settings.limits = limits(&mut section);
    }
    if let Some(mut section) = fields.section("cache") {
        section.check_names(CACHE_KEYS);
        settings.cache_enabled = section.read(&["enabled"], At::boolean);
        settings.cache_directory = section.read(&["directory"], At::text);
    }
    (servers, settings)
}

/// Reads a file that must have servers, and nothing but servers. Records all mistakes.
pub(super) fn servers_file(root: &Node, findings: &mut Vec<Finding>) -> Vec<ServerEntry> {
    let Some(mut fields) = Fields::of(Key::default(), root, findings) else { return Vec::new() };
    fields.check_names(SERVERS_FILE_KEYS);
    let servers = own_servers(&mut fields);
    if fields.findings.is_empty() && !fields.has(&["mcpServers"]) {
        let expected = "an object with the key `mcpServers`";
        let finding = Finding::unexpected(&fields.key, root.location, expected, "an object without it");
        fields.findings.push(finding);
    }
    // There is nothing that an entry without a target could restrict.
    let without_target = servers.iter().filter(|entry| entry.target.is_none());
    findings.extend(without_target.map(ServerEntry::without_target));
    servers
}

fn own_servers(fields: &mut Fields<'_, '_>) -> Vec<ServerEntry> {
    let Some((name, node)) = fields.find(&["mcpServers"]) else { return Vec::new() };
    servers(Dialect::Own, &fields.key.child(name), node, fields.findings)
}

fn clients(at: &At<'_>) -> Result<Vec<&'static Client>, Finding> {
    let client = |text: Text| {
        Client::from_name(&text.raw).ok_or_else(|| {
            let names: Vec<String> = Client::ALL.iter().map(|client| format!("`{}`", client.name)).collect();
            let expected = format!("one of {}", names.join(", "));
            Finding::unexpected(&text.key, text.location, expected, "another word")
        })
    };
    at.texts()?.into_iter().map(client).collect()
}

fn patterns_or_keywords(at: &At<'_>, keywords: &[AskAnnotation]) -> Result<Vec<String>, Finding> {
    let pattern = |text: Text| {
        let is_keyword = keywords.iter().any(|keyword| keyword.as_str() == text.raw);
        if is_keyword || is_pattern(&text.raw) {
            return Ok(text.raw);
        }
        let keywords: String = keywords.iter().map(|keyword| format!(", `{keyword}`")).collect();
        let expected = format!("a pattern `server.tool`, `server.*`, `mcp__server__tool` or `*`{keywords}");
        Err(Finding::unexpected(&text.key, text.location, expected, "another text"))
    };
    at.texts()?.into_iter().map(pattern).collect()
}
