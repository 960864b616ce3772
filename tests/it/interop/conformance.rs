//! The official conformance suite (`@modelcontextprotocol/conformance`), with cx as its client and as its server.
//!
//! `tests/interop/conformance/client.mjs` is the client: cx, and a person who signs in where its errors say so.
//! `bridge.mjs` is a server whose tools, resources and prompts are those of `fixtures.mjs`, which scripts call. With
//! `names.mjs` the suite calls the same tools of `cx serve --mode direct`, and saved scripts that are shown directly.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::scenarios::{
    CLIENT_2025, CLIENT_2025_03, CLIENT_2026, CLIENT_EXTENSIONS, DIRECT, DIRECT_2025, DIRECT_2026,
    DIRECT_EXTENSIONS, DIRECT_IN_PART, DIRECT_STATELESS, FIXTURES_2025, HeldInPart, NOT_HELD, SCRIPTS,
    SERVER_2025, SERVER_2026, SERVER_EXTENSIONS, SIGN_IN,
};
use crate::support::interop::{conformance_suite, node_24, script};
use crate::support::serve::{Start, WATCHDOG, save_script, wait_for_end};
use crate::support::serve_http::Server;

/// Runs the suite's command and returns the failed checks of the scenario, with the output.
fn run(arguments: &[&str], directory: &Path) -> Vec<String> {
    let (status, output) = execute(arguments, directory);
    let mut wrong: Vec<String> = failed_checks(directory).iter().map(shown).collect();
    let is_excused = status.success() || checks(directory).iter().any(is_untestable);
    if !is_excused || wrong.is_empty() && !has_checks(directory) {
        wrong.push(format!("{status}: {}", output.lines().rev().take(40).collect::<Vec<_>>().join("\n")));
    }
    wrong
}

/// Runs the suite's command.
fn execute(arguments: &[&str], directory: &Path) -> (ExitStatus, String) {
    let mut child = Command::new(node_24())
        .arg(conformance_suite())
        .args(arguments)
        .args(["--output-dir", directory.to_str().unwrap()])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |stream: &mut dyn std::io::Read| {
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text).unwrap_or_default()
    };
    let errors = std::thread::spawn(move || read(&mut err));
    let printed = std::thread::spawn(move || read(&mut out));
    let status = wait_for_end(&mut child, WATCHDOG);
    (status, format!("{}{}", printed.join().unwrap(), errors.join().unwrap()))
}

/// All checks that the suite has recorded.
fn checks(directory: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(checks(&path));
        } else if path.file_name().is_some_and(|name| name == "checks.json") {
            let text = std::fs::read_to_string(path).unwrap();
            all.extend(serde_json::from_str::<Vec<Value>>(&text).unwrap());
        }
    }
    all
}

fn has_checks(directory: &Path) -> bool {
    checks(directory).iter().any(|check| check["status"] == "SUCCESS")
}

/// Whether a check needs a tool of the suite's own, which the server does not have: 5 of the 25 of `server-stateless`.
///
/// For one of them, `test_trigger_tool_change`, the suite recognizes the absence only by -32601, which is for methods.
/// `server::reload` tests what it would check.
fn is_untestable(check: &Value) -> bool {
    check["details"]["untestable"] == true
        || check["id"] == "sep-2575-server-sends-tools-list-changed-on-subscription"
}

/// A warning is about something that the specification says a client SHOULD do; here it must.
fn failed_checks(directory: &Path) -> Vec<Value> {
    let is_wrong = |check: &Value| {
        (check["status"] == "FAILURE" || check["status"] == "WARNING") && !is_untestable(check)
    };
    checks(directory).into_iter().filter(is_wrong).collect()
}

fn shown(check: &Value) -> String {
    format!("{}: {} {} {}", check["id"], check["description"], check["errorMessage"], check["details"])
}

fn client(scenarios: &[&str], version: &str) {
    let command = format!("{} {} {}", node_24(), script("conformance/client.mjs"), env!("CARGO_BIN_EXE_cx"));
    let mut wrong = Vec::new();
    for scenario in scenarios {
        let directory = tempfile::tempdir().unwrap();
        let mut arguments =
            vec!["client", "--command", &command, "--scenario", scenario, "--timeout", "60000"];
        if !version.is_empty() {
            arguments.extend(["--spec-version", version]);
        }
        wrong.extend(run(&arguments, directory.path()).iter().map(|check| format!("{scenario}: {check}")));
    }
    assert!(wrong.is_empty(), "{} checks do not hold:\n{}", wrong.len(), wrong.join("\n"));
}

fn server(scenarios: &[&str], version: &str, url: &str) {
    let mut wrong = Vec::new();
    for scenario in scenarios {
        let directory = tempfile::tempdir().unwrap();
        let checks = run(&server_arguments(scenario, version, url), directory.path());
        wrong.extend(checks.iter().map(|check| format!("{scenario}: {check}")));
    }
    assert!(wrong.is_empty(), "{} checks do not hold:\n{}", wrong.len(), wrong.join("\n"));
}

fn server_arguments<'a>(scenario: &'a str, version: &'a str, url: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["server", "--url", url, "--scenario", scenario];
    if !version.is_empty() {
        arguments.extend(["--spec-version", version]);
    }
    arguments
}

/// Exactly the named checks fail.
fn server_in_part(part: &HeldInPart, url: &str) {
    let directory = tempfile::tempdir().unwrap();
    let (_, output) = execute(&server_arguments(part.scenario, part.version, url), directory.path());
    let failed = failed_checks(directory.path());
    let ids: BTreeSet<&str> = failed.iter().filter_map(|check| check["id"].as_str()).collect();
    let expected: BTreeSet<&str> = part.fails.iter().copied().collect();
    let found: Vec<String> = failed.iter().map(shown).collect();
    assert_eq!(ids, expected, "{}, {}: {}\n{output}", part.scenario, part.reason, found.join("\n"));
    assert!(has_checks(directory.path()), "{}: {output}", part.scenario);
}

