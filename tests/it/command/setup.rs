//! The README's snippets, and those of `docs/clients.md`: each client can read its own.

use serde_json::{Value, json};

const README: &str = include_str!("../../../README.md");
const CLIENTS: &str = include_str!("../../../docs/clients.md");

/// The code block under a client's heading.
fn snippet(heading: &str, kind: &str) -> String {
    let (_, after) =
        CLIENTS.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no heading {heading}"));
    let section = after.split("\n#").next().unwrap();
    let (_, block) =
        section.split_once(&format!("```{kind}\n")).unwrap_or_else(|| panic!("{heading}: no {kind}"));
    block.split_once("\n```").unwrap().0.to_owned()
}

fn parsed(heading: &str) -> Value {
    serde_json::from_str(&snippet(heading, "json")).unwrap_or_else(|error| panic!("{heading}: {error}"))
}

/// What all clients start.
fn check_entry(entry: &Value) {
    assert_eq!(entry["command"], "cx");
    assert_eq!(entry["args"][0], "serve");
    let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let parsed =
        std::process::Command::new(env!("CARGO_BIN_EXE_cx")).args(words).arg("--help").output().unwrap();
    assert!(parsed.status.success(), "{entry}");
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn claude_code() {
    let command = snippet("Claude Code", "sh,claude");
    let words: Vec<_> = command.split_whitespace().collect();
    // `claude mcp add [options] <name> -- <command> [args…]`
    assert_eq!(words[..3], ["claude", "mcp", "add"]);
    let dashes = words.iter().position(|&word| word == "--").unwrap();
    assert_eq!(words[dashes - 1], "cx");
    assert!(
        words[3..dashes - 1].chunks(2).all(|option| ["--scope", "--transport", "--env"].contains(&option[0])),
        "{words:?}"
    );
    assert_eq!(words[dashes + 1..dashes + 3], ["cx", "serve"]);
    let file = parsed("Claude Code");
    assert_eq!(keys(&file), ["mcpServers"]);
    assert!(
        keys(&file["mcpServers"]["cx"]).iter().all(|key| ["type", "command", "args", "env"].contains(key))
    );
    check_entry(&file["mcpServers"]["cx"]);
}

#[test]
fn claude_desktop_cursor_and_gemini_have_mcp_servers() {
    for (client, allowed) in [
        ("Claude Desktop", &["command", "args", "env"][..]),
        ("Cursor", &["type", "command", "args", "env", "envFile"]),
        (
            "Gemini CLI",
            &["command", "args", "env", "cwd", "timeout", "trust", "includeTools", "excludeTools"],
        ),
    ] {
        let file = parsed(client);
        assert_eq!(keys(&file), ["mcpServers"], "{client}");
        assert_eq!(keys(&file["mcpServers"]), ["cx"], "{client}");
        let entry = &file["mcpServers"]["cx"];
        assert!(keys(entry).iter().all(|key| allowed.contains(key)), "{client}: {entry}");
        check_entry(entry);
    }
    // The client ends a call after this many milliseconds, which must not be before cx's longest script.
    assert_eq!(parsed("Gemini CLI")["mcpServers"]["cx"]["timeout"], json!(620_000));
}

#[test]
fn vs_code_has_servers_with_a_type() {
    let file = parsed("VS Code");
    assert_eq!(keys(&file), ["servers"]);
    assert_eq!(file["servers"]["cx"]["type"], "stdio");
    check_entry(&file["servers"]["cx"]);
}

#[test]
fn codex_has_a_table_with_timeouts_in_seconds() {
    let file: toml::Value = toml::from_str(&snippet("Codex", "toml")).unwrap();
    let entry = serde_json::to_value(&file["mcp_servers"]["cx"]).unwrap();
    let allowed = [
        "command",
        "args",
        "env",
        "cwd",
        "startup_timeout_sec",
        "tool_timeout_sec",
        "enabled_tools",
        "disabled_tools",
    ];
    assert!(keys(&entry).iter().all(|key| allowed.contains(key)), "{entry}");
    assert!(entry["tool_timeout_sec"].as_u64().unwrap() > 600);
    check_entry(&entry);
}

/// cx reads these files of these clients. With the snippet of the page in it, each starts cx.
#[test]
fn every_snippet_is_an_entry_that_starts_cx() {
    let home = tempfile::tempdir().unwrap();
    let clients = [
        ("claude-code", "Claude Code", "json", ".claude.json"),
        ("claude-desktop", "Claude Desktop", "json", ".config/Claude/claude_desktop_config.json"),
        ("cursor", "Cursor", "json", ".cursor/mcp.json"),
        ("vscode", "VS Code", "json", ".config/Code/User/mcp.json"),
        ("windsurf", "Windsurf", "json", ".codeium/windsurf/mcp_config.json"),
        ("codex", "Codex", "toml", ".codex/config.toml"),
        ("gemini-cli", "Gemini CLI", "json", ".gemini/settings.json"),
        ("zed", "Zed", "json", ".config/zed/settings.json"),
        ("opencode", "OpenCode", "json", ".config/opencode/opencode.json"),
        ("goose", "goose", "yaml", ".config/goose/config.yaml"),
    ];
    for (_, heading, kind, path) in clients {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, snippet(heading, kind)).unwrap();
    }
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_cx"))
        .args(["setup", "--dry-run", "--json"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    for (client, ..) in clients {
        let found = report["clients"].as_array().unwrap().iter().find(|found| found["client"] == client);
        let found = found.unwrap_or_else(|| panic!("{client}: {report:#}"));
        assert_eq!((&found["problem"], &found["hasCx"]), (&Value::Null, &json!(true)), "{found:#}");
    }
}

/// The front page's script is the example that its figures are measured with.
#[test]
fn the_script_of_the_readme_is_an_example() {
    let example = include_str!("../../../examples/scripts/total.ts");
    let (_, source) = example.split_once("\n\n").unwrap();
    assert!(README.contains(&format!("```ts\n{source}```\n")));
}

#[test]
fn the_readme_is_a_front_page() {
    assert!(README.lines().count() <= 130, "{} lines", README.lines().count());
    for command in ["make demo", "make test", "make install", "cx setup"] {
        assert!(README.contains(&format!("\n{command} ")), "{command}");
    }
}
