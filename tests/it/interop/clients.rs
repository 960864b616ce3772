//! Third-party clients, from npm and PyPI, over stdio and HTTP: see `tests/interop`. Each takes the same steps, and its
//! report is compared with the expected one.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::chaos;
use crate::support::interop::{node_modules, python, python_old, script};
use crate::support::serve::{Start, wait_for_end};
use crate::support::serve_http::Server;

/// Fails a test that would hang. The clients stop waiting earlier.
const WATCHDOG: Duration = Duration::from_secs(240);

/// How the user is asked whether `well.count` may be called.
#[derive(Clone, Copy)]
enum Person {
    /// Through the client.
    Asked,
    /// The client cannot ask.
    OutOfReach,
}

/// A home directory with two upstream servers: a healthy one, and one that hangs in its calls.
pub(super) fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let server = |name: &str, mode: &str| {
        let notes = home.path().join(name);
        json!({ "command": chaos::program(), "args": ["stdio", "--notes", notes, mode] })
    };
    let servers = json!({ "well": server("well", "well"), "hangs": server("hangs", "hang-call") });
    fs::write(home.path().join("mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
    fs::write(home.path().join("hangs"), "").unwrap();
    home
}

/// The arguments of `cx` for a client that lives in `home`.
pub(super) fn serve(home: &Path) -> [String; 5] {
    let config = home.join("mcp.json").display().to_string();
    ["serve".into(), "--mcp-config".into(), config, "--ask".into(), "well.count".into()]
}

/// Runs a client to its end: how it ended, what it printed and what it complained about.
fn output(command: &mut Command, home: &Path) -> (ExitStatus, String, String) {
    let mut child = command
        .current_dir(home)
        .env("HOME", home)
        .env("XDG_STATE_HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("XDG_CACHE_HOME", crate::support::python_cache())
        .env_remove("CX_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).map(|_| text).unwrap_or_default()
    });
    let printed = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text).unwrap_or_default()
    });
    let status = wait_for_end(&mut child, WATCHDOG);
    (status, printed.join().unwrap(), complaints.join().unwrap())
}

/// Runs a client of `tests/interop` and compares its report. `cancelled` is what it reports of the call that it
/// cancelled.
async fn check(mut client: Command, protocol: &str, person: Person, cancelled: &str) {
    // A client need not wait until Python is compiled.
    crate::support::python().await;
    let home = home();
    let arguments = serve(home.path());
    client.arg(home.path().join("hangs")).arg(env!("CARGO_BIN_EXE_cx")).args(arguments);
    similar(&seen(&mut client, home.path()), &expected(protocol, person, cancelled));
}

/// The same over HTTP.
async fn check_over_http(mut client: Command, protocol: &str, person: Person, cancelled: &str) {
    crate::support::python().await;
    let start = Start::new().server("well", &["well"]).server("hangs", &["hang-call"]);
    let server = Server::start(start.arguments(&["--ask", "well.count"]));
    let notes = server.directory().join("hangs");
    // Before the server has any runs.
    fs::OpenOptions::new().create(true).append(true).open(&notes).unwrap();
    client.arg(&notes).arg(format!("http://{}/mcp", server.address));
    let mut expected = expected(protocol, person, cancelled);
    if protocol == "2026-07-28" {
        // Clients without a session cannot be told apart, so runs are not listed for them.
        expected["resources"] = json!(["cx://guide"]);
    }
    similar(&seen(&mut client, server.directory()), &expected);
}

/// The client's report.
pub(super) fn seen(client: &mut Command, home: &Path) -> Value {
    let (status, printed, complaints) = output(client, home);
    assert!(status.success(), "{status}: {complaints}");
    // Some clients write their own logs to stdout.
    let line = printed.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// Compares field by field, so that a failure shows the field that differs.
pub(super) fn similar(seen: &Value, expected: &Value) {
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(&seen[name], expected, "{name}");
    }
    assert_eq!(seen.as_object().unwrap().len(), expected.as_object().unwrap().len(), "{seen:#}");
}

