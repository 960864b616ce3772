//! cx's own file: the keys at its top level.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::clients::Client;
use super::document::{Content, Node};
use super::entry::ServerEntry;
use super::error::{Finding, Key, Location};
use super::expand::Text;
use super::foreign::{Foreign, Program};
use super::formats::{Dialect, private_addresses, rate_limit, servers};
use super::limits::limits;
use super::parsed::Settings;
use super::reader::{At, Fields};
use super::{audit, code_executor, grants, llm_settings, mcpproxy};
use crate::run::isolation::{Isolation, NatsWorkers, RemoteWorkers, SharedTenant};
use crate::run::limits::Limits;
use crate::run::time_zone::TimeZone;
use crate::tools::policy::is_pattern;
use crate::tools::{AskAnnotation, ToolMode};

/// One second, in microseconds.
const MAX_CLOCK_RESOLUTION: u64 = 1_000_000;

/// Bounds of `totalMemoryBytes`: the minimum of one run, and more than any machine has.
const MIN_TOTAL_MEMORY: u64 = Limits::MIN_MEMORY_BYTES as u64;
const MAX_TOTAL_MEMORY: u64 = 1 << 50;

/// Every key of the file.
pub(super) const FILE_KEYS: &[&str] = &[
    "$schema",
    "mcpServers",
    "import",
    "allow",
    "deny",
    "ask",
    "readOnly",
    "privateAddresses",
    "direct",
    "mode",
    "interfaces",
    "strict",
    "elicitation",
    "llm",
    "limits",
    "grants",
    "clockResolutionUs",
    "timeZone",
    "clientRate",
    "tokensFile",
    "totalMemoryBytes",
    "isolation",
    "cache",
    "openTelemetry",
    "audit",
];

/// The keys of a file of servers that is named on the command line.
const SERVERS_FILE_KEYS: &[&str] = &["$schema", "mcpServers"];

/// Every key of `cache`.
pub(super) const CACHE_KEYS: &[&str] = &["enabled", "directory"];

/// Every key of `isolation`.
pub(super) const ISOLATION_KEYS: &[&str] = &[
    "mode",
    "require",
    "runsPerWorker",
    "url",
    "tokenFile",
    "keyFile",
    "credentialsFile",
    "caFile",
    "tenant",
    "tenantKeyFile",
];

/// Every key of `openTelemetry`.
pub(super) const OPEN_TELEMETRY_KEYS: &[&str] = &["endpoint", "content"];

/// A file that was read.
#[derive(Debug)]
pub(super) struct OwnFile {
    /// Used for the locations of the settings.
    pub(super) root: Node,
    pub(super) servers: Vec<ServerEntry>,
    pub(super) settings: Settings,
    /// The program whose settings it contains too, and the findings about them.
    pub(super) foreign: Option<(&'static Program, Foreign)>,
}

/// The program whose settings a file may contain in addition to cx's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// cx's own file, which may be a copy of mcpproxy's.
    Own,
    /// A file that code-executor-mcp reads too.
    CodeExecutor,
}

impl FileKind {
    /// The kind by the file's name.
    pub(super) fn from_path(path: &Path) -> Self {
        if code_executor::is_its_path(path) { Self::CodeExecutor } else { Self::Own }
    }

    /// The program that has written the file.
    fn program(self, root: &Node) -> Option<&'static Program> {
        if self == Self::CodeExecutor && code_executor::is_its_content(root) {
            Some(&code_executor::FILE)
        } else if mcpproxy::is_its_content(root) {
            Some(&mcpproxy::FILE)
        } else {
            None
        }
    }
}

impl OwnFile {
    /// The location of a key of cx, whatever name the key has in the file.
    pub(super) fn locate(&self, key: &str) -> Option<Location> {
        let used = self.foreign.iter().flat_map(|(_, foreign)| &foreign.used);
        let elsewhere = || used.clone().find(|(name, _)| *name == key).and_then(|(_, location)| *location);
        self.root.locate(key).or_else(elsewhere)
    }
}

