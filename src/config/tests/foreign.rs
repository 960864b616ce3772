//! Files and variables of code-executor-mcp and mcpproxy, as people have them.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::precedence::{Place, chosen};
use super::*;
use crate::config::foreign::{Becomes, Program};
use crate::config::{ConfigWarningCode, Discovery, code_executor, execution_mode, mcpproxy};
use crate::llm::{ApiKey, LlmAccess};
use crate::rate::RateLimit;

mod values;

const GUIDE: &str = include_str!("../../../docs/other-programs.md");

static PROGRAMS: [(&str, &Program); 4] = [
    ("`.code-executor.json`", &code_executor::FILE),
    ("Variables of code-executor-mcp", &code_executor::VARIABLES),
    ("Variables of mcp-server-code-execution-mode", &execution_mode::VARIABLES),
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
        "MCP_BRIDGE_TIMEOUT" => json!(45),
        "MCP_BRIDGE_MAX_TIMEOUT" => json!(300),
        "MCP_BRIDGE_MEMORY" => json!("256m"),
        "MCP_BRIDGE_OUTPUT_MODE" => json!("toon"),
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
    if [&code_executor::VARIABLES, &execution_mode::VARIABLES].iter().any(|own| std::ptr::eq(program, *own)) {
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
        for name in names(&code_executor::VARIABLES).into_iter().chain(names(&execution_mode::VARIABLES)) {
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

/// Promise 159 of docs/promises.md.
#[test]
fn promise_159_limits_come_from_the_variables_of_the_program_that_cx_replaces() {
    let place = || Place::new().with("MCP_BRIDGE_TIMEOUT", "45").with("MCP_BRIDGE_MAX_TIMEOUT", "300");
    for (written, bytes) in
        [("512m", 512 << 20), ("1G", 1 << 30), ("134217728", 128 << 20), ("131072KB", 128 << 20)]
    {
        let config = place().with("MCP_BRIDGE_MEMORY", written).load();
        assert_eq!(config.limits.memory_bytes, bytes, "{written}");
        assert_eq!(config.limits.wall_time, Duration::from_secs(45));
        assert_eq!(config.max_limits.wall_time, Duration::from_secs(300));
    }
    for written in ["0", "m", "512 m", "512q", "99999999999999999999g"] {
        let config =
            place().with("MCP_BRIDGE_MEMORY", written).with("MCP_BRIDGE_OUTPUT_MODE", "compact").load();
        assert_eq!(config.limits.memory_bytes, Limits::default().memory_bytes, "{written}");
        let unused = unused(&config);
        assert!(unused[0].contains("`MCP_BRIDGE_MEMORY`: expected a size such as `512m`"), "{unused:?}");
        assert_eq!(unused.len(), 1, "{unused:?}");
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
