use std::fs;
use std::path::Path;
use std::time::Duration;

use super::environment::Environment;
use super::load::load;
use super::{Config, ConfigError, Discovery, LoadOptions, read_mcp_config};
use crate::mcp::{HttpKind, McpServer, McpTransport};
use crate::run::limits::Limits;

mod clients;
mod foreign;
mod precedence;
mod schema;
mod untrusted;

fn parse(text: &str) -> Result<Vec<McpServer>, ConfigError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.json");
    fs::write(&path, text).unwrap();
    let environment =
        Environment::from_variables([("HOME", "/home/ada"), ("EMPTY", ""), ("TRICKY", "${HOME}")]);
    let options =
        LoadOptions { workspace: directory.path().to_owned(), files: vec![path], discover: Discovery::None };
    load(&options, &environment).map(|config| config.servers)
}

/// An error's text without the directory of its file.
fn shown(error: &ConfigError) -> String {
    let directory = error.file().parent().unwrap().display().to_string();
    error.to_string().replace(&format!("{directory}/"), "")
}

/// The error of one server's entry without its location, and its hint.
fn entry_error(entry: &str) -> String {
    let error = parse(&format!(r#"{{"mcpServers": {{"fs": {entry}}}}}"#)).unwrap_err();
    let hint = error.hint().map(|hint| format!(" | {hint}")).unwrap_or_default();
    let message = shown(&error);
    let (place, message) = message.split_once(": ").unwrap();
    assert!(place.starts_with("mcp.json:1:"), "{place}");
    format!("{message}{hint}").replace("`mcpServers.fs", "`")
}

#[test]
fn an_entry_with_everything() {
    let servers = parse(
        r#"{"mcpServers": {
            "fs": {"type": "stdio", "command": "${HOME}/bin/fs",
                   "args": ["-v", "${NOPE:-x}${EMPTY:-y}${EMPTY}", "$HOME", "${TRICKY}"],
                   "env": {"A": "env:HOME", "B": "a ${HOME} b"}, "cwd": "${HOME}", "timeoutMs": 1500, "description": "Files of ${HOME}"},
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
        .description("Files of ${HOME}")
        .call_timeout(Duration::from_millis(1500));
    assert_eq!(servers, [expected, McpServer::stdio("plain.name-2", "plain")]);
    assert!(parse(r#"{"mcpServers": {}}"#).unwrap().is_empty());
}

/// Threats 183, 185 and 188.
#[test]
fn cf_183_a_mistake_names_its_key_what_was_expected_and_what_came() {
    for (entry, expected) in [
        ("null", "``: expected an object, found null"),
        ("{}", "``: expected an object with the key `command` or `url`, found an object without it"),
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
            "`.timeoutMs`: expected a whole number of milliseconds from 1 to 3600000, found 1e20",
        ),
        (
            r#"{"command": "x", "timeoutMs": "5"}"#,
            "`.timeoutMs`: expected a whole number of milliseconds from 1 to 3600000, found a string | write 5, a number of milliseconds",
        ),
        (
            r#"{"command": "x", "idleMs": "5m"}"#,
            "`.idleMs`: expected a whole number of milliseconds from 1 to 86400000, found a string | write 300000, a number of milliseconds",
        ),
        (r#"{"command": "x", "enabled": "yes"}"#, "`.enabled`: expected true or false, found a string"),
        (r#"{"comand": "x"}"#, "`.comand`: unknown key | did you mean `command`?"),
        (r#"{"cmd": "x"}"#, "`.cmd`: unknown key | write `command`"),
        (r#"{"command": "x", "disabled": true}"#, "`.disabled`: unknown key | write `\"enabled\": false`"),
        (
            r#"{"command": "x", "autoApprove": ["*"]}"#,
            "`.autoApprove`: unknown key | known keys: description, type, command, args, env, cwd, url, headers, oauth, enabled, allow, deny, ask, readOnly, privateAddresses, timeoutMs, connectTimeoutMs, idleMs, maxConcurrent, maxQueued, queueTimeoutMs, rateLimit, elicitation, roots",
        ),
        (
            r#"{"command": "x", "type": "pigeon"}"#,
            "`.type`: expected `stdio`, `http`, `streamable-http` or `sse`, found another word",
        ),
        (
            r#"{"url": "ftp://example.com/"}"#,
            "`.url`: expected an address that begins with `https://` or `http://`, found another scheme",
        ),
        (
            r#"{"command": "x", "url": "https://example.com/"}"#,
            "``: expected one of `command` and `url`, found both",
        ),
        (
            r#"{"command": "x", "headers": {}}"#,
            "`.headers`: expected this key only together with `url`, found it alone",
        ),
        (
            r#"{"url": "https://example.com/", "headers": {"a b": "c"}}"#,
            "`.headers.a b`: expected the name of an HTTP header, found another",
        ),
        (
            r#"{"url": "https://example.com/", "headers": {"a": "c\nd"}}"#,
            "`.headers.a`: expected a header's value without control characters, found another",
        ),
        (
            r#"{"command": "x", "queueTimeoutMs": 0}"#,
            "`.queueTimeoutMs`: expected a whole number of milliseconds from 1 to 600000, found 0",
        ),
        (
            r#"{"command": "x", "maxConcurrent": 0}"#,
            "`.maxConcurrent`: expected a whole number of calls from 1 to 1024, found 0",
        ),
        (
            r#"{"command": "x", "rateLimit": {"calls": 1, "per": 2}}"#,
            "`.rateLimit.per`: unknown key | did you mean `perMs`?",
        ),
        (
            r#"{"command": "x", "rateLimit": {"calls": 1}}"#,
            "`.rateLimit`: expected an object with the keys `calls` and `perMs`, found an object",
        ),
        (
            r#"{"url": "https://example.com/", "oauth": {"clientid": "x"}}"#,
            "`.oauth.clientid`: unknown key | did you mean `clientId`?",
        ),
        (
            r#"{"command": "x", "args": ["${input:key}"]}"#,
            "`.args[0]`: `${input}` is known to the client that the file belongs to, not here | write the server into cx's own file, with `${NAME}` from the environment",
        ),
    ] {
        assert_eq!(entry_error(entry), expected, "{entry}");
    }
}

/// Threat 346.
#[test]
fn v_346_a_secret_is_configured_with_its_issuer() {
    let expected =
        "expected an issuer such as `https://login.example.com`, without query and fragment, found";
    for (oauth, problem) in [
        (
            r#"{"clientId": "x", "clientSecret": "y"}"#,
            "`.oauth`: expected the key `issuer` beside `clientSecret`, found a secret without it | `issuer` is the \
             authorization server that the secret is for, such as https://login.example.com: the secret is sent nowhere \
             else"
                .to_owned(),
        ),
        (
            r#"{"clientId": "x", "privateKey": "y", "clientCredentials": true}"#,
            "`.oauth`: expected the key `issuer` beside `privateKey`, found it without that".to_owned(),
        ),
        (
            r#"{"assertionFile": "/run/token", "issuer": "https://login.example.com"}"#,
            "`.oauth`: expected the key `clientCredentials` beside `assertionFile`, found it without that".to_owned(),
        ),
        (
            r#"{"privateKey": "y", "issuer": "https://login.example.com", "clientCredentials": true}"#,
            "`.oauth`: expected the key `clientId` beside `privateKey`, found it without that".to_owned(),
        ),
        (
            r#"{"identityProvider": "https://idp.example.com"}"#,
            "`.oauth`: expected the key `idTokenFile` beside `identityProvider`, found it without that".to_owned(),
        ),
        (
            r#"{"idTokenFile": "/t", "clientId": "x", "issuer": "https://login.example.com",
                "clientCredentials": true}"#,
            "`.oauth`: expected the key `identityProvider` beside `idTokenFile`, found it without that".to_owned(),
        ),
        (
            r#"{"idTokenFile": "/t", "identityProvider": "https://idp.example.com", "assertionFile": "/a",
                "clientId": "x", "issuer": "https://login.example.com", "clientCredentials": true}"#,
            "`.oauth`: expected one of `assertionFile` and `idTokenFile`, found both".to_owned(),
        ),
        (
            r#"{"idTokenFile": "/t", "identityProvider": "https://Idp.example.com", "clientId": "x",
                "issuer": "https://login.example.com", "clientCredentials": true}"#,
            format!(
                "`.oauth.identityProvider`: {expected} another spelling | did you mean `https://idp.example.com`?"
            ),
        ),
        (r#"{"issuer": "login.example.com"}"#, format!("`.oauth.issuer`: {expected} another")),
        (r#"{"issuer": "ftp://login.example.com"}"#, format!("`.oauth.issuer`: {expected} another")),
        (r#"{"issuer": "https://a@login.example.com"}"#, format!("`.oauth.issuer`: {expected} more than that")),
        (r#"{"issuer": "https://login.example.com/?b"}"#, format!("`.oauth.issuer`: {expected} more than that")),
        (r#"{"issuer": "https://login.example.com#c"}"#, format!("`.oauth.issuer`: {expected} more than that")),
        (
            r#"{"issuer": "https://Login.example.com:443/x"}"#,
            format!(
                "`.oauth.issuer`: {expected} another spelling | did you mean `https://login.example.com/x`?"
            ),
        ),
    ] {
        let entry = format!(r#"{{"url": "https://example.com/", "oauth": {oauth}}}"#);
        assert_eq!(entry_error(&entry), problem, "{oauth}");
    }
    for issuer in ["https://login.example.com", "https://login.example.com/", "https://login.example.com/a/"]
    {
        let oauth = format!(r#"{{"clientId": "x", "clientSecret": "y", "issuer": "{issuer}"}}"#);
        let text =
            format!(r#"{{"mcpServers": {{"a": {{"url": "https://example.com/", "oauth": {oauth}}}}}}}"#);
        let servers = parse(&text).unwrap();
        let McpTransport::Http(http) = &servers[0].transport else { panic!("a server with an address") };
        assert_eq!(http.oauth.as_ref().unwrap().issuer.as_deref(), Some(issuer));
    }
}

#[test]
fn a_file_with_an_assertion_has_an_absolute_path() {
    let oauth = |file: &str| {
        let file = serde_json::json!(file);
        format!(
            r#"{{"url": "https://example.com/", "oauth": {{"assertionFile": {file}, "clientCredentials": true,
                "issuer": "https://login.example.com"}}}}"#
        )
    };
    for file in ["token", "./token", "${NOPE:-token}", "~ada/token"] {
        let expected = "`.oauth.assertionFile`: expected an absolute path, `~/…` or `${workspaceFolder}/…`, found \
                        another text";
        assert_eq!(entry_error(&oauth(file)), expected, "{file}");
    }
    for (file, expected) in [("/run/token", "/run/token"), ("~/token", "/home/ada/token")] {
        let servers = parse(&format!(r#"{{"mcpServers": {{"a": {}}}}}"#, oauth(file))).unwrap();
        let McpTransport::Http(http) = &servers[0].transport else { panic!("a server with an address") };
        assert_eq!(http.oauth.as_ref().unwrap().assertion_file.as_deref(), Some(Path::new(expected)));
    }
}

/// Threats 185 and 188.
#[test]
fn cf_185_a_mistake_in_the_frame_is_named_too() {
    let check = |text: &str, expected: &str| {
        let message = shown(&parse(text).unwrap_err());
        assert!(message.starts_with("mcp.json:") && message.contains(expected), "{message}");
    };
    check("", "mcp.json:1:1: is not valid JSON: the file is empty");
    check("{\"mcpServers\": {\n  \"a\": }}", "mcp.json:2:8: is not valid JSON: ");
    check("{\"mcpServers\": {'a': 1}}", "is not valid JSON: ");
    check("{mcpServers: {}}", "is not valid JSON: ");
    check("[]", "`(the whole file)`: expected an object, found an array");
    check("{}", "expected an object with the key `mcpServers`");
    check(r#"{"mcpServer": {}}"#, "`mcpServer`: unknown key");
    check(r#"{"mcpServers": 1}"#, "`mcpServers`: expected an object, found a number");
    check(
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}",
        "mcp.json:2:1: `mcpServers.a`: the key is there twice",
    );
    check(&"[".repeat(10_000), "nesting depth");
    check(&"{\"a\":".repeat(10_000), "nesting depth");
    let many: Vec<String> = (0..1_001).map(|number| format!(r#""s{number}": {{"command": "x"}}"#)).collect();
    check(
        &format!(r#"{{"mcpServers": {{{}}}}}"#, many.join(",")),
        "expected at most 1000 servers, found 1001",
    );
    for name in ["", "..", ".", "a b", "../x", "__proto__", "\u{e4}", "-x", "a/b", &"x".repeat(65)] {
        check(&format!(r#"{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}"#), "a server's name");
    }
}

#[test]
fn a_setting_beside_named_servers_is_told_where_it_belongs() {
    for (key, expected) in [
        ("deny", "this file has servers only: write it in `/home/ada/.config/cx/config.json`"),
        ("mcpServer", "did you mean `mcpServers`?"),
    ] {
        let error = parse(&format!(r#"{{"mcpServers": {{}}, "{key}": []}}"#)).unwrap_err();
        assert_eq!(error.hint(), Some(expected), "{key}");
    }
    let place = precedence::Place::new().file("mcp.json", r#"{"mcpServers": {}, "deny": []}"#);
    let error = place.with("XDG_CONFIG_HOME", "/etc/ada").load_with(&["mcp.json"]).unwrap_err();
    assert_eq!(error.hint(), Some("this file has servers only: write it in `/etc/ada/cx/config.json`"));
}

#[test]
fn a_mode_of_isolation_alone_is_told_where_it_belongs() {
    let place = precedence::Place::new().file("home/.config/cx/config.json", r#"{"isolation": "process"}"#);
    let error = place.load_with(&[]).unwrap_err();
    assert!(error.to_string().contains("`isolation`: expected an object, found a string"), "{error}");
    assert_eq!(error.hint(), Some(r#"write the mode as in `"isolation": { "mode": "process" }`"#));
}

#[test]
fn comments_and_trailing_commas_are_fine() {
    let servers = parse("// one\n{\"mcpServers\": {/* two */ \"a\": {\"command\": \"x\",},},}").unwrap();
    assert_eq!(servers, [McpServer::stdio("a", "x")]);
}

#[test]
fn all_mistakes_of_a_file_come_at_once() {
    let error = parse(
        "{\"mcpServers\": {\n\"a\": {\"comand\": \"x\", \"timeoutMs\": 0},\n\"b c\": {\"command\": 5}}}",
    );
    let message = shown(&error.unwrap_err());
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    assert_eq!(lines.len(), 4, "{message}");
    assert!(lines[0].starts_with("mcp.json:2:7: `mcpServers.a.comand`: unknown key"), "{message}");
    assert!(lines[1].starts_with("mcp.json:2:35: `mcpServers.a.timeoutMs`"), "{message}");
    assert!(lines[2].starts_with("mcp.json:3:8: `mcpServers.b c`: expected a server's name"), "{message}");
    assert!(lines[3].starts_with("mcp.json:3:20: `mcpServers.b c.command`"), "{message}");
}

/// Threat 185: any file content is read to the end without a panic.
#[test]
fn cf_185_no_bytes_panic() {
    let text = br#"{"mcpServers": {"a": {"command": "x", "args": ["${HOME}", "%A%", "~"], "env": {"A": "env:B"}}, "b":
        {"url": "https://u:p@h/?q=1#f", "headers": {"H": "{env:X}"}, "oauth": {"scopes": ["a"]}, "rateLimit": {"calls": 1, "perMs": 2}}},
        "limits": {"timeoutMs": 1}, "allow": ["a.b"], "import": ["cursor"], /* c */ "cache": {"directory": "~"},}"#;
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::from_variables([("HOME", directory.path().to_str().unwrap())]);
    let path = directory.path().join(".cx.json");
    let imported = directory.path().join(".mcp.json");
    let options =
        LoadOptions { workspace: directory.path().to_owned(), files: Vec::new(), discover: Discovery::All };
    // A small generator: the same mutations in every run.
    let mut state = 42_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut fine, mut refused) = (0, 0);
    for _ in 0..1_500 {
        let mut bytes = text.to_vec();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            match next(4) {
                0 => bytes[at] = u8::try_from(next(256)).unwrap(),
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at.max(1)),
                _ => {
                    let from = next(bytes.len());
                    let part = bytes[from..(from + next(20)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        fs::write(&path, &bytes).unwrap();
        fs::write(&imported, &bytes).unwrap();
        match load(&options, &environment) {
            Ok(config) => drop((config.to_json(), fine += 1)),
            Err(error) => drop((error.to_string(), refused += 1)),
        }
    }
    assert!(fine > 20 && refused > 100, "{fine} {refused}");
}

/// Threat 189.
#[test]
fn cf_189_values_are_not_shown() {
    for entry in [
        r#"{"command": "x", "env": {"TOKEN": ["geheim"]}}"#,
        r#"{"command": "x", "env": {"TOKEN": "geheim\u0000"}}"#,
        r#"{"command": "x", "args": ["${geheim!}"]}"#,
        r#"{"command": "x", "type": "geheim"}"#,
        r#"{"url": "geheim://geheim@example.com"}"#,
        r#"{"url": "https://example.com", "headers": {"A": "geheim\n"}}"#,
        r#"{"url": "https://geheim geheim"}"#,
        r#"{"command": "x", "args": ["${input:geheim}"]}"#,
    ] {
        assert!(!entry_error(entry).contains("geheim"), "{entry}");
    }
}

/// Threat 184.
#[test]
fn cf_184_odd_files_are_refused_at_once() {
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
    rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    check(&path("pipe"), "expected a regular file, found a device or a pipe");
    fs::write(path("large.json"), vec![b' '; 2 << 20]).unwrap();
    check(&path("large.json"), "is larger than 1 MB");
    fs::write(path("latin1.json"), b"{\"\xfc\": 1}").unwrap();
    check(&path("latin1.json"), "is not UTF-8: byte 2");
    for (name, bytes) in [("little.json", b"\xff\xfe{\0}\0"), ("big.json", b"\xfe\xff\0{\0}")] {
        fs::write(path(name), bytes).unwrap();
        let error = read_mcp_config(&path(name)).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.starts_with("it is UTF-16")), "{error}");
    }
    fs::write(path("bom.json"), "\u{feff}{\"mcpServers\": {}}").unwrap();
    assert!(read_mcp_config(&path("bom.json")).unwrap().is_empty());
}

/// The file is read to say what it would start, so that nobody has to trust it for that.
#[test]
fn v_615_keys_of_a_deep_file_take_little_memory() {
    let deep = format!(r#"{{"{}":"#, "x".repeat(79)).repeat(200);
    let twice = vec![r#""a":1"#; 20_000].join(",");
    let findings = super::document::parse_json(&format!("{deep}{{{twice}}}{}", "}".repeat(200))).unwrap_err();
    assert_eq!(findings.len(), 1_000);
    let longest = findings.iter().map(|finding| finding.kind.to_string().len()).max().unwrap();
    assert!(longest < 700, "{longest}");
    assert!(findings[0].kind.to_string().contains("x.…`"), "{}", findings[0].kind);
    let lists = format!(r#"{{"a":{}{{"b":1,"b":2}}{}}}"#, "[".repeat(250), "]".repeat(250));
    let in_lists = super::document::parse_json(&lists).unwrap_err();
    // The first path that is as long as one may be is the last one.
    let longest = format!("`a{}.…`: the key is there twice", "[0]".repeat(171));
    assert_eq!(in_lists[0].kind.to_string(), longest);
    // A path that a configuration can have is shown as a whole.
    let short = super::document::parse_json(r#"{"mcpServers":{"a":{"env":{"A":"1","A":"2"}}}}"#).unwrap_err();
    assert_eq!(short[0].kind.to_string(), "`mcpServers.a.env.A`: the key is there twice");
}

#[test]
fn v_615_mistakes_of_yaml_are_bounded_too() {
    let text = format!("extensions:\n{}", "  a: 1\n".repeat(1_500));
    assert_eq!(super::document::parse_yaml(&text).unwrap_err().len(), 1_000);
}

/// Found by the fuzzer. What the parser of YAML cannot read may be a token, and the rest of a large file.
#[test]
fn v_666_a_mistake_of_yaml_shows_nothing_of_the_file() {
    for text in [
        "apping{\":\n\n\nsecret-of-a-file\n\n\n-.},!",
        "extensions: {}\n... secret-of-a-file",
        "a: [secret-of-a-file }",
        "a: 1\n{x: y}# secret-of-a-file\nb: 1\n",
    ] {
        let findings = super::document::parse_yaml(text).expect_err(text);
        let shown = ConfigError::new("a.yaml", findings).to_string();
        assert!(shown.contains("not valid YAML") && shown.contains("line "), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
