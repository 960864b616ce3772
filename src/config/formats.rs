//! The formats of a server's entry: cx's own, and those of other clients.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::time::Duration;

use super::document::{Content, Node};
use super::entry::{
    HttpTarget, MAX_CALLS, MAX_CONNECT_TIME, MAX_QUEUE_TIME, ServerEntry, StdioTarget, Target,
};
use super::error::{Finding, Key, Location};
use super::expand::Text;
use super::mcpproxy_entry;
use super::oauth_entry;
use super::reader::{At, Fields};
use crate::mcp::HttpKind;
use crate::rate::RateLimit;
use crate::tools::PrivateAddresses;

/// Maximum number of servers. Each costs a process or a connection, and a larger number is not
/// intentional.
pub(super) const MAX_SERVERS: usize = 1_000;

/// Maximum length that model providers accept for a part of a tool's name.
pub(super) const MAX_NAME: usize = 64;

/// One hour: longer than any run, so a larger number is probably in a wrong unit.
const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// One day: a connection that is idle for longer might as well stay open.
const MAX_IDLE: Duration = Duration::from_secs(24 * 60 * 60);

/// More than all runs that a server admits by default can make at the same time.
const MAX_QUEUED: u64 = 100_000;

/// Every key of a server in cx's own file.
pub(super) const SERVER_KEYS: &[&str] = &[
    "description",
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "oauth",
    "enabled",
    "allow",
    "deny",
    "ask",
    "readOnly",
    "privateAddresses",
    "timeoutMs",
    "connectTimeoutMs",
    "idleMs",
    "maxConcurrent",
    "maxQueued",
    "queueTimeoutMs",
    "rateLimit",
    "elicitation",
    "roots",
];

/// Every key of `rateLimit` and `clientRate`.
pub(super) const RATE_LIMIT_KEYS: &[&str] = &["calls", "perMs"];

/// The keys that have other names in other clients' files. If several of these names are present, the first one is
/// used.
struct Names {
    kind: &'static [&'static str],
    url: &'static [&'static str],
    env: &'static [&'static str],
    cwd: &'static [&'static str],
    headers: &'static [&'static str],
    allow: &'static [&'static str],
    deny: &'static [&'static str],
}

const OWN_NAMES: Names = Names {
    kind: &["type"],
    url: &["url"],
    env: &["env"],
    cwd: &["cwd"],
    headers: &["headers"],
    allow: &["allow"],
    deny: &["deny"],
};

const FOREIGN_NAMES: Names = Names {
    kind: &["type", "transport", "protocol"],
    url: &["httpUrl", "serverUrl", "url"],
    env: &["env", "environment"],
    cwd: &["cwd", "working_dir"],
    headers: &["headers", "http_headers"],
    allow: &["includeTools", "enabled_tools", "enabledTools"],
    deny: &["excludeTools", "disabled_tools", "disabledTools"],
};

/// The format of an entry. Unknown keys are mistakes in cx's own format and are ignored in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// cx's own format.
    Own,
    /// The keys that most clients share, including their aliases.
    Common,
    /// Gemini's format, in which `url` means server-sent events and `httpUrl` the other HTTP
    /// transport.
    Gemini,
    /// mcpproxy's format, with limits and quarantine.
    Mcpproxy,
}

impl Dialect {
    fn is_own(self) -> bool {
        self == Self::Own
    }

    fn names(self) -> &'static Names {
        if self.is_own() { &OWN_NAMES } else { &FOREIGN_NAMES }
    }
}

/// Reads a list of servers: an object by name or, as in some programs, an array of objects with
/// `name`. Records everything that is wrong with it.
pub(super) fn servers(
    dialect: Dialect,
    key: &Key,
    node: &Node,
    findings: &mut Vec<Finding>,
) -> Vec<ServerEntry> {
    let count = match &node.content {
        Content::Object(members) => members.len(),
        Content::Array(items) => items.len(),
        _ => {
            findings.push(Finding::unexpected(key, node.location, "an object", node.kind()));
            return Vec::new();
        }
    };
    if count > MAX_SERVERS {
        let expected = format!("at most {MAX_SERVERS} servers");
        findings.push(Finding::unexpected(key, node.location, expected, count.to_string()));
        return Vec::new();
    }
    match &node.content {
        Content::Object(members) => members
            .iter()
            .filter_map(|member| {
                server(dialect, &key.child(&member.name), &member.name, &member.value, findings)
            })
            .collect(),
        Content::Array(items) => {
            let mut names = HashSet::new();
            let item = |(position, node)| named_server(&key.item(position), node, &mut names, findings);
            items.iter().enumerate().filter_map(item).collect()
        }
        _ => Vec::new(),
    }
}