fn expected(protocol: &str, person: Person, cancelled: &str) -> Value {
    let seen = json!({
        "isError": false,
        "text": "42\n[output] seen",
        "success": true,
        "value": 42,
        "output": "seen",
    });
    let source = "throw new RangeError(`no ${n}`)";
    let failing = json!({
        "isError": true,
        "text": format!("RUNTIME_ERROR: RangeError: no 1\nat line 2, column 7: {source}"),
        "success": false,
        "error": {
            "code": "RUNTIME_ERROR",
            "message": "no 1",
            "name": "RangeError",
            "line": 2,
            "column": 7,
            "sourceLine": source,
        },
    });
    let (asked, questions) = match person {
        Person::Asked => (
            json!([
                { "count": 1 },
                ["TOOL_DENIED", "a person was asked and refused the call of `well.count`"],
                ["TOOL_DENIED", "a person was asked and refused the call of `well.count`: not now"],
                // The two refused calls were not made.
                { "count": 2 },
            ]),
            vec!["A script asks to call well.count."; 4],
        ),
        Person::OutOfReach => {
            let problem = "`well.count` needs a person's approval (`ask` names it: `well.count`), and no user can be \
                           asked here; use a client that can ask, or a person takes `well.count` out of `ask` in the \
                           configuration";
            (json!(vec![json!(["TOOL_DENIED", problem]); 4]), Vec::new())
        }
    };
    json!({
        "protocol": protocol,
        "server": "cx",
        "tools": ["executeTypescript", "executePython", "health"],
        "typescript": seen,
        "python": seen,
        "failing": failing,
        "progress": [[1, "well.echo: ok"], [2, "well.echo: ok"], [3, "well.fail: TOOL_ERROR"]],
        "cancelled": cancelled,
        "asked": asked,
        "questions": questions,
        "guide": "# Scripts behind cx",
        "kept": [true, 20_000, 19_999],
        "resources": ["cx://guide", "cx://runs/ID/value"],
    })
}

fn typescript(sdk: &str) -> Command {
    let mut client = Command::new("node");
    client.args([script("client.mjs"), sdk.to_owned(), node_modules()]);
    client
}

fn in_python(program: String, sdk: &str) -> Command {
    let mut client = Command::new(program);
    client.args([script("client.py"), sdk.to_owned()]);
    client
}