/// Reads the file and records all mistakes in cx's own keys.
pub(super) fn own_file(root: Node, kind: FileKind, findings: &mut Vec<Finding>) -> OwnFile {
    let program = kind.program(&root);
    let mut settings = Settings::default();
    let foreign = program.map(|program| (program, read_foreign(program, &root, &mut settings)));
    let mut file = OwnFile { root, servers: Vec::new(), settings, foreign };
    let OwnFile { root, servers, settings, foreign } = &mut file;
    if let Some(mut fields) = Fields::read_members(Key::default(), root, findings) {
        *servers = own_fields(&mut fields, settings, foreign.as_mut().map(|(_, foreign)| foreign));
    }
    file
}

/// Reads the settings of another program.
pub(super) fn read_foreign(program: &Program, root: &Node, settings: &mut Settings) -> Foreign {
    let mut foreign = Foreign::default();
    foreign.read(program, root, FILE_KEYS, settings);
    if let Some(servers) = root.get("mcpServers") {
        foreign.read_servers(program, servers);
    }
    foreign
}

/// Reads the servers of a file, and cx's own settings over those of another program.
fn own_fields(
    fields: &mut Fields<'_, '_>,
    settings: &mut Settings,
    foreign: Option<&mut Foreign>,
) -> Vec<ServerEntry> {
    let servers = match foreign {
        None => {
            fields.check_names(FILE_KEYS);
            own_servers(fields)
        }
        Some(foreign) => foreign_servers(fields, settings, foreign),
    };
    settings.import = fields.read(&["import"], clients);
    // A setting of cx's own replaces another program's value of the same setting.
    settings.allow = fields.read(&["allow"], |at| patterns_or_keywords(at, &[])).or(settings.allow.take());
    settings.deny = fields.read(&["deny"], |at| patterns_or_keywords(at, &[]));
    settings.ask = fields.read(&["ask"], |at| patterns_or_keywords(at, &AskAnnotation::ALL));
    settings.read_only = fields.read(&["readOnly"], |at| patterns_or_keywords(at, &[]));
    settings.private_addresses = fields.read(&["privateAddresses"], private_addresses);
    settings.direct = fields.read(&["direct"], |at| patterns_or_keywords(at, &[]));
    settings.mode = fields.read(&["mode"], mode);
    settings.interfaces = fields.read(&["interfaces"], At::boolean);
    settings.strict = fields.read(&["strict"], At::boolean).or(settings.strict);
    settings.elicitation = fields.read(&["elicitation"], At::boolean);
    settings.clock_resolution = fields
        .read(&["clockResolutionUs"], |at| at.number(0, MAX_CLOCK_RESOLUTION, "microseconds"))
        .map(Duration::from_micros);
    settings.time_zone = fields.read(&["timeZone"], time_zone);
    settings.client_rate = rate_limit(fields, "clientRate").or(settings.client_rate);
    settings.tokens_file = fields.read(&["tokensFile"], absolute_path);
    settings.total_memory_bytes = fields
        .read(&["totalMemoryBytes"], |at| at.number(MIN_TOTAL_MEMORY, MAX_TOTAL_MEMORY, "bytes"))
        .and_then(|bytes| usize::try_from(bytes).ok());
    if let Some((name, node)) = fields.find(&["isolation"]).filter(|(_, node)| node.as_str().is_some()) {
        let finding = At { key: fields.key.child(name), node }.unexpected("an object");
        fields.findings.push(finding.hint("write the mode as in `\"isolation\": { \"mode\": \"process\" }`"));
    } else if let Some(mut section) = fields.section("isolation") {
        section.check_names(ISOLATION_KEYS);
        settings.isolation = isolation(&mut section).or(settings.isolation.take());
    }
    if let Some(mut section) = fields.section("limits") {
        settings.limits.extend(limits(&mut section));
    }
    if let Some(mut section) = fields.section("grants") {
        grants::section(&mut section, &mut settings.grants);
    }
    if let Some(mut section) = fields.section("llm") {
        llm_settings::section(&mut section, &mut settings.llm);
    }
    if let Some(mut section) = fields.section("cache") {
        section.check_names(CACHE_KEYS);
        settings.cache_enabled = section.read(&["enabled"], At::boolean);
        settings.cache_directory = section.read(&["directory"], At::text);
    }
    if let Some(mut section) = fields.section("openTelemetry") {
        section.check_names(OPEN_TELEMETRY_KEYS);
        settings.telemetry_endpoint = section.read(&["endpoint"], At::text);
        settings.telemetry_content = section.read(&["content"], At::boolean);
    }
    if let Some(mut section) = fields.section("audit") {
        settings.audit = Some(audit::section(&mut section));
    }
    servers
}

