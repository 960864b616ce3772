//! Other clients' files, as those clients write them.

use super::precedence::{Place, chosen};
use super::*;

/// The servers that an `import` of one client reads from one file.
fn imported(client: &str, path: &str, text: &str) -> Config {
    Place::new()
        .with("TOKEN", "geheim")
        .file("home/.config/cx/config.json", &format!(r#"{{"import": ["{client}"]}}"#))
        .file(path, text)
        .load()
}

fn stdio(server: &McpServer) -> &crate::mcp::StdioTransport {
    match &server.transport {
        McpTransport::Stdio(stdio) => stdio,
        McpTransport::Http(_) => panic!("{} is no process", server.name),
    }
}

fn http(server: &McpServer) -> &crate::mcp::HttpTransport {
    match &server.transport {
        McpTransport::Http(http) => http,
        McpTransport::Stdio(_) => panic!("{} is a process", server.name),
    }
}

#[test]
fn every_client_is_found_where_it_keeps_its_servers() {
    let entries = r#"{"a": {"command": "x", "args": ["y"], "unknown": 1, "description": "Does x"}}"#;
    for (client, path, key) in [
        ("claude-code", "home/.claude.json", "mcpServers"),
        ("claude-desktop", "home/.config/Claude/claude_desktop_config.json", "mcpServers"),
        (
            "claude-desktop",
            "home/Library/Application Support/Claude/claude_desktop_config.json",
            "mcpServers",
        ),
        ("cursor", "home/.cursor/mcp.json", "mcpServers"),
        ("vscode", "home/.config/Code/User/mcp.json", "servers"),
        ("vscode", "home/Library/Application Support/Code/User/mcp.json", "servers"),
        ("windsurf", "home/.codeium/windsurf/mcp_config.json", "mcpServers"),
        ("gemini-cli", "home/.gemini/settings.json", "mcpServers"),
        ("zed", "home/.config/zed/settings.json", "context_servers"),
        ("mcp-servers", "home/.config/mcp/servers/all.json", "mcpServers"),
        ("mcp-servers", "home/MCPs/all.json", "mcpServers"),
    ] {
        let text = format!("// theirs\n{{\"theme\": \"dark\", \"{key}\": {entries}}}");
        let config = imported(client, path, &text);
        assert_eq!(
            config.servers,
            [McpServer::stdio("a", "x").args(["y"]).description("Does x")],
            "{client}: {:?}",
            config.warnings
        );
    }
}

#[test]
fn claude_code_has_servers_by_project() {
    let place = Place::new().file("home/.config/cx/config.json", r#"{"import": ["claude-code"]}"#);
    let project = place.path("work").display().to_string();
    let text = format!(
        r#"{{"projects": {{"{project}": {{"mcpServers": {{"a": {{"command": "project"}}}}}}, "/other": {{"mcpServers": {{"c": {{"command": "c"}}}}}}}},
            "mcpServers": {{"a": {{"command": "user"}}, "b": {{"type": "http", "url": "https://h/"}}}}}}"#
    );
    assert_eq!(chosen(&place.file("home/.claude.json", &text).load()), ["a=project", "b=https://h/"]);
}

#[test]
fn vscode_has_inputs_that_are_not_known_here() {
    let config = imported(
        "vscode",
        "home/.config/Code/User/mcp.json",
        r#"{"inputs": [{"id": "key"}], "servers": {
            "a": {"type": "stdio", "command": "x", "env": {"T": "${env:TOKEN}"}, "cwd": "${workspaceFolder}"},
            "b": {"command": "x", "args": ["${input:key}"]}}}"#,
    );
    assert_eq!(config.servers.len(), 1);
    assert_eq!(stdio(&config.servers[0]).env["T"], "geheim");
    assert!(stdio(&config.servers[0]).cwd.as_ref().unwrap().ends_with("work"));
    assert!(config.warnings[0].message.contains("`servers.b.args[0]`: `${input}`"), "{:?}", config.warnings);
}

