//! NATS servers with TLS, credentials and permissions: the permissions in `docs/nats.md` are enough, and fewer are
//! refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::docs::{Block, blocks};
use crate::support::certificates;
use crate::support::nats::{Front, NatsServer, Worker};
use crate::support::nats_accounts;
use crate::support::serve::{Start, save_script};
use crate::support::serve_http::{Server, wait_for, wait_within};
use crate::support::write_secret;

/// The maximum time that anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// A file beside the server's key.
fn file(server: &NatsServer, name: &str, text: &str) -> PathBuf {
    let file = server.key().with_file_name(name);
    write_secret(&file, text);
    file
}

/// The configuration of the page, with the files of a test.
fn config_of_the_page(directory: &Path) -> String {
    certificates::make(directory);
    let page = blocks(Path::new("docs/nats.md"));
    let block: Vec<&Block> = page.iter().filter(|block| block.language() == "nats").collect();
    assert_eq!(block.len(), 1);
    let certificates = |name: &str| directory.join(name).display().to_string();
    block[0]
        .text
        .replace("/var/lib/nats", &certificates("jetstream"))
        .replace("/etc/nats/server.pem", &certificates("server.pem"))
        .replace("/etc/nats/server-key.pem", &certificates("server-key.pem"))
}

fn run(front: &Server, code: &str) -> Value {
    let body = json!({ "language": "typescript", "code": code, "session": "trip" });
    let headers = [("Content-Type", "application/json")];
    front.send("POST", "/v1/runs", &headers, &body.to_string()).message()
}

#[test]
fn the_permissions_of_the_page_are_enough() {
    let Some(server) = NatsServer::start_with(config_of_the_page) else { return };
    let ca = server.key().with_file_name("ca.pem");
    let password =
        |user: &str| json!({ "user": user, "password": format!("a password of the {user}") }).to_string();
    let of_worker = file(&server, "worker.json", &password("worker").replace("the worker", "the workers"));
    let of_front = file(&server, "front.json", &password("front").replace("the front", "the front ends"));
    let tenant_key = file(&server, "tenant-key", "a key that only the front ends of this tenant have");
    let (ca_text, worker_text) = (ca.to_str().unwrap(), of_worker.to_str().unwrap());
    let worker = server.worker_with(2, &["--nats-ca", ca_text, "--nats-credentials", worker_text]);
    let isolation = |tenant: &str, credentials: &Path| {
        json!({
            "mode": "nats", "url": server.url(), "keyFile": server.key(), "caFile": ca,
            "credentialsFile": credentials, "tenant": tenant, "tenantKeyFile": tenant_key,
        })
    };
    let front = |tenant: &str, credentials: &Path| {
        let start = Start::new().server("well", &["well"]);
        Server::start(start.config("isolation", isolation(tenant, credentials)))
    };
    let (one, other) = (front("payments", &of_front), front("payments", &of_front));
    let called = run(&one, "await tools.well.echo({ text: 'a' }); await state.set('k', 7); return 1");
    assert_eq!(called["value"], 1, "{called}");
    assert_eq!(run(&other, "return await state.get('k')")["value"], 7);
    // Long values consist of parts, which are removed when they are replaced.
    let long = "for (const n of [5e5, 6e5]) await state.set('long', 'x'.repeat(n)); await state.delete('long'); return 1";
    assert_eq!(run(&other, long)["value"], 1);
    let kept = run(&one, "console.log('z'.repeat(300000)); return 1");
    let id = kept["runId"].as_str().unwrap_or_else(|| panic!("{kept}")).to_owned();
    assert_eq!(other.get(&format!("/v1/runs/{id}/output"), &[]).status, 200);
    // Called runs have a queue of their own.
    let home = Arc::new(tempfile::tempdir().unwrap());
    save_script(home.path(), "two.ts", "return 2");
    let start = Start::new().within(home).config("isolation", isolation("payments", &of_front));
    assert_eq!(run(&Server::start(start), "return await scripts.two({})")["value"], 2);
    let log = server.log();
    assert!(!log.contains("Violation"), "{log}");

    // The server refuses another tenant's buckets, whatever key is used, and workers have no buckets.
    let denied = front("other", &of_front);
    let result = run(&denied, "return await state.get('k')");
    assert_eq!(result["error"]["toolCode"], "STATE_UNAVAILABLE", "{result}");
    assert_eq!(run(&denied, "return 1")["value"], 1, "runs need no state");
    let as_worker = run(&front("payments", &of_worker), "return 1");
    assert_eq!(as_worker["code"], "ENGINE_UNAVAILABLE", "{as_worker}");
    let has_said = |log: &str| log.contains("Violation") && log.contains("KV_cx-state-other");
    // It answers before it writes that.
    wait_for(|| has_said(&server.log()).then_some(()));
    drop(worker);
}

