//! The time of `cx setup` (promise 69 of docs/promises.md) rests on this: without `--no-connect` it connects to all
//! servers at the same time. The times are in `benches/README.md`.

use std::fs;

use serde_json::{Map, Value, json};

use super::home::Home;
use crate::support::chaos::program;

/// A program that becomes a server when as many of its kind have been started. Its arguments: the directory for their
/// marks, its own mark, their number, the program.
const WAITING_SERVER: &str = r#"touch "$1/$2"
while [ $(ls "$1" | wc -l) -lt $3 ]; do sleep 0.02; done
exec "$4" stdio well
"#;

/// If they were started one after the other, the first would wait for the others until its time is over.
#[test]
fn servers_are_connected_at_the_same_time() {
    let home = Home::new();
    let marks = home.path("marks");
    fs::create_dir(&marks).unwrap();
    home.write("server.sh", WAITING_SERVER);
    let names = ["one", "two", "three"];
    let server = |name: &str| {
        json!({
            "command": "sh",
            "args": [home.path("server.sh"), marks, name, names.len().to_string(), program()],
        })
    };
    let servers: Map<String, Value> = names.iter().map(|&name| (name.to_owned(), server(name))).collect();
    home.write(".claude.json", &json!({ "mcpServers": servers }).to_string());
    let output = home.command(&["setup", "--yes", "--take-out", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let connected = report["servers"].as_array().unwrap();
    assert_eq!(connected.len(), names.len(), "{report:#}");
    for server in connected {
        assert!(server["tools"].as_u64() > Some(0), "{server}");
    }
}
