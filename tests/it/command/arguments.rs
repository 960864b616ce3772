//! Arguments that would be ignored, and what commands print as JSON.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::home::Home;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn output(home: &Home, arguments: &[&str]) -> Output {
    home.command(arguments).output().unwrap()
}

/// An option that another one makes meaningless: whoever gives it expects something of it.
#[test]
fn an_option_that_would_be_ignored_is_a_mistake() {
    let home = Home::new();
    home.write("key", "0123456789abcdef0123456789abcdef");
    let run = ["run", "-e", "return 1", "--isolation", "process"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    for (arguments, expected) in [
        (vec!["state", "clear", "--all", "--tenant", "alice", "--yes"], "cannot be used with"),
        (vec!["trust", "--list", "--yes"], "cannot be used with"),
        (vec!["trust", "--revoke", "a.ts", "--yes"], "cannot be used with"),
        (vec!["setup", "--dry-run", "--force"], "cannot be used with"),
        (vec!["sync", "--status", "--dry-run"], "cannot be used with"),
        (vec!["sync", "--status", "--types", "types"], "cannot be used with"),
        (vec!["sync", "--status", "--lang", "py"], "cannot be used with"),
        (vec!["sync", "--uninstall", "--mcp-config", "mcp.json"], "cannot be used with"),
        (vec!["replay", "a.jsonl", "--explain", "--timeout", "1s"], "cannot be used with"),
        (vec!["replay", "a.jsonl", "--explain", "--json"], "cannot be used with"),
        (vec!["run", "-e", "1", "--trace", "a.json", "--record", "a.json"], "name the same file"),
        (vec!["run", "-e", "1", "--trace", "./a.json", "--record", "a.json"], "name the same file"),
        (vec!["repl", "--fuel", "5"], "--fuel is for Python only"),
        (vec!["types", "--json"], "unexpected argument '--json'"),
        (vec!["tools", "search", "files", "--limit", "0"], "0 is not in 1.."),
        (vec!["serve", "--default-timeout", "0s"], "--default-timeout must be at least one millisecond"),
        (
            vec!["state", "clear", "--session", "s", "--tenant", "a/b"],
            "'--tenant <NAME>': expected a tenant's name",
        ),
        (vec!["runs", "list", "--limit", "0"], "0 is not in 1.."),
        (vec!["runs", "list", "--limit", "10001"], "10001 is not in 1..=10000"),
        (with(&["--remote-token-file", "key"]), "cannot be used with"),
        (with(&["--nats-key-file", "key"]), "`--nats-key-file` is for `--nats`"),
        (with(&["--nats-credentials", "key"]), "--nats <URL>"),
        (with(&["--nats-tenant", "t", "--nats-tenant-key-file", "key"]), "--nats <URL>"),
        (vec!["serve", "--isolation", "process", "--nats-ca", "key"], "--nats <URL>"),
    ] {
        let output = output(&home, &arguments);
        // With `--json` the message is on stdout.
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

/// `--all` would have deleted the state of the others too.
#[test]
fn the_state_of_all_is_not_deleted_for_one_tenant() {
    let home = Home::new();
    let set = output(&home, &["run", "-e", "await state.set('kept', 1)"]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    output(&home, &["state", "clear", "--all", "--tenant", "alice", "--yes"]);
    let read = output(&home, &["run", "-e", "return await state.get('kept')"]);
    assert_eq!(text(&read.stdout), "1\n", "{}", text(&read.stderr));
}

#[test]
fn what_is_pinned_is_json_if_that_is_asked_for() {
    let home = Home::new();
    let pinned = output(&home, &["tools", "accept", "--all", "--json"]);
    let printed: Value = serde_json::from_slice(&pinned.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}{}", text(&pinned.stdout), text(&pinned.stderr));
    });
    assert_eq!(printed, json!({ "pinned": [] }));
}

#[test]
fn a_trail_that_is_not_there_has_a_remedy() {
    let home = Home::new();
    for command in ["verify", "show"] {
        let said = text(&output(&home, &["audit", command]).stderr);
        assert!(said.contains("`\"audit\": {}` in the configuration switches it on"), "{command}: {said}");
    }
}

/// A trace that cannot be written after the run: the result is on stdout already.
#[test]
fn a_failure_after_the_result_is_not_a_second_object() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_cx");
    let limited = format!("ulimit -f 1; exec '{program}' run -e 'return 1' --json --trace trace.html");
    let mut command = Command::new("sh");
    command.args(["-c", &limited]).current_dir(home.path("")).env("HOME", home.path(""));
    let output = command.output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let result: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    assert_eq!((&result["success"], &result["value"]), (&json!(true), &json!(1)), "{stdout}");
    assert!(stderr.contains("failed to write the trace `trace.html`"), "{stderr}");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
}

/// The files of clients are changed before cx connects: the report says so although that fails.
#[test]
fn what_setup_has_changed_is_reported_although_it_cannot_connect() {
    let home = Home::new();
    home.write(".cursor/mcp.json", r#"{ "mcpServers": { "a": { "command": "true" } } }"#);
    // A file of the workspace, which is read only when cx connects.
    home.write("w/.cx.json", "{broken");
    let mut command = home.command(&["setup", "--yes", "--json"]);
    let output = command.current_dir(home.path("w")).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    assert!(report["changes"].as_array().is_some_and(|changes| !changes.is_empty()), "{stdout}");
    assert!(stderr.contains(".cx.json:1:2: is not valid JSON"), "{stderr}");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
}