/// Reads an entry that has its name in `name`. This is mcpproxy's format, so its other keys are accepted too.
fn named_server<'a>(
    key: &Key,
    node: &'a Node,
    names: &mut HashSet<&'a str>,
    findings: &mut Vec<Finding>,
) -> Option<ServerEntry> {
    let Some(name) = node.get("name").and_then(Node::as_str) else {
        let expected = "an object with the key `name`";
        findings.push(Finding::unexpected(key, node.location, expected, "one without it"));
        return None;
    };
    if !names.insert(name) {
        let (key, found) = (key.child("name"), "one that is there twice");
        findings.push(Finding::unexpected(&key, node.location, "a name of its own", found));
    }
    server(Dialect::Mcpproxy, key, name, node, findings)
}

/// Reads one entry and records everything that is wrong with it. `None` if it cannot be used.
pub(super) fn server(
    dialect: Dialect,
    key: &Key,
    name: &str,
    node: &Node,
    findings: &mut Vec<Finding>,
) -> Option<ServerEntry> {
    let before = findings.len();
    findings.extend(check_name(key, name, node.location).err());
    let mut fields = Fields::read_members(key.clone(), node, findings)?;
    if dialect.is_own() {
        fields.check_names(SERVER_KEYS);
    }
    let mut entry = match dialect {
        Dialect::Own => own_rules(&mut fields),
        Dialect::Mcpproxy => mcpproxy_entry::rules(&mut fields),
        Dialect::Common | Dialect::Gemini => foreign_rules(&mut fields, dialect),
    };
    entry.allow = fields.read(dialect.names().allow, At::strings);
    entry.deny = fields.read(dialect.names().deny, At::strings).unwrap_or_default();
    entry.description = description(&mut fields, dialect);
    entry.target = target(&mut fields, dialect);
    (entry.name, entry.key, entry.location) = (name.to_owned(), key.clone(), node.location);
    let is_usable = entry.target.is_some() || entry.restricts();
    if !is_usable && findings.len() == before {
        findings.push(entry.without_target());
    }
    // An unknown key does not invalidate the other keys. The code that reads the file decides how
    // to treat it.
    let is_sound = findings[before..].iter().all(|finding| finding.kind.is_unknown_key());
    (is_sound && is_usable).then_some(entry)
}

/// Reads the rules on tools and the timeouts of cx's own format.
fn own_rules(fields: &mut Fields<'_, '_>) -> ServerEntry {
    ServerEntry {
        enabled: fields.read(&["enabled"], At::boolean),
        ask: fields.read(&["ask"], At::strings).unwrap_or_default(),
        read_only: fields.read(&["readOnly"], At::strings),
        private_addresses: fields.read(&["privateAddresses"], private_addresses),
        call_timeout: fields.read(&["timeoutMs"], |at| at.milliseconds(MAX_CALL_TIMEOUT)),
        connect_timeout: fields.read(&["connectTimeoutMs"], |at| at.milliseconds(MAX_CONNECT_TIME)),
        idle_timeout: fields.read(&["idleMs"], |at| at.milliseconds(MAX_IDLE)),
        max_concurrent: fields
            .read(&["maxConcurrent"], |at| at.number(1, MAX_CALLS, "calls"))
            .and_then(|calls| usize::try_from(calls).ok()),
        max_queued: fields
            .read(&["maxQueued"], |at| at.number(0, MAX_QUEUED, "calls"))
            .and_then(|calls| usize::try_from(calls).ok()),
        queue_timeout: fields.read(&["queueTimeoutMs"], |at| at.milliseconds(MAX_QUEUE_TIME)),
        rate_limit: rate_limit(fields, "rateLimit"),
        elicitation: fields.read(&["elicitation"], At::boolean),
        roots: fields.read(&["roots"], At::texts).unwrap_or_default(),
        ..ServerEntry::default()
    }
}

