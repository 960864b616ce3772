//! The configuration of `cx serve` while it runs: a process, and the files that it reads.

/// Files that are trusted, come, grow and change often.
mod files;

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::chaos;
use crate::support::serve::{Client, END, Start, WATCHDOG, meta, run_cx};
use crate::support::serve_http::Server;

/// Calls a tool until that fails, and returns how it fails. The first call must succeed.
const UNTIL_REFUSED: &str = "await tools.a.echo({}); for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    try { await tools.a.echo({}) } catch (error) { return { code: error.code, message: error.message } }
}";

/// The options of a command whose scripts wait for the files to be looked at.
const PATIENT: &[&str] = &["--timeout", "100s", "--cpu-time", "100s", "--max-tool-calls", "0"];

/// With the servers of these names, in the person's own file.
fn start(servers: &[&str]) -> Start {
    let start = servers.iter().fold(Start::new(), |start, name| start.server(name, &["well"]));
    start.config("deny", json!([])).arguments(PATIENT).with_stderr()
}

/// How a server of `tests/chaos` is configured.
fn entry(directory: &Path, name: &str) -> Value {
    let notes = directory.join(name).display().to_string();
    json!({ "command": chaos::program(), "args": ["stdio", "--notes", notes, "well"] })
}

/// Replaces the person's own file, as an editor does.
fn edit(directory: &Path, change: impl FnOnce(&mut Value)) {
    let file = directory.join("cx/config.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    change(&mut config);
    let new = directory.join("cx/config.json.new");
    std::fs::write(&new, config.to_string()).unwrap();
    std::fs::rename(new, file).unwrap();
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < WATCHDOG, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a server of `tests/chaos` has been called by a script that was just started.
fn wait_for_call(client: &Client, server: &str) {
    wait_until("a call", || client.notes(server).contains("executed echo"));
}

fn code(client: &mut Client, id: &Value) -> Value {
    client.answer(id)["result"]["structuredContent"]["value"]["code"].clone()
}

fn loads(health: &Value) -> u64 {
    health["config"]["loads"].as_u64().unwrap()
}

#[test]
fn a_script_in_flight_obeys_a_new_denial() {
    let mut client = start(&["a"]).spawn().shaken();
    let running = client.begin_call("executeTypescript", json!({ "code": UNTIL_REFUSED }));
    wait_for_call(&client, "a");
    edit(client.directory(), |config| config["deny"] = json!(["a.echo"]));
    assert_eq!(code(&mut client, &running), "TOOL_DENIED");
    // Later calls too, and then a wider rule.
    let later = client.run("return call_tool('a', 'echo', {}).error.code")["value"].clone();
    assert_eq!(later, "TOOL_DENIED");
    edit(client.directory(), |config| config["deny"] = json!([]));
    wait_until("it is allowed again", || client.stderr().matches("loaded again: other rules").count() == 2);
    assert_eq!(client.run("await tools.a.echo({}); return 1")["value"], 1);
    assert_eq!(client.noted_processes("a", "started ").len(), 1, "the server was started again");
    client.end();
}

#[test]
fn a_new_denial_over_http() {
    let server = Server::start(start(&["a"]));
    let session = server.session();
    let mut listening = session.listen();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| session.begin_run(1, UNTIL_REFUSED).result());
        wait_until("a call", || server.notes("a").contains("executed echo"));
        edit(server.directory(), |config| {
            config["deny"] = json!(["a.echo"]);
            config["mcpServers"]["b"] = entry(server.directory(), "b");
        });
        assert_eq!(running.join().unwrap()["structuredContent"]["value"]["code"], "TOOL_DENIED");
    });
    // In a thread of its own: a stream without messages stays open.
    let (sender, told) = channel();
    std::thread::spawn(move || sender.send(listening.next()));
    let told = told.recv_timeout(WATCHDOG).expect("the client is told").unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let list = session.begin(2, "tools/list", json!({})).result().to_string();
    assert!(list.contains("Servers: a, b."), "{list}");
}

