use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{ConfigError, parse_mcp_config, read_mcp_config};
use crate::mcp::McpServer;

fn parse(text: &str) -> Result<Vec<McpServer>, ConfigError> {
    let environment = |name: &str| match name {
        "HOME" => Some("/home/ada".to_owned()),
        "EMPTY" => Some(String::new()),
        "TRICKY" => Some("${HOME}".to_owned()),
        _ => None,
    };
    parse_mcp_config("mcp.json", text, &environment)
}

/// The error of one server's entry, and its hint.
fn entry_error(entry: &str) -> String {
    let error = parse(&format!(r#"{{"mcpServers": {{"fs": {entry}}}}}"#)).unwrap_err();
    let hint = error.hint().map(|hint| format!(" | {hint}")).unwrap_or_default();
    format!("{error}{hint}").replace("mcp.json: `mcpServers.fs", "`")
}

#[test]
fn an_entry_with_everything() {
    let servers = parse(
        r#"{"mcpServers": {
            "fs": {"type": "stdio", "command": "${HOME}/bin/fs",
                   "args": ["-v", "${NOPE:-x}${EMPTY:-y}${EMPTY}", "$HOME", "${TRICKY}"],
                   "env": {"A": "env:HOME", "B": "a ${HOME} b"}, "cwd": "${HOME}", "timeoutMs": 1500},
            "off": {"command": "${NOPE}", "env": {"A": "env:NOPE"}, "enabled": false},
            "plain.name-2": {"command": "plain", "enabled": true}
        }}"#,
    )
    .unwrap();
    let expected = McpServer::stdio("fs", "/home/ada/bin/fs")
        .args(["-v", "xy", "$HOME", "${HOME}"])
        .env("A", "/home/ada")
        .env("B", "a /home/ada b")
        .cwd("/home/ada")
        .call_timeout(Duration::from_millis(1500));
    assert_eq!(servers, [expected, McpServer::stdio("plain.name-2", "plain")]);
    assert!(parse(r#"{"mcpServers": {}}"#).unwrap().is_empty());
}

/// THREATS 183, 185 and 188.
#[test]
fn a_mistake_names_its_key_what_was_expected_and_what_came() {
    for (entry, expected) in [
        ("null", "``: expected an object, found null"),
        ("{}", "``: expected an object with the key `command`, found an object without it"),
        (r#"{"command": 1}"#, "`.command`: expected a string, found a number"),
        (r#"{"command": " "}"#, "`.command`: expected the name or path of a program, found an empty string"),
        (r#"{"command": "x", "args": "y"}"#, "`.args`: expected an array of strings, found a string"),
        (r#"{"command": "x", "args": ["y", 2]}"#, "`.args[1]`: expected a string, found a number"),
        (
            r#"{"command": "x", "args": ["a\u0000b"]}"#,
            "`.args[0]`: expected text, found a NUL character, which no program can be given",
        ),
        (r#"{"command": "x", "env": []}"#, "`.env`: expected an object, found an array"),
        (r#"{"command": "x", "env": {"A": 5}}"#, "`.env.A`: expected a string, found a number"),
        (
            r#"{"command": "x", "env": {"A=B": "5"}}"#,
            "`.env.A=B`: expected a variable's name without `=` and NUL, found another",
        ),
        (
            r#"{"command": "x", "env": {"A": "${NOPE}"}}"#,
            "`.env.A`: the environment variable `NOPE` is not set | set it, or give a default: `${NOPE:-default}`",
        ),
        (
            r#"{"command": "x", "env": {"A": "env:NOPE"}}"#,
            "`.env.A`: the environment variable `NOPE` is not set | set it, or give a default: `${NOPE:-default}`",
        ),
        (r#"{"command": "${HOME"}"#, "`.command`: expected a `}` after `${`, found none"),
        (
            r#"{"command": "${}"}"#,
            "`.command`: expected a variable's name of letters, digits and `_`, found another",
        ),
        (
            r#"{"command": "x", "timeoutMs": 0}"#,
            "`.timeoutMs`: expected a whole number of milliseconds from 1 to 3600000, found 0",
        ),
        (
            r#"{"command": "x", "timeoutMs": 1e20}"#,
            "`.timeoutMs`: expected a whole number of milliseconds from 1 to 3600000, found 1e+20",
        ),
        (
            r#"{"command": "x", "timeoutMs": "5"}"#,
            "`.timeoutMs`: expected a whole number of milliseconds from 1 to 3600000, found a string",
        ),
        (r#"{"command": "x", "enabled": "yes"}"#, "`.enabled`: expected true or false, found a string"),
        (r#"{"comand": "x"}"#, "`.comand`: unknown key | did you mean `command`?"),
        (r#"{"command": "x", "disabled": true}"#, "`.disabled`: unknown key | write `\"enabled\": false`"),
        (
            r#"{"command": "x", "autoApprove": ["*"]}"#,
            "`.autoApprove`: unknown key | known keys: type, command, args, env, cwd, timeoutMs, enabled",
        ),
        (r#"{"command": "x", "type": "pigeon"}"#, "`.type`: expected `stdio`, found another word"),
        (
            r#"{"url": "https://example.com/"}"#,
            "`.url`: only servers over stdio can be used so far | give the `command` that starts a server on this machine",
        ),
        (
            r#"{"type": "sse", "url": "https://example.com/"}"#,
            "`.type`: only servers over stdio can be used so far | give the `command` that starts a server on this machine",
        ),
    ] {
        assert_eq!(entry_error(entry), expected, "{entry}");
    }
}

#[test]
fn a_mistake_in_the_frame_is_named_too() {
    let check = |text: &str, expected: &str| {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.starts_with("mcp.json: ") && message.contains(expected), "{message}");
    };
    check("", "is not valid JSON: EOF while parsing a value at line 1 column 0");
    check("{\"mcpServers\": {\n  \"a\": }}", "at line 2 column 8");
    check("[]", "`(the whole file)`: expected an object, found an array");
    check("{}", "expected an object with the key `mcpServers`");
    check(r#"{"mcpServer": {}}"#, "`mcpServer`: unknown key");
    check(r#"{"mcpServers": 1}"#, "`mcpServers`: expected an object, found a number");
    check(r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#, "the key `a` is there twice");
    check(&"[".repeat(10_000), "recursion limit");
    let many: Vec<String> = (0..257).map(|number| format!(r#""s{number}": {{"command": "x"}}"#)).collect();
    check(&format!(r#"{{"mcpServers": {{{}}}}}"#, many.join(",")), "expected at most 256 servers, found 257");
    for name in ["", "..", ".", "a b", "../x", "__proto__", "ä", "-x", "a/b", &"x".repeat(65)] {
        check(&format!(r#"{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}"#), "a server's name");
    }
    assert_eq!(parse("// x\n{}").unwrap_err().hint(), Some("JSON has no comments"));
}

/// THREATS 189.
#[test]
fn values_are_not_shown() {
    for entry in [
        r#"{"command": "x", "env": {"TOKEN": ["geheim"]}}"#,
        r#"{"command": "x", "env": {"TOKEN": "geheim\u0000"}}"#,
        r#"{"command": "x", "args": ["${geheim!}"]}"#,
        r#"{"command": "x", "type": "geheim"}"#,
        r#"{"url": "https://geheim@example.com"}"#,
    ] {
        assert!(!entry_error(entry).contains("geheim"), "{entry}");
    }
}

/// THREATS 184.
#[test]
fn odd_files_are_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let check = |path: &Path, expected: &str| {
        let message = read_mcp_config(path).unwrap_err().to_string();
        assert!(message.starts_with(&path.display().to_string()) && message.contains(expected), "{message}");
    };
    check(&path("missing.json"), "No such file");
    check(directory.path(), "expected a regular file, found a directory");
    check(Path::new("/dev/zero"), "expected a regular file, found a device");
    std::os::unix::fs::symlink("/dev/zero", path("link.json")).unwrap();
    check(&path("link.json"), "expected a regular file, found a device");
    let _listener = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    check(&path("socket"), "expected a regular file, found a device or a pipe");
    fs::write(path("large.json"), vec![b' '; 2 << 20]).unwrap();
    check(&path("large.json"), "is larger than 1 MB");
    fs::write(path("latin1.json"), b"{\"\xfc\": 1}").unwrap();
    check(&path("latin1.json"), "is not UTF-8: byte 2");
    fs::write(path("bom.json"), "\u{feff}{\"mcpServers\": {}}").unwrap();
    assert!(read_mcp_config(&path("bom.json")).unwrap().is_empty());
}
