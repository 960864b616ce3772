//! Tokens that are added and revoked while the server serves: each change of a file counts without a restart, and a
//! file that cannot be used changes nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::tenants::{ALICE, BOB, Tenant, server_within, tokens_file, two};
use crate::support::serve::Start;
use crate::support::serve_http::{Reply, Server, wait_for};

const CAROL: &str = "carol-0123456789abcdef0123456789abcdef";
const DAVE: &str = "dave-0123456789abcdef0123456789abcdef";

/// Longer than a run may take, so that it shows another reason for an end.
const LONG: &str = "await new Promise((resolve) => setTimeout(resolve, 600_000)); return 1";

/// Replaces the file atomically, as `mv` does.
fn replace(directory: &Path, text: &str) {
    let next = tempfile::tempdir_in(directory).unwrap();
    let file = tokens_file(next.path(), text);
    fs::rename(file, directory.join("tokens")).unwrap();
}

/// A server of two tenants with an audit trail.
fn audited_server(directory: &Arc<TempDir>, tokens: &str) -> Server {
    audited_server_with(directory, tokens, &[])
}

fn audited_server_with(directory: &Arc<TempDir>, tokens: &str, arguments: &[&str]) -> Server {
    let trail = trail(directory).display().to_string();
    let own = ["--client-rate", "0", "--timeout", "600s", "--audit", &trail];
    server_within(directory, tokens, &[&own[..], arguments].concat())
}

fn trail(directory: &TempDir) -> PathBuf {
    directory.path().join("trail")
}

/// The lines about tokens in the trail so far.
fn token_events(directory: &TempDir) -> Vec<Value> {
    let files = fs::read_dir(trail(directory)).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect::<String>();
    assert!(![ALICE, BOB, CAROL, DAVE].iter().any(|token| texts.contains(token)), "{texts}");
    let lines = texts.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event"].as_str().is_some_and(|event| event.starts_with("tokens."))).collect()
}

/// Waits until a token is accepted, or refused.
fn wait_for_status(tenant: Tenant<'_>, status: u16) {
    wait_for(|| (tenant.send("GET", "/openapi.json", &[], "").status == status).then_some(()));
}

/// The code of the error in the answer of a call.
fn code(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]["error"]["code"]
}

/// Begins a call of a script in a session.
fn begin_in(tenant: Tenant<'_>, session: &str, script: &str) -> Reply {
    let call = json!({ "name": "executeTypescript", "arguments": { "code": script } });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call });
    tenant.in_session("POST", session, &message)
}

