//! `state` and records of runs that the front ends of a tenant share over a NATS server. With a real `nats-server`;
//! `support/nats.rs` says how to leave these tests out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::support::nats::NatsServer;
use crate::support::serve::Start;
use crate::support::serve_http::{Reply, Server, wait_for};
use crate::support::write_secret;

/// A file with a tenant's key, beside the server's.
fn key(server: &NatsServer, name: &str) -> PathBuf {
    let file = server.key().with_file_name(name);
    write_secret(&file, &format!("the key of a tenant that no other one has: {name}"));
    file
}

fn start_of(server: &NatsServer, tenant: &str, key: &Path) -> Start {
    let isolation = json!({
        "mode": "nats", "url": server.url(), "keyFile": server.key(), "tenant": tenant, "tenantKeyFile": key,
    });
    Start::new().config("isolation", isolation)
}

fn front(server: &NatsServer, tenant: &str, key: &Path) -> Server {
    Server::start(start_of(server, tenant, key))
}

fn create(front: &Server, body: &Value) -> Value {
    let headers = [("Content-Type", "application/json")];
    front.send("POST", "/v1/runs", &headers, &body.to_string()).message()
}

/// A run of a client without a session of the protocol, which names one of its own.
fn run(front: &Server, code: &str) -> Value {
    create(front, &json!({ "language": "typescript", "code": code, "session": "trip" }))
}

fn value(front: &Server, code: &str) -> Value {
    let result = run(front, code);
    assert_eq!(result["success"], true, "{result}");
    result["value"].clone()
}

fn record(front: &Server, id: &str) -> Reply {
    front.get(&format!("/v1/runs/{id}/output"), &[])
}

/// Whether some file below the directory has the text. Files come and go there.
fn has_text(directory: &Path, text: &str) -> bool {
    std::fs::read_dir(directory).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return has_text(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.windows(text.len()).any(|found| found == text.as_bytes())
    })
}

