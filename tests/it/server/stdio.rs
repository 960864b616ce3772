//! `cx serve` as a client sees it: a process, and JSON-RPC lines written by hand.

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

/// An agent with a few servers need not look for tools first. Tools that it may not use are not named.
#[test]
fn the_instructions_name_the_tools_while_they_are_few() {
    let start = || Start::new().server("well", &["well"]).config("deny", json!(["well.count"]));
    let mut first = start().spawn();
    let before = first.initialize("2025-11-25")["result"]["instructions"].clone();
    assert!(!before.as_str().unwrap().contains("Tools by server"), "nothing is known: {before}");
    first.run("return (await searchTools('')).length");
    let told = |start: Start| {
        let mut client = start.beside(&first).spawn();
        let instructions = client.initialize("2025-11-25")["result"]["instructions"].clone();
        client.end();
        instructions.as_str().unwrap().to_owned()
    };
    let text = told(start());
    assert!(text.contains(" Tools by server: well: ") && text.contains("echo(…), "), "{text}");
    assert!(!text.contains("count"), "it is denied: {text}");
    assert!(!told(start().arguments(&["--no-index"])).contains("echo"));
    first.end();
}

/// A model writes the name that it reads, and `tools.my-notes.echo` is a subtraction.
#[test]
fn the_instructions_have_names_that_can_be_written() {
    let start = || Start::new().server("my-notes", &["well"]);
    let mut first = start().spawn().shaken();
    first.run("return (await searchTools('')).length");
    let mut client = start().beside(&first).spawn();
    let instructions = client.initialize("2025-11-25")["result"]["instructions"].clone();
    assert!(instructions.as_str().unwrap().contains(" Tools by server: my_notes: "), "{instructions}");
    for (tool, code) in [
        ("executeTypescript", "return await tools.my_notes.echo({ a: 1 })"),
        ("executePython", "await tools.my_notes.echo(a=1)"),
    ] {
        let result = client.call(tool, json!({ "code": code }));
        assert_eq!(result["structuredContent"]["value"], json!({ "a": 1 }), "{result}");
    }
    client.end();
    first.end();
}

/// An agent cannot trust a file, but it can tell the user what is not used.
#[test]
fn promise_103_an_untrusted_file_is_told_to_the_agent() {
    let first = Start::new().spawn();
    let entry = json!({ "mcpServers": { "x": { "command": "sh" } } });
    std::fs::write(first.directory().join(".mcp.json"), entry.to_string()).unwrap();
    let mut client = Start::new().config("strict", json!(false)).beside(&first).spawn();
    let answer = client.initialize("2025-11-25");
    let told = |text: &Value| {
        let text = text.as_str().unwrap();
        assert!(text.contains("`.mcp.json`") && text.contains("`cx trust .mcp.json`"), "{text}");
    };
    told(&answer["result"]["instructions"]);
    told(&client.health()["hint"]);
    let failed = client.run("await tools.x.y({})");
    assert!(failed["error"]["message"].as_str().unwrap().contains("there are no servers"), "{failed}");
    told(&failed["error"]["message"]);
    told(&client.run("return call_tool('x', 'y', {}).error.message")["value"]);
    told(&client.run("return await callMCPTool('mcp__x__y', {}).catch((error) => error.message)")["value"]);
    client.end();
    first.end();
}

