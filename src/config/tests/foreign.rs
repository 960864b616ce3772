//! Files and variables of code-executor-mcp and mcpproxy, as people have them.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::precedence::{Place, chosen};
use super::*;
use crate::config::foreign::{Becomes, Program};
use crate::config::{ConfigWarningCode, Discovery, code_executor, mcpproxy};
use crate::llm::{ApiKey, LlmAccess};
use crate::rate::RateLimit;

const GUIDE: &str = include_str!("../../../docs/other-programs.md");

static PROGRAMS: [(&str, &Program); 3] = [
    ("`.code-executor.json`", &code_executor::FILE),
    ("Variables of code-executor-mcp", &code_executor::VARIABLES),
    ("`mcp_config.json` of mcpproxy", &mcpproxy::FILE),
];

/// The names of the settings in the guide, and what each becomes.
fn rows(title: &str) -> Vec<(&'static str, &'static str)> {
    let section = GUIDE.split("\n## ").find(|section| section.starts_with(title)).unwrap();
    let cell = |text: &'static str| text.trim().trim_matches('`');
    let row = |line: &'static str| {
        let mut cells = line.split('|').skip(1).map(cell);
        (cells.next().unwrap(), cells.next().unwrap())
    };
    section.lines().filter(|line| line.starts_with("| `")).map(row).collect()
}

/// The keys of servers are compared where their values are.
#[test]
fn the_guide_says_what_each_setting_becomes() {
    for &(title, program) in &PROGRAMS {
        let rows = rows(title);
        let expected: Vec<(&str, &str)> = program
            .settings
            .iter()
            .zip(&rows)
            .map(|(setting, (_, written))| match &setting.becomes {
                Becomes::Key(key, _) => (setting.name, *key),
                Becomes::OfServer => (setting.name, *written),
                Becomes::Nothing(_) => (setting.name, "nothing"),
            })
            .collect();
        assert_eq!(rows.len(), program.settings.len(), "{title}");
        assert_eq!(rows, expected, "{title}");
    }
}

/// Settings that concern nothing in cx, so that no value is lost.
const WITHOUT_CONCERN: &[&str] = &[
    "version",
    "forward_proxy_env",
    "read_only_mode",
    "disable_management",
    "enable_tray",
    "features",
    "top_k",
    "registries_locked",
    "mcpServers[].reconnect_on_use",
    "mcpServers[].source_registry_id",
    "mcpServers[].source_registry_provenance",
    "mcpServers[].created",
    "mcpServers[].updated",
];