/// `subscriptions/listen` of the revision 2026-07-28.
#[test]
fn a_client_without_a_handshake_is_told_if_it_listens() {
    const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
    let filter = || json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true }, "_meta": meta(json!({})) });
    let mut client = start(&["a"]).spawn();
    let offered = client.request("server/discover", json!({ "_meta": meta(json!({})) }));
    assert_eq!(offered["result"]["capabilities"]["tools"]["listChanged"], true, "{offered}");
    // One with a number as id, one with text, and one that asks for nothing.
    let mut ids = vec![client.begin("subscriptions/listen", filter())];
    for (id, wanted) in [("listening", json!({ "toolsListChanged": true })), ("deaf", json!({}))] {
        let params = json!({ "notifications": wanted, "_meta": meta(json!({})) });
        client
            .send(&json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params }));
        ids.push(json!(id));
    }
    // Requests are handled side by side.
    let mut acknowledged: Vec<Value> = Vec::new();
    for _ in &ids {
        let said = client.receive();
        assert_eq!(said["method"], "notifications/subscriptions/acknowledged", "{said}");
        let id = said["params"]["_meta"][SUBSCRIPTION].clone();
        let accepted = if id == "deaf" { json!({}) } else { json!({ "toolsListChanged": true }) };
        assert_eq!(said["params"]["notifications"], accepted);
        acknowledged.push(id);
    }
    assert!(acknowledged.len() == 3 && ids.iter().all(|id| acknowledged.contains(id)), "{acknowledged:?}");
    let directory = client.directory().to_owned();
    edit(&directory, |config| config["mcpServers"]["b"] = entry(&directory, "b"));
    let mut told: Vec<Value> = (0..2)
        .map(|_| {
            let said = client.receive();
            assert_eq!(said["method"], "notifications/tools/list_changed", "{said}");
            said["params"]["_meta"][SUBSCRIPTION].clone()
        })
        .collect();
    told.sort_by_key(Value::is_string);
    assert_eq!(told, ids[..2]);
    // A cancelled subscription sends nothing more, and its slot is free.
    for id in &ids {
        let params = json!({ "requestId": id });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }
    let listed =
        |client: &mut Client| client.request("tools/list", json!({ "_meta": meta(json!({})) })).to_string();
    // Its answer shows that the notifications were read.
    assert!(listed(&mut client).contains("Servers: a, b."));
    edit(&directory, |config| drop(config["mcpServers"].as_object_mut().unwrap().remove("b")));
    let start = Instant::now();
    while listed(&mut client).contains("Servers: a, b.") {
        assert!(start.elapsed() < WATCHDOG);
    }
    assert_eq!(client.take_seen(), [] as [Value; 0]);
    // The number is bounded for each client.
    let open: Vec<Value> = (0..65).map(|_| client.begin("subscriptions/listen", filter())).collect();
    let refused = (0..66).map(|_| client.receive()).find(|said| said.get("error").is_some()).unwrap();
    assert!(open.contains(&refused["id"]), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("64 subscriptions"), "{refused}");
    client.end();
}

#[test]
fn a_client_without_a_handshake_listens_over_http() {
    let mut server = Server::start(start(&["a"]));
    let params = || json!({ "notifications": { "toolsListChanged": true } });
    let mut listening = server.stateless("subscriptions/listen", params());
    assert_eq!(listening.next().unwrap()["method"], "notifications/subscriptions/acknowledged");
    let directory = server.directory().to_owned();
    edit(&directory, |config| config["mcpServers"]["b"] = entry(&directory, "b"));
    let told = listening.next().unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    let list = server.stateless("tools/list", json!({})).result().to_string();
    assert!(list.contains("Servers: a, b."), "{list}");
    // One client has 64; a connection that ends frees its slot.
    let mut others: Vec<_> = (0..63).map(|_| server.stateless("subscriptions/listen", params())).collect();
    for other in &mut others {
        assert_eq!(other.next().unwrap()["method"], "notifications/subscriptions/acknowledged");
    }
    let refused = |server: &Server| {
        let mut reply = server.stateless("subscriptions/listen", params());
        std::iter::from_fn(|| reply.next()).nth(1).is_some_and(|said| said.get("error").is_some())
    };
    assert!(refused(&server));
    others.pop();
    wait_until("a slot is free", || {
        let mut reply = server.stateless("subscriptions/listen", params());
        reply.next();
        // An open stream gets no message.
        let (sender, said) = channel();
        std::thread::spawn(move || sender.send(reply.next()));
        said.recv_timeout(Duration::from_millis(200)).is_err()
    });
    // When the server ends, it ends the streams properly.
    server.signal("TERM");
    let last = listening.next().unwrap();
    assert_eq!(last["id"], 1, "{last}");
    assert!(last["result"].is_object(), "{last}");
    assert_eq!(listening.next(), None);
    assert!(server.wait(END).success());
}