#[test]
fn v_512_a_revoked_token_is_refused_and_what_it_has_begun_ends() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = audited_server(&directory, &two());
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let (of_alice, of_bob) = (alice.session(), bob.session());
    let mut listening = bob.in_session("GET", &of_bob, &Value::Null);
    assert_eq!(listening.status, 200);
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut subscribed = bob.begin_stateless("subscriptions/listen", filter);
    assert_eq!(subscribed.status, 200);
    let body = |background: bool| json!({ "language": "typescript", "code": LONG, "background": background });
    let background = bob.send("POST", "/v1/runs", &[], &body(true).to_string()).message();
    let run = format!("/v1/runs/{}", background["runId"].as_str().unwrap());
    let call = json!({ "name": "executeTypescript", "arguments": { "code": LONG } });
    std::thread::scope(|scope| {
        let in_session = scope.spawn(|| begin_in(bob, &of_bob, LONG).message());
        let without = scope.spawn(|| bob.stateless("tools/call", call.clone()));
        let over_rest = scope.spawn(|| {
            let reply = bob.send("POST", "/v1/runs", &[], &body(false).to_string());
            (reply.status, reply.message())
        });
        let waiting = scope.spawn(|| bob.send("GET", &format!("{run}?waitMs=60000"), &[], "").message());
        let of_alice = scope.spawn(|| {
            let finishes = "await new Promise((resolve) => setTimeout(resolve, 20_000)); return 'alice'";
            alice.value(finishes)
        });
        server.wait_for_health(|health| health["connectionPool"]["active"] == 5);
        replace(directory.path(), &format!("alice {ALICE}\n"));
        wait_for_status(bob, 401);
        // Every run says why it has no value.
        assert_eq!(code(&in_session.join().unwrap()), "CANCELLED");
        assert_eq!(code(&without.join().unwrap()), "CANCELLED");
        let (status, answer) = over_rest.join().unwrap();
        assert_eq!((status, &answer["error"]["code"]), (200, &json!("CANCELLED")), "{answer}");
        assert_eq!(waiting.join().unwrap()["error"]["code"], "CANCELLED");
        assert_eq!(of_alice.join().unwrap(), "alice");
    });
    // The streams end, whatever messages came before.
    while listening.next().is_some() {}
    while subscribed.next().is_some() {}
    // Everywhere it is treated as a wrong token, with the same answer.
    let wrong = Tenant::new(&server, CAROL);
    for (method, path) in
        [("POST", "/mcp"), ("GET", run.as_str()), ("DELETE", run.as_str()), ("GET", "/openapi.json")]
    {
        assert_eq!(bob.answer(method, path, &[], "{}"), wrong.answer(method, path, &[], "{}"), "{path}");
        assert_eq!(bob.answer(method, path, &[], "{}").0, 401);
    }
    assert_eq!(bob.in_session("DELETE", &of_bob, &Value::Null).status, 401);
    assert_eq!(alice.run_in(&of_alice, "return 7")["value"], 7);
    let events = wait_for(|| Some(token_events(&directory)).filter(|events| !events.is_empty()));
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["event"], &events[0]["of"]), (&json!("tokens.changed"), &json!("tenants")));
    assert_eq!(events[0]["added"], 0);
    assert_eq!((&events[0]["revoked"], &events[0]["inForce"]), (&json!(1), &json!(1)));
    // The same line again brings the tenant back, and he finds nothing of what has ended.
    replace(directory.path(), &two());
    wait_for_status(bob, 200);
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" });
    assert_eq!(bob.in_session("POST", &of_bob, &ping).status, 404);
    assert_eq!(bob.answer("GET", &run, &[], "").0, 404);
    assert_eq!(bob.value("return 8"), 8);
}

#[test]
fn v_513_a_new_token_works_without_a_restart() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = audited_server(&directory, &two());
    let new = "alice-fedcba9876543210fedcba9876543210";
    let (alice, rotated) = (Tenant::new(&server, ALICE), Tenant::new(&server, new));
    let (bob, carol) = (Tenant::new(&server, BOB), Tenant::new(&server, CAROL));
    let (of_alice, of_bob) = (alice.session(), bob.session());
    assert_eq!(carol.initialize().status, 401);
    replace(directory.path(), &format!("{}carol {CAROL}\nalice {new}\n", two()));
    wait_for_status(carol, 200);
    // A tenant can use a session with both of its tokens; another tenant's session is unknown.
    assert_eq!(rotated.run_in(&of_alice, "return 1")["value"], 1);
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" });
    assert_eq!(carol.in_session("POST", &of_alice, &ping).status, 404);
    let of_carol = carol.session();
    assert_eq!(carol.run_in(&of_carol, "return 3")["value"], 3);
    let state = |tenant: Tenant<'_>, code: &str| {
        tenant.run(json!({ "code": code, "session": "notes" }))["value"].clone()
    };
    assert_eq!(state(bob, "await state.set('k', 'of bob'); return 1"), 1);
    // The first tenant's old token is revoked, with everything begun with it; the second one's token now belongs to
    // another tenant.
    let of_rotated = rotated.session();
    replace(directory.path(), &format!("alice {new}\ndave {BOB}\ncarol {CAROL}\n"));
    wait_for_status(alice, 401);
    wait_for(|| (rotated.in_session("POST", &of_alice, &ping).status == 404).then_some(()));
    assert_eq!(rotated.run_in(&of_rotated, "return 2")["value"], 2);
    assert_eq!(carol.run_in(&of_carol, "return 4")["value"], 4);
    let dave = bob;
    wait_for(|| (dave.in_session("POST", &of_bob, &ping).status == 404).then_some(()));
    assert_eq!(state(dave, "return (await state.get('k')) ?? null"), Value::Null);
    let events = wait_for(|| Some(token_events(&directory)).filter(|events| events.len() >= 2));
    let change = |event: &Value| ["added", "revoked", "inForce"].map(|field| event[field].as_u64().unwrap());
    assert_eq!(events.iter().map(change).collect::<Vec<_>>(), [[2, 0, 4], [1, 2, 3]]);
}

