//! One server's entry in a file: parsing it, and resolving it to a server.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::document::{Content, Node};
use super::error::{Finding, Key, Place, Problem};
use super::expand::{Role, Scope, Text};
use super::values::{At, Fields};
use crate::mcp::{HttpKind, McpServer, McpTransport, OAuth, RateLimit};

/// Maximum length that model providers accept for a part of a tool's name.
const MAX_NAME: usize = 64;

/// One hour: longer than any run, so a larger number can only be a mistake in the unit.
const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Ten minutes: enough to build a container image. Users do not wait longer for a server to start.
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// One day: a connection that is idle for longer might as well stay open.
const MAX_IDLE: Duration = Duration::from_secs(24 * 60 * 60);

/// The maximum number of calls that one run may have in flight.
const MAX_CONCURRENT: u64 = 1_024;

/// Every key of a server in cx's own file.
pub(super) const SERVER_KEYS: &[&str] = &[
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
    "timeoutMs",
    "connectTimeoutMs",
    "idleMs",
    "maxConcurrent",
    "rateLimit",
];

/// Every key of `oauth`.
pub(super) const OAUTH_KEYS: &[&str] = &["clientId", "clientSecret", "issuer", "scopes", "clientCredentials"];

/// Every key of `rateLimit`.
pub(super) const RATE_LIMIT_KEYS: &[&str] = &["calls", "perMs"];

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
}

/// A server's entry before references in it are expanded.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) key: Key,
    pub(super) place: Option<Place>,
    pub(super) enabled: Option<bool>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Vec<String>,
    pub(super) ask: Vec<String>,
    pub(super) read_only: Option<Vec<String>>,
    /// `None` for an entry that only restricts a server from another file.
    pub(super) target: Option<Target>,
    call_timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    max_concurrent: Option<usize>,
    rate_limit: Option<RateLimit>,
}

/// The transport of a server.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Stdio { command: Text, args: Vec<Text>, env: Vec<(String, Text)>, cwd: Option<Text> },
    Http { url: Text, headers: Vec<(String, Text)>, kind: HttpKind, oauth: Option<OAuthEntry> },
}

/// The `oauth` section before references in it are expanded.
#[derive(Clone, Debug, Default)]
pub(super) struct OAuthEntry {
    pub(super) client_id: Option<Text>,
    pub(super) client_secret: Option<Text>,
    pub(super) issuer: Option<Text>,
    pub(super) scopes: Vec<String>,
    pub(super) client_credentials: bool,
}

/// Parses one entry and records everything that is wrong with it. `None` if it cannot be used.
pub(super) fn parse(
    dialect: Dialect,
    key: &Key,
    name: &str,
    node: &Node,
    findings: &mut Vec<Finding>,
) -> Option<Entry> {
    let before = findings.len();
    if let Err(finding) = check_name(key, name, node.place) {
        findings.push(finding);
    }
    let members = match (At { key: key.clone(), node }).object() {
        Ok(members) => members,
        Err(finding) => {
            findings.push(finding);
            return None;
        }
    };
    let mut fields = Fields { key, members, findings };
    if dialect == Dialect::Own {
        fields.check_names(SERVER_KEYS);
    }
    let mut entry = Entry { name: name.to_owned(), key: key.clone(), place: node.place, ..Entry::default() };
    read_rules(&mut entry, &mut fields, dialect);
    entry.target = target(&mut fields, dialect);
    let lists =
        [entry.allow.is_some(), !entry.deny.is_empty(), !entry.ask.is_empty(), entry.read_only.is_some()];
    let narrows = entry.enabled.is_some() || lists.contains(&true);
    if entry.target.is_none() && !narrows && fields.findings.len() == before {
        let expected = "an object with the key `command` or `url`";
        findings.push(Finding::unexpected(key, node.place, expected, "an object without it"));
    }
    // An unknown key does not invalidate the other keys. The code that reads the file decides how
    // to treat it.
    let is_sound =
        findings[before..].iter().all(|finding| matches!(finding.problem, Problem::UnknownKey { .. }));
    (is_sound && (entry.target.is_some() || narrows)).then_some(entry)
}

