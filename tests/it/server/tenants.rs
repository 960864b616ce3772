//! Several tokens over HTTP, each of a tenant: no tenant can find, use up or meet anything of another.

/// Workers and the audit trail of several tenants.
mod workers;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::serve::{Start, meta, run_cx};
use crate::support::serve_http::{Reply, Server, wait_within};

pub(super) const ALICE: &str = "alice-0123456789abcdef0123456789abcdef";
pub(super) const BOB: &str = "bob-0123456789abcdef0123456789abcdef";
const OPERATOR: &str = "operator-0123456789abcdef0123456789";

/// Writes a file of tokens that only its user can read.
pub(super) fn tokens_file(directory: &Path, text: &str) -> String {
    let path = directory.join("tokens");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

pub(super) fn two() -> String {
    format!("# Two tenants.\nalice {ALICE}\n\nbob\t{BOB}\n")
}

/// A server of two tenants whose scripts run in its own process, which starts faster.
fn server(arguments: &[&str]) -> Server {
    server_within(&Arc::new(tempfile::tempdir().unwrap()), &two(), arguments)
}

pub(super) fn server_within(directory: &Arc<TempDir>, tokens: &str, arguments: &[&str]) -> Server {
    let file = tokens_file(directory.path(), tokens);
    let start = Start::new().within(Arc::clone(directory)).config("strict", json!(false));
    let mut all = vec!["--http", "127.0.0.1:0", "--isolation", "in-process", "--tokens-file", &file];
    all.extend(arguments);
    Server::start_with(&all, start)
}

fn authorization(token: &str) -> String {
    format!("Bearer {token}")
}

/// A client with the token of a tenant.
#[derive(Clone, Copy)]
pub(super) struct Tenant<'a> {
    server: &'a Server,
    token: &'a str,
}

impl<'a> Tenant<'a> {
    pub(super) fn new(server: &'a Server, token: &'a str) -> Self {
        Self { server, token }
    }

    pub(super) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let authorization = authorization(self.token);
        let mut all = vec![
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        self.server.send(method, path, &all, body)
    }

    /// The status and the whole body of an answer.
    pub(super) fn answer(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let reply = self.send(method, path, headers, body);
        (reply.status, reply.body())
    }

    pub(super) fn initialize(&self) -> Reply {
        self.initialize_with(&json!({}))
    }

    fn initialize_with(&self, capabilities: &Value) -> Reply {
        let info = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        self.send("POST", "/mcp", &[], &message.to_string())
    }

    /// The id of a session, after the handshake.
    pub(super) fn session(&self) -> String {
        self.session_with(&json!({}))
    }

    fn session_with(&self, capabilities: &Value) -> String {
        let reply = self.initialize_with(capabilities);
        assert_eq!(reply.status, 200);
        let id = reply.header("mcp-session-id").unwrap().to_owned();
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.in_session("POST", &id, &initialized).status, 202);
        id
    }

    pub(super) fn in_session(&self, method: &str, id: &str, message: &Value) -> Reply {
        let headers = [("Mcp-Session-Id", id), ("Mcp-Protocol-Version", "2025-11-25")];
        let body = if message.is_null() { String::new() } else { message.to_string() };
        self.send(method, "/mcp", &headers, &body)
    }

    /// Runs a script in a session.
    pub(super) fn run_in(&self, id: &str, code: &str) -> Value {
        let call = json!({ "name": "executeTypescript", "arguments": { "code": code } });
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call });
        self.in_session("POST", id, &message).result()["structuredContent"].clone()
    }

    /// A request without a session.
    pub(super) fn stateless(&self, method: &str, params: Value) -> Value {
        self.begin_stateless(method, params).message()
    }

    /// The same, whose answer is not read yet.
    pub(super) fn begin_stateless(&self, method: &str, mut params: Value) -> Reply {
        params["_meta"] = meta(json!({}));
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let headers =
            [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", name.as_str())];
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send("POST", "/mcp", &headers, &message.to_string())
    }

    /// Runs a script without a session.
    pub(super) fn run(&self, arguments: Value) -> Value {
        let call = json!({ "name": "executeTypescript", "arguments": arguments });
        self.stateless("tools/call", call)["result"]["structuredContent"].clone()
    }

    fn rest(&self, headers: &[(&str, &str)], code: &str) -> Reply {
        let body = json!({ "language": "typescript", "code": code });
        self.send("POST", "/v1/runs", headers, &body.to_string())
    }

    pub(super) fn value(&self, code: &str) -> Value {
        self.run(json!({ "code": code }))["value"].clone()
    }
}