#[test]
fn a_client_of_2025_11_25_conforms() {
    client(&[CLIENT_2025, SIGN_IN].concat(), "2025-11-25");
}

#[test]
fn a_client_with_extensions_conforms() {
    client(CLIENT_EXTENSIONS, "");
}

#[test]
fn a_client_of_2025_03_26_conforms() {
    client(CLIENT_2025_03, "2025-03-26");
}

#[test]
fn a_client_of_2026_07_28_conforms() {
    client(&[CLIENT_2026, SIGN_IN].concat(), "2026-07-28");
}

/// Tools, resources and prompts of an upstream server, called by scripts.
#[test]
fn fixtures_behind_scripts_conform() {
    let mut bridge = Command::new(node_24())
        .args([script("conformance/bridge.mjs"), env!("CARGO_BIN_EXE_cx").to_owned()])
        .arg(script("conformance/fixtures.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(bridge.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening ").unwrap_or_else(|| panic!("{line}")).to_owned();
    server(FIXTURES_2025, "2025-11-25", &url);
    drop(bridge.stdin.take());
    bridge.wait().unwrap();
}

#[test]
fn a_server_conforms() {
    let served = Server::start(Start::new().server("well", &["well"]));
    let url = format!("http://{}/mcp", served.address);
    server(SERVER_2025, "2025-11-25", &url);
    server(SERVER_2026, "2026-07-28", &url);
    server(SERVER_EXTENSIONS, "", &url);
}

/// The suite connects to `cx serve --mode direct`, which has the fixtures as its upstream server.
struct Direct {
    _served: Server,
    _directory: Arc<TempDir>,
    names: Child,
    url: String,
}

impl Direct {
    fn start() -> Self {
        Self::with_fixtures(&[])
    }

    /// The arguments are those that the fixtures expect.
    fn with_fixtures(arguments: &[&str]) -> Self {
        let fixtures: Vec<String> = std::iter::once(script("conformance/fixtures.mjs"))
            .chain(arguments.iter().map(|&argument| argument.to_owned()))
            .collect();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("fixtures.json");
        let fixtures = json!({ "command": node_24(), "args": fixtures });
        std::fs::write(&file, json!({ "mcpServers": { "fixtures": fixtures } }).to_string()).unwrap();
        for (name, source) in SCRIPTS {
            save_script(directory.path(), &format!("{name}.ts"), source);
        }
        let directory = Arc::new(directory);
        let arguments = ["--mode", "direct", "--mcp-config", file.to_str().unwrap()];
        let start = Start::new()
            .within(Arc::clone(&directory))
            .config("direct", json!(["scripts.test_*"]))
            .config("llm", json!({ "enabled": true, "prefer": "client" }));
        let served = Server::start(start.arguments(&arguments));
        let mut names = Command::new(node_24())
            .args([script("conformance/names.mjs"), format!("http://{}/mcp", served.address)])
            .args(SCRIPTS.iter().map(|(name, _)| name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(names.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { _served: served, _directory: directory, names, url }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        drop(self.names.stdin.take());
        let _ = self.names.wait();
    }
}

#[test]
fn tools_that_are_shown_directly_conform() {
    let direct = Direct::start();
    server(&[DIRECT, DIRECT_2025].concat(), "2025-11-25", &direct.url);
    server(DIRECT, "2026-07-28", &direct.url);
    for scenario in DIRECT_2026 {
        server(&[*scenario], "2026-07-28", &Direct::start().url);
    }
    for scenario in DIRECT_STATELESS {
        server(&[*scenario], "2026-07-28", &Direct::with_fixtures(&["stateless"]).url);
    }
}

#[test]
fn long_calls_that_are_tasks_conform() {
    for scenario in DIRECT_EXTENSIONS {
        server(&[*scenario], "", &Direct::start().url);
    }
}

#[test]
fn scenarios_that_hold_in_part_fail_in_the_named_checks_only() {
    for part in DIRECT_IN_PART {
        server_in_part(part, &Direct::start().url);
    }
}

/// A new version of the suite may have more scenarios.
#[test]
fn every_scenario_is_in_a_list() {
    let output = Command::new(node_24()).arg(conformance_suite()).arg("list").output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let known: BTreeSet<&str> = output
        .lines()
        .filter_map(|line| line.strip_prefix("  - "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let held = [
        CLIENT_2025,
        SIGN_IN,
        CLIENT_EXTENSIONS,
        CLIENT_2025_03,
        CLIENT_2026,
        SERVER_2025,
        SERVER_2026,
        SERVER_EXTENSIONS,
        FIXTURES_2025,
        DIRECT,
        DIRECT_2025,
        DIRECT_2026,
        DIRECT_STATELESS,
        DIRECT_EXTENSIONS,
    ];
    let in_part = DIRECT_IN_PART.iter().map(|part| part.scenario);
    let held: BTreeSet<&str> = held.into_iter().flatten().copied().chain(in_part).collect();
    let not_held: BTreeSet<&str> = NOT_HELD.iter().map(|(name, _)| *name).collect();
    assert_eq!(held.intersection(&not_held).collect::<Vec<_>>(), Vec::<&&str>::new());
    let ours: BTreeSet<&str> = held.union(&not_held).copied().collect();
    assert!(known.len() > 50, "{output}");
    assert_eq!(ours, known, "{output}");
}