#[test]
fn v_862_a_stream_belongs_to_the_token_of_its_request() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let tokens = format!("alice {ALICE}\nalice {CAROL}\nbob {BOB}\n");
    let server = audited_server(&directory, &tokens);
    let (own, second, other) =
        (Tenant::new(&server, ALICE), Tenant::new(&server, CAROL), Tenant::new(&server, BOB));
    let session = own.session();
    let mut reply = begin_in(own, &session, "return 1");
    let event = reply.event().unwrap().0.unwrap();
    assert!(reply.next().is_some());
    let resume = |tenant: Tenant<'_>| {
        tenant.send("GET", "/mcp", &[("Mcp-Session-Id", &session), ("Last-Event-ID", &event)], "")
    };
    assert_eq!((resume(second).status, resume(other).status), (400, 404));
    assert_eq!(resume(own).result()["structuredContent"]["value"], 1);
}

/// A run in a session that was begun with another token of the same tenant belongs to the token of its request.
#[test]
fn v_513_a_run_ends_with_the_token_that_asked_for_it() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = audited_server(&directory, &format!("alice {ALICE}\nalice {CAROL}\n"));
    let (kept, revoked) = (Tenant::new(&server, ALICE), Tenant::new(&server, CAROL));
    let session = kept.session();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| begin_in(revoked, &session, LONG).message());
        server.wait_for_health(|health| health["connectionPool"]["active"] == 1);
        replace(directory.path(), &format!("alice {ALICE}\n"));
        assert_eq!(code(&running.join().unwrap()), "CANCELLED");
    });
    assert_eq!(kept.run_in(&session, "return 1")["value"], 1);
    assert_eq!(revoked.initialize().status, 401);
}

#[test]
fn v_514_a_list_that_cannot_be_used_changes_nothing() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = audited_server(&directory, &two());
    let (alice, bob) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let of_bob = bob.session();
    let path = directory.path().join("tokens");
    let hint = |health: &Value| {
        health["hint"].as_str().is_some_and(|hint| hint.contains("the tokens of this server"))
    };
    assert!(!hint(&server.health()));
    // Each of these files leaves the second tenant out, whose token stays valid nevertheless.
    let mut refused = 0;
    let mut refuse = |expected: &str| {
        refused += 1;
        let reason = wait_for(|| {
            let events = token_events(&directory);
            assert!(events.len() <= refused, "{events:?}");
            (events.len() == refused).then(|| events[refused - 1]["reason"].as_str().unwrap().to_owned())
        });
        assert!(reason.contains(expected), "{reason}");
        server.wait_for_health(hint);
        assert_eq!(alice.value("return 1"), 1);
        assert_eq!(bob.run_in(&of_bob, "return 2")["value"], 2);
    };
    replace(directory.path(), &format!("alice {ALICE}\nbob\n"));
    refuse("line 2: expected a name, space and a token");
    replace(directory.path(), "# none\n");
    refuse("there is no token");
    replace(directory.path(), &format!("alice {ALICE}\ncarol {ALICE}\n"));
    refuse("`alice` and `carol` have the same token");
    fs::remove_file(&path).unwrap();
    refuse("No such file");
    let aside = tempfile::tempdir_in(directory.path()).unwrap();
    let readable = tokens_file(aside.path(), &format!("alice {ALICE}\n"));
    fs::set_permissions(&readable, fs::Permissions::from_mode(0o644)).unwrap();
    fs::rename(readable, &path).unwrap();
    refuse("others may read or change it");
    // A reason is reported once, however often the list is looked at: every two seconds.
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(token_events(&directory).len(), refused);
    // A valid file counts again.
    replace(directory.path(), &two());
    server.wait_for_health(|health| !hint(health));
    assert_eq!(bob.run_in(&of_bob, "return 3")["value"], 3);
    assert_eq!(token_events(&directory).len(), refused);
}

