//! Requests of clients in the trail, also those that run nothing.

use std::path::Path;

use cx::audit::AuditReader;
use serde_json::json;

use crate::support::serve::{END, Start};
use crate::support::serve_http::Server;

/// Method, tool and code of each request in the trail, in order.
fn requests(trail: &Path) -> Vec<(String, String, String)> {
    let mut reader = AuditReader::new(trail);
    let mut requests = Vec::new();
    while let Some(line) = reader.next_line(true).unwrap() {
        if line.text_of("event") != Some("request") {
            continue;
        }
        let is_failed = line.text_of("outcome") == Some("failed");
        assert_eq!(is_failed, line.text_of("code").is_some(), "{}", line.text);
        assert!(line.text_of("client").is_some() && line.text.contains("\"durationUs\":"), "{}", line.text);
        assert!(line.text_of("run").is_none(), "a request is no event of a run: {}", line.text);
        let text = |field| line.text_of(field).unwrap_or_default().to_owned();
        requests.push((text("method"), text("tool"), text("code")));
    }
    requests
}

fn request(method: &str, tool: &str, code: &str) -> (String, String, String) {
    (method.to_owned(), tool.to_owned(), code.to_owned())
}

#[test]
fn each_request_is_in_the_trail() {
    let directory = tempfile::tempdir().unwrap();
    let trail = directory.path().join("trail");
    let mut client = Start::new().arguments(&["--audit", trail.to_str().unwrap()]).spawn().shaken();
    client.request("tools/list", json!({}));
    client.health();
    assert_eq!(client.run("return 1")["value"], 1);
    assert_eq!(client.run("throw new Error('wrong')")["success"], false);
    client.call("executeTypescript", json!({ "code": 1 }));
    client.request("tools/call", json!({ "name": "nothing", "arguments": {} }));
    client.request("resources/read", json!({ "uri": "cx://runs/none/value" }));
    client.request("no/such/method", json!({}));
    client.end();
    let found = requests(&trail);
    assert_eq!(
        found,
        [
            request("initialize", "", ""),
            request("tools/list", "", ""),
            request("tools/call", "health", ""),
            request("tools/call", "executeTypescript", ""),
            request("tools/call", "executeTypescript", "RUNTIME_ERROR"),
            request("tools/call", "executeTypescript", "INVALID_ARGUMENTS"),
            request("tools/call", "nothing", "-32602"),
            request("resources/read", "", "-32002"),
            request("no/such/method", "", "-32601"),
        ]
    );
}

/// A run that a rate limit refuses leaves a line, over MCP and over REST.
#[test]
fn requests_that_are_refused_before_a_run_are_in_the_trail() {
    let directory = tempfile::tempdir().unwrap();
    let trail = directory.path().join("trail");
    let arguments = ["--http", "127.0.0.1:0", "--client-rate", "1", "--audit", trail.to_str().unwrap()];
    let mut server = Server::start_with(&arguments, Start::new());
    let body = json!({ "language": "typescript", "code": "return 1" }).to_string();
    let json_body = ("Content-Type", "application/json");
    let agent = ("User-Agent", "caller 1");
    assert_eq!(server.send("POST", "/v1/runs", &[json_body, agent], "{").status, 400);
    assert_eq!(server.send("POST", "/v1/runs", &[json_body, agent], &body).status, 200);
    assert_eq!(server.send("POST", "/v1/runs", &[json_body, agent], &body).status, 429);
    server.signal("TERM");
    server.wait(END);
    let rest = |code| request("POST /v1/runs", "", code);
    let found = requests(&trail).into_iter().filter(|(method, ..)| method == "POST /v1/runs");
    assert_eq!(found.collect::<Vec<_>>(), [rest("400"), rest(""), rest("429")]);
}

/// The method and the run of each request over REST in the trail, in order.
fn requested_runs(trail: &Path) -> Vec<(String, String)> {
    let mut reader = AuditReader::new(trail);
    let mut runs = Vec::new();
    while let Some(line) = reader.next_line(true).unwrap() {
        let text = |field| line.text_of(field).unwrap_or_default().to_owned();
        if text("event") == "request" {
            runs.push((text("method"), text("runId")));
        }
    }
    runs
}