#[test]
fn a_client_without_a_handshake() {
    let mut client = Start::new().spawn();
    let answer = client.request("server/discover", json!({ "_meta": meta(json!({})) }));
    let versions = answer["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2024-11-05")), "{answer}");
    let tools = client.request("tools/list", json!({ "_meta": meta(json!({})) }));
    assert_eq!(tools["result"]["resultType"], "complete");
    assert!(tools["result"]["ttlMs"].as_u64().unwrap() > 0, "{tools}");
    let call = |code: &str, more: Value| {
        let arguments = json!({ "code": code });
        json!({ "name": "executeTypescript", "arguments": arguments, "_meta": meta(more) })
    };
    let answer = client.request("tools/call", call("return 6 * 7", json!({})));
    assert_eq!(answer["result"]["structuredContent"]["value"], 42);
    // Printed lines are passed on for the one request that asks for them.
    let log = json!({ "io.modelcontextprotocol/logLevel": "warning" });
    client.request("tools/call", call("console.log('no'); console.warn('yes')", log));
    let seen = client.take_seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0]["method"], "notifications/message");
    assert_eq!(seen[0]["params"], json!({ "level": "warning", "logger": "script.ts", "data": "yes" }));
    client.request("tools/call", call("console.warn('not asked for')", json!({})));
    assert!(client.take_seen().is_empty());
    // A field that such a client has to send is missing.
    let mut bad = meta(json!({}));
    bad.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let refused = client.request("tools/list", json!({ "_meta": bad }));
    assert_eq!(refused["error"]["code"], -32602);
    client.end();
}

#[test]
#[expect(clippy::print_stdout, reason = "the figure is for people to read")]
fn the_list_of_tools_is_small_and_always_the_same() {
    let tokenizer = bpe_openai::o200k_base();
    let names = [
        "github",
        "filesystem",
        "postgres-production",
        "slack_workspace",
        "Sentry2",
        "a-very-long-name-of-a-server-that-a-person-gave",
    ];
    let start = |names: &[&str]| {
        let start = names.iter().fold(Start::new(), |start, name| start.server(name, &["silent"]));
        start.spawn().shaken()
    };
    // The whole list, and the part of it that clients show to models.
    let (mut most, mut most_shown) = (0, 0);
    let mut measure = |label: &str, mut list: Value| {
        let tokens = |list: &Value| tokenizer.count(&*list.to_string());
        let whole = tokens(&list);
        for tool in list["tools"].as_array_mut().unwrap() {
            tool.as_object_mut().unwrap().shift_remove("outputSchema");
        }
        let shown = tokens(&list);
        println!("{label}: {whole} tokens, {shown} without output schemas");
        most = most.max(whole);
        most_shown = most_shown.max(shown);
    };
    for count in [0, 1, 3, 5, 6] {
        let mut client = start(&names[..count]);
        let list = client.request("tools/list", json!({}))["result"].to_string();
        assert_eq!(client.request("tools/list", json!({}))["result"].to_string(), list);
        assert_eq!(start(&names[..count]).request("tools/list", json!({}))["result"].to_string(), list);
        measure(&format!("{count} servers"), serde_json::from_str(&list).unwrap());
        assert_eq!(list.contains("github"), count > 0);
        assert_eq!(list.contains(" and 1 more."), count > 5, "{list}");
    }
    // Names that are not single tokens.
    let odd: Vec<String> =
        (0..9_u32).map(|seed| format!("xq{}Zk-{}vW", seed * 7919, seed * 104_729)).collect();
    let odd: Vec<&str> = odd.iter().map(String::as_str).collect();
    let list = start(&odd).request("tools/list", json!({ "_meta": meta(json!({})) }));
    measure("odd names", list["result"].clone());
    // With the parameters of language models, which are listed only where scripts have one.
    let start = names[..5].iter().fold(Start::new(), |start, name| start.server(name, &["silent"]));
    let mut client = start.arguments(&["--llm"]).spawn().shaken();
    let mut list = client.request("tools/list", json!({}))["result"].clone();
    assert!(list.to_string().contains("maxSamplingTokens") && list.to_string().contains("samplingMetrics"));
    list["tools"].as_array_mut().unwrap().iter_mut().for_each(|tool| {
        tool.as_object_mut().unwrap().shift_remove("outputSchema");
    });
    let with_models = tokenizer.count(&*list.to_string());
    println!("with language models: {with_models} tokens without output schemas");
    assert!(with_models <= 560, "{with_models} tokens of o200k");
    // The same with saved scripts, which have a parameter too.
    let home = Arc::new(tempfile::tempdir().unwrap());
    let scripts = home.path().join("cx/scripts");
    std::fs::create_dir_all(&scripts).unwrap();
    std::fs::write(scripts.join("add.ts"), "return 1").unwrap();
    let start =
        names[..5].iter().fold(Start::new().within(home), |start, name| start.server(name, &["silent"]));
    let mut client = start.arguments(&["--llm"]).spawn().shaken();
    let mut list = client.request("tools/list", json!({}))["result"].clone();
    assert!(list.to_string().contains("\"script\""), "{list:#}");
    list["tools"].as_array_mut().unwrap().iter_mut().for_each(|tool| {
        tool.as_object_mut().unwrap().shift_remove("outputSchema");
    });
    let with_scripts = tokenizer.count(&*list.to_string());
    println!("and saved scripts: {with_scripts} tokens without output schemas");
    assert!(with_scripts <= 560, "{with_scripts} tokens of o200k");
    assert!(most_shown <= 440, "{most_shown} tokens of o200k");
    assert!(most <= 890, "{most} tokens of o200k");
}

