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
    let settings = keys.filter(|key| !["$schema", "mcpServers", "import"].contains(&key.as_str()));
    for key in settings {
        let is_shown = [".", ": "].iter().any(|end| shown.contains(&format!("\n  {key}{end}")));
        assert!(is_shown, "{key}: {shown}");
    }
    let origin = format!("  [{}:1]", home.path(".config/cx/config.json").display());
    for setting in [
        r#"direct: ["time.*"]"#,
        r#"mode: "auto""#,
        "interfaces: false",
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
        json!({ "isolation": { "mode": "nats", "url": "nats://a:4222,nats://me:geheim@b:4222", "keyFile": "/k" } }),
        json!({ "isolation": { "mode": "remote", "url": "https://me:geheim@example.com", "tokenFile": "/k" } }),
        json!({ "openTelemetry": { "endpoint": "https://me:geheim@example.com" } }),
    ] {
        let home = Home::new();
        home.configure(&config);
        for arguments in [&["config", "show"][..], &["config", "show", "--json"]] {
            let shown = printed(&home, arguments);
            assert!(!shown.contains("geheim"), "{shown}");
        }
    }
}