/// A mounted secret is a link to a link, of which the second is replaced.
#[test]
fn v_515_a_mounted_secret_of_kubernetes_is_followed() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let mount = directory.path().join("secret");
    let publish = |version: &str, text: &str| {
        fs::create_dir_all(mount.join(version)).unwrap();
        tokens_file(&mount.join(version), text);
        symlink(version, mount.join("..data_tmp")).unwrap();
        fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
    };
    publish("..2026_11_26_1", &two());
    let link = mount.join("tokens");
    symlink("..data/tokens", &link).unwrap();
    // A file that was changed within the last three seconds counts as changed at each look, so the test waits.
    wait_for(|| {
        let changed = u64::try_from(fs::symlink_metadata(&link).unwrap().ctime()).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        (now > changed + 4).then_some(())
    });
    let file = link.display().to_string();
    let arguments = ["--http", "127.0.0.1:0", "--isolation", "in-process", "--tokens-file", &file];
    let server = Server::start_with(&arguments, Start::new().within(Arc::clone(&directory)));
    let [alice, bob, carol] = [ALICE, BOB, CAROL].map(|token| Tenant::new(&server, token));
    assert_eq!((bob.initialize().status, carol.initialize().status), (200, 401));
    publish("..2026_11_26_2", &format!("alice {ALICE}\ncarol {CAROL}\n"));
    fs::remove_dir_all(mount.join("..2026_11_26_1")).unwrap();
    wait_for_status(carol, 200);
    assert_eq!((alice.initialize().status, bob.initialize().status), (200, 401));
}

/// The number of tokens at the start decides where scripts run.
#[test]
fn v_516_a_second_tenant_does_not_come_into_the_process_of_the_first() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let file = tokens_file(directory.path(), &format!("alice {ALICE}\n"));
    let audit = trail(&directory).display().to_string();
    let arguments = ["--http", "127.0.0.1:0", "--audit", &audit, "--tokens-file", &file];
    let server = Server::start_with(&arguments, Start::new().within(Arc::clone(&directory)));
    assert_eq!(server.health()["isolation"], "in-process");
    let [alice, bob, carol] = [ALICE, BOB, CAROL].map(|token| Tenant::new(&server, token));
    replace(directory.path(), &two());
    let reason = wait_for(|| token_events(&directory).first().map(|event| event["reason"].to_string()));
    assert!(reason.contains("several tenants need worker processes"), "{reason}");
    assert_eq!((alice.initialize().status, bob.initialize().status), (200, 401));
    // Another token of the only tenant adds no tenant.
    replace(directory.path(), &format!("alice {ALICE}\nalice {CAROL}\n"));
    wait_for_status(carol, 200);
    assert_eq!((carol.value("return 1"), bob.initialize().status), (json!(1), 401));
}

/// Replaces the file of `--token-file` atomically, as `mv` does.
fn replace_token(directory: &Path, text: &str) -> String {
    let path = directory.join("token");
    let next = tempfile::NamedTempFile::new_in(directory).unwrap();
    fs::write(next.path(), text).unwrap();
    next.persist(&path).unwrap();
    path.display().to_string()
}

/// A server without tenants, all of whose clients have the token of a file.
fn server_of_one_token(directory: &Arc<TempDir>, token: &str) -> Server {
    let (file, trail) = (replace_token(directory.path(), token), trail(directory).display().to_string());
    let arguments = ["--http", "127.0.0.1:0", "--timeout", "600s", "--audit", &trail, "--token-file", &file];
    Server::start_with(&arguments, Start::new().within(Arc::clone(directory)))
}