#[test]
fn tools_are_listed_before_any_server_is_there() {
    // The server never answers its handshake.
    let mut client = Start::new().server("silent", &["silent"]).spawn();
    client.initialize("2025-11-25");
    let list = client.request("tools/list", json!({}));
    assert!(list["result"]["tools"][0]["description"].as_str().unwrap().contains("silent"), "{list}");
    let tools = list["result"]["tools"].as_array().unwrap().clone();
    let named: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(named, ["executeTypescript", "executePython", "health"]);
    for tool in &tools {
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object");
            assert!(tool[schema]["properties"].is_object(), "clients need it: {tool}");
        }
        for (name, parameter) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(parameter["type"].is_string(), "clients need one type of `{name}`: {tool}");
            let is_object = parameter["type"] == "object";
            assert!(!is_object || parameter["additionalProperties"] == true, "clients drop fields: {tool}");
        }
        assert!(tool["title"].is_string() && tool["annotations"].is_object(), "{tool}");
    }
    let parameters: Vec<_> =
        tools[0]["inputSchema"]["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        parameters,
        ["code", "input", "allowedTools", "timeoutMs", "maxToolCalls", "session", "dryRun", "timeZone"]
    );
    assert_eq!(client.health()["servers"]["silent"]["state"], "connecting");
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

/// `permissions` asks for less than what the command line grants, and is listed only where something is.
#[test]
fn a_client_restricts_what_is_granted() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("inner")).unwrap();
    std::fs::write(place.path().join("a"), "a").unwrap();
    let granted = place.path().to_str().unwrap();
    let arguments = ["--allow-read", granted, "--allow-net", "api.example.com:443"];
    let mut client = Start::new().arguments(&arguments).spawn().shaken();
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let properties = &list[0]["inputSchema"]["properties"];
    assert_eq!(properties["permissions"]["type"], "object", "{properties}");
    let health = client.call("health", json!({}))["structuredContent"]["grants"].clone();
    assert_eq!(health, json!({ "read": [granted], "write": [], "net": ["api.example.com:443"] }));
    let code = format!("return await fs.readFile({granted:?} + '/a', 'utf8').catch((error) => error.code)");
    let value = |client: &mut Client, permissions: Value| {
        let result = client.call("executeTypescript", json!({ "code": code, "permissions": permissions }));
        result["structuredContent"].clone()
    };
    for all in [json!({}), json!(null), json!({ "net": [] }), json!({ "read": [granted] })] {
        assert_eq!(value(&mut client, all.clone())["value"], "a", "{all}");
    }
    let inner = place.path().join("inner");
    for less in [json!({ "read": [] }), json!({ "read": [inner] }), json!({ "read": ["/tmp"] })] {
        assert_eq!(value(&mut client, less.clone())["value"], "ENOENT", "{less}");
    }
    for more in [json!({ "read": ["/etc"] }), json!({ "write": ["/srv"] }), json!({ "net": ["example.com"] })]
    {
        let error = value(&mut client, more.clone())["error"].clone();
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{more}");
        assert!(error["message"].as_str().unwrap().contains("is not granted"), "{error}");
    }
    client.end();
}

