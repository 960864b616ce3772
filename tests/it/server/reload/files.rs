//! Files that are trusted, come, grow and change often.

use super::*;

#[test]
fn trust_that_is_revoked_or_given_counts() {
    let start = start(&[]);
    let (_, directory) = start.command();
    let path = directory.path().to_owned();
    let file = path.join(".mcp.json");
    std::fs::write(&file, json!({ "mcpServers": { "a": entry(&path, "a") } }).to_string()).unwrap();
    std::fs::remove_dir_all(path.join("cx")).unwrap();
    let trust = |arguments: &[&str]| {
        let output = run_cx(&path, arguments);
        assert!(output.status.success(), "{output:?}");
    };
    trust(&["trust", "--yes", ".mcp.json"]);
    let mut client = super::start(&[]).within(directory).spawn().shaken();
    let running = client.begin_call("executeTypescript", json!({ "code": UNTIL_REFUSED }));
    wait_for_call(&client, "a");
    trust(&["trust", "--revoke", ".mcp.json"]);
    assert_eq!(code(&mut client, &running), "TOOL_NOT_FOUND");
    let health = client.wait_for_health(|health| health["servers"].get("a").is_none());
    assert!(health["hint"].as_str().unwrap().contains("cx trust .mcp.json"), "{health}");
    trust(&["trust", "--yes", ".mcp.json"]);
    client.wait_for_health(|health| health["servers"]["a"].is_object());
    assert_eq!(client.run("await tools.a.echo({}); return 1")["value"], 1);
    // A changed file is no longer trusted.
    std::fs::write(&file, json!({ "mcpServers": { "a": entry(&path, "b") } }).to_string()).unwrap();
    client.wait_for_health(|health| health["servers"].get("a").is_none());
    client.end();
}

/// A file that did not exist when the server was started.
#[test]
fn a_new_file_is_found() {
    let mut client = start(&["a"]).spawn().shaken();
    assert_eq!(client.run("await tools.a.echo({}); return 1")["value"], 1);
    std::fs::write(client.directory().join(".cx.json"), json!({ "deny": ["a.*"] }).to_string()).unwrap();
    wait_until("it is read", || client.stderr().contains("other rules"));
    assert_eq!(client.run("return call_tool('a', 'echo', {}).error.code")["value"], "TOOL_DENIED");
    client.end();
}

/// A file that is named on the command line. If it is missing, that is a mistake.
#[test]
fn a_named_file_is_followed() {
    let mut client = Start::new().server("a", &["well"]).arguments(PATIENT).spawn().shaken();
    let file = client.directory().join("mcp.json");
    let mut servers: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    servers["mcpServers"]["b"] = entry(client.directory(), "b");
    edit_text(&file, &servers.to_string());
    client.wait_for_health(|health| health["servers"]["b"].is_object());
    std::fs::remove_file(&file).unwrap();
    client.wait_for_health(|health| health["config"]["failure"].is_object());
    assert_eq!(client.run("await tools.b.echo({}); return await mcp.servers()")["value"], json!(["a", "b"]));
    client.end();
}

#[test]
fn many_changes_are_few_loads() {
    let mut client = start(&["a"]).spawn().shaken();
    client.health();
    let start = Instant::now();
    for number in 0..200 {
        edit(client.directory(), |config| config["deny"] = json!([format!("a.tool{number}")]));
        if number % 10 == 0 {
            client.signal("HUP");
        }
        std::thread::sleep(Duration::from_millis(4));
    }
    edit(client.directory(), |config| config["deny"] = json!(["a.echo"]));
    let denied = "return call_tool('a', 'echo', {}).error?.code";
    wait_until("the last one counts", || client.stderr().contains("loaded again"));
    let waiting = Instant::now();
    while client.run(denied)["value"] != "TOOL_DENIED" {
        assert!(waiting.elapsed() < WATCHDOG);
    }
    let health = client.health();
    // At most four loads in a second, and the last state of the files.
    let took = start.elapsed();
    assert!(loads(&health) <= 4 * took.as_secs() + 10, "{} loads in {took:?}", loads(&health));
    client.end();
}

#[test]
fn a_file_that_grows_is_refused() {
    let mut client = start(&["a"]).spawn().shaken();
    assert_eq!(client.run("await tools.a.echo({}); return 1")["value"], 1);
    let before = client.peak_bytes();
    let file = std::fs::File::options().write(true).open(client.directory().join("cx/config.json")).unwrap();
    file.set_len(100 << 20).unwrap();
    let health = client.wait_for_health(|health| health["config"]["failure"].is_object());
    let message = health["config"]["failure"]["message"].as_str().unwrap();
    assert!(message.contains("is larger than 16 MB"), "{message}");
    assert_eq!(client.run("await tools.a.echo({}); return 1")["value"], 1);
    let grown = client.peak_bytes().saturating_sub(before);
    assert!(grown < 60 << 20, "{grown} bytes");
    client.end();
}