/// Parses the rules on tools and the timeouts.
fn read_rules(entry: &mut Entry, fields: &mut Fields<'_, '_>, dialect: Dialect) {
    let own = dialect == Dialect::Own;
    entry.enabled = fields.read(&["enabled"], At::boolean);
    if !own && fields.read(&["disabled"], At::boolean) == Some(true) {
        entry.enabled = Some(false);
    }
    let (allow, deny): (&[&str], &[&str]) = if own {
        (&["allow"], &["deny"])
    } else {
        (
            &["includeTools", "enabled_tools", "enabledTools"],
            &["excludeTools", "disabled_tools", "disabledTools"],
        )
    };
    entry.allow = fields.read(allow, At::strings);
    entry.deny = fields.read(deny, At::strings).unwrap_or_default();
    if own {
        entry.ask = fields.read(&["ask"], At::strings).unwrap_or_default();
        entry.read_only = fields.read(&["readOnly"], At::strings);
        entry.call_timeout = fields.read(&["timeoutMs"], |at| at.milliseconds(MAX_CALL_TIMEOUT));
        entry.connect_timeout = fields.read(&["connectTimeoutMs"], |at| at.milliseconds(MAX_CONNECT_TIMEOUT));
        entry.idle_timeout = fields.read(&["idleMs"], |at| at.milliseconds(MAX_IDLE));
        entry.max_concurrent = fields
            .read(&["maxConcurrent"], |at| at.number(1, MAX_CONCURRENT, "calls"))
            .and_then(|calls| usize::try_from(calls).ok());
        entry.rate_limit = fields.read(&["rateLimit"], rate_limit);
        return;
    }
    // In other clients' files an unusable number is ignored, so that the default applies.
    let seconds = |name| {
        let (_, node) = fields.find(&[name])?;
        let Content::Number(written) = &node.content else { return None };
        Duration::try_from_secs_f64(written.parse().ok()?).ok().filter(|time| !time.is_zero())
    };
    entry.call_timeout = seconds("tool_timeout_sec").map(|time| time.min(MAX_CALL_TIMEOUT));
    entry.connect_timeout = seconds("startup_timeout_sec").map(|time| time.min(MAX_CONNECT_TIMEOUT));
    if dialect == Dialect::Gemini
        && let Some(milliseconds) = seconds("timeout")
    {
        entry.call_timeout = Some((milliseconds / 1_000).clamp(Duration::from_millis(1), MAX_CALL_TIMEOUT));
    }
}

fn rate_limit(at: &At<'_>) -> Result<RateLimit, Finding> {
    let members = at.object()?;
    let mut findings = Vec::new();
    let mut fields = Fields { key: &at.key, members, findings: &mut findings };
    fields.check_names(RATE_LIMIT_KEYS);
    let calls = fields.read(&["calls"], |at| at.number(1, 1_000_000, "calls"));
    let period = fields.read(&["perMs"], |at| at.milliseconds(MAX_IDLE));
    if !findings.is_empty() {
        return Err(findings.swap_remove(0));
    }
    let calls = calls.and_then(|calls| NonZeroU32::new(u32::try_from(calls).ok()?));
    match (calls, period) {
        (Some(calls), Some(period)) => Ok(RateLimit { calls, period }),
        _ => Err(at.unexpected("an object with the keys `calls` and `perMs`")),
    }
}

fn target(fields: &mut Fields<'_, '_>, dialect: Dialect) -> Option<Target> {
    let own = dialect == Dialect::Own;
    let urls: &[&str] = if own { &["url"] } else { &["httpUrl", "serverUrl", "url"] };
    let types: &[&str] = if own { &["type"] } else { &["type", "transport", "protocol"] };
    let kind = fields.read(types, |at| transport(at, own)).flatten();
    let has_url = fields.has(urls);
    if has_url && fields.has(&["command"]) {
        let place = fields.find(urls).and_then(|(_, node)| node.place);
        let found = "both";
        fields.findings.push(Finding::unexpected(fields.key, place, "one of `command` and `url`", found));
        return None;
    }
    if has_url { http(fields, dialect, urls, kind) } else { stdio(fields, own, kind) }
}

/// The value of `type`: a process, or one of the HTTP transports. `None` if it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Process,
    Http(HttpKind),
}