/// Reads a file that the user has named: servers and nothing else, or mcpproxy's file. In the first case all mistakes
/// are recorded.
///
/// `own` is where the user's own file is, for the hint about a setting that belongs there.
pub(super) fn named_file(root: Node, own: Option<&Path>, findings: &mut Vec<Finding>) -> OwnFile {
    let mut settings = Settings::default();
    let program = FileKind::Own.program(&root);
    let mut foreign = program.map(|program| (program, read_foreign(program, &root, &mut settings)));
    let servers = match (&mut foreign, Fields::read_members(Key::default(), &root, findings)) {
        (_, None) => Vec::new(),
        (None, Some(mut fields)) => named_servers(&mut fields, own, root.location),
        (Some((_, foreign)), Some(mut fields)) => foreign_servers(&mut fields, &settings, foreign),
    };
    OwnFile { root, servers, settings, foreign }
}

/// Reads servers of a file that may contain nothing else. Records all mistakes.
fn named_servers(
    fields: &mut Fields<'_, '_>,
    own: Option<&Path>,
    location: Option<Location>,
) -> Vec<ServerEntry> {
    let own = own.map_or_else(|| "cx's own file".to_owned(), |path| format!("`{}`", path.display()));
    fields.check_names_with(SERVERS_FILE_KEYS, |name| {
        FILE_KEYS.contains(&name).then(|| format!("this file has servers only: write it in {own}"))
    });
    let servers = own_servers(fields);
    if fields.findings.is_empty() && !fields.has(&["mcpServers"]) {
        let expected = "an object with the key `mcpServers`";
        let finding = Finding::unexpected(&fields.key, location, expected, "an object without it");
        fields.findings.push(finding);
    }
    // There is nothing that an entry without a target could restrict.
    let without_target = servers.iter().filter(|entry| entry.target.is_none());
    fields.findings.extend(without_target.map(ServerEntry::without_target));
    servers
}