/// The trail shows which clients have read a run that another client began.
#[test]
fn requests_over_rest_name_their_run() {
    let directory = tempfile::tempdir().unwrap();
    let trail = directory.path().join("trail");
    let arguments = ["--http", "127.0.0.1:0", "--audit", trail.to_str().unwrap()];
    let mut server = Server::start_with(&arguments, Start::new());
    let json_body = ("Content-Type", "application/json");
    let post = |fields: serde_json::Value| {
        let reply = server.send("POST", "/v1/runs", &[json_body], &fields.to_string());
        reply.message()["runId"].as_str().unwrap_or_default().to_owned()
    };
    let short = post(json!({ "language": "typescript", "code": "return 1" }));
    let begun = post(json!({ "language": "typescript", "code": "return 1", "background": true }));
    // The value is left out of the answer.
    let kept = post(json!({ "language": "typescript", "code": "return 'x'.repeat(60_000)" }));
    assert_eq!((short.as_str(), begun.len(), kept.len()), ("", 16, 16));
    let read = format!("/v1/runs/{begun}?waitMs=60000");
    assert_eq!(server.get(&read, &[]).status, 200);
    assert_eq!(server.get(&format!("/v1/runs/{kept}/value"), &[]).status, 200);
    let unknown = "b".repeat(5_000);
    assert_eq!(server.send("DELETE", &format!("/v1/runs/{unknown}"), &[], "").status, 404);
    server.signal("TERM");
    server.wait(END);
    let runs = requested_runs(&trail);
    let request = |method: &str, run: &str| (method.to_owned(), run.to_owned());
    assert_eq!(
        runs[..5],
        [
            request("POST /v1/runs", ""),
            request("POST /v1/runs", &begun),
            request("POST /v1/runs", &kept),
            request("GET /v1/runs/{id}", &begun),
            request("GET /v1/runs/{id}/{part}", &kept),
        ]
    );
    let (method, shown) = &runs[5];
    assert_eq!(method, "DELETE /v1/runs/{id}");
    assert!(shown.starts_with("bbbb") && shown.len() < 300, "{shown}");
}

/// The trail has who asks for a run, reads its record or cancels it over REST, and who listens over MCP.
#[test]
fn requests_for_runs_over_rest_and_streams_are_in_the_trail() {
    let directory = tempfile::tempdir().unwrap();
    let trail = directory.path().join("trail");
    let arguments = ["--http", "127.0.0.1:0", "--audit", trail.to_str().unwrap()];
    let mut server = Server::start_with(&arguments, Start::new());
    let long = "a".repeat(5_000);
    let agent = ("User-Agent", long.as_str());
    for (method, path) in
        [("GET", "/v1/runs/of-another"), ("DELETE", "/v1/runs/a"), ("GET", "/v1/runs/a/value")]
    {
        assert_eq!(server.send(method, path, &[agent], "").status, 404, "{method} {path}");
    }
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut listening = server.stateless("subscriptions/listen", filter);
    assert_eq!(listening.next().unwrap()["method"], "notifications/subscriptions/acknowledged");
    server.signal("TERM");
    server.wait(END);
    let mut found = requests(&trail);
    let count = found.len();
    found.retain(|(method, ..)| method != "subscriptions/listen");
    assert_eq!(count, found.len() + 1, "{found:?}");
    let expected = [
        request("GET /v1/runs/{id}", "", "404"),
        request("DELETE /v1/runs/{id}", "", "404"),
        request("GET /v1/runs/{id}/{part}", "", "404"),
    ];
    assert_eq!(found, expected);
    // The name that a caller gives itself is bounded.
    let mut reader = AuditReader::new(&trail);
    while let Some(line) = reader.next_line(true).unwrap() {
        assert!(line.text.len() < 2_000, "{}", line.text);
    }
}