fn transport(at: &At<'_>, own: bool) -> Result<Option<Kind>, Finding> {
    let name = at.string()?;
    Ok(Some(match name.as_str() {
        "stdio" => Kind::Process,
        "http" => Kind::Http(HttpKind::Detect),
        "streamable-http" => Kind::Http(HttpKind::Streamable),
        "sse" => Kind::Http(HttpKind::Sse),
        "local" if !own => Kind::Process,
        "remote" | "ws" if !own => Kind::Http(HttpKind::Detect),
        "streamableHttp" | "streamable_http" if !own => Kind::Http(HttpKind::Streamable),
        "" | "auto" | "custom" | "extension" if !own => return Ok(None),
        _ => {
            let expected = "`stdio`, `http`, `streamable-http` or `sse`";
            return Err(Finding::unexpected(&at.key, at.node.place, expected, "another word"));
        }
    }))
}

fn stdio(fields: &mut Fields<'_, '_>, own: bool, kind: Option<Kind>) -> Option<Target> {
    if let Some(Kind::Http(_)) = kind {
        let place = fields.find(&["type"]).and_then(|(_, node)| node.place);
        let expected = "an object with the key `url`, as its type says";
        fields.findings.push(Finding::unexpected(fields.key, place, expected, "an object without it"));
        return None;
    }
    if own {
        for name in ["headers", "oauth"] {
            refuse(fields, name, "`url`");
        }
    }
    let mut command = Vec::new();
    let mut nested = None;
    match fields.find(&["command"]) {
        // OpenCode: the program and its arguments in one array. Older Zed: an object with both.
        Some((_, Node { content: Content::Array(_), .. })) if !own => {
            command = fields.read(&["command"], At::texts)?;
        }
        Some((_, node @ Node { content: Content::Object(_), .. })) if !own => nested = Some(node),
        Some(_) => command.push(fields.read(&["command"], At::text)?),
        None => {
            if own {
                for name in ["args", "env", "cwd"] {
                    refuse(fields, name, "`command`");
                }
            }
            return None;
        }
    }
    let mut args = Vec::new();
    let mut env = Vec::new();
    if let Some(node) = nested {
        let key = fields.key.child("command");
        let members = node.as_object().unwrap_or_default();
        let mut inner = Fields { key: &key, members, findings: &mut *fields.findings };
        command.extend(inner.read(&["path"], At::text));
        args.extend(inner.read(&["args"], At::texts).unwrap_or_default());
        env.extend(inner.read(&["env"], At::pairs).unwrap_or_default());
    }
    let mut command = command.into_iter();
    let Some(program) = command.next().filter(|program| !program.raw.trim().is_empty()) else {
        let (_, node) = fields.find(&["command"])?;
        let key = fields.key.child("command");
        let expected = "the name or path of a program";
        fields.findings.push(Finding::unexpected(&key, node.place, expected, "an empty string"));
        return None;
    };
    args.splice(0..0, command);
    args.extend(fields.read(&["args"], At::texts).unwrap_or_default());
    let names: &[&str] = if own { &["env"] } else { &["env", "environment"] };
    env.extend(fields.read(names, At::pairs).unwrap_or_default());
    if !own {
        // Codex: names of variables that are passed on.
        let passed = fields.read(&["env_vars"], At::texts).unwrap_or_default();
        env.extend(passed.into_iter().map(|text| {
            let raw = format!("${{{}}}", text.raw);
            (text.raw, Text { raw, key: text.key, place: text.place })
        }));
    }
    for (name, text) in &env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let expected = "a variable's name without `=` and NUL";
            fields.findings.push(Finding::unexpected(&text.key, text.place, expected, "another"));
        }
    }
    let cwd = fields.read(&["cwd"], At::text);
    Some(Target::Stdio { command: program, args, env, cwd })
}

