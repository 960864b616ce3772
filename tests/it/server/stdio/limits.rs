//! Limits and rules of one run, within those of the operator.

use super::*;

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
    // Enough for the other scripts, also on a busy machine.
    let flags = Start::new().arguments(&["--timeout", "9s", "--max-tool-calls", "2"]);
    let file = Start::new().config("limits", json!({ "timeoutMs": 9_000, "maxToolCalls": 2 }));
    for start in [flags, file] {
        let mut client = start.server("well", &["well"]).spawn().shaken();
        let tools = client.request("tools/list", json!({}));
        let parameters = &tools["result"]["tools"][0]["inputSchema"]["properties"];
        assert_eq!(parameters["timeoutMs"]["maximum"], 9_000);
        assert_eq!(parameters["maxToolCalls"]["maximum"], 2);
        let code = "await new Promise(() => {}, setTimeout(() => {}, 60_000))";
        let endless = json!({ "code": code, "timeoutMs": 20_000 });
        let error = &client.call("executeTypescript", endless)["structuredContent"]["error"];
        assert_eq!(error["code"], "TIMEOUT");
        assert!(error["message"].as_str().unwrap().contains("9s"), "{error}");
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
