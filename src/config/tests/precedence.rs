//! Which files are read, and which has precedence. Threats 186 and 188.

use std::path::PathBuf;

use super::*;
use crate::config::{ConfigFileStatus, ConfigWarningCode};

/// A home directory and a workspace.
pub(super) struct Place {
    directory: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Place {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Self { directory, variables: Vec::new() };
        fs::create_dir_all(place.path("home")).unwrap();
        fs::create_dir_all(place.path("work")).unwrap();
        let home = place.path("home").display().to_string();
        place.with("HOME", &home)
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path)
    }

    pub(super) fn file(self, path: &str, text: &str) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(super) fn environment(&self) -> Environment {
        Environment::from_pairs(&self.variables)
    }

    pub(super) fn trust(self, path: &str) -> Self {
        use crate::config::{Directories, TrustRequest, TrustStore};
        let store = TrustStore::new(&Directories::in_environment(&self.environment()).unwrap());
        store.trust(&TrustRequest::read(&self.path(path)).unwrap()).unwrap();
        self
    }

    pub(super) fn load_with(&self, files: &[&str]) -> Result<Config, ConfigError> {
        let files = files.iter().map(|file| self.path(file)).collect();
        let options = LoadOptions { workspace: self.path("work"), files, discover: Discovery::All };
        load(&options, &self.environment())
    }

    pub(super) fn load(&self) -> Config {
        self.load_with(&[]).unwrap()
    }
}

