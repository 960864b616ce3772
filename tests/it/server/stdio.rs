//! `cx serve` as a client sees it: a process, and JSON-RPC lines written by hand.

/// Limits and rules of one run, within those of the operator.
mod limits;
/// What a client is told before it runs anything: instructions, tools, schemas.
mod listed;
/// What a run prints, emits and reports.
mod output;

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::serve::{Client, Start, WATCHDOG, meta, text};

#[test]
fn a_script_in_each_language() {
    let mut client = Client::plain();
    let result = client.call(
        "executeTypescript",
        json!({ "code": "console.log('hi'); return input.a * 2", "input": { "a": 21 } }),
    );
    assert_eq!(result["structuredContent"]["value"], 42);
    assert_eq!(result["structuredContent"]["output"], "hi");
    assert_eq!(result["isError"], false);
    assert_eq!(text(&result), "42\n[output] hi");
    let result =
        client.call("executePython", json!({ "code": "print('hi')\ninputs['a'] * 2", "input": { "a": 21 } }));
    assert_eq!(result["structuredContent"]["value"], 42);
    assert_eq!(text(&result), "42\n[output] hi");
    client.end();
}

#[test]
fn every_revision_with_a_handshake() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Start::new().spawn();
        let answer = client.initialize(version);
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["serverInfo"]["name"], "cx");
        for capability in ["tools", "prompts", "resources", "logging"] {
            assert!(answer["result"]["capabilities"][capability].is_object(), "{version}: {capability}");
        }
        assert!(answer["result"]["instructions"].as_str().unwrap().len() < 600);
        let tools = client.request("tools/list", json!({}));
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 3);
        assert!(tools["result"].get("resultType").is_none(), "of a later revision: {tools}");
        assert_eq!(client.run("return 1")["value"], 1);
        client.end();
    }
    // An unknown version gets the newest one with a handshake.
    let mut client = Start::new().spawn();
    assert_eq!(client.initialize("1999-01-01")["result"]["protocolVersion"], "2025-11-25");
    client.end();
}

/// Clients check answers against the output schemas, and drop other fields.
#[test]
fn answers_are_what_the_output_schemas_say() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let schema = |name: &str| {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        jsonschema::validator_for(&tool["outputSchema"]).unwrap()
    };
    let run = schema("executeTypescript");
    // `call` compares the fields.
    for (source, dry_run) in [
        ("return {a: [1]}", false),
        ("return null", false),
        ("console.log(1)", false),
        ("throw 1", false),
        ("(", false),
        ("await tools.well.fail()", false),
        ("return 'x'.repeat(1e6)", false),
        ("emit({ type: 'text', text: 'x' }); console.log('x'.repeat(1e6))", false),
        ("await tools.well.echo({}); await tools.well.count({}); throw new TypeError('no')", true),
        ("for (let i = 0; i < 2000; i++) await tools.well.count({ i })", true),
    ] {
        let result = client.call("executeTypescript", json!({ "code": source, "dryRun": dry_run }));
        assert!(run.is_valid(&result["structuredContent"]), "{result:#}");
    }
    let refused = client.call("executePython", json!({ "code": 1 }))["structuredContent"].clone();
    assert!(run.is_valid(&refused), "{refused:#}");
    let health = client.health();
    assert!(schema("health").is_valid(&health), "{health:#}");
    client.end();
}

/// Models in a strict mode fill in every parameter, also parameters of executors that they have seen elsewhere.
#[test]
fn parameters_that_a_strict_mode_fills_in_change_nothing() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    for (tool, code) in [
        ("executeTypescript", "return [input, await tools.well.echo({ a: 1 })]"),
        ("executePython", "[inputs, await tools.well.echo(a=1)]"),
    ] {
        let plain = client.call(tool, json!({ "code": code }))["structuredContent"]["value"].clone();
        assert_eq!(plain[1], json!({ "a": 1 }), "{plain}");
        let filled = json!({
            "code": code,
            "input": null,
            "allowedTools": null,
            "timeoutMs": 0,
            "maxToolCalls": 0,
            "session": "",
            "dryRun": false,
            "timeZone": "",
            "permissions": {},
            "enableSampling": false,
            "skipDangerousPatternCheck": false,
        });
        let filled = client.call(tool, filled);
        assert_eq!(filled["structuredContent"]["value"], plain, "{filled}");
    }
    // A script that asks a model gets an error if there is none.
    let asks = "return await llm.ask('?').catch((error) => error.code)";
    let result = client.call("executeTypescript", json!({ "code": asks, "enableSampling": true }));
    assert_eq!(result["structuredContent"]["value"], "MODEL_UNAVAILABLE", "{result}");
    client.end();
}