/// An observer of one tenant's traffic knows the id of its session. Another tenant gets the answer for an unknown id.
#[test]
fn v_500_the_session_of_another_tenant_does_not_exist() {
    let server = server(&[]);
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let id = alice.session();
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" });
    let unknown = "0123456789abcdef0123456789abcdef";
    for (method, message) in [("POST", ping), ("GET", Value::Null), ("DELETE", Value::Null)] {
        let answer = |session: &str| {
            let reply = bob.in_session(method, session, &message);
            (reply.status, reply.header("content-type").map(str::to_owned), reply.body())
        };
        let expected = answer(unknown);
        assert_eq!(expected.0, 404, "{method}");
        assert_eq!(answer(&id), expected, "{method}");
    }
    // The session was neither ended nor used.
    assert_eq!(alice.run_in(&id, "return 7")["value"], 7);
    assert_eq!(alice.in_session("DELETE", &id, &Value::Null).status, 202);
}

/// The id of a run is random, but may be in a log.
#[test]
fn v_501_the_records_of_another_tenant_do_not_exist() {
    let server = server(&["--client-rate", "0"]);
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let left_out = "console.log('x'.repeat(60_000)); return 'kept'";
    let run = alice.run(json!({ "code": left_out }));
    let run = run["runId"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
    let session = alice.session();
    let of_session = alice.run_in(&session, left_out)["runId"].as_str().unwrap().to_owned();
    let uri = |id: &str| format!("cx://runs/{id}/output");
    let read = |tenant: Tenant<'_>, id: &str| tenant.stateless("resources/read", json!({ "uri": uri(id) }));
    assert!(read(alice, &run)["result"]["contents"][0]["text"].as_str().unwrap().len() >= 60_000);
    assert_eq!(read(bob, &run)["result"], Value::Null);
    let script = |id: &str| format!("return (await mcp.run('{id}')).value");
    assert_eq!(alice.value(&script(&run)), "kept");
    let refused = bob.run(json!({ "code": script(&run) }));
    assert_eq!(refused["error"]["toolCode"], "RUN_NOT_FOUND", "{refused}");
    // The same for a client with a session, and in another session.
    let other = bob.session();
    for id in [&run, &of_session] {
        assert_eq!(bob.run_in(&other, &script(id))["error"]["toolCode"], "RUN_NOT_FOUND");
        let path = format!("/v1/runs/{id}/output");
        assert_eq!(bob.answer("GET", &path, &[], "").0, 404);
    }
    assert_eq!(alice.run_in(&session, &script(&of_session))["value"], "kept");
    let path = format!("/v1/runs/{run}/output");
    assert_eq!(alice.answer("GET", &path, &[], "").0, 200);
    // A run over REST in the background: its answer, its output and its end.
    let body = json!({ "language": "typescript", "background": true,
        "code": "console.log('mine'); await new Promise((resolve) => setTimeout(resolve, 60_000))" });
    let run = alice.send("POST", "/v1/runs", &[], &body.to_string()).message();
    let path = format!("/v1/runs/{}", run["runId"].as_str().unwrap());
    assert_eq!(bob.answer("GET", &path, &[], "").0, 404);
    assert_eq!(bob.answer("DELETE", &path, &[], "").0, 404);
    let running = alice.send("GET", &path, &[], "").message();
    assert_eq!(running["running"], true, "{running}");
    assert_eq!(alice.answer("DELETE", &path, &[], "").0, 204);
}

/// Models choose the handles of sessions, and choose the same ones.
#[test]
fn v_502_a_session_of_state_is_its_tenants() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = server_within(&directory, &two(), &["--client-rate", "0"]);
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let run = |tenant: Tenant<'_>, handle: &str, code: &str| {
        tenant.run(json!({ "code": code, "session": handle }))["value"].clone()
    };
    let read = "return (await state.get('k')) ?? null";
    assert_eq!(run(alice, "notes", "await state.set('k', 'alice'); return 1"), 1);
    assert_eq!(run(bob, "notes", read), Value::Null);
    // Handles that look like the name of another tenant's session.
    for handle in ["alice/notes", "/notes", "alice\u{2044}notes"] {
        assert_eq!(run(bob, handle, read), Value::Null, "{handle}");
    }
    assert_eq!(run(bob, "notes", "await state.set('k', 'bob'); return 1"), 1);
    assert_eq!(run(alice, "notes", read), "alice");
    // The same in sessions of the protocol, and over REST.
    let (of_alice, of_bob) = (alice.session(), bob.session());
    let call = |tenant: Tenant<'_>, id: &str| {
        let call = json!({ "name": "executeTypescript", "arguments": { "code": read, "session": "notes" } });
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call });
        tenant.in_session("POST", id, &message).result()["structuredContent"]["value"].clone()
    };
    assert_eq!((call(alice, &of_alice), call(bob, &of_bob)), (json!("alice"), json!("bob")));
    let body = json!({ "language": "typescript", "code": read, "session": "notes" }).to_string();
    assert_eq!(bob.send("POST", "/v1/runs", &[], &body).message()["value"], "bob");
    // The user sees which tenant each belongs to, and can delete one.
    let state = |arguments: &[&str]| run_cx(directory.path(), arguments);
    let listed: Value = serde_json::from_slice(&state(&["state", "list", "--json"]).stdout).unwrap();
    let mut tenants: Vec<_> = listed.as_array().unwrap().iter().map(|scope| &scope["tenant"]).collect();
    tenants.sort_by_key(|tenant| tenant.to_string());
    assert_eq!(tenants, [&json!("alice"), &json!("bob")], "{listed}");
    let cleared = state(&["state", "clear", "--session", "notes", "--tenant", "alice"]);
    assert!(
        String::from_utf8_lossy(&cleared.stdout).contains("deleted 1 key of session notes of tenant alice")
    );
    assert_eq!((run(alice, "notes", read), run(bob, "notes", read)), (Value::Null, json!("bob")));
}