#[test]
fn front_ends_of_a_tenant_share_state_and_records() {
    let Some(mut server) = NatsServer::start() else { return };
    let _worker = server.worker(2);
    let of_tenant = key(&server, "a");
    let (one, other) = (front(&server, "a", &of_tenant), front(&server, "a", &of_tenant));
    assert_eq!(value(&one, "await state.set('k', { secret: 'in-the-state' }); return 1"), 1);
    assert_eq!(
        value(&other, "return [await state.get('k'), await state.keys()]"),
        json!([{ "secret": "in-the-state" }, ["k"]])
    );
    // Longer than one message of NATS may be, so the value is split.
    assert_eq!(value(&other, "await state.set('long', 'y'.repeat(1000000)); return 1"), 1);
    assert_eq!(value(&one, "return (await state.get('long')).length"), 1_000_000);
    let python = "await state.delete('long')\nawait state.set('p', 7)\nawait state.keys()";
    let python = create(&one, &json!({ "language": "python", "code": python, "session": "trip" }));
    assert_eq!(python["value"], json!(["k", "p"]), "{python}");
    // Another session is another scope, and so is the session of a client that has one.
    let elsewhere = json!({ "language": "typescript", "code": "return await state.keys()", "session": "a" });
    assert_eq!(create(&other, &elsewhere)["value"], json!([]));
    assert_eq!(
        one.session().run("await state.set('k', 1); return await state.keys()")["value"],
        json!(["k"])
    );
    assert_eq!(other.session().run("return await state.keys()")["value"], json!([]));
    // A dry run changes nothing.
    let dry =
        "await state.set('k', 2); await state.set('d', 3); return [await state.get('k'), await state.keys()]";
    let dry = json!({ "language": "typescript", "code": dry, "session": "trip", "dryRun": true });
    assert_eq!(create(&one, &dry)["value"], json!([2, ["d", "k", "p"]]));
    assert_eq!(value(&other, "return await state.keys()"), json!(["k", "p"]));

    // The other front end at once finds the part that an answer leaves out.
    let long = run(&one, "console.log('z'.repeat(300000) + 'in-the-record'); return 1");
    let id = long["runId"].as_str().unwrap_or_else(|| panic!("{long}")).to_owned();
    let read = format!("const run = await mcp.run('{id}'); return [run.output.length, run.value]");
    assert_eq!(value(&other, &read), json!([300_013, 1]));
    assert_eq!(record(&other, &id).body().len(), 300_013);
    let uri = json!({ "uri": format!("cx://runs/{id}/output") });
    let resource = other.stateless("resources/read", uri).result();
    assert_eq!(resource["contents"][0]["text"].as_str().unwrap().len(), 300_013);
    // A client with a session does not find it: it has records of its own.
    let with_session = other.session().run(&format!("return await mcp.run('{id}')"));
    assert_eq!(with_session["error"]["toolCode"], "RUN_NOT_FOUND", "{with_session}");
    let missing = run(&other, "return await mcp.run('aaaaaaaaaaaaaaaa')");
    assert_eq!(missing["error"]["toolCode"], "RUN_NOT_FOUND", "{missing}");

    // Tenants are separated by their names, and by their keys if the names are the same.
    let outsiders = [("b", key(&server, "b")), ("b", of_tenant.clone()), ("a", key(&server, "c"))];
    for (name, its_key) in &outsiders {
        let outsider = front(&server, name, its_key);
        assert_eq!(value(&outsider, "return await state.keys()"), json!([]), "{name}");
        assert_eq!(value(&outsider, "await state.set('k', 'theirs'); return 1"), 1);
        assert_eq!(record(&outsider, &id).status, 404);
        let refused = run(&outsider, &format!("return await mcp.run('{id}')"));
        assert_eq!(refused["error"]["toolCode"], "RUN_NOT_FOUND", "{refused}");
    }
    let plain = Server::start(Start::new());
    assert_eq!(value(&plain, "return await state.keys()"), json!([]));
    assert_eq!(value(&one, "return await state.get('k')"), json!({ "secret": "in-the-state" }));

    // The state is still there after all of them have ended, including the NATS server.
    drop((one, other));
    server.kill();
    server.restart();
    let later = front(&server, "a", &of_tenant);
    let again =
        || Some(run(&later, "return await state.get('k')")).filter(|result| result["success"] == true);
    let found = wait_for(again);
    assert_eq!(found["value"], json!({ "secret": "in-the-state" }));
    assert_eq!(record(&later, &id).body().len(), 300_013);
    // The operator of the NATS server can read neither names nor values.
    let files = server.key().with_file_name("jetstream");
    assert!(has_text(&files, "KV_cx-state-a"), "this is where it is");
    for text in ["in-the-state", "in-the-record", "secret", "trip", &id] {
        assert!(!has_text(&files, text), "{text}");
    }
}

/// Increments at two front ends, and quotas that hold across both.
#[test]
fn concurrent_changes_of_two_front_ends_lose_nothing() {
    let Some(server) = NatsServer::start() else { return };
    let _worker = server.worker(4);
    let of_tenant = key(&server, "a");
    let fronts = [front(&server, "a", &of_tenant), front(&server, "a", &of_tenant)];
    let count = "for (let i = 0; i < 25; i++) {\n\
        await state.update('n', (n) => (n ?? 0) + 1);\n\
        await state.set(`${input}-${i}`, i);\n\
        } return 1";
    std::thread::scope(|scope| {
        for (number, front) in fronts.iter().chain(&fronts).enumerate() {
            let body = json!({
                "language": "typescript", "code": count, "session": "trip", "input": number, "timeoutMs": 120_000,
            });
            scope.spawn(move || assert_eq!(create(front, &body)["value"], 1));
        }
    });
    for front in &fronts {
        assert_eq!(
            value(front, "return [await state.get('n'), (await state.keys()).length]"),
            json!([100, 101])
        );
    }
    let fill = "let set = 0; try { for (let i = 0; i < 600; i++) { await state.set(`${input}/${i}`, 1); set++; } }\n\
        catch (error) { return [error.code, set]; } return ['', set]";
    let fill = |front: &Server, input: &str| {
        let body = json!({
            "language": "typescript", "code": fill, "session": "trip", "input": input, "timeoutMs": 120_000,
        });
        create(front, &body)["value"].clone()
    };
    assert_eq!(fill(&fronts[0], "a"), json!(["", 600]));
    assert_eq!(fill(&fronts[1], "b"), json!(["STATE_FULL", 299]), "1,000 keys are all, at both together");
    assert_eq!(value(&fronts[0], "return (await state.keys()).length"), 1_000);
}