#[test]
fn a_client_names_the_time_zone() {
    let mut client = Start::new().arguments(&["--time-zone", "Asia/Tokyo"]).spawn().shaken();
    let (typescript, python) = ("new Date(0).getHours()", "import time\ntime.localtime(0).tm_hour");
    for (tool, code) in [("executeTypescript", typescript), ("executePython", python)] {
        let hour = |client: &mut Client, zone: Value| {
            let result = client.call(tool, json!({ "code": code, "timeZone": zone }));
            result["structuredContent"]["value"].clone()
        };
        assert_eq!(hour(&mut client, json!(null)), json!(9));
        assert_eq!(hour(&mut client, json!("Asia/Kolkata")), json!(5));
        assert_eq!(hour(&mut client, json!("UTC")), json!(0));
        let refused = client.call(tool, json!({ "code": code, "timeZone": "Tokyo" }));
        let error = &refused["structuredContent"]["error"];
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{refused}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("`timeZone`") && message.contains("`Asia/Tokyo`"), "{message}");
    }
    client.end();
}

#[test]
fn long_scripts_as_tasks_for_clients_that_know_them() {
    let mut client = Start::new().spawn();
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = meta(json!({ "io.modelcontextprotocol/clientCapabilities": capabilities }));
    let call =
        |code: &str| json!({ "name": "executeTypescript", "arguments": { "code": code }, "_meta": meta });
    // The first script of a server takes longer than others, and one of two seconds becomes a task.
    client.run("return 0");
    let short = client.request("tools/call", call("return 1"));
    assert_eq!(short["result"]["structuredContent"]["value"], 1);
    let long =
        client.request("tools/call", call("await new Promise((done) => setTimeout(done, 3000)); return 2"));
    assert_eq!(
        (&long["result"]["resultType"], &long["result"]["status"]),
        (&json!("task"), &json!("working")),
        "{long}"
    );
    let id = long["result"]["taskId"].clone();
    let asked = json!({ "taskId": id, "_meta": meta });
    let start = Instant::now();
    let done = loop {
        let task = client.request("tasks/get", asked.clone());
        if task["result"]["status"] == "completed" {
            break task;
        }
        assert_eq!(task["result"]["status"], "working", "{task}");
        assert!(start.elapsed() < WATCHDOG);
    };
    assert_eq!(done["result"]["result"]["structuredContent"]["value"], 2, "{done}");
    // When it is cancelled, it ends at once.
    let long =
        client.request("tools/call", call("await new Promise((done) => setTimeout(done, 25000)); return 3"));
    let asked = json!({ "taskId": long["result"]["taskId"], "_meta": meta });
    assert!(client.request("tasks/cancel", asked.clone()).get("result").is_some());
    let start = Instant::now();
    loop {
        let task = client.request("tasks/get", asked.clone());
        if task["result"]["status"] == "cancelled" {
            break;
        }
        assert!(start.elapsed() < WATCHDOG, "{task}");
    }
    let unknown = client.request("tasks/get", json!({ "taskId": "absent", "_meta": meta }));
    assert!(unknown.get("error").is_some());
    client.end();
}

