//! What a client is told before it runs anything: instructions, tools, schemas.

use super::*;

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
