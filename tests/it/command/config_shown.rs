//! The configuration in effect, as `cx config show` prints it.

use serde_json::{Value, json};

use super::home::Home;

/// What a command prints to both streams.
fn printed(home: &Home, arguments: &[&str]) -> String {
    let output = home.command(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Also of a group: those without a key of their own have the origin of the group.
#[test]
fn every_setting_is_shown_with_its_origin() {
    let user = json!({
        "direct": ["time.*"], "mode": "auto", "interfaces": false, "audit": { "contents": true },
        "isolation": { "mode": "in-process" }, "clientRate": { "calls": 3, "perMs": 1000 },
        "llm": { "rounds": 4 }, "limits": { "timeoutMs": 5000 },
    });
    let home = Home::new();
    home.configure(&user);
    let shown = printed(&home, &["config", "show"]);
    let schema: Value = serde_json::from_str(&printed(&home, &["config", "schema"])).unwrap();
    let keys = schema["properties"].as_object().unwrap().keys();
    let apart = ["$schema", "mcpServers", "import", "origins", "skipped", "warnings", "files"];
    let json: Value = serde_json::from_str(&printed(&home, &["config", "show", "--json"])).unwrap();
    let settings = keys.chain(json.as_object().unwrap().keys());
    for key in settings.filter(|key| !apart.contains(&key.as_str())) {
        let is_shown = [".", ": "].iter().any(|end| shown.contains(&format!("\n  {key}{end}")));
        assert!(is_shown, "{key}: {shown}");
    }
    let origin = format!("  [{}:1]", home.path(".config/cx/config.json").display());
    for setting in [
        r#"direct: ["time.*"]"#,
        r#"mode: "auto""#,
        "interfaces: false",
        "audit.enabled: true",
        "audit.contents: true",
        r#"isolation.mode: "in-process""#,
        r#"clientRate: {"calls":3,"perMs":1000}"#,
        "llm.rounds: 4",
        "limits.timeoutMs: 5000",
    ] {
        assert!(shown.contains(&format!("\n  {setting}{origin}\n")), "{setting}: {shown}");
    }
    assert!(shown.contains("\n  llm.provider: not set\n"), "{shown}");
    assert!(shown.contains("\n  maxLimits.timeoutMs: 5000\n"), "{shown}");
}

/// A password in an address is refused where the address is used; it must not be shown before.
#[test]
fn v_710_passwords_in_addresses_are_not_shown() {
    for config in [
        json!({ "isolation": { "mode": "nats", "url": "nats://a:4222,nats://me:geheim,1@b:4222", "keyFile": "/k" } }),
        json!({ "isolation": { "mode": "remote", "url": "https://me:geheim,1@example.com", "tokenFile": "/k" } }),
        json!({ "openTelemetry": { "endpoint": "https://me:geheim,1@example.com" } }),
    ] {
        let home = Home::new();
        home.configure(&config);
        let mut commands = vec![&["config", "show"][..], &["config", "show", "--json"]];
        if config.get("isolation").is_some() {
            // No script is executed with them.
            commands.extend([&["run", "-e", "1"][..], &["doctor", "--offline"]]);
        }
        for arguments in commands {
            let shown = printed(&home, arguments);
            assert!(!shown.contains("geheim"), "{arguments:?}: {shown}");
        }
    }
}

/// A directory that someone else has named, such as one of an archive, could add lines to what is shown.
#[test]
fn v_781_a_path_and_a_value_are_shown_on_one_line() {
    let home = Home::new();
    let directory = "work\nsettings:\n  mode: \u{1b}[8m";
    let server = json!({ "command": "tool\u{200b}", "args": ["\u{202e}a"] });
    home.configure(&json!({ "mcpServers": { "one": server } }));
    home.write(&format!("{directory}/.cx.json"), "{}");
    let output = home.command(&["config", "show"]).current_dir(home.path(directory)).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(shown.lines().filter(|line| *line == "settings:").count(), 1, "{shown}");
    for part in [
        "\n    command: \"tool\\u{200b}\"\n    args: [\"\\u{202e}a\"]\n",
        "/work\\u{a}settings:\\u{a}  mode: \\u{1b}[8m/.cx.json (workspace): untrusted: ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