/// For each setting a value that cx does not have anyway.
fn sample(name: &str) -> Value {
    let own = |more: Value| {
        let mut entry = json!({ "name": "s", "command": "x" });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    match name {
        "mcpConfigPath" => json!("~/servers.json"),
        "security.defaultTimeoutMs" | "CODE_EXECUTOR_TIMEOUT_MS" | "code_execution_timeout_ms" => {
            json!(45_000)
        }
        "security.maxTimeoutMs" => json!(300_000),
        "security.rateLimit" => json!({ "enabled": true, "maxRequests": 7, "windowMs": 1000 }),
        "CODE_EXECUTOR_RATE_LIMIT_RPM" => json!(7),
        "security.maxCodeSize" => json!(100_000),
        "security.allowedTools" => json!(["mcp__s__read"]),
        "POOL_MAX_CONCURRENT" | "POOL_QUEUE_SIZE" | "POOL_QUEUE_TIMEOUT_MS" => json!(7),
        "code_execution_max_tool_calls" => json!(0),
        "code_execution_max_parallel" | "code_execution_pool_size" => json!(8),
        "call_tool_timeout" => json!("1m30s"),
        "init_timeout" | "server_concurrency_defaults.queue_timeout" => json!("5s"),
        "server_concurrency_defaults.max_concurrent_requests" => json!(5),
        "server_concurrency_defaults.queue_size" => json!(0),
        "quarantine_enabled" => json!(true),
        "mcpServers[].name" => json!({ "name": "t", "command": "x" }),
        "mcpServers[].command" => own(json!({ "command": "z" })),
        "mcpServers[].args" => own(json!({ "args": ["y"] })),
        "mcpServers[].working_dir" => own(json!({ "working_dir": "/w" })),
        "mcpServers[].env" => own(json!({ "env": { "A": "b" } })),
        "mcpServers[].url" => json!({ "name": "s", "url": "https://h/" }),
        "mcpServers[].protocol" => json!({ "name": "s", "url": "https://h/", "protocol": "sse" }),
        "mcpServers[].headers" => json!({ "name": "s", "url": "https://h/", "headers": { "A": "b" } }),
        "mcpServers[].oauth.client_id" => {
            json!({ "name": "s", "url": "https://h/", "oauth": { "client_id": "c" } })
        }
        "mcpServers[].oauth.scopes" => {
            json!({ "name": "s", "url": "https://h/", "oauth": { "scopes": ["c"] } })
        }
        "mcpServers[].enabled" => own(json!({ "enabled": false })),
        "mcpServers[].quarantined" => own(json!({ "quarantined": true, "enabled": true })),
        "mcpServers[].enabled_tools" => own(json!({ "enabled_tools": ["a"] })),
        "mcpServers[].disabled_tools" => own(json!({ "disabled_tools": ["a"] })),
        "mcpServers[].init_timeout" => own(json!({ "init_timeout": "5s" })),
        "mcpServers[].max_concurrent_requests" => own(json!({ "max_concurrent_requests": 5 })),
        "mcpServers[].queue_size" => own(json!({ "queue_size": 5 })),
        "mcpServers[].queue_timeout" => own(json!({ "queue_timeout": "5s" })),
        "sampling.maxRoundsPerExecution"
        | "sampling.maxTokensPerExecution"
        | "sampling.timeoutPerCallMs"
        | "AUDIT_LOG_RETENTION_DAYS"
        | "CODE_EXECUTOR_MAX_SAMPLING_ROUNDS"
        | "CODE_EXECUTOR_MAX_SAMPLING_TOKENS"
        | "CODE_EXECUTOR_SAMPLING_TIMEOUT_MS" => json!(7),
        "sampling.allowedSystemPrompts" | "sampling.allowedModels" => json!(["a"]),
        "sampling.provider" | "CODE_EXECUTOR_AI_PROVIDER" => json!("gemini"),
        "sampling.baseUrl" | "CODE_EXECUTOR_AI_BASE_URL" => json!("https://h/v1"),
        "security.allowRead" | "security.allowWrite" => json!(["/srv"]),
        "ALLOWED_PROJECTS" => json!("/srv:/opt"),
        "security.auditLogPath" | "AUDIT_LOG_PATH" | "CODE_EXECUTOR_AUDIT_LOG_PATH" => {
            json!("/srv/audit.log")
        }
        _ if name.starts_with("CODE_EXECUTOR_ALLOWED_") => json!("a, b"),
        _ if name.starts_with("sampling.apiKeys.") => json!("key"),
        "sampling.contentFilteringEnabled" | "CODE_EXECUTOR_CONTENT_FILTERING_ENABLED" => json!(false),
        // Switched on where cx has it always off, and the other way round.
        "security.skipDangerousPatternCheck"
        | "executors.typescript.enabled"
        | "executors.python.enabled"
        | "CODE_EXECUTOR_SKIP_DANGEROUS_PATTERNS"
        | "PYTHON_ENABLED"
        | "PYTHON_SANDBOX_READY"
        | "enable_code_execution"
        | "mcpServers[].oauth.pkce_enabled" => json!(false),
        "security.allowNetwork" => json!(["localhost", "example.com"]),
        _ => json!(true),
    }
}

/// The setting without which another one has no effect, with a value.
fn needed(name: &str) -> Option<(&'static str, Value)> {
    let provider = |name: &str| {
        let names = ["anthropic", "openai", "gemini", "grok", "perplexity"];
        names.into_iter().find(|provider| *provider == name.to_lowercase())
    };
    Some(match name {
        "security.auditLogPath" => ("security.enableAuditLog", json!(true)),
        "AUDIT_LOG_PATH" | "CODE_EXECUTOR_AUDIT_LOG_PATH" | "AUDIT_LOG_RETENTION_DAYS" => {
            ("ENABLE_AUDIT_LOG", json!(true))
        }
        "sampling.baseUrl" => ("sampling.provider", json!("openai")),
        "CODE_EXECUTOR_AI_BASE_URL" => ("CODE_EXECUTOR_AI_PROVIDER", json!("openai")),
        _ => match (name.rsplit_once('.'), name.strip_prefix("CODE_EXECUTOR_ALLOWED_MODELS_")) {
            (Some(("sampling.apiKeys", name)), _) => ("sampling.provider", json!(provider(name)?)),
            (_, Some(name)) => ("CODE_EXECUTOR_AI_PROVIDER", json!(provider(name)?)),
            _ => return None,
        },
    })
}

/// The configuration with some content in the program's file or variables.
fn load_with(program: &Program, name: &str, value: &Value) -> Result<Config, ConfigError> {
    let place = Place::new().file("home/servers.json", r#"{"mcpServers": {"more": {"command": "more"}}}"#);
    let server = json!({ "s": { "command": "x" } });
    let settings: Vec<(&str, Value)> = needed(name).into_iter().chain([(name, value.clone())]).collect();
    if std::ptr::eq(program, &code_executor::VARIABLES) {
        let file = json!({ "mcpServers": server }).to_string();
        let mut place = place.file("home/.config/cx/config.json", &file);
        for (name, value) in &settings {
            place = place.with(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        return place.load_with(&[]);
    }
    let is_seed = std::ptr::eq(program, &code_executor::FILE);
    let mut file = if is_seed {
        json!({ "version": 1, "mcpServers": server })
    } else {
        json!({ "mcpServers": [{ "name": "s", "command": "x" }] })
    };
    match name.strip_prefix("mcpServers[].") {
        Some(_) if value.get("name").is_some() => file["mcpServers"] = json!([value]),
        Some(name) => set(&mut file["mcpServers"][0], name, value),
        None => settings.iter().for_each(|(name, value)| set(&mut file, name, value)),
    }
    if is_seed {
        return place.file("home/.code-executor.json", &file.to_string()).load_with(&[]);
    }
    let named = place.file("named.json", &file.to_string()).load_with(&["named.json"])?;
    // The same file is read in three ways, with the same outcome.
    let own = Place::new().file("home/.config/cx/config.json", &file.to_string()).load_with(&[])?;
    let imported = Place::new()
        .file("home/.config/cx/config.json", r#"{"import": ["mcpproxy"]}"#)
        .file("home/.mcpproxy/mcp_config.json", &file.to_string())
        .load_with(&[])?;
    assert_eq!(effects(&named), effects(&own), "{name}");
    assert_eq!(effects(&named), effects(&imported), "{name}");
    Ok(named)
}

/// Sets the value at a path of keys.
fn set(object: &mut Value, path: &str, value: &Value) {
    let target = path.split('.').fold(object, |object, name| &mut object[name]);
    *target = value.clone();
}

/// What a configuration makes, without where it comes from.
fn effects(config: &Config) -> Value {
    let mut shown = config.to_json();
    for key in ["origins", "skipped", "warnings", "files"] {
        shown.as_object_mut().unwrap().remove(key);
    }
    shown
}

fn unused(config: &Config) -> Vec<&str> {
    let warnings = config.warnings.iter().filter(|warning| warning.code == ConfigWarningCode::Unused);
    warnings.map(|warning| warning.message.as_str()).collect()
}

/// What has a counterpart changes something; what has none is named in one warning.
#[test]
fn every_setting_is_used_or_named() {
    for &(title, program) in &PROGRAMS {
        for setting in program.settings {
            let (name, value) = (setting.name, sample(setting.name));
            // What it needs is there with and without it.
            let (other, other_value) = needed(name).unwrap_or(("none", Value::Null));
            let plain = effects(&load_with(program, other, &other_value).unwrap());
            let config = load_with(program, name, &value).unwrap();
            let (effects, unused) = (effects(&config), unused(&config));
            match &setting.becomes {
                Becomes::Key(key, _) => {
                    assert_ne!(effects, plain, "{name}");
                    assert!(unused.is_empty(), "{name}: {unused:?}");
                    let is_file = *key == "mcpServers";
                    assert!(is_file || config.origins.contains_key(*key), "{name}: {:?}", config.origins);
                }
                Becomes::OfServer => {
                    let (_, key) = rows(title).into_iter().find(|(row, _)| *row == name).unwrap();
                    let pointer = format!("/mcpServers/s/{}", key.replace('.', "/"));
                    match key {
                        "enabled" | "mcpServers.NAME" => assert!(effects["mcpServers"].get("s").is_none()),
                        _ => assert_ne!(effects.pointer(&pointer), plain.pointer(&pointer), "{name}: {key}"),
                    }
                    assert!(unused.is_empty(), "{name}: {unused:?}");
                }
                Becomes::Nothing(_) => {
                    assert_eq!(effects, plain, "{name}");
                    let expected = !WITHOUT_CONCERN.contains(&name);
                    assert_eq!(unused.len(), usize::from(expected), "{name}: {unused:?}");
                    assert!(unused.iter().all(|text| text.contains(&format!("`{name}`"))), "{unused:?}");
                }
            }
        }
    }
}

#[test]
fn no_value_of_another_program_is_an_error() {
    for value in [json!("nonsense"), json!(-1), json!(1e300), json!([[1], {}]), json!({ "a": null })] {
        let names =
            |program: &Program| program.settings.iter().map(|setting| setting.name).collect::<Vec<_>>();
        let mut file = json!({});
        for name in names(&code_executor::FILE) {
            set(&mut file, name, &value);
        }
        let mut place = Place::new().file("home/.code-executor.json", &file.to_string());
        for name in names(&code_executor::VARIABLES) {
            place = place.with(name, &value.to_string());
        }
        let mut file = json!({ "mcpServers": [] });
        for name in names(&mcpproxy::FILE) {
            let Some(key) = name.strip_prefix("mcpServers[].") else {
                set(&mut file, name, &value);
                continue;
            };
            let mut entry = json!({ "name": "s", "command": "x" });
            set(&mut entry, key, &value);
            file["mcpServers"].as_array_mut().unwrap().push(entry);
        }
        let place = place.file("named.json", &file.to_string());
        let config = place.load_with(&["named.json"]);
        assert!(config.is_ok(), "{value}: {:?}", config.unwrap_err());
    }
}

/// As the documentation of code-executor-mcp has it.
const EXAMPLE: &str = r#"{
    "version": 1,
    "security": {
        "allowRead": ["/home/ada/project"], "allowWrite": false, "allowNetwork": ["localhost", "127.0.0.1"],
        "defaultTimeoutMs": 40000, "maxTimeoutMs": 300000,
        "enableAuditLog": true, "auditLogPath": "env:AUDIT_LOG_PATH",
        "rateLimit": {"enabled": true, "maxRequests": 30, "windowMs": 60000}, "newer": 1
    },
    "executors": {"typescript": {"enabled": true, "denoPath": "deno"}, "python": {"enabled": false, "pythonPath": "python3"}},
    "mcpConfigPath": "./.mcp.json", "unknown": {"a": 1}
}"#;

#[test]
fn promise_95_the_files_of_code_executor_are_read_where_they_are() {
    for path in ["home/.code-executor.json", "home/.config/code-executor/config.json"] {
        let config = Place::new().file(path, EXAMPLE).load();
        assert_eq!(config.limits.wall_time, Duration::from_secs(40), "{path}");
        assert_eq!(config.max_limits.wall_time, Duration::from_secs(300), "{path}");
        assert_eq!(config.client_rate, Some(RateLimit::per_minute(NonZeroU32::new(30).unwrap())), "{path}");
        assert_eq!(config.grants.read, [Path::new("/home/ada/project")], "{path}");
        assert!(config.grants.write.is_empty() && config.grants.net.is_empty(), "{path}");
        let expected = "settings of code-executor-mcp without a counterpart here are ignored: `security.newer`, \
             `executors.typescript.denoPath`, `executors.python.enabled`, `executors.python.pythonPath`, `unknown`";
        assert_eq!(unused(&config)[0], expected, "{path}");
        // The variable is not set: the trail is at the usual place.
        assert!(unused(&config)[1].contains("`AUDIT_LOG_PATH` is not set"), "{:?}", unused(&config));
        assert_eq!(config.audit.unwrap().directory, None, "{path}");
    }
    let place = Place::new().file("any.json", EXAMPLE);
    let path = place.path("any.json").display().to_string();
    let place = place.with("CODE_EXECUTOR_CONFIG_PATH", &path);
    assert_eq!(place.load().limits.wall_time, Duration::from_secs(40));
    // A workspace's file lowers limits at most, until it is trusted.
    let place = Place::new().file("work/.code-executor.json", EXAMPLE);
    let config = place.load();
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.max_limits.wall_time, Duration::from_secs(300));
    let warnings: Vec<&str> = config.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert!(warnings.iter().any(|text| text.contains("`limits.timeoutMs` above 30000")), "{warnings:?}");
    assert!(warnings.iter().any(|text| text.contains("not trusted: `mcpConfigPath`")), "{warnings:?}");
    let config = place.trust("work/.code-executor.json").load();
    assert_eq!(config.limits.wall_time, Duration::from_secs(40));
    // With cx's own keys only, a typing error is one.
    let place = Place::new().file("home/.code-executor.json", r#"{"denyy": ["a.b"]}"#);
    assert!(place.load_with(&[]).unwrap_err().to_string().contains("`denyy`: unknown key"));
}

#[test]
fn own_keys_replace_their_counterparts() {
    let text = r#"{"security": {"defaultTimeoutMs": 5000, "allowedTools": ["a.*"]}, "limits": {"timeoutMs": 6000}, "allow": ["b.*"], "deny": ["c.*"]}"#;
    let config = Place::new().file("home/.code-executor.json", text).load();
    assert_eq!(config.limits.wall_time, Duration::from_secs(6));
    assert_eq!(config.rules.allow, [["b.*"]]);
    assert_eq!(config.rules.deny, ["c.*"]);
}

#[test]
fn a_default_is_never_above_the_maximum() {
    let text = r#"{"security": {"defaultTimeoutMs": 200000, "maxTimeoutMs": 5000, "allowedTools": ["no pattern", "a.b"]}}"#;
    let place = Place::new().file("home/.code-executor.json", text);
    let config = place.load();
    assert_eq!(config.limits.wall_time, Duration::from_secs(5));
    // What is not understood allows nothing.
    assert_eq!(config.rules.allow, [["a.b"]]);
    assert!(unused(&config)[0].contains("`security.allowedTools[0]`"), "{:?}", unused(&config));
    let config = place.with("CODE_EXECUTOR_TIMEOUT_MS", "900000").load();
    assert_eq!(config.limits.wall_time, Duration::from_secs(5));
}

#[test]
fn promise_97_servers_come_from_the_named_file() {
    let servers = |name: &str| format!(r#"{{"mcpServers": {{"{name}": {{"command": "{name}"}}}}}}"#);
    let named = |path: &str| json!({ "mcpConfigPath": path }).to_string();
    let place = Place::new()
        .file("elsewhere/mcp.json", &servers("named"))
        .file("work/servers.json", &servers("inside"))
        .file("elsewhere/variable.json", &servers("variable"));
    let path = place.path("elsewhere/mcp.json").display().to_string();
    let place = place.file("home/.code-executor.json", &named(&path));
    assert_eq!(chosen(&place.load()), ["named=named"]);
    // A file in the workspace is untrusted, whichever file names it, and by any link.
    let place = place.file("home/.code-executor.json", &named("./servers.json"));
    let config = place.load();
    assert!(config.servers.is_empty());
    assert_eq!(config.untrusted, [Path::new("servers.json")]);
    std::os::unix::fs::symlink(place.path("elsewhere/mcp.json"), place.path("work/link.json")).unwrap();
    let place = place.file("home/.code-executor.json", &named("link.json"));
    assert!(place.load().servers.is_empty());
    let place = place.file("home/.code-executor.json", &named("./servers.json")).trust("work/servers.json");
    assert_eq!(chosen(&place.load()), ["inside=inside"]);
    // A variable is the user's own word, and comes first.
    let variable = place.path("elsewhere/variable.json").display().to_string();
    let place = place.with("MCP_CONFIG_PATH", &variable);
    assert_eq!(chosen(&place.load()), ["variable=variable", "inside=inside"]);
    let config = Place::new().with("MCP_CONFIG_PATH", "/nowhere/mcp.json").load();
    assert!(config.warnings[0].to_string().starts_with("/nowhere/mcp.json: ignored: failed to read"));
    let config = Place::new().file("home/.code-executor.json", &named("env:NOPE")).load();
    assert!(unused(&config)[0].contains("`mcpConfigPath`"), "{:?}", unused(&config));
}

#[test]
fn promise_139_mcpproxys_whole_file_is_read() {
    let text = r#"{
        "listen": "127.0.0.1:8080", "data_dir": "", "enable_socket": true, "debug_search": false,
        "enable_code_execution": true, "code_execution_timeout_ms": 120000, "code_execution_max_tool_calls": 0,
        "code_execution_pool_size": 10, "call_tool_timeout": "2m0s", "docker_isolation": {"enabled": true},
        "mcpServers": [
            {"name": "a", "command": "a", "protocol": "stdio", "enabled": true, "quarantined": false, "oauth": null, "created": "2025-01-01T00:00:00Z"},
            {"name": "b", "url": "https://b/", "protocol": "http", "enabled": true, "quarantined": true},
            {"name": "c", "command": "c", "env": {"T": "${keyring:token}"}, "enabled": true},
            {"name": "a/d", "command": "d", "enabled": true}, {"name": "a", "command": "again", "enabled": true},
            {"name": "e", "command": "e", "enabled": false, "isolation": {"enabled": true}}
        ]
    }"#;
    let place = Place::new().file("named.json", text);
    let config = place.load_with(&["named.json"]).unwrap();
    assert_eq!(chosen(&config), ["a=a"]);
    assert_eq!(config.servers[0].call_timeout, Duration::from_secs(120));
    assert_eq!((config.limits.wall_time, config.limits.tool_calls), (Duration::from_secs(120), 0));
    assert_eq!((config.max_limits, config.max_runs), (Limits::CEILING, Some(10)));
    let expected = "settings of mcpproxy without a counterpart here are ignored: `listen`, `enable_socket`, \
                    `docker_isolation`, `mcpServers[].isolation`";
    let unused = unused(&config);
    assert_eq!(unused[0], expected);
    assert!(unused.iter().any(|text| text.contains("a server's name")), "{unused:?}");
    let skipped: Vec<&str> = config.skipped.iter().map(|skipped| skipped.name.as_str()).collect();
    assert_eq!(skipped, ["a", "b", "c", "e"]);
    // Where it is only imported, what cx's own files say comes first.
    let place = Place::new()
        .file("home/.mcpproxy/mcp_config.json", text)
        .file("home/.config/cx/config.json", r#"{"import": ["mcpproxy"], "limits": {"timeoutMs": 5000}}"#);
    let config = place.load();
    assert_eq!(chosen(&config), ["a=a"]);
    assert_eq!(config.limits.wall_time, Duration::from_secs(5));
    assert_eq!(config.limits.tool_calls, 0);
}

#[test]
fn promise_96_settings_take_their_values_from_variables() {
    let text = r#"{
        "deny": ["env:DENIED", "a.b"], "strict": "env:STRICT", "import": ["env:CLIENT"],
        "limits": {"timeoutMs": "env:TIME"}, "cache": {"enabled": "env:OFF", "directory": "env:HOME"}
    }"#;
    let place = Place::new()
        .file("home/.config/cx/config.json", text)
        .file("home/.cursor/mcp.json", r#"{"mcpServers": {"x": {"command": "cursor"}}}"#)
        .with("DENIED", "c.*")
        .with("STRICT", "true")
        .with("CLIENT", "cursor")
        .with("OFF", "0")
        .with("TIME", "5000");
    let config = place.load();
    assert_eq!(config.rules.deny, ["c.*", "a.b"]);
    assert!(config.strict && !config.cache_enabled);
    assert_eq!(config.limits.wall_time, Duration::from_secs(5));
    assert_eq!(chosen(&config), ["x=cursor"]);
    assert_eq!(config.cache_directory, Some(place.path("home")));
    // A restriction that cannot be known is an error, and no value is shown.
    let error = |text: &str| {
        let place = Place::new().file("home/.config/cx/config.json", text).with("SECRET", "geheim");
        place.load_with(&[]).unwrap_err().to_string()
    };
    let missing = error(r#"{"deny": ["env:NOPE"]}"#);
    assert!(missing.ends_with("`deny[0]`: the environment variable `NOPE` is not set"), "{missing}");
    for text in [
        r#"{"limits": {"timeoutMs": "env:SECRET"}}"#,
        r#"{"strict": "env:SECRET"}"#,
        r#"{"deny": ["env:SECRET"]}"#,
    ] {
        let error = error(text);
        assert!(error.contains("expected") && !error.contains("geheim"), "{error}");
    }
    // What others have written takes nothing from the environment, until it is trusted.
    let place = Place::new()
        .file("work/.cx.json", r#"{"allow": ["env:ALLOWED"], "strict": true}"#)
        .with("ALLOWED", "geheim.*");
    assert!(place.load_with(&[]).unwrap_err().to_string().contains("`allow[0]`: expected a pattern"));
}

/// A named file brings servers, and widens nothing.
#[test]
fn a_named_file_keeps_the_users_rules() {
    let user = r#"{"mcpServers": {"mine": {"command": "mine"}}, "import": ["cursor"], "readOnly": ["*"],
        "allow": ["x.*"], "deny": ["x.delete"], "ask": ["write"], "strict": true, "limits": {"timeoutMs": 5000}, "privateAddresses": "deny"}"#;
    let place = Place::new()
        .file("home/.config/cx/config.json", user)
        .file("home/.cursor/mcp.json", r#"{"mcpServers": {"cursor": {"command": "cursor"}}}"#)
        .file("work/.cx.json", r#"{"mcpServers": {"workspace": {"command": "workspace"}}}"#)
        .file("named.json", r#"{"mcpServers": {"x": {"command": "named"}}}"#)
        .file("proxy.json", r#"{"mcpServers": [], "code_execution_timeout_ms": 60000}"#);
    let load = |place: &Place, discover| {
        let files = ["proxy.json", "named.json"].map(|file| place.path(file)).to_vec();
        let options = LoadOptions { workspace: place.path("work"), files, discover };
        super::load(&options, &place.environment()).unwrap()
    };
    let config = load(&place, Discovery::UserRules);
    assert_eq!(chosen(&config), ["x=named"]);
    assert_eq!((config.rules.allow.len(), config.rules.read_only.len()), (1, 0));
    assert_eq!(config.rules.deny, ["x.delete"]);
    assert_eq!(config.rules.ask, ["write"]);
    assert!(config.strict && config.rules.private_addresses == crate::tools::PrivateAddresses::Deny);
    // The named file has a default of its own, below the user's maximum.
    assert_eq!(config.limits.wall_time, Duration::from_secs(5));
    let config = load(&place, Discovery::None);
    assert_eq!(config.rules, crate::ToolRules::new());
    assert_eq!(config.limits.wall_time, Duration::from_secs(60));
    // The variable's file is the user's own.
    let place = place.file("other.json", r#"{"deny": ["y.*"]}"#);
    let other = place.path("other.json").display().to_string();
    let config = load(&place.with("CX_CONFIG", &other), Discovery::UserRules);
    assert_eq!(config.rules.deny, ["y.*"]);
}

#[test]
fn files_that_wait_for_trust_are_listed() {
    let servers = r#"{"mcpServers": {"x": {"command": "a"}, "y": {"command": "b"}}}"#;
    let place = Place::new().file("work/.mcp.json", servers).file("work/.cx.json", r#"{"deny": ["a.b"]}"#);
    assert_eq!(place.load().untrusted, [Path::new(".mcp.json")]);
    assert!(place.trust("work/.mcp.json").load().untrusted.is_empty());
}

/// The user's file with these settings in `security` and `sampling`.
fn with_security(security: &str) -> Place {
    Place::new().file("home/.code-executor.json", &format!(r#"{{"security": {security}}}"#))
}

#[test]
fn what_scripts_may_reach_there_is_granted() {
    let granted = |place: &Place| {
        let config = place.load();
        let texts =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        let net: Vec<String> = config.grants.net.iter().map(ToString::to_string).collect();
        let warnings: Vec<String> = unused(&config).into_iter().map(str::to_owned).collect();
        (texts(&config.grants.read), texts(&config.grants.write), net, warnings)
    };
    let home = |place: &Place| place.path("home").display().to_string();
    // The scratch directory and loopback hosts need no grant. A port makes a host one that is meant.
    let place = with_security(
        r#"{"allowRead": ["~/a", "/tmp", "/srv/b"], "allowWrite": ["/srv/b"],
            "allowNetwork": ["localhost", "127.0.0.1", "::1", "api.example.com", "localhost:3000"]}"#,
    );
    let (read, write, net, warnings) = granted(&place);
    assert_eq!(read, [format!("{}/a", home(&place)), "/srv/b".to_owned()]);
    assert_eq!(
        (write, net),
        (vec!["/srv/b".to_owned()], vec!["api.example.com".to_owned(), "localhost:3000".to_owned()])
    );
    assert!(warnings.is_empty(), "{warnings:?}");
    // `true` is what may be read, and every name.
    let place = with_security(r#"{"allowWrite": true, "allowRead": ["/srv/b"], "allowNetwork": true}"#);
    let (read, write, net, warnings) = granted(&place);
    assert_eq!((read, net), (write, vec!["*".to_owned()]));
    assert!(warnings.is_empty(), "{warnings:?}");
    // No list of directories to read is the working directory there, which no setting has named.
    for security in [r#"{"allowWrite": true}"#, r#"{"allowRead": [], "allowWrite": true}"#] {
        let (read, write, _, warnings) = granted(&with_security(security));
        assert!(read.is_empty() && write.is_empty(), "{read:?} {write:?}");
        assert!(warnings[0].ends_with("ignored: `security.allowWrite`"), "{warnings:?}");
    }
    // What cannot be read grants nothing, and the rest is granted.
    let place = with_security(r#"{"allowRead": ["relative", "/srv/b"], "allowNetwork": ["http://a/", "b"]}"#);
    let (read, _, net, warnings) = granted(&place);
    assert_eq!((read, net), (vec!["/srv/b".to_owned()], vec!["b".to_owned()]));
    assert!(warnings.iter().any(|text| text.contains("`security.allowRead[0]`")), "{warnings:?}");
    assert!(warnings.iter().any(|text| text.contains("`security.allowNetwork[0]`")), "{warnings:?}");
    // A variable comes before files, and cx's own lists before those of the same file.
    let place = place.with("ALLOWED_PROJECTS", "/home/ada/projects:/tmp::/srv/c:relative");
    let (read, _, _, warnings) = granted(&place);
    assert_eq!(read, ["/home/ada/projects", "/srv/c"]);
    assert!(warnings.iter().any(|text| text.contains("`ALLOWED_PROJECTS`")), "{warnings:?}");
    let text = r#"{"security": {"allowRead": ["/srv/b"], "allowWrite": ["/srv/b"]}, "grants": {"read": ["/srv/c"]}}"#;
    let (read, write, ..) = granted(&Place::new().file("home/.code-executor.json", text));
    assert_eq!((read, write), (vec!["/srv/c".to_owned()], vec!["/srv/b".to_owned()]));
}

#[test]
fn an_audit_log_there_is_a_trail() {
    let audit = |place: &Place| place.load().audit.map(|audit| (audit.directory, audit.retention_days));
    let trail = |directory: &str| Some((Some(PathBuf::from(directory)), Some(180)));
    let on = r#"{"enableAuditLog": true, "auditLogPath": "/srv/log/audit.log"}"#;
    assert_eq!(audit(&with_security(on)), trail("/srv/log/audit.log.d"));
    assert_eq!(audit(&with_security(r#"{"auditLogPath": "/srv/log/audit.log"}"#)), None);
    assert_eq!(audit(&with_security(r#"{"enableAuditLog": true}"#)), Some((None, Some(180))));
    let relative = with_security(r#"{"enableAuditLog": true, "auditLogPath": "./audit.log"}"#);
    assert_eq!(audit(&relative), Some((None, Some(180))));
    assert!(
        unused(&relative.load())[0].contains("`security.auditLogPath`"),
        "{:?}",
        relative.load().warnings
    );
    // Variables come before that file, and each setting from where it is said.
    let place = with_security(on).with("AUDIT_LOG_PATH", "/srv/trail").with("AUDIT_LOG_RETENTION_DAYS", "30");
    assert_eq!(audit(&place), Some((Some("/srv/trail".into()), Some(30))));
    assert_eq!(audit(&with_security(on).with("ENABLE_AUDIT_LOG", "false")), None);
    let place = with_security(r#"{"auditLogPath": "/srv/trail"}"#).with("ENABLE_AUDIT_LOG", "true");
    assert_eq!(audit(&place), trail("/srv/trail"));
    // cx's own key decides, whatever else is said: the variables' names are other programs' too.
    let text = r#"{"security": {"enableAuditLog": false}, "audit": {"directory": "/srv/own"}}"#;
    let place = Place::new()
        .file("home/.code-executor.json", text)
        .with("ENABLE_AUDIT_LOG", "0")
        .with("AUDIT_LOG_PATH", "/srv/other");
    assert_eq!(audit(&place), trail("/srv/own"));
    assert!(unused(&place.load())[0].contains("another file decides about `audit`"));
    let place = Place::new()
        .file("home/.code-executor.json", r#"{"audit": {"enabled": false}}"#)
        .with("ENABLE_AUDIT_LOG", "true");
    assert_eq!(audit(&place), None);
}

#[test]
fn providers_keep_their_keys_and_addresses() {
    let llm = |place: &Place| place.load().llm.provider;
    let place = |variables: &[(&str, &str)]| {
        let keys = ["ANTHROPIC", "OPENAI", "GEMINI", "PERPLEXITY"];
        let place = Place::new().with("CODE_EXECUTOR_SAMPLING_ENABLED", "true");
        let place = keys
            .iter()
            .fold(place, |place, name| place.with(&format!("{name}_API_KEY"), &format!("key of {name}")));
        variables.iter().fold(place, |place, (name, value)| place.with(name, value))
    };
    let shown = |variables: &[(&str, &str)]| {
        let provider = llm(&place(variables)).unwrap();
        let key = provider.key.as_ref().map_or("none", ApiKey::expose).to_owned();
        (provider.kind.as_str(), provider.model, provider.url.unwrap_or_default(), key)
    };
    let expected =
        |kind, model: &str, url: &str, key: &str| (kind, model.to_owned(), url.to_owned(), key.to_owned());
    let (provider, url) = ("CODE_EXECUTOR_AI_PROVIDER", "CODE_EXECUTOR_AI_BASE_URL");
    for (name, ours) in [
        ("anthropic", expected("anthropic", "claude-haiku-4-5-20251001", "", "key of ANTHROPIC")),
        ("openai", expected("openai", "gpt-4o-mini", "", "key of OPENAI")),
        ("gemini", expected("gemini", "gemini-2.5-flash-lite", "", "key of GEMINI")),
        ("perplexity", expected("openai", "sonar", "https://api.perplexity.ai", "key of PERPLEXITY")),
        // Its key is not set, and another provider's is not sent there.
        ("grok", expected("openai", "grok-4-1-fast-non-reasoning", "https://api.x.ai/v1", "none")),
    ] {
        assert_eq!(shown(&[(provider, name)]), ours, "{name}");
    }
    // An address is that of a provider of this kind: no other key is sent there.
    let at = expected("openai", "gpt-4o-mini", "http://localhost:1/v1", "key of OPENAI");
    assert_eq!(shown(&[(provider, "openai"), (url, "http://localhost:1/v1")]), at);
    for name in ["anthropic", "gemini"] {
        let place = place(&[(provider, name), (url, "http://localhost:1/v1")]);
        assert_eq!(llm(&place).unwrap().url, None, "{name}");
        assert!(unused(&place.load())[0].ends_with("ignored: `CODE_EXECUTOR_AI_BASE_URL`"), "{name}");
    }
    // A key in the file is not that of a provider in variables.
    let file = r#"{"llm": {"provider": "openai", "model": "own", "apiKey": "own key"}}"#;
    let mixed = place(&[(provider, "grok")]).file("home/.config/cx/config.json", file);
    assert_eq!(llm(&mixed).unwrap().key, None);
    // The first model of a list, unless the usual one is in it; the provider's own list comes first.
    let models = |variables: &[(&str, &str)]| {
        let config = place(variables).load();
        (config.llm.provider.unwrap().model, config.llm.allowed_models.unwrap())
    };
    let all = ("CODE_EXECUTOR_ALLOWED_MODELS", "a, gpt-4o-mini");
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(models(&[(provider, "openai"), all]), ("gpt-4o-mini".into(), list(&["a", "gpt-4o-mini"])));
    assert_eq!(models(&[(provider, "gemini"), all]), ("a".into(), list(&["a", "gpt-4o-mini"])));
    let own = ("CODE_EXECUTOR_ALLOWED_MODELS_OPENAI", "b,c");
    assert_eq!(models(&[(provider, "openai"), all, own]), ("b".into(), list(&["b", "c"])));
    assert_eq!(models(&[(provider, "gemini"), all, own]).1, list(&["a", "gpt-4o-mini"]));
    let prompts = place(&[("CODE_EXECUTOR_ALLOWED_SYSTEM_PROMPTS", ", be brief")]).load();
    assert_eq!(prompts.llm.allowed_system_prompts, Some(list(&["", "be brief"])));
    // cx's own model and variables come before what the program takes.
    let file = r#"{"llm": {"provider": "openai", "model": "own"}}"#;
    let own = place(&[(provider, "openai")]).file("home/.config/cx/config.json", file);
    assert_eq!(llm(&own).unwrap().model, "own");
    let gemini = place(&[(provider, "grok"), ("CX_LLM_PROVIDER", "gemini"), ("CX_LLM_MODEL", "m")]);
    assert_eq!(llm(&gemini).unwrap().key, Some(ApiKey::new("key of GEMINI")));
    // The same in the file.
    let text =
        r#"{"sampling": {"enabled": true, "provider": "grok", "apiKeys": {"openai": "o", "grok": "g"}}}"#;
    let config = Place::new().file("home/.code-executor.json", text).load();
    assert_eq!(config.llm.provider.unwrap().key, Some(ApiKey::new("g")));
}

/// Threat 490.
#[test]
fn v_490_a_workspaces_file_of_another_program_grants_nothing() {
    let text = r#"{"security": {
        "allowRead": ["/"], "allowWrite": true, "allowNetwork": true,
        "enableAuditLog": false, "auditLogPath": "/srv/theirs"},
        "sampling": {"enabled": true, "provider": "openai", "baseUrl": "https://theirs/v1", "apiKeys": {"openai": "k"}}}"#;
    let workspace = || Place::new().file("work/.code-executor.json", text).with("OPENAI_API_KEY", "secret");
    let config = workspace().load();
    assert!(config.grants.is_empty(), "{:?}", config.grants);
    assert!(config.llm.provider.is_none() && config.llm.access == LlmAccess::OnRequest);
    // What is granted stays: the file names a directory around it.
    let own =
        r#"{"grants": {"read": ["/srv/a"], "net": ["a.example"]}, "audit": {"directory": "/srv/ours"}}"#;
    let config = workspace().file("home/.config/cx/config.json", own).load();
    assert_eq!(
        (config.grants.read.as_slice(), config.grants.write.len()),
        ([PathBuf::from("/srv/a")].as_slice(), 0)
    );
    assert_eq!(config.audit.unwrap().directory, Some("/srv/ours".into()));
    // The trail that a variable switches on, and models, are the user's even where the file is trusted.
    let place = workspace().with("ENABLE_AUDIT_LOG", "true").trust("work/.code-executor.json");
    let config = place.load();
    assert_eq!(config.audit.as_ref().unwrap().directory, None);
    assert!(config.llm.provider.is_none() && config.llm.access == LlmAccess::OnRequest);
    let messages = unused(&config);
    assert!(messages.iter().any(|text| text.contains("`audit.enabled` of another program")), "{messages:?}");
    assert!(
        messages.iter().any(|text| text.contains("`llm` belongs in the user's own file")),
        "{messages:?}"
    );
}