/// Reads the rules and timeouts of other clients. A number that cannot be used is ignored, so that the default applies.
fn foreign_rules(fields: &mut Fields<'_, '_>, dialect: Dialect) -> ServerEntry {
    let enabled = fields.read(&["enabled"], At::boolean);
    let is_disabled = fields.read(&["disabled"], At::boolean) == Some(true);
    let time = |name, per_second: u32, max: Duration| {
        let (_, node) = fields.find(&[name])?;
        let Content::Number(written) = &node.content else { return None };
        let time = Duration::try_from_secs_f64(written.parse().ok()?).ok()? / per_second;
        (!time.is_zero()).then(|| time.clamp(Duration::from_millis(1), max))
    };
    // Other clients use other units for `timeout`.
    let of_gemini = time("timeout", 1_000, MAX_CALL_TIMEOUT).filter(|_| dialect == Dialect::Gemini);
    ServerEntry {
        enabled: if is_disabled { Some(false) } else { enabled },
        call_timeout: of_gemini.or_else(|| time("tool_timeout_sec", 1, MAX_CALL_TIMEOUT)),
        connect_timeout: time("startup_timeout_sec", 1, MAX_CONNECT_TIME),
        ..ServerEntry::default()
    }
}

/// The description of the server. In other clients' files a value that is not a string is ignored, because other
/// programs use this key.
fn description(fields: &mut Fields<'_, '_>, dialect: Dialect) -> Option<String> {
    if dialect.is_own() {
        return fields.read(&["description"], At::string);
    }
    fields.find(&["description"]).and_then(|(_, node)| node.as_str()).map(str::to_owned)
}

/// A rate with `calls` and `perMs`.
pub(super) fn rate_limit(fields: &mut Fields<'_, '_>, name: &str) -> Option<RateLimit> {
    let (_, node) = fields.find(&[name])?;
    let mut section = fields.section(name)?;
    let before = section.findings.len();
    section.check_names(RATE_LIMIT_KEYS);
    let calls = section.read(&["calls"], |at| at.number(1, 1_000_000, "calls"));
    let calls = calls.and_then(|calls| NonZeroU32::new(u32::try_from(calls).ok()?));
    let period = section.read(&["perMs"], |at| at.milliseconds(MAX_IDLE));
    let (Some(calls), Some(period)) = (calls, period) else {
        if section.findings.len() == before {
            let at = At { key: section.key, node };
            section.findings.push(at.unexpected("an object with the keys `calls` and `perMs`"));
        }
        return None;
    };
    Some(RateLimit { calls, period })
}

/// The value of `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransportType {
    Stdio,
    Http(HttpKind),
    /// Not stated: the other keys decide.
    Unstated,
}

fn kind(at: &At<'_>, dialect: Dialect) -> Result<TransportType, Finding> {
    let name = at.string()?;
    Ok(match (name.as_str(), dialect.is_own()) {
        ("stdio", _) | ("local", false) => TransportType::Stdio,
        ("http", _) | ("remote" | "ws", false) => TransportType::Http(HttpKind::Detect),
        ("streamable-http", _) | ("streamableHttp" | "streamable_http", false) => {
            TransportType::Http(HttpKind::Streamable)
        }
        ("sse", _) => TransportType::Http(HttpKind::Sse),
        ("" | "auto" | "custom" | "extension", false) => TransportType::Unstated,
        _ => {
            let expected = "`stdio`, `http`, `streamable-http` or `sse`";
            return Err(Finding::unexpected(&at.key, at.node.location, expected, "another word"));
        }
    })
}

fn target(fields: &mut Fields<'_, '_>, dialect: Dialect) -> Option<Target> {
    let Names { kind: kinds, url, .. } = dialect.names();
    let kind = fields.read(kinds, |at| self::kind(at, dialect)).unwrap_or(TransportType::Unstated);
    match (fields.has(url), kind) {
        (true, _) if fields.has(&["command"]) => {
            fields.unexpected(url, "one of `command` and `url`", "both");
        }
        (true, TransportType::Stdio) => {
            let expected = "an object with the key `command`, as its type says";
            fields.unexpected(&["type"], expected, "an object with `url`");
        }
        (false, TransportType::Http(_)) => {
            let expected = "an object with the key `url`, as its type says";
            fields.unexpected(&["type"], expected, "an object without it");
        }
        (true, _) => return http(fields, dialect, kind).map(Target::Http),
        (false, _) => return stdio(fields, dialect).map(Target::Stdio),
    }
    None
}