#[test]
fn codex_writes_toml() {
    let config = imported(
        "codex",
        "home/.codex/config.toml",
        r#"
            model = "o"
            [mcp_servers.a]
            command = "x"
            args = ["y"]
            env = { K = "v" }
            env_vars = ["TOKEN"]
            startup_timeout_sec = 20
            tool_timeout_sec = 1.5
            enabled_tools = ["r"]
            [mcp_servers.b]
            url = "https://h/"
            bearer_token_env_var = "TOKEN"
            http_headers = { A = "1" }
            env_http_headers = { B = "TOKEN" }
            [mcp_servers.c]
            command = "x"
            enabled = false
        "#,
    );
    assert_eq!(chosen(&config), ["a=x", "b=https://h/"]);
    let (a, b) = (&config.servers[0], http(&config.servers[1]));
    assert_eq!(stdio(a).env["TOKEN"], "geheim");
    assert_eq!((a.connect_timeout, a.call_timeout), (Duration::from_secs(20), Duration::from_millis(1500)));
    assert_eq!(a.rules.allow, [["r"]]);
    assert_eq!((b.headers["Authorization"].as_str(), b.headers["A"].as_str()), ("Bearer geheim", "1"));
    assert_eq!(b.headers["B"], "geheim");
    let broken = imported("codex", "home/.codex/config.toml", "a = 1\n[mcp_servers.a]\ncommand = geheim\n");
    let warning = broken.warnings[0].to_string();
    assert!(
        warning.contains("config.toml:3: ignored: is not valid TOML") && !warning.contains("geheim"),
        "{warning}"
    );
}

#[test]
fn gemini_tells_transports_apart_by_their_key() {
    let config = imported(
        "gemini-cli",
        "home/.gemini/settings.json",
        r#"{"mcpServers": {"a": {"url": "https://a/"}, "b": {"httpUrl": "https://b/", "timeout": 5000, "excludeTools": ["x"]}}}"#,
    );
    assert_eq!(http(&config.servers[0]).kind, HttpKind::Sse);
    assert_eq!(http(&config.servers[1]).kind, HttpKind::Streamable);
    assert_eq!(config.servers[1].call_timeout, Duration::from_secs(5));
    assert_eq!(config.servers[1].rules.deny, ["x"]);
}

#[test]
fn opencode_zed_and_windsurf_have_their_own_forms() {
    let config = imported(
        "opencode",
        "home/.config/opencode/opencode.json",
        r#"{"mcp": {"a": {"type": "local", "command": ["x", "y"], "environment": {"K": "{env:TOKEN}"}, "enabled": true},
            "b": {"type": "remote", "url": "https://b/"}}}"#,
    );
    assert_eq!(config.servers[0], McpServer::stdio("a", "x").args(["y"]).env("K", "geheim"));
    assert_eq!(chosen(&config)[1], "b=https://b/");
    let config = imported(
        "zed",
        "home/.config/zed/settings.json",
        r#"{"context_servers": {"a": {"source": "custom", "command": {"path": "x", "args": ["y"], "env": {"K": "v"}}}}}"#,
    );
    assert_eq!(config.servers, [McpServer::stdio("a", "x").args(["y"]).env("K", "v")]);
    let config = imported(
        "windsurf",
        "home/.codeium/windsurf/mcp_config.json",
        r#"{"mcpServers": {"a": {"serverUrl": "https://a/sse", "disabledTools": ["x"]}, "b": {"command": "x", "disabled": true}}}"#,
    );
    assert_eq!(chosen(&config), ["a=https://a/sse"]);
    let config = imported("mcp-servers", "home/.config/mcp/servers/one.json", r#"{"command": "x"}"#);
    assert_eq!(chosen(&config), ["one=x"]);
    let config = imported("mcp-servers", "home/MCPs/one.json", r#"{"command": "x"}"#);
    assert_eq!(chosen(&config), ["one=x"]);
}

#[test]
fn what_one_client_breaks_stops_no_other() {
    let place = Place::new()
        .file("home/.config/cx/config.json", r#"{"import": ["cursor", "windsurf", "zed"]}"#)
        .file("home/.cursor/mcp.json", "{\n \"mcpServers\": {,}}")
        .file(
            "home/.codeium/windsurf/mcp_config.json",
            r#"{"mcpServers": {"my server": {"command": "x"}, "b": {"command": 5}, "c": {"command": "c"}}}"#,
        );
    let config = place.load();
    assert_eq!(chosen(&config), ["c=c"]);
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains(".cursor/mcp.json:2: ignored: is not valid JSON"), "{warnings:?}");
    assert!(warnings[1].contains("`mcpServers.my server`") && warnings[2].contains("`mcpServers.b.command`"));
    // A missing file is only recorded.
    assert!(config.files.iter().any(|file| file.role == "zed" && file.status.as_str() == "missing"));
}

#[test]
fn the_array_form_is_read_too() {
    let servers = parse(
        r#"{"mcpServers": [{"name": "a", "url": "https://a/", "protocol": "http", "enabled": true, "quarantined": false},
            {"name": "b", "command": "x", "protocol": "stdio", "enabled": false}]}"#,
    );
    assert_eq!(servers.unwrap(), [McpServer::http("a", "https://a/".parse().unwrap())]);
    // Another program's file: what is wrong with a server is no error.
    let twice = parse(r#"{"mcpServers": [{"name": "a", "command": "x"}, {"name": "a", "command": "y"}]}"#);
    assert_eq!(twice.unwrap(), [McpServer::stdio("a", "x")]);
}