fn http(fields: &mut Fields<'_, '_>, dialect: Dialect, urls: &[&str], kind: Option<Kind>) -> Option<Target> {
    if kind == Some(Kind::Process) {
        let place = fields.find(&["type"]).and_then(|(_, node)| node.place);
        let expected = "an object with the key `command`, as its type says";
        fields.findings.push(Finding::unexpected(fields.key, place, expected, "an object with `url`"));
        return None;
    }
    let own = dialect == Dialect::Own;
    let kind = match (kind, fields.find(urls)) {
        (Some(Kind::Http(kind)), _) => kind,
        (_, Some(("httpUrl", _))) => HttpKind::Streamable,
        (_, Some(("url", _))) if dialect == Dialect::Gemini => HttpKind::Sse,
        _ => HttpKind::Detect,
    };
    if own {
        for name in ["args", "env", "cwd"] {
            refuse(fields, name, "`command`");
        }
    }
    let url = fields.read(urls, At::text)?;
    let names: &[&str] = if own { &["headers"] } else { &["headers", "http_headers"] };
    let mut headers = fields.read(names, At::pairs).unwrap_or_default();
    if !own {
        // Codex: names of variables that hold the values.
        let by_name = fields.read(&["env_http_headers"], At::pairs).unwrap_or_default();
        headers.extend(by_name.into_iter().map(|(header, text)| {
            let raw = format!("${{{}}}", text.raw);
            (header, Text { raw, ..text })
        }));
        let token = fields.read(&["bearer_token_env_var"], At::text).map(|text| {
            let raw = format!("Bearer ${{{}}}", text.raw);
            Text { raw, ..text }
        });
        let plain = fields.read(&["bearerToken", "bearer_token"], At::text).map(|text| {
            let raw = format!("Bearer {}", text.raw);
            Text { raw, ..text }
        });
        headers.extend(token.or(plain).map(|text| ("Authorization".to_owned(), text)));
    }
    for (name, text) in &headers {
        if http::HeaderName::try_from(name.as_str()).is_err() {
            let expected = "the name of an HTTP header";
            fields.findings.push(Finding::unexpected(&text.key, text.place, expected, "another"));
        }
    }
    let oauth = if own { oauth(fields) } else { None };
    Some(Target::Http { url, headers, kind, oauth })
}

fn oauth(fields: &mut Fields<'_, '_>) -> Option<OAuthEntry> {
    let (_, node) = fields.find(&["oauth"])?;
    let members = fields.read(&["oauth"], |at| at.object().map(<[_]>::len)).and(node.as_object())?;
    let key = fields.key.child("oauth");
    let mut fields = Fields { key: &key, members, findings: &mut *fields.findings };
    fields.check_names(OAUTH_KEYS);
    if !fields.has(&["issuer"])
        && let Some((_, secret)) = fields.find(&["clientSecret"])
    {
        let expected = "the key `issuer` beside `clientSecret`";
        let finding = Finding::unexpected(fields.key, secret.place, expected, "a secret without it");
        let hint = "`issuer` is the authorization server that the secret is for, such as https://login.example.com: \
                    the secret is sent nowhere else";
        fields.findings.push(finding.hint(hint));
    }
    Some(OAuthEntry {
        client_id: fields.read(&["clientId"], At::text),
        client_secret: fields.read(&["clientSecret"], At::text),
        issuer: fields.read(&["issuer"], At::text),
        scopes: fields.read(&["scopes"], At::strings).unwrap_or_default(),
        client_credentials: fields.read(&["clientCredentials"], At::boolean).unwrap_or(false),
    })
}

/// Records a key that has no meaning without another.
fn refuse(fields: &mut Fields<'_, '_>, name: &str, other: &str) {
    if let Some((_, node)) = fields.find(&[name]) {
        let expected = format!("this key only together with {other}");
        fields.findings.push(Finding::unexpected(&fields.key.child(name), node.place, expected, "it alone"));
    }
}

fn check_name(key: &Key, name: &str, place: Option<Place>) -> Result<(), Finding> {
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
    Err(Finding::unexpected(key, place, expected, "another"))
}