/// An address with `tls://` means TLS with a trusted authority, and credentials go to no other server.
#[test]
fn a_server_that_is_not_trusted_gets_nothing() {
    let config = |directory: &Path| {
        let page = config_of_the_page(directory);
        page.replace("password: \"a password of the front ends\"", "password: front")
    };
    let Some(server) = NatsServer::start_with(config) else { return };
    let Some(plain) = NatsServer::start() else { return };
    let ca = server.key().with_file_name("ca.pem");
    let front = Front::new(&server, "well");
    let good = file(&server, "good.json", "{\"user\": \"front\", \"password\": \"front\"}");
    let bad = file(&server, "bad.json", "{\"user\": \"front\", \"password\": \"other\"}");
    let odd = file(&server, "odd.json", "{\"user\": \"front\"}");
    let empty = file(&server, "empty.pem", "");
    let said = |url: &str, ca: Option<&Path>, credentials: &Path| {
        let mut command = front.command_at(url, &server.key(), &["-e", "return 1"]);
        command.arg("--nats-credentials").arg(credentials);
        if let Some(ca) = ca {
            command.arg("--nats-ca").arg(ca);
        }
        let output = command.output().unwrap();
        assert!(!output.status.success());
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let check = |found: String, expected: &str| assert!(found.contains(expected), "{expected}: {found}");
    check(said(&server.url(), None, &good), "cannot be reached");
    check(said(&server.url(), Some(&ca), &bad), "does not accept the credentials");
    check(said(&server.url(), Some(&ca), &odd), "has none");
    check(said(&server.url(), Some(&empty), &good), "has no certificates");
    check(said(&server.url(), Some(&ca.with_file_name("missing")), &good), "cannot be read");
    // Another name than that of the certificate, and a server without TLS.
    check(said(&server.url().replace("127.0.0.1", "localhost"), Some(&ca), &good), "cannot be reached");
    check(said(&plain.url().replace("nats:", "tls:"), Some(&ca), &good), "cannot be reached");
    // With all of it, only a worker is missing.
    check(said(&server.url(), Some(&ca), &good), "no `cx worker` has ever joined it");
}

/// The other forms of a credentials file.
#[test]
fn seeds_and_tokens_are_credentials() {
    // An example pair from the documentation of NATS.
    let (seed, public) = (
        "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY",
        "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4",
    );
    let with_key = format!("authorization {{ users: [{{ nkey: {public} }}] }}");
    let with_token = "authorization { token: \"a token of many characters\" }".to_owned();
    let token = json!({ "token": "a token of many characters" }).to_string();
    for (config, credentials) in [(with_key, format!("{seed}\n")), (with_token, token)] {
        let Some(server) = NatsServer::start_with(|_directory| config) else { return };
        let credentials = file(&server, "credentials", &credentials);
        let more = ["--nats-credentials", credentials.to_str().unwrap()];
        let _worker = server.worker_with(1, &more);
        let front = Front::new(&server, "well");
        let found = front.run(&[&more[..], &["-e", "return 1"]].concat());
        assert_eq!(found["value"], 1, "{found}");
        let refused = front.run(&["-e", "return 1"]);
        assert_eq!(refused["error"]["code"], "ENGINE_UNAVAILABLE", "{refused}");
        let mut without = Worker::start_unjoined(&server.url(), &server.key(), 1, &[]);
        let ended = || without.said().contains("does not accept").then_some(());
        wait_within(LONG, ended);
        assert_eq!(without.wait(LONG).code(), Some(2));
    }
}

/// The output of `nsc` (`.creds`): a user's token that its account has signed, and the user's key.
#[test]
fn a_signed_token_with_its_key_is_a_credential() {
    let Some(server) = NatsServer::start_with(nats_accounts::config) else { return };
    let good = file(&server, "good.creds", &nats_accounts::credentials(false));
    let strange = file(&server, "strange.creds", &nats_accounts::credentials(true));
    let with = |credentials: &Path| ["--nats-credentials".to_owned(), credentials.display().to_string()];
    let [option, path] = with(&good);
    let _worker = server.worker_with(1, &[&option, &path]);
    let front = Front::new(&server, "well");
    let code = "return (await tools.here.echo({ text: 'a' })) !== null";
    let found = front.run(&[&option, &path, "-e", code]);
    assert_eq!(found["value"], true, "{found}");
    for more in [&[][..], &with(&strange)] {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let refused = front.run(&[&more[..], &["-e", "return 1"]].concat());
        assert_eq!(refused["error"]["code"], "ENGINE_UNAVAILABLE", "{refused}");
    }
}

/// A server that refuses the credentials at a reconnect, as while they are replaced. The client library would never try
/// again after that.
#[test]
fn v_587_refused_credentials_are_tried_again() {
    let config = |token: &str| format!("authorization {{ token: \"{token}\" }}");
    let (good, other) = (config("a token of many characters"), config("another token of many characters"));
    let Some(mut server) = NatsServer::start_with(|_directory| good.clone()) else { return };
    let token = json!({ "token": "a token of many characters" }).to_string();
    let credentials = file(&server, "credentials", &token);
    let tenant_key = file(&server, "tenant-key", "a key that only the front ends of this tenant have");
    let worker = server.worker_with(1, &["--nats-credentials", credentials.to_str().unwrap()]);
    let isolation = json!({
        "mode": "nats", "url": server.url(), "keyFile": server.key(), "credentialsFile": credentials,
        "tenant": "payments", "tenantKeyFile": tenant_key,
    });
    let front = Server::start(Start::new().config("isolation", isolation));
    assert_eq!(run(&front, "await state.set('k', 7); return 1")["value"], 1);
    server.restart_with(&other);
    worker.wait_for_line("no scripts are taken");
    let record = || front.get("/v1/runs/abcdefghijklmnop/output", &[]);
    // The connection for shared state is refused too.
    wait_within(LONG, || record().body().contains("does not accept the credentials").then_some(()));
    server.restart_with(&good);
    wait_within(LONG, || (worker.said().matches("taking scripts from").count() >= 2).then_some(()));
    wait_within(LONG, || (run(&front, "return await state.get('k')")["value"] == 7).then_some(()));
}