#[test]
fn health_is_true() {
    let mut client =
        Start::new().server("well", &["well"]).server("broken", &["exits-1-stderr"]).spawn().shaken();
    client.call("executePython", json!({ "code": "1" }));
    client.run("return await tools.well.echo({})");
    let health = client.wait_for_health(|health| {
        health["servers"]["broken"]["lastError"].is_string()
            && health["engines"]["typescript"]["ready"].as_u64() > Some(0)
    });
    assert_eq!(health["healthy"], true, "{health:#}");
    assert_eq!(health["isolation"], "in-process");
    assert_eq!(health["auditLog"], json!({ "enabled": false }));
    assert_eq!(health["mcpClients"], json!({ "connected": 1 }));
    assert_eq!(health["connectionPool"], json!({ "active": 0, "waiting": 0, "max": 100 }));
    assert!(
        health["uptime"].is_u64() && health["timestamp"].as_str().unwrap().starts_with("20"),
        "{health:#}"
    );
    assert_eq!(health["version"], env!("CARGO_PKG_VERSION"));
    assert!(health["residentBytes"].as_u64().unwrap() > 10_000_000);
    let well = &health["servers"]["well"];
    assert_eq!(
        (&well["state"], &well["breaker"], &well["tools"]),
        (&json!("connected"), &json!("closed"), &json!(8))
    );
    assert!(well["p50Ms"].as_f64().unwrap() > 0.0 && well["p95Ms"].is_number(), "{well}");
    assert_eq!(health["servers"]["broken"]["state"], "failed");
    assert_eq!(health["engines"]["python"]["hung"], 0);
    assert!(health.to_string().len() < 2_000, "small enough to read");
    client.begin_call(
        "executeTypescript",
        json!({ "code": "await new Promise(() => setTimeout(() => {}, 20000))" }),
    );
    client.wait_for_health(|health| health["connectionPool"]["active"] == 1);
    let refused = client.call("health", json!({ "verbose": true }));
    assert_eq!(refused["isError"], true);
    client.end();
}

/// Each figure of `health` in a state in which it has changed.
#[test]
fn health_reports_changes() {
    let mut client =
        Start::new().server("dies", &["dies-in-call"]).server("grows", &["well"]).spawn().shaken();
    // The list comes after the connection.
    let before = client.wait_for_health(|health| {
        health["mcpClients"]["connected"] == 2 && health["servers"]["grows"]["tools"].is_u64()
    });
    assert_eq!(before["servers"]["dies"]["state"], "connected");
    assert!(before["servers"]["dies"].get("lastError").is_none(), "{before:#}");
    assert!(before["servers"]["grows"].get("p50Ms").is_none(), "nothing was called: {before:#}");
    // Fast calls, a slow one, and one more tool.
    client.run(
        "for (let i = 0; i < 9; i++) await tools.grows.echo({});
         await tools.grows.slow({ ms: 3000 });
         await tools.grows.add_tool({})",
    );
    let tools = before["servers"]["grows"]["tools"].as_u64().unwrap();
    client.run("return (await discoverMCPTools({ server: 'grows' })).length");
    let after = client.wait_for_health(|health| health["servers"]["grows"]["tools"] == tools + 1);
    let grows = &after["servers"]["grows"];
    let times = [&grows["p50Ms"], &grows["p95Ms"]].map(|time| time.as_f64().unwrap());
    assert!(times[0] < 3_000.0 && times[1] >= 3_000.0, "{grows}");
    // A server that has ended is not connected, and is not called after five failures.
    client.run("try { await tools.dies.target({}) } catch {}");
    let gone = client.wait_for_health(|health| health["servers"]["dies"]["state"] == "failed");
    assert_eq!(
        (&gone["mcpClients"]["connected"], &gone["servers"]["dies"]["breaker"]),
        (&json!(1), &json!("closed"))
    );
    assert!(gone["servers"]["dies"]["lastError"].as_str().unwrap().contains("exit status 7"), "{gone:#}");
    client.run("for (let i = 0; i < 5; i++) try { await tools.dies.target({}) } catch {}");
    let open = client.wait_for_health(|health| health["servers"]["dies"]["breaker"] == "open");
    assert_eq!(open["servers"]["grows"]["breaker"], "closed");
    // The upstream server fails, not cx.
    assert_eq!(open["healthy"], true);
    assert!(open["timestamp"].as_str() > before["timestamp"].as_str());
    let older = client.wait_for_health(|health| health["uptime"].as_u64() > before["uptime"].as_u64());
    assert!(older["uptime"].as_u64().unwrap() < 600, "in seconds: {older:#}");
    let used = "globalThis.all = []; for (let i = 0; i < 50; i++) all.push(new Uint8Array(1_000_000).fill(1)); \
                await new Promise((done) => setTimeout(done, 20000))";
    client.begin_call("executeTypescript", json!({ "code": used }));
    let resident = older["residentBytes"].as_u64().unwrap();
    client.wait_for_health(|health| health["residentBytes"].as_u64().unwrap() > resident + 40_000_000);
    client.end();
}