#[test]
fn v_503_an_idempotency_key_is_its_tenants() {
    let server = server(&["--client-rate", "0"]);
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let key = [("Idempotency-Key", "order-1")];
    let replayed = |reply: &Reply| reply.header("idempotency-replayed").is_some();
    let code = "return crypto.randomUUID()";
    let first = alice.rest(&key, code);
    assert!(!replayed(&first));
    let first = first.message()["value"].clone();
    let of_bob = bob.rest(&key, code);
    assert!(!replayed(&of_bob));
    assert_ne!(of_bob.message()["value"], first);
    // Nor does the answer reveal whether another tenant has sent it with another body.
    assert_eq!(bob.rest(&[("Idempotency-Key", "order-2")], "return 2").status, 200);
    assert_eq!(alice.rest(&[("Idempotency-Key", "order-2")], "return 3").message()["value"], 3);
    let again = alice.rest(&key, code);
    assert!(replayed(&again));
    assert_eq!(again.message()["value"], first);
}

/// All of them come from one address here, as they do behind a proxy.
#[test]
fn v_504_a_tenant_does_not_use_up_the_rates_of_another() {
    for arguments in [["--client-rate", "2", "--run-rate", "0"], ["--client-rate", "0", "--run-rate", "2"]] {
        let server = server(&arguments);
        let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
        assert_eq!(alice.value("return 1"), 1);
        assert_eq!(alice.rest(&[], "return 2").message()["value"], 2);
        let refused = alice.run(json!({ "code": "return 3" }));
        assert_eq!(refused["error"]["code"], "RATE_LIMITED", "{arguments:?}: {refused}");
        assert_eq!(alice.rest(&[], "return 3").status, 429, "{arguments:?}");
        assert_eq!(bob.value("return 1"), 1, "{arguments:?}");
        assert_eq!(bob.rest(&[], "return 2").message()["value"], 2, "{arguments:?}");
        assert_eq!(bob.rest(&[], "return 3").status, 429, "{arguments:?}");
    }
}