/// A file with servers of these names. Each server's command says which file it comes from.
fn servers(from: &str, names: &[&str]) -> String {
    let entries: Vec<String> =
        names.iter().map(|name| format!(r#""{name}": {{"command": "{from}"}}"#)).collect();
    format!(r#"{{"mcpServers": {{{}}}}}"#, entries.join(","))
}

/// `name=command` of each server.
pub(super) fn chosen(config: &Config) -> Vec<String> {
    config
        .servers
        .iter()
        .map(|server| match &server.transport {
            McpTransport::Stdio(stdio) => format!("{}={}", server.name, stdio.command),
            McpTransport::Http(http) => format!("{}={}", server.name, http.url),
        })
        .collect()
}

#[test]
fn cf_186_the_first_in_the_order_wins() {
    let user =
        servers("user", &["a", "b", "c", "d"]).replacen('{', r#"{"import": ["windsurf", "cursor"],"#, 1);
    let place = Place::new()
        .file("one.json", &servers("one", &["a"]))
        .file("two.json", &servers("two", &["a", "b"]))
        .file("work/.cx.json", &servers("workspace", &["b", "c"]))
        .file("work/.mcp.json", &servers("mcp.json", &["c", "h"]))
        .file("home/.config/cx/config.json", &user)
        .file("home/.cursor/mcp.json", &servers("cursor", &["d", "e", "f"]))
        .file("work/.cursor/mcp.json", &servers("project", &["e"]))
        .file("home/.codeium/windsurf/mcp_config.json", &servers("windsurf", &["f", "g"]));
    // The workspace is not trusted.
    let expected = ["a=user", "b=user", "c=user", "d=user", "f=windsurf", "g=windsurf", "e=cursor"];
    assert_eq!(chosen(&place.load()), expected);
    let place = place.trust("work/.cx.json").trust("work/.mcp.json").trust("work/.cursor/mcp.json");
    let config = place.load();
    let expected = [
        "b=workspace",
        "c=workspace",
        "h=mcp.json",
        "a=user",
        "d=user",
        "f=windsurf",
        "g=windsurf",
        "e=project",
    ];
    assert_eq!(chosen(&config), expected);
    let overridden =
        config.skipped.iter().filter(|skipped| skipped.reason.starts_with("overridden by ")).count();
    assert_eq!(overridden, 6);
    // On the command line the later file has precedence.
    let config = place.load_with(&["one.json", "two.json"]).unwrap();
    assert_eq!(chosen(&config)[..3], ["a=two", "b=two", "c=workspace"]);
}

#[test]
fn cf_186_a_variable_names_the_one_file() {
    let place = Place::new()
        .file("own.json", r#"{"mcpServers": {"a": {"command": "own"}}, "deny": ["a.x"]}"#)
        .file("work/.cx.json", r#"{"deny": ["b.y"]}"#)
        .file("home/.config/cx/config.json", &servers("user", &["a", "b"]));
    let path = place.path("own.json").display().to_string();
    for name in ["CX_CONFIG", "CODE_EXECUTOR_CONFIG_PATH"] {
        let mut place = Place { directory: tempfile::tempdir().unwrap(), variables: place.variables.clone() };
        fs::create_dir_all(place.path("work")).unwrap();
        place = place.with(name, &path);
        let config = place.load();
        assert_eq!(chosen(&config), ["a=own"], "{name}");
        assert_eq!(config.rules.deny, ["a.x"], "{name}");
        // If the named file is missing, the next one is not used instead.
        let place = place.with(name, "/nowhere/config.json");
        let error = place.load_with(&[]).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/config.json: failed to read"), "{error}");
    }
}

#[test]
fn cf_186_of_several_names_the_first_counts() {
    let place = Place::new()
        .file("home/.code-executor.json", &servers("old", &["a", "b"]))
        .file("work/.code-executor.json", r#"{"deny": ["a.x"]}"#);
    let config = place.load();
    assert_eq!(chosen(&config), ["a=old", "b=old"]);
    assert_eq!(config.rules.deny, ["a.x"]);
    let place = place
        .file("xdg/cx/config.json", &servers("xdg", &["a"]))
        .file("home/.config/cx/config.json", &servers("unused", &["a"]))
        .file("work/.cx.json", r#"{"deny": ["a.y"]}"#);
    let xdg = place.path("xdg").display().to_string();
    let config = place.with("XDG_CONFIG_HOME", &xdg).load();
    assert_eq!(chosen(&config), ["a=xdg"]);
    assert_eq!(config.rules.deny, ["a.y"]);
    let ignored = config.files.iter().filter(|file| file.status == ConfigFileStatus::Ignored).count();
    assert_eq!(ignored, 2);
    assert_eq!(config.warnings.iter().filter(|warning| warning.code == ConfigWarningCode::Unused).count(), 2);
}

#[test]
fn the_cpu_time_follows_the_timeout_unless_it_is_set() {
    for (limits, cpu_time, max_cpu_time) in [
        (r#"{"timeoutMs": 60000}"#, 60_000, 600_000),
        (r#"{"timeoutMs": 5000}"#, 10_000, 600_000),
        (r#"{"maxToolCalls": 5}"#, 10_000, 600_000),
        (r#"{"timeoutMs": 60000, "cpuTimeMs": 5000}"#, 5_000, 5_000),
    ] {
        let text = format!(r#"{{"limits": {limits}}}"#);
        let config = Place::new().file("home/.config/cx/config.json", &text).load();
        assert_eq!(config.limits.cpu_time, Duration::from_millis(cpu_time), "{limits}");
        assert_eq!(config.max_limits.cpu_time, Duration::from_millis(max_cpu_time), "{limits}");
    }
}

#[test]
fn the_queue_of_a_server_can_be_set() {
    let text = r#"{"mcpServers": {"a": {"command": "a", "maxQueued": 0, "queueTimeoutMs": 5}, "b": {"command": "b"}}}"#;
    let config = Place::new().file("home/.config/cx/config.json", text).load();
    let queue = |server: &McpServer| (server.max_concurrent, server.max_queued, server.queue_timeout);
    let queues: Vec<_> = config.servers.iter().map(queue).collect();
    // The second has the defaults that are promised: number 53 of docs/promises.md.
    assert_eq!(queues, [(100, 0, Duration::from_millis(5)), (100, 200, Duration::from_secs(30))]);
    let shown = config.to_json();
    assert_eq!(shown["mcpServers"]["a"]["queueTimeoutMs"], 5, "{shown:#}");
}

#[test]
fn settings_are_read_and_know_where_they_come_from() {
    let place = Place::new().file(
        "home/.config/cx/config.json",
        r#"{
            "allow": ["fs.*", "git.read_*"],
            "deny": ["*.delete"],
            "grants": {"read": ["~/in"], "write": ["/out"], "net": ["a.example:443"]}, "strict": true, "clockResolutionUs": 250, "timeZone": "Asia/Tokyo", "clientRate": {"calls": 7, "perMs": 1003}, "tokensFile": "/etc/cx/tokens", "totalMemoryBytes": 1073741824,
            "limits": {
                "timeoutMs": 1001, "cpuTimeMs": 1002, "fuel": 9, "memoryBytes": 16777216, "maxToolCalls": 0, "maxCallsInFlight": 5,
                "maxSourceBytes": 6, "maxArgumentBytes": 7, "maxResultBytes": 8, "maxOutputBytes": 9,
                "answerTimeoutMs": 10, "maxPausedMs": 0, "maxQuestions": 12, "maxWrittenBytes": 13, "maxCreatedFiles": 14, "maxFileBytes": 15
            },
            "openTelemetry": {"endpoint": "http://127.0.0.1:4318", "content": true}, "ask": ["git.push", "destructive", "mcp__a__b", "*"], "readOnly": ["*.list_*"],
            "cache": {"enabled": false, "directory": "~/lists"}
        }"#,
    );
    let config = place.load();
    assert_eq!(config.rules.allow, [["fs.*", "git.read_*"]]);
    assert_eq!(config.rules.deny, ["*.delete"]);
    assert_eq!(config.rules.ask, ["git.push", "destructive", "mcp__a__b", "*"]);
    assert_eq!(config.rules.read_only, [["*.list_*"]]);
    assert!(config.strict && !config.cache_enabled);
    assert_eq!(config.clock_resolution, Some(Duration::from_micros(250)));
    assert_eq!(config.time_zone.as_deref(), Some("Asia/Tokyo"));
    assert_eq!(
        (&*config.grants.read, &*config.grants.write),
        (&[place.path("home/in")][..], &["/out".into()][..])
    );
    assert_eq!(config.to_json()["grants"]["net"], serde_json::json!(["a.example:443"]));
    let rate = config.client_rate.unwrap();
    assert_eq!((rate.calls.get(), rate.period), (7, Duration::from_millis(1003)));
    assert_eq!(config.total_memory_bytes, Some(1 << 30));
    assert_eq!(config.tokens_file.as_deref(), Some("/etc/cx/tokens".as_ref()));
    let telemetry = config.open_telemetry.as_ref().unwrap();
    assert_eq!(telemetry.endpoint.as_deref(), Some("http://127.0.0.1:4318"));
    assert!(telemetry.content && telemetry.traces && telemetry.metrics);
    assert_eq!(config.cache_directory.as_ref().unwrap(), &place.path("home/lists"));
    let expected = Limits {
        wall_time: Duration::from_millis(1001),
        cpu_time: Duration::from_millis(1002),
        fuel: Some(9),
        memory_bytes: 16 << 20,
        tool_calls: 0,
        calls_in_flight: 5,
        source_bytes: 6,
        argument_bytes: 7,
        result_bytes: 8,
        output_bytes: 9,
        answer_time: Duration::from_millis(10),
        paused_time: Duration::ZERO,
        questions: 12,
        written_bytes: 13,
        created_files: 14,
        file_bytes: 15,
    };
    assert_eq!(config.limits, expected);
    assert_eq!(config.max_limits, expected);
    let path = place.path("home/.config/cx/config.json");
    let origins = [("deny", 3), ("limits.maxOutputBytes", 7), ("ask", 10), ("cache.directory", 11)];
    for (key, line) in origins {
        assert_eq!(config.origins[key].to_string(), format!("{}:{line}", path.display()), "{key}");
    }
}

#[test]
fn a_mistake_in_a_setting_is_named() {
    for (text, expected) in [
        (r#"{"limit": {}}"#, ":1:2: `limit`: unknown key"),
        (
            r#"{"limits": {"timeoutMs": 700000}}"#,
            "`limits.timeoutMs`: expected a whole number of milliseconds from 1 to 600000, found 700000",
        ),
        (
            r#"{"limits": {"memoryBytes": 128}}"#,
            "bytes from 8388608 to 1073741824, found 128 | 128 is bytes; did you mean 134217728, which is 128MiB?",
        ),
        (r#"{"totalMemoryBytes": "2GiB"}"#, "found a string | write 2147483648, a number of bytes"),
        (r#"{"limits": {"timeout": 7}}"#, "`limits.timeout`: unknown key"),
        (r#"{"import": ["emacs"]}"#, "`import[0]`: expected one of `.mcp.json`, `claude-code`"),
        (r#"{"allow": ["fs"]}"#, "`allow[0]`: expected a pattern `server.tool`"),
        (
            r#"{"ask": ["destroy"]}"#,
            "`ask[0]`: expected a pattern `server.tool`, `server.*`, `mcp__server__tool` or `*`, `destructive`, `write`, `open-world`",
        ),
        (r#"{"readOnly": ["write"]}"#, "`readOnly[0]`: expected a pattern `server.tool`"),
        (
            r#"{"privateAddresses": "never"}"#,
            "`privateAddresses`: expected one of `allow`, `ask`, `deny`, found another word",
        ),
        (r#"{"strict": 1}"#, "`strict`: expected true or false, found a number"),
        (r#"{"timeZone": "Berlin"}"#, "`timeZone`: expected a name of the IANA database"),
        (r#"{"grants": {"read": "x"}}"#, "`grants.read`: expected an array of strings"),
        (r#"{"grants": {"net": ["http://a"]}}"#, "`grants.net[0]`: expected a host such as"),
        (r#"{"grants": {"run": []}}"#, "`grants.run`: unknown key"),
        (r#"{"cache": []}"#, "`cache`: expected an object, found an array"),
    ] {
        let error = Place::new().file("home/.config/cx/config.json", text).load_with(&[]).unwrap_err();
        let error = format!("{error} | {}", error.hint().unwrap_or_default());
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn an_entry_may_restrict_a_server_from_elsewhere() {
    let place = Place::new()
        .file(
            "home/.config/cx/config.json",
            r#"{"import": ["cursor"], "mcpServers": {"a": {"enabled": false}, "b": {"allow": ["x", "y*"], "deny": ["z"]}, "c": {"ask": ["write"], "readOnly": []}, "absent": {"enabled": false}}}"#,
        )
        .file("home/.cursor/mcp.json", &servers("cursor", &["a", "b", "c"]));
    let config = place.load();
    assert_eq!(chosen(&config), ["b=cursor", "c=cursor"]);
    assert_eq!(config.servers[0].rules.allow, [["x", "y*"]]);
    assert_eq!(config.servers[0].rules.deny, ["z"]);
    assert_eq!(config.servers[1].rules.ask, ["write"]);
    assert_eq!(config.servers[1].rules.read_only, [[""; 0]]);
    assert_eq!(config.to_json()["mcpServers"]["c"]["readOnly"], serde_json::json!([]));
    assert!(config.warnings[0].message.contains("`absent`"), "{:?}", config.warnings);
}

/// Of a file, of a later file, and of a server: the strictest counts.
#[test]
fn v_556_private_addresses_are_a_setting_of_the_operator() {
    use crate::tools::PrivateAddresses::{Allow, Ask, Deny};
    let place = Place::new().file(
        "home/.config/cx/config.json",
        r#"{"privateAddresses": "ask", "mcpServers": {"a": {"command": "a"}, "b": {"command": "b", "privateAddresses": "deny"}}}"#,
    );
    let config = place.load();
    assert_eq!(config.rules.private_addresses, Ask);
    let of_servers = |config: &Config| -> Vec<_> {
        config.servers.iter().map(|server| server.rules.private_addresses).collect()
    };
    assert_eq!(of_servers(&config), [Allow, Deny]);
    let shown = config.to_json();
    assert_eq!(shown["privateAddresses"], "ask");
    assert_eq!(shown["mcpServers"]["b"]["privateAddresses"], "deny");
    assert_eq!(shown["mcpServers"]["a"].get("privateAddresses"), None);
    // A file that is not trusted can only make it stricter.
    let stricter = r#"{"privateAddresses": "deny", "mcpServers": {"a": {"privateAddresses": "ask"}}}"#;
    let config = place.file("work/.cx.json", stricter).load();
    assert_eq!((config.rules.private_addresses, of_servers(&config)), (Deny, vec![Ask, Deny]));
    let wider = r#"{"privateAddresses": "allow", "mcpServers": {"b": {"privateAddresses": "allow"}}}"#;
    let user =
        r#"{"privateAddresses": "ask", "mcpServers": {"b": {"command": "b", "privateAddresses": "deny"}}}"#;
    let place = Place::new().file("home/.config/cx/config.json", user).file("work/.cx.json", wider);
    let config = place.load();
    assert_eq!((config.rules.private_addresses, of_servers(&config)), (Ask, vec![Deny]));
    let mut warnings = config.warnings.iter();
    assert!(warnings.any(|warning| warning.message.contains("`privateAddresses`")), "{:?}", config.warnings);
}

#[test]
fn questions_and_roots_are_set_for_each_server() {
    let entries = r#"{"mcpServers": {
        "a": {"command": "a", "roots": ["~/my work", "file:///srv/data"]},
        "b": {"command": "b", "elicitation": false},
        "c": {"command": "c", "roots": ["relative"]}
    }}"#;
    let place = Place::new().file("home/.config/cx/config.json", entries);
    let config = place.load();
    let [a, b] = &config.servers[..] else { panic!("{:?}", config.servers) };
    assert!(config.elicitation && a.elicitation && !b.elicitation);
    let work = place.path("home/my work").display().to_string().replace(' ', "%20");
    let roots: Vec<&str> = a.roots.iter().map(|root| root.uri.as_str()).collect();
    assert_eq!(roots, [format!("file://{work}").as_str(), "file:///srv/data"]);
    assert_eq!(a.roots[0].name, "my work");
    assert!(config.skipped[0].reason.contains("`mcpServers.c.roots[0]`"), "{:?}", config.skipped);
    // For all servers at once.
    let place = place.file("work/.cx.json", r#"{"elicitation": false}"#).trust("work/.cx.json");
    let asks: Vec<bool> = place.load().servers.iter().map(|server| server.elicitation).collect();
    assert_eq!(asks, [false, false]);
}

#[test]
fn a_missing_variable_stops_one_server_only() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "env": {"T": "${NOPE}"}}, "b": {"command": "y"}}}"#;
    let place = Place::new().file("home/.config/cx/config.json", text).file("named.json", text);
    let config = place.load();
    assert_eq!(chosen(&config), ["b=y"]);
    assert_eq!(config.skipped[0].reason, "`mcpServers.a.env.T`: the environment variable `NOPE` is not set");
    // In a named file every server must be usable.
    assert!(place.load_with(&["named.json"]).unwrap_err().to_string().contains("`NOPE` is not set"));
}

#[test]
fn an_executor_in_an_executor_in_an_executor_is_refused() {
    for (depth, is_fine) in [("0", true), ("1", true), ("2", false), ("77", false), ("x", true)] {
        let result = Place::new().with("CX_DEPTH", depth).load_with(&[]);
        assert_eq!(result.is_ok(), is_fine, "{depth}");
    }
}
