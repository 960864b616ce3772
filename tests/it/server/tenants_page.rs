//! The page of a server with tenants: its operator sees whose runs and calls it shows.

use std::sync::Arc;

use serde_json::{Value, json};

use super::tenants::{ALICE, Tenant, tokens_file, two};
use crate::support::serve::Start;
use crate::support::serve_http::{Server, wait_for};

const OPERATOR: &str = "operator-0123456789abcdef0123456789";

/// Who approves a call answers for the tenant that it is made for, and for a saved script for all of them.
#[test]
fn v_613_the_operator_sees_whose_call_is_approved() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let file = tokens_file(directory.path(), &two());
    let trail = directory.path().join("trail");
    let start = Start::new()
        .within(Arc::clone(&directory))
        .variable("CX_HTTP_TOKEN", OPERATOR)
        .config("audit", json!({ "directory": trail }))
        .server("well", &["well"]);
    let arguments = [
        "--http",
        "127.0.0.1:0",
        "--isolation",
        "in-process",
        "--tokens-file",
        &file,
        "--approver",
        "page",
        "--ask",
        "well.*",
    ];
    let server = Server::start_with(&arguments, start);
    let (alice, operator) = (Tenant::new(&server, ALICE), Tenant::new(&server, OPERATOR));
    let code = "return await tools.well.echo({ text: 'a' })";
    let body = json!({ "language": "typescript", "code": code, "background": true }).to_string();
    let reply = alice.send("POST", "/v1/runs", &[("User-Agent", "robot")], &body);
    assert_eq!(reply.status, 202);
    let path = reply.header("location").unwrap().to_owned();
    let session: Value = serde_json::from_str(&operator.send("POST", "/ui/session", &[], "").body()).unwrap();
    let page = Tenant::new(&server, session["token"].as_str().unwrap());
    let state = wait_for(|| {
        let state: Value = serde_json::from_str(&page.send("GET", "/ui/state", &[], "").body()).unwrap();
        let is_whole = !state["approvals"][0].is_null() && !state["runs"][0].is_null();
        is_whole.then_some(state)
    });
    assert_eq!(state["approvals"][0]["tenant"], "alice", "{state}");
    assert_eq!(state["runs"][0]["client"], "alice/all clients without a session (robot)", "{state}");
    let id = state["approvals"][0]["id"].as_str().unwrap();
    let denied = page.send("POST", &format!("/ui/approvals/{id}"), &[], r#"{"approve":false}"#);
    assert_eq!(denied.status, 200);
    let (status, result) = alice.answer("GET", &format!("{path}?waitMs=30000"), &[], "");
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!((status, &result["error"]["toolCode"]), (200, &json!("TOOL_DENIED")), "{result}");
}