/// Reads the servers of another program's file. Their mistakes are not errors.
fn foreign_servers(
    fields: &mut Fields<'_, '_>,
    settings: &Settings,
    foreign: &mut Foreign,
) -> Vec<ServerEntry> {
    let Some((name, node)) = fields.find(&["mcpServers"]) else { return Vec::new() };
    let is_list = matches!(node.content, Content::Array(_));
    let findings = if is_list { &mut foreign.mistakes } else { &mut *fields.findings };
    let mut servers = servers(Dialect::Own, &fields.key.child(name), node, findings);
    servers.iter_mut().for_each(|entry| settings.server_defaults.fill(entry));
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

/// Maximum number of runs that a worker process may serve. With this many, starting the process costs nothing per run.
const MAX_RUNS_PER_WORKER: u64 = 1_000_000;

/// Where scripts are executed.
fn isolation(section: &mut Fields<'_, '_>) -> Option<Isolation> {
    let mode = section.read(&["mode"], |at| {
        let text = at.text()?;
        let elsewhere = || match text.raw.as_str() {
            Isolation::REMOTE => Some(Isolation::Remote(RemoteWorkers::new(""))),
            Isolation::NATS => Some(Isolation::Nats(NatsWorkers::new("", ""))),
            _ => None,
        };
        Isolation::from_name(&text.raw).or_else(elsewhere).ok_or_else(|| {
            let modes = Isolation::MODES.into_iter().chain([Isolation::REMOTE, Isolation::NATS]);
            let names = modes.map(|mode| format!("`{mode}`")).collect::<Vec<_>>().join(" or ");
            Finding::unexpected(&text.key, text.location, names, "another text")
        })
    });
    let runs = section.read(&["runsPerWorker"], |at| at.number(1, MAX_RUNS_PER_WORKER, "runs"));
    let require = section.read(&["require"], At::boolean);
    let url = section.read(&["url"], At::string);
    let token_file = section.read(&["tokenFile"], absolute_path);
    let key_file = section.read(&["keyFile"], absolute_path);
    let credentials_file = section.read(&["credentialsFile"], absolute_path);
    let ca_file = section.read(&["caFile"], absolute_path);
    let tenant = section.read(&["tenant"], At::string);
    let tenant_key_file = section.read(&["tenantKeyFile"], absolute_path);
    check_isolation_keys(section, mode.as_ref());
    match mode? {
        Isolation::Remote(mut workers) => {
            workers.url = url.unwrap_or_default();
            workers.token_file = token_file;
            Some(Isolation::Remote(workers))
        }
        Isolation::Nats(mut workers) => {
            workers.url = url.unwrap_or_default();
            workers.key_file = key_file.unwrap_or_default();
            workers.credentials_file = credentials_file;
            workers.ca_file = ca_file;
            workers.shared =
                tenant.map(|name| SharedTenant { name, key_file: tenant_key_file.unwrap_or_default() });
            Some(Isolation::Nats(workers))
        }
        Isolation::Process(mut workers) => {
            workers.require = require.unwrap_or(workers.require);
            workers.runs_per_worker =
                runs.and_then(|runs| u32::try_from(runs).ok()).unwrap_or(workers.runs_per_worker);
            Some(Isolation::Process(workers))
        }
        other => Some(other),
    }
}

/// Records keys that have no meaning with the mode, and those that are missing: a setting without effect could be
/// one that its author relies on, such as `require`.
fn check_isolation_keys(section: &mut Fields<'_, '_>, mode: Option<&Isolation>) {
    const OF_PROCESSES: &[&str] = &["require", "runsPerWorker"];
    const OF_REMOTE: &[&str] = &["url", "tokenFile"];
    const OF_NATS: &[&str] = &["url", "keyFile", "credentialsFile", "caFile", "tenant", "tenantKeyFile"];
    let others = || ISOLATION_KEYS.iter().copied().filter(|name| *name != "mode");
    let Some(mode) = mode else {
        // A mode that cannot be read is a mistake of its own.
        if !section.has(&["mode"]) {
            section.refuse(&others().collect::<Vec<_>>(), "mode");
        }
        return;
    };
    let (known, needed): (&[&str], &[&str]) = match mode {
        Isolation::Process(_) => (OF_PROCESSES, &[]),
        Isolation::Remote(_) => (OF_REMOTE, &["url"]),
        Isolation::Nats(_) => (OF_NATS, &["url", "keyFile"]),
        Isolation::InProcess => (&[], &[]),
    };
    let mode = mode.as_str();
    for name in others().filter(|name| !known.contains(name)) {
        if let Some((_, node)) = section.find(&[name]) {
            let (key, expected) = (section.key.child(name), format!("a key of the mode `{mode}`"));
            section.findings.push(Finding::unexpected(&key, node.location, expected, "one of another mode"));
        }
    }
    for &name in needed {
        if !section.has(&[name]) {
            let expected = format!("the key `{name}` beside the mode `{mode}`");
            section.unexpected(&["mode"], &expected, "it without that");
        }
    }
    let [tenant, its_key] = ["tenant", "tenantKeyFile"];
    for (name, other) in [(tenant, its_key), (its_key, tenant)] {
        if !section.has(&[other]) {
            section.refuse(&[name], other);
        }
    }
}

/// The path of a file. It must be absolute, because the working directory is the client's.
fn absolute_path(at: &At<'_>) -> Result<PathBuf, Finding> {
    let text = at.text()?;
    let path = PathBuf::from(&text.raw);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(Finding::unexpected(&text.key, text.location, "an absolute path", "another one"))
    }
}

fn time_zone(at: &At<'_>) -> Result<String, Finding> {
    let text = at.text()?;
    match TimeZone::find(&text.raw) {
        Ok(zone) => Ok(zone.name().to_owned()),
        Err(_unknown) => {
            let expected = "a name of the IANA database, such as `Europe/Berlin`";
            let finding = Finding::unexpected(&text.key, text.location, expected, "another text");
            Err(match TimeZone::nearest(&text.raw) {
                Some(name) => finding.hint(format!("did you mean `{name}`?")),
                None => finding,
            })
        }
    }
}

fn mode(at: &At<'_>) -> Result<ToolMode, Finding> {
    let text = at.text()?;
    ToolMode::from_name(&text.raw).ok_or_else(|| {
        let names = ToolMode::ALL.map(|mode| format!("`{}`", mode.as_str()));
        let expected = format!("one of {}", names.join(", "));
        Finding::unexpected(&text.key, text.location, expected, "another word")
    })
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