#[test]
fn v_542_a_replaced_token_of_all_clients_is_refused_and_what_it_has_begun_ends() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = server_of_one_token(&directory, ALICE);
    let (old, new) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let session = old.session();
    assert_eq!(new.initialize().status, 401);
    let mut listening = old.in_session("GET", &session, &Value::Null);
    assert_eq!(listening.status, 200);
    let call = json!({ "name": "executeTypescript", "arguments": { "code": LONG } });
    std::thread::scope(|scope| {
        let in_session = scope.spawn(|| begin_in(old, &session, LONG).message());
        let without = scope.spawn(|| old.stateless("tools/call", call.clone()));
        server.wait_for_health(|health| health["connectionPool"]["active"] == 2);
        replace_token(directory.path(), &format!("{BOB}\n"));
        wait_for_status(old, 401);
        assert_eq!(code(&in_session.join().unwrap()), "CANCELLED");
        assert_eq!(code(&without.join().unwrap()), "CANCELLED");
    });
    while listening.next().is_some() {}
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" });
    assert_eq!(old.in_session("POST", &session, &ping).status, 401);
    wait_for(|| (new.in_session("POST", &session, &ping).status == 404).then_some(()));
    assert_eq!(new.value("return 8"), 8);
    let change = wait_for(|| token_events(&directory).pop());
    let fields = ["event", "of", "added", "revoked", "inForce"].map(|field| change[field].clone());
    assert_eq!(fields, [json!("tokens.changed"), json!("clients"), json!(1), json!(1), json!(1)]);
}

#[test]
fn v_543_a_token_that_cannot_be_used_leaves_the_last_one_in_force() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = server_of_one_token(&directory, ALICE);
    let (old, new) = (Tenant::new(&server, ALICE), Tenant::new(&server, BOB));
    let hint = |health: &Value| {
        health["hint"].as_str().is_some_and(|hint| hint.contains("the tokens of this server"))
    };
    let mut refused = 0;
    let mut refuse = |expected: &str| {
        refused += 1;
        let reason = wait_for(|| {
            let events = token_events(&directory);
            (events.len() == refused).then(|| events[refused - 1]["reason"].as_str().unwrap().to_owned())
        });
        assert!(reason.contains(expected), "{reason}");
        server.wait_for_health(hint);
        assert_eq!(old.value("return 1"), 1);
    };
    replace_token(directory.path(), "\n");
    refuse("is empty");
    replace_token(directory.path(), &format!("{BOB} {CAROL}"));
    refuse("visible ASCII characters");
    fs::remove_file(directory.path().join("token")).unwrap();
    refuse("No such file");
    replace_token(directory.path(), BOB);
    wait_for_status(new, 200);
    server.wait_for_health(|health| !hint(health));
    assert_eq!(old.initialize().status, 401);
}

/// By then the browser has a token of its own, which is not in the file.
#[test]
fn v_541_what_the_operators_last_token_has_opened_is_closed() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let file = replace_token(directory.path(), CAROL);
    let server = audited_server_with(&directory, &two(), &["--metrics", "--token-file", &file]);
    let (old, new, alice) =
        (Tenant::new(&server, CAROL), Tenant::new(&server, DAVE), Tenant::new(&server, ALICE));
    let status = |caller: Tenant<'_>, path: &str| caller.send("GET", path, &[], "").status;
    let started: Value = serde_json::from_str(&old.send("POST", "/ui/session", &[], "").body()).unwrap();
    let browser = Tenant::new(&server, started["token"].as_str().unwrap());
    assert_eq!(
        (status(browser, "/ui/state"), status(old, "/metrics"), status(new, "/metrics")),
        (200, 200, 401)
    );
    let of_alice = alice.session();
    replace_token(directory.path(), DAVE);
    wait_for(|| (status(old, "/metrics") == 401).then_some(()));
    wait_for(|| (status(browser, "/ui/state") == 401).then_some(()));
    assert_eq!(status(new, "/metrics"), 200);
    assert_eq!(old.send("POST", "/ui/session", &[], "").status, 401);
    // The tenants have other tokens.
    assert_eq!(alice.run_in(&of_alice, "return 7")["value"], 7);
    let change = wait_for(|| token_events(&directory).pop());
    assert_eq!((&change["event"], &change["of"]), (&json!("tokens.changed"), &json!("operator")));
    // A tenant may not get the token that is now the operator's.
    replace(directory.path(), &format!("{}dave {DAVE}\n", two()));
    let reason = wait_for(|| token_events(&directory).get(1).map(|event| event["reason"].to_string()));
    assert!(reason.contains("`dave` has the operator's token"), "{reason}");
    assert_eq!(status(new, "/metrics"), 200);
    // When the operator gets another token, the list that was refused because of the old one counts.
    replace_token(directory.path(), CAROL);
    wait_for_status(new, 200);
    assert_eq!((status(new, "/metrics"), status(old, "/metrics")), (403, 200));
}
