//! The page of a server with tenants: its operator sees whose runs and calls it shows.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::tenants::{ALICE, BOB, Tenant, tokens_file, two};
use crate::support::serve::Start;
use crate::support::serve_http::{Server, wait_for};

const OPERATOR: &str = "operator-0123456789abcdef0123456789";

/// A server whose operator approves calls of the server `well` on the page.
fn server_with_page(directory: &Arc<TempDir>) -> Server {
    let file = tokens_file(directory.path(), &two());
    let start = Start::new()
        .within(Arc::clone(directory))
        .variable("CX_HTTP_TOKEN", OPERATOR)
        .config("audit", json!({ "directory": directory.path().join("trail") }))
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
    Server::start_with(&arguments, start)
}

/// The token of a session of the operator on the page.
fn page_token(server: &Server) -> String {
    let operator = Tenant::new(server, OPERATOR);
    let session: Value = serde_json::from_str(&operator.send("POST", "/ui/session", &[], "").body()).unwrap();
    session["token"].as_str().unwrap().to_owned()
}

/// What the page shows.
fn state_of(page: &Tenant<'_>) -> Value {
    serde_json::from_str(&page.send("GET", "/ui/state", &[], "").body()).unwrap()
}

/// Who approves a call answers for the tenant that it is made for, and for a saved script for all of them.
#[test]
fn v_613_the_operator_sees_whose_call_is_approved() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = server_with_page(&directory);
    let alice = Tenant::new(&server, ALICE);
    let code = "return await tools.well.echo({ text: 'a' })";
    let body = json!({ "language": "typescript", "code": code, "background": true }).to_string();
    let reply = alice.send("POST", "/v1/runs", &[("User-Agent", "robot")], &body);
    assert_eq!(reply.status, 202);
    let path = reply.header("location").unwrap().to_owned();
    let token = page_token(&server);
    let page = Tenant::new(&server, &token);
    let state = wait_for(|| {
        let state = state_of(&page);
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

/// Threat 613. A tenant can have as many runs as all places of the page.
#[test]
fn v_613_a_tenant_leaves_places_on_the_page_for_others() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = server_with_page(&directory);
    let token = page_token(&server);
    let page = Tenant::new(&server, &token);
    let waiting_of = |name: &str| {
        let state = state_of(&page);
        let approvals = state["approvals"].as_array().into_iter().flatten();
        approvals.filter(|approval| approval["tenant"] == name).count()
    };
    let arguments = json!({ "code": "return await tools.well.echo({ text: 'a' })" });
    let params = json!({ "name": "executeTypescript", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let (of_alice, of_bob) = (alice.session(), bob.session());
    let mut asking: Vec<_> = (0..16).map(|_| alice.in_session("POST", &of_alice, &call)).collect();
    wait_for(|| (waiting_of("alice") == 16).then_some(()));
    // One more is refused at once.
    let refused = alice.in_session("POST", &of_alice, &call).result();
    assert_eq!(refused["structuredContent"]["error"]["toolCode"], "TOOL_DENIED", "{refused}");
    asking.push(bob.in_session("POST", &of_bob, &call));
    wait_for(|| (waiting_of("bob") == 1).then_some(()));
    assert_eq!(waiting_of("alice"), 16);
}