#[test]
fn a_tool_must_be_allowed_by_every_list() {
    let start = Start::new().server("well", &["well"]).arguments(&[
        "--allow",
        "well.e*",
        "--allow",
        "well.count",
        "--deny",
        "*.count",
    ]);
    let mut client = start.spawn().shaken();
    let source = "
        const calls = ['echo', 'count', 'slow'].map((tool) => call_tool('well', tool, {}));
        return calls.map((call) => call.ok ? 'ok' : call.error.code)
    ";
    assert_eq!(client.run(source)["value"], json!(["ok", "TOOL_DENIED", "TOOL_DENIED"]));
    // A client may ask for less, and gets no more by asking.
    let result = client
        .call("executeTypescript", json!({ "code": source, "allowedTools": ["well.slow", "well.count"] }));
    assert_eq!(result["structuredContent"]["value"], json!(["TOOL_DENIED", "TOOL_DENIED", "TOOL_DENIED"]));
    let result = client.call("executeTypescript", json!({ "code": source, "allowedTools": [] }));
    assert_eq!(result["structuredContent"]["value"], json!(["TOOL_DENIED", "TOOL_DENIED", "TOOL_DENIED"]));
    let result = client.call("executeTypescript", json!({ "code": "return 1", "allowedTools": ["fs*"] }));
    let message = result["structuredContent"]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("`allowedTools`: expected `server.tool`"), "{message}");
    client.end();
}

#[test]
fn limits_of_one_run() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let result = client.call("executeTypescript", json!({ "code": "for (;;) {}", "timeoutMs": 100 }));
    assert_eq!(result["structuredContent"]["error"]["code"], "TIMEOUT");
    assert_eq!(result["isError"], true);
    let code = "for (let i = 0; i < 3; i++) await tools.well.echo({})";
    let result = client.call("executeTypescript", json!({ "code": code, "maxToolCalls": 2 }));
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["code"], "MAX_TOOL_CALLS_EXCEEDED");
    assert_eq!(result["structuredContent"]["toolCallSummary"][0]["calls"], 2);
    assert!(text(&result).contains("[calls] mcp__well__echo ×2"), "{}", text(&result));
    client.end();
}

/// The operator's limits are maxima for clients, however they are set.
#[test]
fn limits_of_the_operator_are_caps() {
    let flags = Start::new().arguments(&["--timeout", "1s", "--max-tool-calls", "2"]);
    let file = Start::new().config("limits", json!({ "timeoutMs": 1_000, "maxToolCalls": 2 }));
    for start in [flags, file] {
        let mut client = start.server("well", &["well"]).spawn().shaken();
        let tools = client.request("tools/list", json!({}));
        let parameters = &tools["result"]["tools"][0]["inputSchema"]["properties"];
        assert_eq!(parameters["timeoutMs"]["maximum"], 1_000);
        assert_eq!(parameters["maxToolCalls"]["maximum"], 2);
        let endless = json!({ "code": "await new Promise(() => {}, setTimeout(() => {}, 60_000))", "timeoutMs": 5_000 });
        let error = &client.call("executeTypescript", endless)["structuredContent"]["error"];
        assert_eq!(error["code"], "TIMEOUT");
        assert!(error["message"].as_str().unwrap().contains("1s"), "{error}");
        for asked in [json!(0), json!(100), Value::Null] {
            let code = "for (let i = 0; i < 3; i++) await tools.well.echo({})";
            let result = client.call("executeTypescript", json!({ "code": code, "maxToolCalls": asked }));
            assert_eq!(result["structuredContent"]["error"]["code"], "MAX_TOOL_CALLS_EXCEEDED", "{asked}");
        }
        client.end();
    }
}

