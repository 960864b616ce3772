//! The official conformance suite (`@modelcontextprotocol/conformance`), with cx as its client and as its server.
//!
//! `tests/interop/conformance/client.mjs` is the client: cx, and a person who signs in where its errors say so.
//! `bridge.mjs` is a server whose tools, resources and prompts are those of `fixtures.mjs`, which scripts call.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::interop::{conformance_suite, node_24, script};
use crate::support::serve::Start;
use crate::support::serve_http::Server;

/// What fails a scenario that would hang. The suite stops waiting earlier.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Scenarios for a client, with the revision in which each is run: all that the suite requires of clients of revision
/// 2025-11-25, and those of before.
const CLIENT_2025: &[&str] = &[
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "json-schema-2020-12-preservation",
];

/// Scenarios of signing in that both revisions have.
const SIGN_IN: &[&str] = &[
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
];

/// Extensions, which belong to no revision.
const CLIENT_EXTENSIONS: &[&str] = &["auth/client-credentials-basic"];

const CLIENT_2025_03: &[&str] =
    &["auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"];

/// The same for revision 2026-07-28. Not `http-custom-headers`: 17 of its 18 checks hold, and for the last one a client
/// has to send `null` where the tool's schema has a boolean, which cx refuses.
const CLIENT_2026: &[&str] = &[
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// What the suite requires of servers and what needs no tool of its own.
const SERVER_2025: &[&str] = &[
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
];
const SERVER_2026: &[&str] = &[
    "server-stateless",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
    "caching",
];

/// What the suite requires of servers with fixtures. Not among them: logging, sampling, subscriptions and completion,
/// which cx does not pass on.
const FIXTURES_2025: &[&str] = &[
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
];

/// Runs the suite's command and returns the checks of the scenario that did not hold, with the output.
fn run(arguments: &[&str], directory: &Path) -> Vec<String> {
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
    let started = Instant::now();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |stream: &mut dyn std::io::Read| {
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text).unwrap_or_default()
    };
    let errors = std::thread::spawn(move || read(&mut err));
    let printed = std::thread::spawn(move || read(&mut out));
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > WATCHDOG {
            child.kill().unwrap();
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let output = format!("{}{}", printed.join().unwrap(), errors.join().unwrap());
    let mut wrong = failed_checks(directory);
    let is_excused = status.success() || checks(directory).iter().any(is_untestable);
    if !is_excused || wrong.is_empty() && !has_checks(directory) {
        wrong.push(format!("{status}: {}", output.lines().rev().take(40).collect::<Vec<_>>().join("\n")));
    }
    wrong
}

/// All checks that the suite has written down.
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
/// Of one of them, `test_trigger_tool_change`, the suite recognizes the absence by -32601 only, which is for methods. What
/// it would check is tested in `server::reload`.
fn is_untestable(check: &Value) -> bool {
    check["details"]["untestable"] == true
        || check["id"] == "sep-2575-server-sends-tools-list-changed-on-subscription"
}

/// A warning is what the specification says a client SHOULD do; here it must.
fn failed_checks(directory: &Path) -> Vec<String> {
    let is_wrong = |check: &Value| {
        (check["status"] == "FAILURE" || check["status"] == "WARNING") && !is_untestable(check)
    };
    let shown = |check: Value| {
        format!("{}: {} {} {}", check["id"], check["description"], check["errorMessage"], check["details"])
    };
    checks(directory).into_iter().filter(is_wrong).map(shown).collect()
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
        let arguments = ["server", "--url", url, "--scenario", scenario, "--spec-version", version];
        wrong.extend(run(&arguments, directory.path()).iter().map(|check| format!("{scenario}: {check}")));
    }
    assert!(wrong.is_empty(), "{} checks do not hold:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_client_of_2025_11_25_conforms() {
    client(&[CLIENT_2025, SIGN_IN].concat(), "2025-11-25");
}

#[test]
fn a_client_that_signs_in_as_itself_conforms() {
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
}
