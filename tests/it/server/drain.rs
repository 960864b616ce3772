//! `cx serve --http --drain`: scripts that run when the server is told to end go on, and no more are started.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::serve::{END, Start};
use crate::support::serve_http::{Reply, Server, WATCHDOG, wait_for};

/// Returns the text of a file as soon as it is there.
const UNTIL_WRITTEN: &str = "for (;;) {
    try { return await fs.readFile(input.file, 'utf8') } catch { await new Promise((go) => setTimeout(go, 20)) }
}";

/// The same, and copies the file.
const UNTIL_COPIED: &str = "for (;;) {
    try { return await fs.writeFile(input.copy, await fs.readFile(input.file, 'utf8')) }
    catch { await new Promise((go) => setTimeout(go, 20)) }
}";

/// Longer than a test takes.
const LONG: &str = "100s";

/// A server whose scripts can read and write in the directory, with more arguments.
fn start(directory: &Path, arguments: &[&str]) -> Server {
    let granted = directory.to_str().unwrap();
    let all = ["--allow-read", granted, "--allow-write", granted, "--timeout", LONG, "--cpu-time", LONG];
    Server::start(Start::new().arguments(&all).arguments(arguments))
}

fn params(directory: &Path) -> Value {
    let input = json!({ "file": directory.join("go") });
    json!({ "name": "executeTypescript", "arguments": { "code": UNTIL_WRITTEN, "input": input } })
}

fn write(directory: &Path) {
    std::fs::write(directory.join("go"), "written").unwrap();
}

fn create(server: &Server, body: &Value) -> Reply {
    server.send("POST", "/v1/runs", &[("Content-Type", "application/json")], &body.to_string())
}

/// Waits until the server takes no more scripts, and returns its health report.
fn wait_for_drain(server: &Server) -> Value {
    let reply = wait_for(|| Some(server.get("/healthz", &[])).filter(|reply| reply.status == 503));
    serde_json::from_str(&reply.body()).unwrap()
}

#[test]
fn scripts_go_on_and_no_more_are_started() {
    let directory = TempDir::new().unwrap();
    let mut server = start(directory.path(), &["--drain", LONG]);
    let session = server.session();
    let first = session.begin(1, "tools/call", params(directory.path()));
    server.wait_for_health(|health| health["connectionPool"]["active"] == 1);
    server.signal("TERM");
    let health = wait_for_drain(&server);
    assert_eq!(health["healthy"], false, "{health}");
    assert!(health["hint"].as_str().unwrap().starts_with("the server is being stopped"), "{health}");
    let refused = session.run("return 1");
    assert_eq!(refused["error"]["code"], "ENGINE_UNAVAILABLE", "{refused}");
    assert_eq!(refused["error"]["retryAfterMs"].as_f64(), Some(5000.0), "{refused}");
    let over_rest = create(&server, &json!({ "language": "typescript", "code": "return 1" }));
    assert_eq!((over_rest.status, over_rest.header("retry-after")), (503, Some("5")));
    // Other requests are answered.
    assert_eq!(session.begin(2, "ping", json!({})).message()["result"], json!({}));
    write(directory.path());
    let result = first.result();
    assert_eq!(result["structuredContent"]["value"], "written", "{result}");
    assert_eq!(server.wait(END).code(), Some(0));
}

#[test]
fn runs_in_the_background_go_on_too() {
    let directory = TempDir::new().unwrap();
    let mut server = start(directory.path(), &["--drain", LONG]);
    let body = json!({
        "language": "typescript",
        "code": UNTIL_COPIED,
        "input": { "file": directory.path().join("go"), "copy": directory.path().join("done") },
        "background": true,
    });
    assert_eq!(create(&server, &body).status, 202);
    server.wait_for_health(|health| health["connectionPool"]["active"] == 1);
    server.signal("TERM");
    wait_for_drain(&server);
    write(directory.path());
    assert_eq!(server.wait(END).code(), Some(0));
    assert_eq!(std::fs::read_to_string(directory.path().join("done")).unwrap(), "written");
}

#[test]
fn v_676_no_client_keeps_a_server_from_ending() {
    for second in [false, true] {
        let directory = TempDir::new().unwrap();
        let time = if second { LONG } else { "300ms" };
        let mut server = start(directory.path(), &["--drain", time]);
        let session = server.session();
        let reply = session.begin(1, "tools/call", params(directory.path()));
        server.wait_for_health(|health| health["connectionPool"]["active"] == 1);
        server.signal("TERM");
        if second {
            wait_for_drain(&server);
            server.signal("TERM");
        }
        let result = reply.result();
        assert_eq!(result["structuredContent"]["error"]["code"], "CANCELLED", "{result}");
        assert_eq!(server.wait(END + Duration::from_secs(5)).code(), Some(0));
    }
}

/// What a unit with `Type=notify` is told.
#[test]
fn the_service_manager_is_told() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(WATCHDOG)).unwrap();
    let next = || {
        let mut bytes = [0; 256];
        let count = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    };
    let (mut command, files) = Start::new().arguments(&["--http", "127.0.0.1:0", "--drain", "30s"]).command();
    command.env("NOTIFY_SOCKET", &path);
    let mut server = Server::start_command(command, files);
    assert_eq!(next(), "READY=1");
    server.signal("TERM");
    assert_eq!(next(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=39600000");
    assert_eq!(server.wait(END).code(), Some(0));
}

/// Without scripts there is nothing to wait for.
#[test]
fn a_server_without_scripts_ends_at_once() {
    let directory = TempDir::new().unwrap();
    let mut server = start(directory.path(), &["--drain", LONG]);
    let _session = server.session();
    server.signal("TERM");
    assert_eq!(server.wait(END).code(), Some(0));
}