/// From one address too.
#[test]
fn v_505_a_tenant_that_holds_all_sessions_makes_room_for_another() {
    let server = server(&[]);
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let sessions: Vec<String> = (0..256).map(|_| alice.session()).collect();
    // They are in use, so alice gets no more of them.
    assert_eq!(alice.initialize().status, 503);
    let of_bob = bob.session();
    assert_eq!(bob.run_in(&of_bob, "return 1")["value"], 1);
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" });
    assert_eq!(alice.in_session("POST", &sessions[0], &ping).status, 404, "the oldest");
    assert_eq!(alice.in_session("POST", &sessions[1], &ping).status, 200);
    // Bob's session is not the next to be evicted.
    assert_eq!(alice.initialize().status, 503);
    assert_eq!(bob.in_session("POST", &of_bob, &ping).status, 200);
}

/// Data about all tenants is for the operator, who runs nothing: every run belongs to a tenant.
#[test]
fn v_506_tenants_do_not_read_what_is_of_all() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let file = tokens_file(directory.path(), &two());
    let start = Start::new().within(Arc::clone(&directory)).variable("CX_HTTP_TOKEN", OPERATOR);
    let arguments =
        ["--http", "127.0.0.1:0", "--metrics", "--isolation", "in-process", "--tokens-file", &file];
    let server = Server::start_with(&arguments, start);
    let (alice, operator) = (Tenant::new(&server, ALICE), Tenant::new(&server, OPERATOR));
    let status = |tenant: Tenant<'_>, method: &str, path: &str| tenant.send(method, path, &[], "").status;
    assert_eq!(alice.value("return 1"), 1);
    assert_eq!(status(alice, "GET", "/metrics"), 403);
    assert_eq!(status(alice, "POST", "/ui/session"), 401);
    assert_eq!(status(alice, "GET", "/healthz"), 200);
    assert_eq!(status(operator, "GET", "/metrics"), 200);
    assert_eq!(status(operator, "POST", "/ui/session"), 200);
    assert_eq!(status(operator, "GET", "/healthz"), 200);
    assert_eq!(operator.initialize().status, 403);
    assert_eq!(operator.rest(&[], "return 1").status, 403);
    assert_eq!(status(operator, "GET", "/openapi.json"), 403);
    // Tokens with one character more, fewer or changed.
    for wrong in [format!("{ALICE}0"), ALICE[..ALICE.len() - 1].to_owned(), ALICE.replace('f', "e")] {
        let wrong = Tenant::new(&server, &wrong);
        assert_eq!(wrong.initialize().status, 401);
        assert_eq!(status(wrong, "GET", "/metrics"), 401);
    }
    // Two tokens at once are refused.
    let (first, second) = (authorization(ALICE), authorization(BOB));
    let both = [("Authorization", first.as_str()), ("Authorization", second.as_str())];
    assert_eq!(server.get("/v1/runs/a", &both).status, 401);
}

#[test]
fn v_507_a_revoked_token_opens_nothing() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let new = "bob-fedcba9876543210fedcba9876543210";
    let session = {
        // While a token is replaced both work, and both are bob's.
        let server = server_within(&directory, &format!("{}bob {new}\n", two()), &[]);
        let (old, new) = (Tenant::new(&server, BOB), Tenant::new(&server, new));
        let session = old.session();
        assert_eq!(new.run_in(&session, "return 1")["value"], 1);
        session
    };
    let server = server_within(&directory, &format!("alice {ALICE}\nbob {new}\n"), &[]);
    let (old, new) = (Tenant::new(&server, BOB), Tenant::new(&server, new));
    assert_eq!(old.initialize().status, 401);
    assert_eq!(old.rest(&[], "return 1").status, 401);
    assert_eq!(old.in_session("DELETE", &session, &Value::Null).status, 401);
    assert_eq!(new.value("return 1"), 1);
    assert_eq!(Tenant::new(&server, ALICE).value("return 1"), 1);
}