/// A requested timeout raises the CPU time, but not above what the operator set.
#[test]
fn the_cpu_time_of_the_operator_is_a_cap() {
    let flag = Start::new().arguments(&["--cpu-time", "300ms"]);
    let file = Start::new().config("limits", json!({ "cpuTimeMs": 300 }));
    for start in [flag, file] {
        let mut client = start.spawn().shaken();
        for timeout in [Value::Null, json!(60_000)] {
            let endless = json!({ "code": "for (;;);", "timeoutMs": timeout });
            let error = &client.call("executeTypescript", endless)["structuredContent"]["error"];
            assert_eq!(error["code"], "CPU_LIMIT", "{error}");
            assert!(error["message"].as_str().unwrap().contains("300ms"), "{error}");
        }
        client.end();
    }
}

/// A rate is for servers with several clients: over stdio there is one client, even if the file for all servers has a
/// rate.
#[test]
fn there_is_no_rate_over_stdio() {
    let rate = json!({ "calls": 1, "perMs": 3_600_000 });
    let mut client = Start::new().config("clientRate", rate).spawn().shaken();
    // Over HTTP 30 could start at once by default.
    for number in 0..40 {
        assert_eq!(client.run(&format!("return {number}"))["value"], number);
    }
    client.end();
}

/// Only the operator sets fuel: no parameter asks for it, and every Python script has it.
#[test]
fn the_fuel_of_the_operator_is_that_of_every_python_script() {
    let flag = Start::new().arguments(&["--fuel", "20000000"]);
    let file = Start::new().config("limits", json!({ "fuel": 20_000_000 }));
    for start in [flag, file] {
        let mut client = start.spawn().shaken();
        // The code that counts fuel may have to be compiled first.
        let call = |code: &str| json!({ "code": code, "timeoutMs": 110_000 });
        let ended = client.call("executePython", call("while True: pass"));
        assert_eq!(ended["structuredContent"]["error"]["code"], "FUEL_LIMIT", "{ended}");
        let small = client.call("executePython", call("return 1 + 1"))["structuredContent"].clone();
        assert_eq!(small["value"], 2, "{small}");
        assert!(small["fuelUsed"].as_u64().is_some_and(|fuel| fuel < 20_000_000), "{small}");
        let typescript = client.call("executeTypescript", call("return 1"))["structuredContent"].clone();
        assert_eq!((&typescript["value"], typescript.get("fuelUsed")), (&json!(1), None), "{typescript}");
        client.end();
    }
}

/// Without a setting of the operator a client gets what it asks for.
#[test]
fn a_default_can_be_below_the_cap() {
    let mut client =
        Start::new().arguments(&["--timeout", "60s", "--default-timeout", "200ms"]).spawn().shaken();
    let waits = "await new Promise((resolve) => setTimeout(resolve, 700)); return 1";
    let result = client.call("executeTypescript", json!({ "code": waits }));
    assert_eq!(result["structuredContent"]["error"]["code"], "TIMEOUT");
    let result = client.call("executeTypescript", json!({ "code": waits, "timeoutMs": 50_000 }));
    assert_eq!(result["structuredContent"]["value"], 1, "{result}");
    client.end();
    let mut client = Start::new().spawn().shaken();
    let tools = client.request("tools/list", json!({}));
    let parameters = &tools["result"]["tools"][0]["inputSchema"]["properties"];
    assert_eq!(parameters["timeoutMs"]["maximum"], 600_000);
    assert_eq!(parameters["maxToolCalls"]["maximum"], Value::Null);
    client.end();
}

