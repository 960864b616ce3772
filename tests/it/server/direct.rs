//! Tools that `cx serve` exposes to clients directly, beside those that run scripts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::serve::{Client, Start, WATCHDOG, meta, save_script};
use crate::support::serve_http::Server;

/// The capabilities of a client that shows user interfaces.
fn with_interfaces() -> Value {
    let settings = json!({ "mimeTypes": ["text/html;profile=mcp-app"] });
    json!({ "extensions": { "io.modelcontextprotocol/ui": settings } })
}

fn shaken_with(start: Start, capabilities: &Value) -> (Client, Value) {
    let mut client = start.spawn();
    let answer = client.initialize_with("2025-11-25", capabilities.clone());
    (client, answer["result"].clone())
}

fn tools(client: &mut Client) -> Vec<Value> {
    client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

const OWN: [&str; 3] = ["executeTypescript", "executePython", "health"];

fn own_and(more: &[&str]) -> Vec<String> {
    OWN.iter().chain(more).map(|&name| name.to_owned()).collect()
}

/// Waits until the list has these names.
fn wait_for_names(client: &mut Client, expected: &[String]) -> Vec<Value> {
    let start = Instant::now();
    loop {
        let tools = tools(client);
        if names(&tools) == *expected {
            return tools;
        }
        assert!(start.elapsed() < WATCHDOG, "{:?}", names(&tools));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn call(client: &mut Client, name: &str, arguments: &Value) -> Value {
    client.request("tools/call", json!({ "name": name, "arguments": arguments }))
}

fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_named_tool_is_listed_and_called() {
    let start = Start::new().server("well", &["well"]).server("apps", &["apps"]);
    let mut client = start.config("direct", json!(["well.e*", "apps.show_time"])).spawn().shaken();
    let tools = wait_for_names(&mut client, &own_and(&["well__echo", "apps__show_time"]));
    let shown = &tools[4];
    // The definition is the server's.
    assert_eq!(shown["description"], "Shows the time");
    assert_eq!(shown["inputSchema"]["properties"]["zone"]["type"], "string");
    assert_eq!(shown["outputSchema"]["properties"]["time"]["type"], "string");
    assert_eq!(shown["annotations"], json!({ "title": "Clock", "readOnlyHint": true }));
    assert_eq!(shown["_meta"]["com.example/own"], json!([1, { "a": null }]));
    // And so is the answer.
    let answer = call(&mut client, "apps__show_time", &json!({ "zone": "UTC" }))["result"].clone();
    let expected = json!({
        "content": [
            { "type": "text", "text": "noon", "annotations": { "audience": ["user"] }, "_meta": { "n": 1 } },
            { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
            { "type": "resource_link", "uri": "chaos://clock", "name": "clock" },
        ],
        "structuredContent": { "time": "12:00", "of": { "zone": "UTC" } },
        "_meta": { "com.example/kept": { "a": [1, null] } },
    });
    assert_eq!(answer, expected);
    // `input` is taken out of messages for scripts only.
    let echoed = call(&mut client, "well__echo", &json!({ "a": 1, "input": { "b": [2] } }));
    assert_eq!(echoed["result"]["structuredContent"], json!({ "a": 1, "input": { "b": [2] } }));
    // A tool that is not shown cannot be called directly; scripts have all tools.
    let unknown = call(&mut client, "well__count", &json!({}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("no tool `well__count`"), "{unknown}");
    assert_eq!(client.run("return (await tools.well.count({})).count")["value"], 1);
    client.end();
}

#[test]
fn the_rules_of_scripts_apply() {
    let start = Start::new().server("well", &["well"]);
    let mut client = start
        .config("direct", json!(["well.*"]))
        .config("deny", json!(["well.count"]))
        .config("ask", json!(["well.slow"]))
        .config("limits", json!({ "maxResultBytes": 2_000 }))
        .spawn()
        .shaken();
    let tools = tools(&mut client);
    assert!(!names(&tools).contains(&"well__count"), "{:?}", names(&tools));
    // Arguments are checked before anything is sent.
    let wrong = call(&mut client, "well__big", &json!({ "bytes": "many" }));
    assert_eq!(wrong["result"]["isError"], true);
    assert!(text_of(&wrong).starts_with("INVALID_ARGUMENTS: `bytes`"), "{wrong}");
    assert!(!client.notes("well").contains("executed big"));
    let asked = call(&mut client, "well__slow", &json!({ "ms": 1 }));
    assert!(text_of(&asked).contains("needs a person's approval"), "{asked}");
    assert!(!client.notes("well").contains("executed slow"));
    let large = call(&mut client, "well__big", &json!({ "bytes": 3_000 }));
    assert!(text_of(&large).starts_with("RESULT_TOO_LARGE"), "{large}");
    // The tool's own failure is passed on unchanged.
    let failed = call(&mut client, "well__fail", &json!({}));
    let expected = json!({ "content": [{ "type": "text", "text": "it did not work" }], "isError": true });
    assert_eq!(failed["result"], expected);
    client.end();
}

/// A call without a script is in the trail like a call of a script, and so is its refusal.
#[test]
fn calls_are_in_the_audit_trail() {
    let directory = tempfile::tempdir().unwrap();
    let trail = directory.path().join("trail");
    let start = Start::new().server("well", &["well"]).arguments(&["--audit", trail.to_str().unwrap()]);
    let start = start.config("direct", json!(["well.*"])).config("ask", json!(["well.slow"]));
    let mut client = start.spawn().shaken();
    let echoed = call(&mut client, "well__echo", &json!({ "a": 1 }));
    assert_eq!(echoed["result"]["structuredContent"], json!({ "a": 1 }), "{echoed}");
    let failed = call(&mut client, "well__fail", &json!({}));
    assert_eq!(failed["result"]["isError"], true);
    let refused = call(&mut client, "well__slow", &json!({ "ms": 1 }));
    assert!(text_of(&refused).contains("needs a person's approval"), "{refused}");
    client.end();
    let files = std::fs::read_dir(&trail).unwrap().map(|entry| entry.unwrap().path());
    let file =
        files.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "jsonl")).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events = |tool: &str| -> Vec<&str> {
        let of_tool = lines.iter().filter(|line| line["tool"] == tool && line["server"] == "well");
        of_tool.map(|line| line["event"].as_str().unwrap()).collect()
    };
    assert_eq!(events("echo"), ["call.will", "call.did"], "{text}");
    assert_eq!(events("fail"), ["call.will", "call.did"], "{text}");
    assert_eq!(events("slow"), ["approval.asked", "approval.answered", "call.refused"], "{text}");
    // Each is a separate run, of this client.
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    assert_eq!((of("run.started"), of("run.ended")), (3, 3), "{text}");
    let runs: std::collections::BTreeSet<&str> = lines
        .iter()
        .filter(|line| line["event"] == "run.started")
        .map(|line| line["run"].as_str().unwrap())
        .collect();
    assert_eq!(runs.len(), 3, "{text}");
    let verified = std::process::Command::new(env!("CARGO_BIN_EXE_cx"))
        .args(["audit", "verify", "--audit", trail.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

/// A server has one circuit breaker for all callers of its tools.
#[test]
fn the_breaker_of_a_server_is_that_of_scripts() {
    let start = Start::new().server("dies", &["dies-in-call"]).server("well", &["well"]);
    let mut client = start.config("direct", json!(["*.*"])).spawn().shaken();
    for _ in 0..5 {
        let failed = call(&mut client, "dies__target", &json!({}));
        assert!(text_of(&failed).starts_with("UPSTREAM_UNAVAILABLE"), "{failed}");
    }
    let refused = call(&mut client, "dies__target", &json!({}));
    assert_eq!(refused["result"]["isError"], true);
    assert!(text_of(&refused).starts_with("CIRCUIT_OPEN"), "{refused}");
    assert!(text_of(&refused).contains("try again after "), "{refused}");
    let health = client.wait_for_health(|health| health["servers"]["dies"]["breaker"] == "open");
    assert_eq!(health["servers"]["well"]["breaker"], "closed");
    let code = client.run("try { await tools.dies.target({}) } catch (error) { return error.code }");
    assert_eq!(code["value"], "CIRCUIT_OPEN", "{code}");
    // The last two were not sent.
    assert_eq!(client.notes("dies").matches("executed target").count(), 5);
    let well = call(&mut client, "well__echo", &json!({ "a": 1 }));
    assert_eq!(well["result"]["structuredContent"], json!({ "a": 1 }));
    client.end();
}

#[test]
fn a_long_text_is_cut_and_the_next_script_gets_it() {
    let start = Start::new().server("well", &["well"]).config("direct", json!(["well.big"]));
    let mut client = start.arguments(&["--max-value", "1000"]).spawn().shaken();
    let answer = call(&mut client, "well__big", &json!({ "bytes": 50_000 }));
    let text = text_of(&answer);
    assert!(text.len() < 1_100 && text.contains("characters left out"), "{text}");
    let run = text.split("mcp.run(\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let whole = format!("return (await mcp.run({run:?})).value.content[0].text.length");
    assert_eq!(client.run(&whole)["value"], 50_000);
    client.end();
}

#[test]
fn cancellation_and_progress_pass_through() {
    let start = Start::new().server("well", &["well"]).config("direct", json!(["well.*"]));
    let mut client = start.spawn().shaken();
    tools(&mut client);
    let parameters = json!({
        "name": "well__progress", "arguments": { "steps": 4, "ms": 500 }, "_meta": { "progressToken": "p" },
    });
    let answer = client.request("tools/call", parameters);
    assert_eq!(text_of(&answer), "done");
    let notes = client.take_seen();
    // On a busy machine it may also be said that the tool still runs.
    let is_beat = |note: &&Value| {
        note["params"]["message"].as_str().is_some_and(|said| said.starts_with("running for "))
    };
    let seen: Vec<(f64, f64)> = notes
        .iter()
        .filter(|note| !is_beat(note))
        .map(|note| {
            assert_eq!(note["params"]["progressToken"], "p", "{note}");
            (note["params"]["progress"].as_f64().unwrap(), note["params"]["total"].as_f64().unwrap())
        })
        .collect();
    assert!(seen.len() >= 2 && seen.is_sorted_by(|a, b| a.0 < b.0), "{seen:?}");
    assert_eq!(seen.last(), Some(&(4.0, 4.0)));
    let slow = client.begin_call("well__slow", json!({ "ms": 60_000 }));
    let start = Instant::now();
    while !client.notes("well").contains("executed slow") {
        assert!(start.elapsed() < WATCHDOG);
        std::thread::sleep(Duration::from_millis(10));
    }
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": slow } }),
    );
    while !client.notes("well").contains("cancelled") {
        assert!(start.elapsed() < WATCHDOG, "the server was not told");
        std::thread::sleep(Duration::from_millis(10));
    }
    client.end();
}

#[test]
fn schemas_that_would_break_the_list_are_left_out_with_a_warning() {
    let start = Start::new().server("odd", &["odd-schemas"]).config("direct", json!(["odd.*"]));
    let mut client = start.spawn().shaken();
    let tools = tools(&mut client);
    let names = names(&tools);
    let odd: Vec<_> = names.iter().filter(|name| name.starts_with("odd__odd_")).collect();
    assert!(odd.len() == 1 && odd[0].starts_with("odd__odd_output_"), "{names:?}");
    assert!(names.contains(&"odd__untyped") && names.contains(&"odd__echo"), "{names:?}");
    let untyped = tools.iter().find(|tool| tool["name"] == "odd__untyped").unwrap();
    assert_eq!(untyped["inputSchema"], json!({ "properties": { "a": {} }, "type": "object" }));
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
        assert!(name.len() <= 64 && name.chars().all(is_plain), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
    }
    // A tool with a changed name is called by the listed name.
    let renamed = names.iter().find(|name| name.starts_with("odd__odd_output_")).unwrap();
    let definition = tools.iter().find(|tool| tool["name"] == **renamed).unwrap();
    assert!(definition.get("outputSchema").is_none(), "{definition}");
    assert_eq!(text_of(&call(&mut client, renamed, &json!({}))), "odd");
    let health = client.health();
    let warnings: Vec<&str> = health["config"]["notShownDirectly"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    for tool in
        ["odd_array", "odd_types", "odd_properties", "odd_required", "odd_unknown", "odd_large", "odd_deep"]
    {
        let is_told = |line: &&str| line.starts_with(&format!("odd.{tool}: "));
        assert!(warnings.iter().any(is_told), "{tool}: {warnings:?}");
    }
    assert_eq!(client.run("return typeof tools.odd.odd_array")["value"], "function");
    client.end();
}

#[test]
fn the_list_follows_the_servers_and_the_configuration() {
    let start = Start::new().server("well", &["well"]).config("direct", json!(["well.echo", "well.extra_*"]));
    let mut client = start.spawn().shaken();
    wait_for_names(&mut client, &own_and(&["well__echo"]));
    client.take_seen();
    client.run("return await tools.well.add_tool({})");
    wait_for_change(&mut client);
    wait_for_names(&mut client, &own_and(&["well__echo", "well__extra_0"]));
    assert_eq!(text_of(&call(&mut client, "well__extra_0", &json!({}))), "extra_0");
    client.take_seen();
    let file = client.directory().join("cx/config.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    config["direct"] = json!(["well.fail"]);
    std::fs::write(&file, config.to_string()).unwrap();
    wait_for_change(&mut client);
    wait_for_names(&mut client, &own_and(&["well__fail"]));
    client.end();
}

fn wait_for_change(client: &mut Client) {
    let is_change = |note: &Value| note["method"] == "notifications/tools/list_changed";
    if client.take_seen().iter().any(is_change) {
        return;
    }
    while !is_change(&client.receive()) {}
}

#[test]
fn all_tools_while_they_are_few() {
    let start = Start::new().server("a", &["well"]).config("mode", json!("auto"));
    let (mut client, _) = shaken_with(start, &json!({}));
    let few = wait_for_names(
        &mut client,
        &own_and(&[
            "a__echo",
            "a__count",
            "a__slow",
            "a__fail",
            "a__big",
            "a__progress",
            "a__add_tool",
            "a__target",
        ]),
    );
    assert_eq!(few.len(), 11);
    let second = Start::new().beside(&client).server("a", &["well"]).config("mode", json!("auto"));
    let (told, answer) = shaken_with(second, &json!({}));
    let instructions = answer["instructions"].as_str().unwrap();
    let said = " The 8 tools are few, so all are shown to you too, as server__tool: call one directly, and \
        several in one script.";
    assert!(instructions.contains(said), "{instructions}");
    told.end();
    client.end();
    let mut many = Start::new().config("mode", json!("auto"));
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        many = many.server(name, &["well"]);
    }
    let mut client = many.spawn().shaken();
    client.run("return (await searchTools('', 100)).length");
    wait_for_names(&mut client, &own_and(&[]));
    client.end();
}

#[test]
fn a_tool_with_an_interface_is_shown_to_a_client_that_shows_it() {
    let start = || Start::new().server("apps", &["apps", "one"]).config("deny", json!([]));
    let (mut client, answer) = shaken_with(start(), &with_interfaces());
    assert_eq!(answer["capabilities"]["extensions"]["io.modelcontextprotocol/ui"], json!({}));
    let tools = wait_for_names(&mut client, &own_and(&["apps__show_time", "apps__tick"]));
    assert_eq!(tools[3]["_meta"]["ui"]["resourceUri"], "ui://clock/view");
    // The interface calls the tools of its server by their own names.
    assert_eq!(call(&mut client, "tick", &json!({}))["result"]["content"][0]["text"], "odd");
    let resources = client.request("resources/list", json!({}))["result"]["resources"].clone();
    let found = resources.as_array().unwrap().iter().find(|one| one["uri"] == "ui://clock/view").unwrap();
    assert_eq!(found["mimeType"], "text/html;profile=mcp-app");
    assert_eq!(found["_meta"]["ui"]["csp"]["connectDomains"], json!(["https://example.com"]));
    let read = client.request("resources/read", json!({ "uri": "ui://clock/view" }))["result"].clone();
    let contents = &read["contents"][0];
    assert_eq!(contents["text"], "<!doctype html><title>one</title>");
    assert_eq!(
        (&contents["uri"], &contents["_meta"]),
        (&json!("ui://clock/view"), &json!({ "ui": { "prefersBorder": true } }))
    );
    let unknown = client.request("resources/read", json!({ "uri": "ui://other" }));
    assert!(
        unknown["error"]["message"].as_str().unwrap().contains("no tool that is shown names"),
        "{unknown}"
    );
    client.end();
    // A client without user interfaces does not see it.
    let mut without = start().spawn().shaken();
    without.run("return await tools.apps.tick({})");
    assert_eq!(names(&self::tools(&mut without)), OWN);
    without.end();
    let (mut off, answer) = shaken_with(start().config("interfaces", json!(false)), &with_interfaces());
    assert!(answer["capabilities"]["extensions"].get("io.modelcontextprotocol/ui").is_none(), "{answer}");
    off.run("return await tools.apps.tick({})");
    assert_eq!(names(&self::tools(&mut off)), OWN);
    off.end();
}

#[test]
fn two_servers_with_one_address_of_an_interface() {
    let start = Start::new().server("one", &["apps", "one"]).server("two", &["apps", "two"]);
    let (mut client, _) = shaken_with(start, &with_interfaces());
    let names = own_and(&["one__show_time", "one__tick", "two__show_time", "two__tick"]);
    let tools = wait_for_names(&mut client, &names);
    let addresses: Vec<&str> =
        [3, 5].map(|position| tools[position]["_meta"]["ui"]["resourceUri"].as_str().unwrap()).to_vec();
    assert_eq!(addresses, ["ui://one__ui/clock/view", "ui://two__ui/clock/view"]);
    for (address, server) in addresses.iter().zip(["one", "two"]) {
        let read = client.request("resources/read", json!({ "uri": address }))["result"].clone();
        assert_eq!(read["contents"][0]["uri"], *address, "{read}");
        assert_eq!(read["contents"][0]["text"], format!("<!doctype html><title>{server}</title>"));
        assert!(client.notes(server).contains("read ui://clock/view"));
    }
    let shared = client.request("resources/read", json!({ "uri": "ui://clock/view" }));
    assert!(shared["error"]["message"].as_str().unwrap().contains("several servers"), "{shared}");
    client.end();
}

#[test]
fn a_saved_script_that_is_named_is_shown_and_its_value_is_text() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    save_script(directory.path(), "pair.ts", "return ['a', 1]");
    save_script(directory.path(), "other.ts", "return 1");
    for mode in ["script", "direct"] {
        let start = Start::new().within(Arc::clone(&directory)).config("mode", json!(mode));
        let mut client = start.config("direct", json!(["scripts.pair"])).spawn().shaken();
        wait_for_names(&mut client, &own_and(&["scripts__pair"]));
        let answer = call(&mut client, "scripts__pair", &json!({}));
        let expected = json!({ "content": [{ "type": "text", "text": r#"["a",1]"# }] });
        assert_eq!(answer["result"], expected, "{mode}");
        client.end();
    }
}

#[test]
fn over_http_with_and_without_a_session() {
    let start = Start::new().server("apps", &["apps", "one"]).config("direct", json!(["apps.show_time"]));
    let server = Server::start(start.arguments(&["--run-rate", "2"]));
    let session = server.session();
    let list = session.begin(1, "tools/list", json!({})).result();
    assert_eq!(list["tools"][3]["name"], "apps__show_time", "{list}");
    let parameters = json!({ "name": "apps__show_time", "arguments": {} });
    let answer = session.begin(2, "tools/call", parameters.clone()).result();
    assert_eq!(answer["_meta"], json!({ "com.example/kept": { "a": [1, null] } }));
    let mut stateless = parameters;
    stateless["_meta"] = meta(json!({ "io.modelcontextprotocol/clientCapabilities": with_interfaces() }));
    let answer = server.stateless("tools/call", stateless.clone()).result();
    assert_eq!(
        (&answer["resultType"], &answer["structuredContent"]["time"]),
        (&json!("complete"), &json!("12:00"))
    );
    // A refusal by cx, here because of the rate, has no structured content, because it would not match the tool's
    // output schema.
    let answer = server.stateless("tools/call", stateless).result();
    assert_eq!((&answer["isError"], answer.get("structuredContent")), (&json!(true), None), "{answer}");
    let read = json!({ "uri": "ui://clock/view", "_meta": meta(json!({})) });
    let read = server.stateless("resources/read", read).result();
    assert_eq!(read["contents"][0]["text"], "<!doctype html><title>one</title>");
}