#[test]
fn a_broken_file_leaves_the_last_good_configuration() {
    let mut client = start(&["a"]).spawn().shaken();
    let file = client.directory().join("cx/config.json");
    let good = std::fs::read_to_string(&file).unwrap();
    edit_text(&file, "{ \"deny\": [\"a.echo\"], ");
    let health = client.wait_for_health(|health| health["config"]["failure"].is_object());
    let message = health["config"]["failure"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("cx/config.json"), "{message}");
    assert_eq!(health["healthy"], true);
    assert_eq!(client.run("await tools.a.echo({}); return 1")["value"], 1);
    // The same failure is printed once, however often the file is read.
    for _ in 0..2 {
        client.signal("HUP");
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(client.stderr().matches("stays in force").count(), 1, "{}", client.stderr());
    // The file is not applied in part: a new server in a file with a mistake is not used.
    edit_text(&file, &good.replacen("{", "{ \"unknown\": 1, ", 1));
    client.wait_for_health(|health| health["config"]["failure"]["message"] != message);
    edit_text(&file, &good);
    client.wait_for_health(|health| health["config"].get("failure").is_none());
    client.end();
}

fn edit_text(file: &Path, text: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[test]
fn servers_come_and_go() {
    let mut client = start(&["a"]).spawn().shaken();
    let directory = client.directory().to_owned();
    assert_eq!(client.run("await tools.a.echo({}); return 1")["value"], 1);
    edit(&directory, |config| config["mcpServers"]["b"] = entry(&directory, "b"));
    client.wait_for_health(|health| health["servers"]["b"].is_object());
    assert_eq!(client.run("await tools.b.echo({}); return await mcp.servers()")["value"], json!(["a", "b"]));
    let told = |client: &mut Client| {
        let start = Instant::now();
        loop {
            let seen = client.take_seen();
            let told =
                seen.iter().filter(|said| said["method"] == "notifications/tools/list_changed").count();
            if told > 0 {
                return told;
            }
            assert!(start.elapsed() < WATCHDOG, "the client is not told");
            client.ping();
        }
    };
    assert_eq!(told(&mut client), 1);
    assert!(client.request("tools/list", json!({})).to_string().contains("Servers: a, b."));
    let process = client.noted_processes("b", "started ").remove(0);
    edit(&directory, |config| drop(config["mcpServers"].as_object_mut().unwrap().remove("b")));
    client.wait_for_health(|health| health["servers"].get("b").is_none());
    wait_until("it ends", || !chaos::runs(&process));
    let failed = client.run("await tools.b.echo({})");
    assert!(failed["error"]["message"].as_str().unwrap().contains("no server `b`"), "{failed}");
    assert_eq!(told(&mut client), 1);
    // The other server is not affected by any of this.
    assert_eq!(client.noted_processes("a", "started ").len(), 1);
    assert!(chaos::runs(&client.noted_processes("a", "started ")[0]));
    client.end();
}

/// The process of a removed server lives as long as the runs that could use it, and gets no further calls.
#[test]
fn a_server_that_was_removed_ends_with_the_last_run() {
    let mut client = start(&["a", "b"]).spawn().shaken();
    let script = "await tools.a.echo({}); let failed; for (;;) {
        try { await tools.a.echo({}) } catch (error) { failed = error; break }
        await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await tools.b.echo({})
    while (!(await state.get('end'))) await new Promise((resolve) => setTimeout(resolve, 20))
    return failed.code + ' ' + failed.message";
    let running = client.begin_call("executeTypescript", json!({ "code": script }));
    wait_for_call(&client, "a");
    let process = client.noted_processes("a", "started ").remove(0);
    edit(client.directory(), |config| drop(config["mcpServers"].as_object_mut().unwrap().remove("a")));
    wait_for_call(&client, "b");
    assert!(chaos::runs(&process), "the run has not ended");
    client.run("await state.set('end', true)");
    let value = client.answer(&running)["result"]["structuredContent"]["value"].clone();
    let expected =
        "TOOL_NOT_FOUND server `a` was removed from the configuration while this script was running";
    assert_eq!(value, expected);
    wait_until("it ends", || !chaos::runs(&process));
    client.end();
}

#[test]
fn the_next_call_goes_to_the_new_definition() {
    let mut client = start(&["a"]).spawn().shaken();
    let directory = client.directory().to_owned();
    let script = "for (;;) {
        await tools.a.echo({})
        if (await state.get('end')) return 'ended'
        await new Promise((resolve) => setTimeout(resolve, 20))
    }";
    let running = client.begin_call("executeTypescript", json!({ "code": script }));
    wait_for_call(&client, "a");
    let old = client.noted_processes("a", "started ").remove(0);
    edit(&directory, |config| config["mcpServers"]["a"] = entry(&directory, "other"));
    wait_for_call(&client, "other");
    client.run("await state.set('end', true)");
    assert_eq!(client.answer(&running)["result"]["structuredContent"]["value"], "ended");
    wait_until("the old one ends", || !chaos::runs(&old));
    assert!(chaos::runs(&client.noted_processes("other", "started ")[0]));
    client.end();
}

#[test]
fn a_hangup_loads_again() {
    let mut client = start(&["a"]).spawn().shaken();
    client.health();
    client.signal("HUP");
    let said = "loaded again: nothing has changed";
    wait_until("it says so", || client.stderr().contains(said));
    assert_eq!(client.run("await tools.a.echo({}); return 1")["value"], 1);
    let server = Server::start(start(&["a"]));
    let before = loads(&server.health());
    server.signal("HUP");
    server.wait_for_health(|health| loads(health) > before);
    client.end();
}

/// As with `nohup`; the files are still looked at after that.
#[test]
fn an_ignored_hangup_stays_ignored() {
    let (command, directory) = start(&["a"]).arguments(&["--http", "127.0.0.1:0"]).command();
    let mut ignoring = Command::new("sh");
    ignoring
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args());
    ignoring.current_dir(directory.path());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => ignoring.env(name, value),
            None => ignoring.env_remove(name),
        };
    }
    let server = Server::start_command(ignoring, directory);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    assert_eq!(u64::from_str_radix(ignored.trim(), 16).unwrap() & 1, 1, "{ignored}");
    server.signal("HUP");
    edit(server.directory(), |config| config["mcpServers"]["b"] = entry(server.directory(), "b"));
    server.wait_for_health(|health| health["servers"]["b"].is_object());
}