#[test]
fn a_full_queue_says_when_to_retry() {
    let mut client = Start::new().arguments(&["--max-runs", "1", "--max-queued", "1"]).spawn().shaken();
    let forever = json!({ "code": "await new Promise((done) => setTimeout(done, 20000))" });
    let running = client.begin_call("executeTypescript", forever.clone());
    client.wait_for_health(|health| health["connectionPool"]["active"] == 1);
    let waiting = client.begin_call("executeTypescript", json!({ "code": "return 'waited'" }));
    client.wait_for_health(|health| health["connectionPool"]["waiting"] == 1);
    let refused = client.call("executeTypescript", json!({ "code": "return 1" }));
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["code"], "QUEUE_FULL");
    assert!(error["retryAfterMs"].as_f64().unwrap() >= 100.0, "{error}");
    assert!(text(&refused).contains("try again after 5000 ms"), "{}", text(&refused));
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": running } }),
    );
    assert_eq!(client.answer(&waiting)["result"]["structuredContent"]["value"], "waited");
    client.end();
}

#[test]
fn the_guide_is_a_prompt_and_a_resource() {
    let mut client = Client::plain();
    let prompts = client.request("prompts/list", json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "code-mode");
    let prompt = client.request("prompts/get", json!({ "name": "code-mode" }));
    let text = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
    let guide = client.request("resources/read", json!({ "uri": "cx://guide" }));
    assert_eq!(guide["result"]["contents"][0]["text"], text);
    assert!(text.contains("searchTools") && text.len() < 6_000, "{}", text.len());
    assert_eq!(client.request("prompts/get", json!({ "name": "x" }))["error"]["code"], -32602);
    client.end();
}

#[test]
fn an_error_shows_only_the_start_of_a_long_name() {
    let mut client = Client::plain();
    for (method, kind) in [("prompts/get", "prompt"), ("tools/call", "tool")] {
        let answer = client.request(method, json!({ "name": "x".repeat(100_000) }));
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("no {kind} `{}…`", "x".repeat(64))), "{}", message.len());
        assert!(message.len() < 500, "{}", message.len());
    }
    client.end();
}

#[test]
fn nothing_is_left_between_runs() {
    let mut client = Client::plain();
    client.run("globalThis.left = 1; Array.prototype.left = 1");
    assert_eq!(
        client.run("return [typeof left, typeof [].left]")["value"],
        json!(["undefined", "undefined"])
    );
    client.call("executePython", json!({ "code": "import builtins\nbuiltins.left = 1" }));
    let result =
        client.call("executePython", json!({ "code": "import builtins\nhasattr(builtins, 'left')" }));
    assert_eq!(result["structuredContent"]["value"], false);
    client.end();
}

/// Threat 701. The bound holds for runs that wait to become tasks at the same time, and a slot is free again
/// when its task has ended.
#[test]
fn v_701_no_more_than_64_runs_of_a_client_are_tasks() {
    // None waits for the memory of others, however little this machine has.
    let mut client = Start::new().arguments(&["--max-runs", "100", "--total-memory", "64GiB"]).spawn();
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = meta(json!({ "io.modelcontextprotocol/clientCapabilities": capabilities }));
    let run = |milliseconds: u32| {
        let code = format!("await new Promise((done) => setTimeout(done, {milliseconds})); return 1");
        let arguments = json!({ "code": code, "timeoutMs": 100_000 });
        json!({ "name": "executeTypescript", "arguments": arguments, "_meta": meta })
    };
    // All are to begin, and to become tasks, before the first one ends.
    let calls: Vec<Value> = (0..70).map(|_| client.begin("tools/call", run(20_000))).collect();
    let answers: Vec<Value> = calls.iter().map(|id| client.answer(id)["result"].clone()).collect();
    let tasks: Vec<&Value> = answers.iter().filter(|answer| answer["resultType"] == "task").collect();
    assert_eq!(tasks.len(), 64);
    let whole = answers.iter().filter(|answer| answer["structuredContent"]["value"] == 1).count();
    assert_eq!(whole, 6);
    client.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    assert_eq!(client.request("tools/call", run(4_000))["result"]["resultType"], "task");
    client.end();
}