/// Another client of the NATS server can remove and damage shared entries, and do no more.
#[test]
fn what_others_do_to_the_buckets_is_an_error() {
    let Some(mut server) = NatsServer::start() else { return };
    let worker = server.worker(2);
    let of_tenant = key(&server, "a");
    let one = Arc::new(front(&server, "a", &of_tenant));
    let mut outsider = server.outsider();
    outsider.subscribe("$KV.cx-state-a.>");
    assert_eq!(value(&one, "await state.set('k', 1); return 1"), 1);
    let (head, sealed) = std::iter::repeat_with(|| outsider.next()).find_map(|message| message).unwrap();
    let other = create(
        &one,
        &json!({ "language": "typescript", "code": "await state.set('k', 2)", "session": "other" }),
    );
    assert_eq!(other["success"], true, "{other}");
    let (of_other, _) = std::iter::repeat_with(|| outsider.next()).find_map(|message| message).unwrap();
    assert_ne!(head, of_other);
    // The state of one session in place of another one's, and an entry that was never sealed.
    for forged in [&sealed[..], b"\x01\x00{\"entries\":{}}"] {
        outsider.publish(&of_other, forged);
        let read = json!({
            "language": "typescript", "code": "return await state.get('k')", "session": "other",
        });
        let look = || Some(create(&one, &read)).filter(|result| result["success"] == false);
        let result = wait_for(look);
        assert_eq!(result["error"]["toolCode"], "STATE_UNAVAILABLE", "{result}");
        assert!(result["error"]["message"].as_str().unwrap().contains("same key file"), "{result}");
    }
    assert_eq!(value(&one, "return await state.get('k')"), 1);
    outsider.publish("$JS.API.STREAM.DELETE.KV_cx-state-a", b"");
    let look = || Some(run(&one, "return await state.get('k')")).filter(|result| result["success"] == false);
    let removed = wait_for(look);
    assert_eq!(removed["error"]["toolCode"], "STATE_UNAVAILABLE", "{removed}");
    // The bucket is made again.
    assert_eq!(value(&one, "await state.set('k', 3); return await state.get('k')"), 3);

    // Without the NATS server there are neither runs nor records, and no request hangs.
    let long = run(&one, "console.log('z'.repeat(300000)); return 1");
    let id = long["runId"].as_str().unwrap_or_else(|| panic!("{long}")).to_owned();
    assert_eq!(record(&one, &id).status, 200);
    server.kill();
    assert_eq!(record(&one, &id).status, 200, "this front end has it");
    let unknown = record(&one, "aaaaaaaaaaaaaaaa");
    assert_eq!(unknown.status, 503);
    assert!(unknown.body().contains("STATE_UNAVAILABLE"));
    let refused = run(&one, "return await state.get('k')");
    assert_eq!(refused["code"], "ENGINE_UNAVAILABLE", "{refused}");
    // A front end that starts without the NATS server works when the server comes.
    let second = front(&server, "a", &of_tenant);
    assert_eq!(record(&second, &id).status, 503);
    server.restart();
    let look = || Some(record(&second, &id)).filter(|reply| reply.status == 200);
    wait_for(look);
    drop(worker);
}

#[test]
fn what_is_wrong_with_a_tenant_is_said_at_the_start() {
    let Some(server) = NatsServer::start() else { return };
    let said = |tenant: &str, key: &Path| {
        let (mut command, _directory) = start_of(&server, tenant, key).command();
        let output = command.stderr(std::process::Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let good = key(&server, "a");
    assert!(said("A b", &good).contains("lower-case letters"), "{}", said("A b", &good));
    let missing = good.with_file_name("missing");
    assert!(said("a", &missing).contains("cannot be read"), "{}", said("a", &missing));
    write_secret(&missing, "short");
    assert!(said("a", &missing).contains("at least 32 characters"), "{}", said("a", &missing));
}