impl Entry {
    /// Resolves the server, with all references expanded.
    ///
    /// # Errors
    ///
    /// Every reference that cannot be expanded, and every value that is not a valid URL or header
    /// after expansion.
    pub(super) fn resolve(&self, scope: Scope<'_>) -> Result<McpServer, Vec<Finding>> {
        let mut findings = Vec::new();
        let mut expand = |text: &Text, role| match text.expand(role, scope) {
            Ok(text) => text,
            Err(finding) => {
                findings.push(finding);
                String::new()
            }
        };
        let mut server = match &self.target {
            Some(Target::Stdio { command, args, env, cwd }) => {
                let mut server = McpServer::stdio(&self.name, expand(command, Role::Path));
                if let McpTransport::Stdio(stdio) = &mut server.transport {
                    stdio.args = args.iter().map(|text| expand(text, Role::Path)).collect();
                    stdio.env =
                        env.iter().map(|(name, text)| (name.clone(), expand(text, Role::Secret))).collect();
                    stdio.cwd = cwd.as_ref().map(|text| PathBuf::from(expand(text, Role::Path)));
                }
                server
            }
            Some(Target::Http { url, headers, kind, oauth }) => {
                let address = expand(url, Role::Address);
                let mut pairs = Vec::with_capacity(headers.len());
                for (name, text) in headers {
                    pairs.push((name.clone(), expand(text, Role::Secret)));
                }
                let issuer_text = oauth.as_ref().and_then(|oauth| oauth.issuer.as_ref());
                let oauth = oauth.as_ref().map(|oauth| OAuth {
                    client_id: oauth.client_id.as_ref().map(|text| expand(text, Role::Secret)),
                    client_secret: oauth.client_secret.as_ref().map(|text| expand(text, Role::Secret)),
                    issuer: oauth.issuer.as_ref().map(|text| expand(text, Role::Address)),
                    scopes: oauth.scopes.clone(),
                    client_credentials: oauth.client_credentials,
                });
                if !findings.is_empty() {
                    return Err(findings);
                }
                let parsed = parse_url(url, &address).map_err(|finding| vec![finding])?;
                let issuer = oauth.as_ref().and_then(|oauth| oauth.issuer.as_deref());
                if let (Some(issuer), Some(text)) = (issuer, issuer_text) {
                    check_issuer(text, issuer).map_err(|finding| vec![finding])?;
                }
                for ((_, value), (_, text)) in pairs.iter().zip(headers) {
                    if http::HeaderValue::try_from(value.as_str()).is_err() {
                        let expected = "a header's value without control characters";
                        findings.push(Finding::unexpected(&text.key, text.place, expected, "another"));
                    }
                }
                let mut server = McpServer::http(&self.name, parsed);
                if let McpTransport::Http(http) = &mut server.transport {
                    http.headers.extend(pairs);
                    http.kind = *kind;
                    http.oauth = oauth;
                }
                server
            }
            None => {
                let expected = "an object with the key `command` or `url`";
                return Err(vec![Finding::unexpected(
                    &self.key,
                    self.place,
                    expected,
                    "an object without it",
                )]);
            }
        };
        if !findings.is_empty() {
            return Err(findings);
        }
        server.allow = self.allow.clone();
        server.deny = self.deny.clone();
        server.ask = self.ask.clone();
        server.read_only = self.read_only.clone();
        server.call_timeout = self.call_timeout.unwrap_or(server.call_timeout);
        server.connect_timeout = self.connect_timeout.unwrap_or(server.connect_timeout);
        server.max_concurrent = self.max_concurrent.unwrap_or(server.max_concurrent);
        server.rate_limit = self.rate_limit;
        server.idle_timeout = self.idle_timeout;
        Ok(server)
    }
}

fn parse_url(text: &Text, address: &str) -> Result<Url, Finding> {
    let expected = "an address that begins with `https://` or `http://`";
    let unexpected = |found: &str| Finding::unexpected(&text.key, text.place, expected, found);
    let url = Url::parse(address).map_err(|error| unexpected(&format!("another ({error})")))?;
    if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
        return Err(unexpected("another scheme"));
    }
    Ok(url)
}

/// An issuer is compared as text with the one in the metadata, so it must be one that metadata can
/// contain (RFC 8414, section 2).
fn check_issuer(text: &Text, issuer: &str) -> Result<(), Finding> {
    let expected = "an issuer such as `https://login.example.com`, without query and fragment";
    let unexpected = |found: &str| Finding::unexpected(&text.key, text.place, expected, found);
    let url = parse_url(text, issuer).map_err(|_| unexpected("another"))?;
    let has_more = url.query().is_some() || url.fragment().is_some();
    if has_more || !url.username().is_empty() || url.password().is_some() {
        return Err(unexpected("more than that"));
    }
    // The spelling must be that of the metadata: `https://Login.Example.com:443` would never match.
    let is_as_written = url.as_str() == issuer || url.as_str().strip_suffix('/') == Some(issuer);
    if !is_as_written {
        return Err(unexpected("another spelling")
            .hint(format!("did you mean `{}`?", url.as_str().trim_end_matches('/'))));
    }
    Ok(())
}