/// The official SDK accepts the list of tools of a server whose own schemas it would refuse, and an answer that it
/// checks against the output schema.
#[test]
fn tools_that_stay_direct_in_the_typescript_sdk() {
    let home = tempfile::tempdir().unwrap();
    let server = |mode: &str| json!({ "command": chaos::program(), "args": ["stdio", mode] });
    let servers = json!({ "odd": server("odd-schemas"), "apps": server("apps") });
    fs::write(home.path().join("mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
    let config = home.path().join("mcp.json").display().to_string();
    let serve = ["serve", "--mcp-config", &config, "--direct", "odd.*", "--direct", "apps.*"];
    for (sdk, protocol) in [("v1", "2025-11-25"), ("v2", "2025-11-25"), ("v2-auto", "2026-07-28")] {
        let mut client = Command::new("node");
        client
            .arg(script("direct.mjs"))
            .arg(sdk)
            .arg(node_modules())
            .arg(env!("CARGO_BIN_EXE_cx"))
            .args(serve);
        let seen = seen(&mut client, home.path());
        let expected = json!({
            "untyped": "object",
            "odd": 0,
            "time": "12:00",
            "texts": ["noon"],
            "kept": { "a": [1, null] },
            "address": "ui://clock/view",
        });
        assert_eq!(seen, expected, "{sdk} {protocol}");
    }
}

#[tokio::test]
async fn the_typescript_sdk_of_before() {
    check(typescript("old"), "2024-11-05", Person::OutOfReach, "enough").await;
}

#[tokio::test]
async fn the_typescript_sdk_of_one_package() {
    check(typescript("v1"), "2025-11-25", Person::Asked, "MCP error -32001: Error: enough").await;
}

#[tokio::test]
async fn the_typescript_sdk_of_now() {
    check(typescript("v2"), "2025-11-25", Person::Asked, "Error: enough").await;
}

#[tokio::test]
async fn the_typescript_sdk_of_now_without_a_handshake() {
    check(typescript("v2-auto"), "2026-07-28", Person::Asked, "Error: enough").await;
}

#[tokio::test]
async fn the_python_sdk_of_before() {
    check(in_python(python_old("python"), "old"), "2025-03-26", Person::OutOfReach, "cancelled").await;
}

#[tokio::test]
async fn the_python_sdk_of_now() {
    check(in_python(python("python"), "legacy"), "2025-11-25", Person::Asked, "cancelled").await;
}

#[tokio::test]
async fn the_python_sdk_of_now_without_a_handshake() {
    check(in_python(python("python"), "auto"), "2026-07-28", Person::Asked, "cancelled").await;
}

#[tokio::test]
async fn the_client_of_fastmcp() {
    check(in_python(python("python"), "fastmcp-legacy"), "2025-11-25", Person::Asked, "cancelled").await;
}

#[tokio::test]
async fn the_client_of_fastmcp_without_a_handshake() {
    check(in_python(python("python"), "fastmcp"), "2026-07-28", Person::Asked, "cancelled").await;
}

#[tokio::test]
async fn typescript_sdks_over_http() {
    check_over_http(typescript("v1"), "2025-11-25", Person::Asked, "MCP error -32001: Error: enough").await;
    check_over_http(typescript("v2"), "2025-11-25", Person::Asked, "Error: enough").await;
    check_over_http(typescript("v2-auto"), "2026-07-28", Person::Asked, "Error: enough").await;
}

#[tokio::test]
async fn python_sdks_over_http() {
    let (old, now) = (python_old("python"), python("python"));
    check_over_http(in_python(old, "old"), "2025-03-26", Person::OutOfReach, "cancelled").await;
    check_over_http(in_python(now.clone(), "legacy"), "2025-11-25", Person::Asked, "cancelled").await;
    check_over_http(in_python(now, "auto"), "2026-07-28", Person::Asked, "cancelled").await;
}

#[tokio::test]
async fn fastmcp_over_http() {
    for (sdk, protocol) in [("fastmcp-legacy", "2025-11-25"), ("fastmcp", "2026-07-28")] {
        check_over_http(in_python(python("python"), sdk), protocol, Person::Asked, "cancelled").await;
    }
}

/// The Inspector's command line: each command is a process with its own server.
struct Inspector {
    home: TempDir,
    revision: &'static str,
}

impl Inspector {
    /// The output of one command, which must end with this status.
    fn says(&self, status: i32, arguments: &[&str]) -> Value {
        let home = self.home.path();
        let config = home.join("inspector.json");
        let environment = json!({
            "HOME": home,
            "XDG_STATE_HOME": home,
            "XDG_CONFIG_HOME": home,
            "XDG_CACHE_HOME": crate::support::python_cache(),
        });
        let server = json!({ "command": env!("CARGO_BIN_EXE_cx"), "args": serve(home), "env": environment });
        fs::write(&config, json!({ "mcpServers": { "cx": server } }).to_string()).unwrap();
        let program = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        let mut command = Command::new("node");
        command
            .args([&format!("{}/{program}", node_modules()), "--cli", "--config"])
            .arg(config)
            .args(["--server", "cx", "--protocol-era", self.revision, "--format", "json"])
            .args(arguments)
            // Not the keyring of the user who runs the tests.
            .env("MCP_INSPECTOR_SECRET_STORE", "memory");
        let (ended, printed, complaints) = output(&mut command, home);
        assert_eq!(ended.code(), Some(status), "{arguments:?}: {printed}{complaints}");
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    fn calls(&self, status: i32, tool: &str, code: &str) -> Value {
        let arguments = json!({ "code": code }).to_string();
        let said = self
            .says(status, &["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments]);
        said["result"].clone()
    }
}

#[tokio::test]
async fn the_inspectors_command_line() {
    crate::support::python().await;
    for (revision, protocol) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let inspector = Inspector { home: home(), revision };
        let about = inspector.says(0, &["--method", "initialize"]);
        assert_eq!(about["result"]["protocolVersion"], protocol, "{about}");
        assert_eq!(about["result"]["serverInfo"]["name"], "cx", "{about}");

        // An error in a schema would be status 6.
        let listed = inspector.says(0, &["--method", "tools/list", "--strict"]);
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["executeTypescript", "executePython", "health"]);

        for (tool, code) in [
            ("executeTypescript", "console.log('seen'); return 6 * 7 as number"),
            ("executePython", "print('seen')\n6 * 7"),
        ] {
            let result = inspector.calls(0, tool, code);
            assert_eq!(result["structuredContent"]["value"], 42, "{result}");
            assert_eq!(result["content"], json!([{ "type": "text", "text": "42\n[output] seen" }]));
        }
        // The Inspector's status for an error that a tool reports.
        let failed = inspector.calls(5, "executeTypescript", "throw new RangeError('no')");
        assert_eq!(failed["structuredContent"]["error"]["code"], "RUNTIME_ERROR", "{failed}");
        // The Inspector has no form to show.
        let refused = inspector.calls(5, "executeTypescript", "return tools.well.count({})");
        assert_eq!(refused["structuredContent"]["error"]["toolCode"], "TOOL_DENIED", "{refused}");

        let resources = inspector.says(0, &["--method", "resources/list"]);
        assert_eq!(resources["result"]["resources"][0]["uri"], "cx://guide", "{resources}");
        let guide = inspector.says(0, &["--method", "resources/read", "--uri", "cx://guide"]);
        let text = guide["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("# Scripts behind cx\n"), "{text}");
        let prompt = inspector.says(0, &["--method", "prompts/get", "--prompt-name", "code-mode"]);
        assert_eq!(prompt["result"]["messages"][0]["content"]["text"], text);

        let load = inspector.says(
            0,
            &[
                "--method",
                "tools/call",
                "--tool-name",
                "executeTypescript",
                "--tool-args-json",
                r#"{"code":"return (await tools.well.echo({ n: 1 })).n"}"#,
                "--load",
                "--load-requests",
                "100",
                "--load-concurrency",
                "16",
            ],
        );
        let load = &load["result"];
        assert_eq!((&load["ok"], &load["toolErrors"], &load["errors"]), (&json!(100), &json!(0), &json!(0)));
    }
}