fn stdio(fields: &mut Fields<'_, '_>, dialect: Dialect) -> Option<StdioTarget> {
    if dialect.is_own() {
        fields.refuse(&["headers", "oauth"], "url");
        if !fields.has(&["command"]) {
            fields.refuse(&["args", "env", "cwd"], "command");
        }
    }
    let mut args = Vec::new();
    let mut env = Vec::new();
    let (_, node) = fields.find(&["command"])?;
    let mut words = match &node.content {
        // OpenCode: the program and its arguments in one array.
        Content::Array(_) if !dialect.is_own() => fields.read(&["command"], At::texts)?,
        // Older Zed: an object with both.
        Content::Object(_) if !dialect.is_own() => {
            let mut nested = fields.section("command")?;
            args.extend(nested.read(&["args"], At::texts).unwrap_or_default());
            env.extend(nested.read(&["env"], At::pairs).unwrap_or_default());
            nested.read(&["path"], At::text).into_iter().collect()
        }
        _ => vec![fields.read(&["command"], At::text)?],
    }
    .into_iter();
    let Some(command) = words.next().filter(|program| !program.raw.trim().is_empty()) else {
        let (key, expected) = (fields.key.child("command"), "the name or path of a program");
        fields.findings.push(Finding::unexpected(&key, node.location, expected, "an empty string"));
        return None;
    };
    let mut args: Vec<Text> = words.chain(args).collect();
    args.extend(fields.read(&["args"], At::texts).unwrap_or_default());
    env.extend(fields.read(dialect.names().env, At::pairs).unwrap_or_default());
    if !dialect.is_own() {
        // Codex: names of variables that are passed on.
        let passed = fields.read(&["env_vars"], At::texts).unwrap_or_default();
        env.extend(passed.into_iter().map(|name| (name.raw.clone(), value_of(name))));
    }
    for (name, text) in &env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let expected = "a variable's name without `=` and NUL";
            fields.findings.push(Finding::unexpected(&text.key, text.location, expected, "another"));
        }
    }
    Some(StdioTarget { command, args, env, cwd: fields.read(dialect.names().cwd, At::text) })
}

fn http(fields: &mut Fields<'_, '_>, dialect: Dialect, kind: TransportType) -> Option<HttpTarget> {
    let names = dialect.names();
    let kind = match (kind, fields.find(names.url)) {
        (TransportType::Http(kind), _) => kind,
        (_, Some(("httpUrl", _))) => HttpKind::Streamable,
        (_, Some(("url", _))) if dialect == Dialect::Gemini => HttpKind::Sse,
        _ => HttpKind::Detect,
    };
    if dialect.is_own() {
        fields.refuse(&["args", "env", "cwd"], "command");
    }
    let url = fields.read(names.url, At::text)?;
    let mut headers = fields.read(names.headers, At::pairs).unwrap_or_default();
    if !dialect.is_own() {
        // Codex: names of variables that contain the values.
        let by_variable = fields.read(&["env_http_headers"], At::pairs).unwrap_or_default();
        headers.extend(by_variable.into_iter().map(|(header, name)| (header, value_of(name))));
        let token = fields.read(&["bearer_token_env_var"], At::text).map(value_of);
        let plain = fields.read(&["bearerToken", "bearer_token"], At::text);
        headers.extend(token.or(plain).map(|token| {
            let value = Text { raw: format!("Bearer {}", token.raw), ..token };
            ("Authorization".to_owned(), value)
        }));
    }
    for (name, text) in &headers {
        if http::HeaderName::try_from(name.as_str()).is_err() {
            let expected = "the name of an HTTP header";
            fields.findings.push(Finding::unexpected(&text.key, text.location, expected, "another"));
        }
    }
    let oauth = match dialect {
        Dialect::Own => oauth_entry::oauth(fields),
        Dialect::Mcpproxy => mcpproxy_entry::oauth(fields),
        Dialect::Common | Dialect::Gemini => None,
    };
    Some(HttpTarget { url, headers, kind, oauth: oauth.map(Box::new) })
}

/// A reference to the variable that a text names.
fn value_of(name: Text) -> Text {
    Text { raw: format!("${{{}}}", name.raw), ..name }
}

/// The treatment of calls that have private addresses in their arguments.
pub(super) fn private_addresses(at: &At<'_>) -> Result<PrivateAddresses, Finding> {
    let text = at.text()?;
    PrivateAddresses::from_name(&text.raw).ok_or_else(|| {
        let names = PrivateAddresses::ALL.map(|value| format!("`{value}`"));
        let expected = format!("one of {}", names.join(", "));
        Finding::unexpected(&text.key, text.location, expected, "another word")
    })
}

fn check_name(key: &Key, name: &str, location: Option<Location>) -> Result<(), Finding> {
    let is_known = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(is_known)
        && name.starts_with(|character: char| character.is_ascii_alphanumeric() || character == '_')
        // Scripts access servers as properties.
        && name != "__proto__";
    if is_name {
        return Ok(());
    }
    let expected =
        format!("a server's name of 1 to {MAX_NAME} letters, digits, `_`, `-` and `.`, not `.` or `-` first");
    Err(Finding::unexpected(key, location, expected, "another"))
}