#[test]
fn what_a_failed_run_did_is_told() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let code = "await tools.well.echo({ a: 1 });\nawait tools.well.slow({ ms: 60000 })";
    let result = client.call("executeTypescript", json!({ "code": code, "timeoutMs": 3000 }));
    let answer = &result["structuredContent"];
    assert_eq!(answer["error"]["code"], "TIMEOUT");
    let summary = answer["toolCallSummary"].as_array().unwrap();
    assert_eq!(summary.len(), 2);
    assert_eq!((&summary[0]["tool"], &summary[0]["calls"]), (&json!("mcp__well__echo"), &json!(1)));
    assert_eq!((&summary[1]["tool"], &summary[1]["inFlight"]), (&json!("mcp__well__slow"), &json!(1)));
    let run = answer["runId"].as_str().unwrap();
    let calls = client.request("resources/read", json!({ "uri": format!("cx://runs/{run}/calls") }));
    let calls: Value =
        serde_json::from_str(calls["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&calls[0]["status"], &calls[1]["status"]), (&json!("ok"), &json!("in flight")));
    let result = client.call("executeTypescript", json!({ "code": "const a: = 1" }));
    assert_eq!(result["structuredContent"]["error"]["code"], "SYNTAX_ERROR");
    assert!(text(&result).contains("at line 1, column"), "{}", text(&result));
    client.end();
}

#[test]
fn what_was_cut_can_be_read() {
    let mut client = Client::plain();
    let code = "
        for (let i = 0; i < 20000; i++) console.log('line ' + i);
        return Array.from({ length: 20000 }, (_, i) => i)
    ";
    let result = client.call("executeTypescript", json!({ "code": code }));
    let answer = &result["structuredContent"];
    let output = answer["output"].as_str().unwrap();
    assert_eq!(output.chars().count(), 25_000);
    assert!(output.starts_with("line 0\nline 1\n") && output.ends_with("line 19999"), "{output}");
    assert!(answer.get("value").is_none());
    assert!(answer["valueTruncated"]["head"].as_str().unwrap().starts_with("[0,1,2,"));
    assert!(text(&result).len() < 60_000);
    // What it says about the rest is an expression in both languages.
    let rest = answer["valueTruncated"]["rest"].as_str().unwrap();
    for (tool, code) in [
        ("executeTypescript", format!("return ({rest}).value.length")),
        ("executePython", format!("len(({rest})['value'])")),
    ] {
        let whole = client.call(tool, json!({ "code": code }));
        assert_eq!(whole["structuredContent"]["value"], 20_000, "{whole}");
    }
    let run = answer["runId"].as_str().unwrap().to_owned();
    let mut read = |part: &str| {
        let answer = client.request("resources/read", json!({ "uri": format!("cx://runs/{run}/{part}") }));
        answer["result"]["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(read("output").lines().count(), 20_000);
    let value: Vec<u32> = serde_json::from_str(&read("value")).unwrap();
    assert_eq!(value.len(), 20_000);
    assert_eq!(read("calls"), "[]");
    let listed = client.request("resources/list", json!({}));
    let listed: Vec<_> = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap().to_owned())
        .collect();
    assert!(listed.contains(&format!("cx://runs/{run}/value")), "{listed:?}");
    for missing in [
        "cx://runs/absent/value",
        "cx://runs/",
        "cx://else",
        &format!("cx://runs/{run}/else"),
        "file:///etc/passwd",
    ] {
        let answer = client.request("resources/read", json!({ "uri": missing }));
        assert_eq!(answer["error"]["code"], -32002, "{missing}: {answer}");
    }
    let templates = client.request("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "cx://runs/{id}/{part}");
    assert!(client.run("return 1").get("runId").is_none(), "there is nothing more to read");
    client.end();
}

#[test]
fn at_most_64_runs_are_kept() {
    let mut client = Client::plain();
    let mut ids = Vec::new();
    for _ in 0..66 {
        let answer = client.run("console.log('x'.repeat(30000))");
        ids.push(answer["runId"].as_str().unwrap().to_owned());
    }
    let listed = client.request("resources/list", json!({}))["result"]["resources"].as_array().unwrap().len();
    assert_eq!(listed, 1 + 64 * 2, "the guide, and two parts of each run");
    let gone = client.request("resources/read", json!({ "uri": format!("cx://runs/{}/output", ids[1]) }));
    assert_eq!(gone["error"]["code"], -32002);
    let there = client.request("resources/read", json!({ "uri": format!("cx://runs/{}/output", ids[2]) }));
    assert!(there.get("result").is_some());
    client.end();
}

#[test]
fn what_is_emitted_becomes_content() {
    let mut client = Client::plain();
    let code = "
        emit('words');
        emit({ type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' });
        emit({ type: 'audio', mimeType: 'audio/wav', data: 'UklGRg==' });
        emit({ type: 'resource', resource: { uri: 'file:///a.txt', mimeType: 'text/plain', text: 'a' } });
        return 1
    ";
    for (tool, code) in [
        ("executeTypescript", code.to_owned()),
        (
            "executePython",
            code.replace("return 1", "1")
                .replace(';', "")
                .replace("        ", "")
                .replace("type:", "'type':")
                .replace("mimeType:", "'mimeType':")
                .replace("data:", "'data':")
                .replace(" resource:", " 'resource':")
                .replace("uri:", "'uri':")
                .replace("text:", "'text':"),
        ),
    ] {
        let result = client.call(tool, json!({ "code": code }));
        let kinds: Vec<_> = result["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["text", "text", "image", "audio", "resource"], "{result:#}");
        assert_eq!(result["content"][1]["text"], "words");
        assert_eq!(result["structuredContent"]["emittedBlocks"], 4);
        assert!(result["structuredContent"].get("emitted").is_none(), "images are not sent twice");
    }
    client.end();
}

#[test]
fn formats_of_the_text() {
    let code = json!({ "code": "return [{ id: 1, name: 'Ada' }, { id: 2, name: 'Bob' }]" });
    let mut json = Start::new().arguments(&["--format", "json"]).spawn().shaken();
    let result = json.call("executeTypescript", code.clone());
    assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), result["structuredContent"]);
    json.end();
    let mut toon = Start::new().arguments(&["--format", "toon"]).spawn().shaken();
    let result = toon.call("executeTypescript", code);
    assert!(
        text(&result).starts_with("success: true\nvalue[2]{id,name}:\n  1,Ada\n  2,Bob\n"),
        "{}",
        text(&result)
    );
    toon.end();
}

#[test]
fn progress_when_asked_for() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let call = json!({
        "name": "executeTypescript",
        "arguments": { "code": "
            for (let i = 0; i < 3; i++) await tools.well.echo({});
            call_tool('well', 'fail');
            await new Promise((done) => setTimeout(done, 5500))
        " },
        "_meta": { "progressToken": "p-1" },
    });
    let answer = client.request("tools/call", call);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let notes = client.take_seen();
    assert!(
        notes.iter().all(
            |note| note["method"] == "notifications/progress" && note["params"]["progressToken"] == "p-1"
        ),
        "{notes:?}"
    );
    let messages: Vec<_> = notes.iter().map(|note| note["params"]["message"].as_str().unwrap()).collect();
    assert_eq!(messages.len(), 5, "four calls and a heartbeat: {messages:?}");
    assert!(messages[..3].iter().all(|message| message.starts_with("well.echo: ok, ")), "{messages:?}");
    assert!(messages[3].starts_with("well.fail: TOOL_ERROR, "), "{messages:?}");
    assert!(messages[4].starts_with("running for 5 s, 4 tool calls"), "{messages:?}");
    let progress: Vec<_> = notes.iter().map(|note| note["params"]["progress"].as_f64().unwrap()).collect();
    assert!(progress.is_sorted_by(|a, b| a < b), "{progress:?}");
    client.end();
}

/// A report is told after what was printed before it, and before what was printed after it.
#[test]
fn progress_and_printed_lines_have_the_order_of_the_script() {
    let mut client = Client::plain();
    client.request("logging/setLevel", json!({ "level": "debug" }));
    let code = "console.log('one'); progress(1); console.log('two'); progress(2); console.log('three')";
    let call = json!({
        "name": "executeTypescript", "arguments": { "code": code }, "_meta": { "progressToken": "p" },
    });
    let answer = client.request("tools/call", call);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let params: Vec<Value> = client.take_seen().into_iter().map(|note| note["params"].clone()).collect();
    let position =
        |of: &dyn Fn(&Value) -> bool| params.iter().position(of).unwrap_or_else(|| panic!("{params:?}"));
    let line = |text: &'static str| position(&|params: &Value| params["data"] == text);
    let last = position(&|params: &Value| params["progress"].as_f64().is_some_and(|value| value >= 2.0));
    assert!(line("one") < line("two") && line("two") < last && last < line("three"), "{params:?}");
    client.end();
}

#[test]
fn printed_lines_when_asked_for() {
    let mut client = Client::plain();
    let code = "console.debug('d'); console.log('i'); console.warn('w'); console.error('e')";
    client.run(code);
    assert!(client.take_seen().is_empty());
    for (level, expected) in
        [("debug", "diwe"), ("info", "iwe"), ("notice", "we"), ("error", "e"), ("emergency", "")]
    {
        assert_eq!(client.request("logging/setLevel", json!({ "level": level }))["result"], json!({}));
        client.run(code);
        let seen = client.take_seen();
        let data: String = seen.iter().map(|note| note["params"]["data"].as_str().unwrap()).collect();
        assert_eq!(data, expected, "{level}: {seen:?}");
    }
    client.request("logging/setLevel", json!({ "level": "debug" }));
    client.call("executePython", json!({ "code": "print('p')" }));
    assert_eq!(
        client.take_seen()[0]["params"],
        json!({ "level": "info", "logger": "script.py", "data": "p" })
    );
    let refused = client.request("logging/setLevel", json!({ "level": "loud" }));
    assert_eq!(refused["error"]["code"], -32602);
    // A flood of output is bounded for the client, and the answer has all of it.
    let answer = client.run("for (let i = 0; i < 100000; i++) console.log(i); return 1");
    assert_eq!(answer["value"], 1);
    let seen = client.take_seen();
    let last = seen.last().unwrap()["params"]["data"].as_str().unwrap().to_owned();
    assert!(
        seen.len() < 100_000 && last.ends_with("printed lines were not passed on"),
        "{} {last}",
        seen.len()
    );
    client.end();
}

#[test]
fn long_scripts_as_tasks_for_clients_that_know_them() {
    let mut client = Start::new().spawn();
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = meta(json!({ "io.modelcontextprotocol/clientCapabilities": capabilities }));
    let call =
        |code: &str| json!({ "name": "executeTypescript", "arguments": { "code": code }, "_meta": meta });
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
    assert_eq!(health["engines"]["python"]["lost"], 0);
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
         await tools.grows.slow({ ms: 300 });
         await tools.grows.add_tool({})",
    );
    let tools = before["servers"]["grows"]["tools"].as_u64().unwrap();
    client.run("return (await discoverMCPTools({ server: 'grows' })).length");
    let after = client.wait_for_health(|health| health["servers"]["grows"]["tools"] == tools + 1);
    let grows = &after["servers"]["grows"];
    let times = [&grows["p50Ms"], &grows["p95Ms"]].map(|time| time.as_f64().unwrap());
    assert!(times[0] < 300.0 && times[1] >= 300.0, "{grows}");
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
    assert!(older["uptime"].as_u64().unwrap() < 120, "in seconds: {older:#}");
    let used = "const all = []; for (let i = 0; i < 50; i++) all.push(new Uint8Array(1_000_000).fill(1)); \
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
    let mut client = Start::new().arguments(&["--max-runs", "100"]).spawn();
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = meta(json!({ "io.modelcontextprotocol/clientCapabilities": capabilities }));
    let run = |milliseconds: u32| {
        let code = format!("await new Promise((done) => setTimeout(done, {milliseconds})); return 1");
        json!({ "name": "executeTypescript", "arguments": { "code": code }, "_meta": meta })
    };
    let calls: Vec<Value> = (0..70).map(|_| client.begin("tools/call", run(12_000))).collect();
    let answers: Vec<Value> = calls.iter().map(|id| client.answer(id)["result"].clone()).collect();
    let tasks: Vec<&Value> = answers.iter().filter(|answer| answer["resultType"] == "task").collect();
    assert_eq!(tasks.len(), 64);
    let whole = answers.iter().filter(|answer| answer["structuredContent"]["value"] == 1).count();
    assert_eq!(whole, 6);
    client.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    assert_eq!(client.request("tools/call", run(4_000))["result"]["resultType"], "task");
    client.end();
}