/// Files of tokens that cannot be trusted or parsed, and other sources of tokens.
#[test]
fn v_511_tokens_are_read_from_private_files_and_the_environment() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |text: &str, arguments: &[&str]| {
        let file = tokens_file(directory.path(), text);
        let mut all = vec!["serve", "--http", "127.0.0.1:0", "--tokens-file", &file];
        all.extend(arguments);
        let output = run_cx(directory.path(), &all);
        assert_eq!(output.status.code(), Some(2), "{text}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        for secret in [ALICE, BOB] {
            assert!(!said.contains(secret), "{said}");
        }
        said
    };
    for (text, expected) in [
        (String::new(), "there is no token"),
        (format!("alice {ALICE}\n{BOB}\n"), "line 2: expected a name, space and a token"),
        (format!("{ALICE} alice\n"), "line 1: expected the name of a tenant: 1 to 32 lower-case letters"),
        (format!("alice {ALICE}\nBob {BOB}\n"), "line 2: expected the name of a tenant"),
        (format!("alice {ALICE}\nbob {ALICE}\n"), "`alice` and `bob` have the same token"),
        (format!("alice {ALICE} {BOB}\n"), "line 1: must be of visible ASCII characters without spaces"),
        (two().repeat(2000), "it is longer than 65536 bytes"),
        ((0..65).map(|n| format!("t{n} {ALICE}{n}\n")).collect(), "expected at most 64 tokens: 65"),
    ] {
        let said = refused(&text, &[]);
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // Where others can connect, every token has to be long.
    let file = tokens_file(directory.path(), &format!("alice {ALICE}\nbob short\n"));
    let output = run_cx(directory.path(), &["serve", "--http", "0.0.0.0:0", "--tokens-file", &file]);
    assert_eq!(output.status.code(), Some(2));
    let file = tokens_file(directory.path(), &two());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let output = run_cx(directory.path(), &["serve", "--http", "127.0.0.1:0", "--tokens-file", &file]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("chmod 600"), "{output:?}");
    // From the environment, as a secret of Kubernetes, and from the file that the configuration names.
    let in_process = ["--http", "127.0.0.1:0", "--isolation", "in-process"];
    let text: &'static str = Box::leak(two().into_boxed_str());
    let server = Server::start_with(&in_process, Start::new().variable("CX_HTTP_TOKENS", text));
    assert_eq!(Tenant::new(&server, BOB).value("return 1"), 1);
    assert_eq!(server.initialize(&[], "2025-11-25", &json!({})).status, 401);
    let file = tokens_file(directory.path(), &two());
    let server = Server::start_with(&in_process, Start::new().config("tokensFile", json!(file)));
    assert_eq!(Tenant::new(&server, BOB).value("return 1"), 1);
    assert_eq!(server.initialize(&[], "2025-11-25", &json!({})).status, 401);
}

/// Saved scripts run for all tenants, with the state and the records of the calling client.
#[test]
fn v_519_a_tenant_cannot_approve_a_script_for_the_others() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let scripts = directory.path().join("cx/scripts");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&scripts).unwrap();
    fs::write(scripts.join("report.ts"), "return 'of the operator'").unwrap();
    fs::set_permissions(scripts.join("report.ts"), fs::Permissions::from_mode(0o600)).unwrap();
    let server = server_within(&directory, &two(), &["--client-rate", "0"]);
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let session = alice.session_with(&json!({ "elicitation": {} }));
    let save = "return await scripts.save({ name: 'report', code: 'return 1', replace: true })";
    let call = json!({ "name": "executeTypescript", "arguments": { "code": save } });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call });
    let mut reply = alice.in_session("POST", &session, &message);
    // The first message is the answer: no prompt comes before it.
    let is_stream = reply.header("content-type") == Some("text/event-stream");
    let first = if is_stream { reply.next().unwrap() } else { reply.message() };
    let refused = &first["result"]["structuredContent"]["error"];
    assert_eq!(refused["toolCode"], "TOOL_DENIED", "{first}");
    assert!(refused["message"].as_str().unwrap().contains("cx scripts save"), "{first}");
    assert_eq!(bob.value("return await scripts.report()"), "of the operator");
}