#[test]
fn patterns_that_match_nothing_are_warned_of() {
    let unmatched = ["a.ehco", "absent.tool"];
    let mut client = start(&["a"])
        .config("deny", json!(["a.ehco", "a.resources/*", "*.nothing", "absent.tool"]))
        .spawn()
        .shaken();
    // Nothing is known of the tools before the server has listed them.
    let health = client.wait_for_health(|health| {
        health["config"]["unmatchedPatterns"].as_array().is_some_and(|patterns| patterns.len() == 2)
    });
    for (pattern, shown) in unmatched.iter().zip(health["config"]["unmatchedPatterns"].as_array().unwrap()) {
        assert!(shown.as_str().unwrap().contains(pattern), "{health:#}");
    }
    wait_until("both are printed", || {
        unmatched.iter().all(|pattern| client.stderr().matches(&format!("warning: `{pattern}`")).count() == 1)
    });
    let directory = client.directory().to_owned();
    client.close_stdin();
    assert_eq!(client.wait(END).code(), Some(0));
    // A command knows the cached lists.
    for (arguments, expected) in [
        (&["config", "show"][..], &unmatched[1..]),
        (&["tools", "list"], &unmatched[1..]),
        (&["tools", "list", "--refresh"], &unmatched[..]),
        (&["config", "show"], &unmatched[..]),
    ] {
        let output = run_cx(&directory, arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        let warned: Vec<bool> = unmatched.iter().map(|pattern| stderr.contains(pattern)).collect();
        let expected: Vec<bool> = unmatched.iter().map(|pattern| expected.contains(pattern)).collect();
        assert_eq!(warned, expected, "{arguments:?}: {stderr}");
        assert!(!stderr.contains("*.nothing") && !stderr.contains("resources"), "{stderr}");
    }
}

#[test]
fn bounds_of_all_scripts_count_at_once() {
    let server = Server::start_with(&["--http", "127.0.0.1:0"], start(&[]));
    let run = || {
        let arguments = json!({ "code": "return 1" });
        let params = json!({ "name": "executeTypescript", "arguments": arguments });
        server.stateless("tools/call", params).result()["structuredContent"].clone()
    };
    assert_eq!(run()["value"], 1);
    edit(server.directory(), |config| {
        config["clientRate"] = json!({ "calls": 2, "perMs": 3_600_000 });
        config["totalMemoryBytes"] = json!(256 << 20);
    });
    let health = server.wait_for_health(|health| health["memory"]["totalBytes"] == 256 << 20);
    assert!(health["config"].get("needsRestart").is_none(), "{health}");
    assert_eq!((run()["value"].clone(), run()["value"].clone()), (json!(1), json!(1)));
    assert_eq!(run()["error"]["code"], "RATE_LIMITED");
    edit(server.directory(), |config| {
        config["clientRate"]["calls"] = json!(9);
        config["cache"] = json!({ "enabled": false });
    });
    let health = server.wait_for_health(|health| health["config"]["needsRestart"].is_array());
    assert_eq!(health["config"]["needsRestart"], json!(["cache"]));
    assert_eq!(run()["value"], 1);
}
