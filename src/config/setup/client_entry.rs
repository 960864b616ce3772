//! How each client writes a server that it starts: the entry for cx.

use std::path::Path;

use serde_json::{Value, json};

use crate::config::clients::{Client, Layout};

/// Time after which a client may end a call: more than the longest script of cx takes, 600 s.
const CALL_SECONDS: u64 = 620;

/// The entry that makes the client start `program serve`.
pub(super) fn client_entry(client: &Client, program: &Path) -> Value {
    let program = program.to_string_lossy();
    match client.name {
        "opencode" => json!({ "type": "local", "command": [program, "serve"], "enabled": true }),
        "zed" => json!({ "source": "custom", "command": program, "args": ["serve"], "env": {} }),
        "gemini-cli" => json!({ "command": program, "args": ["serve"], "timeout": CALL_SECONDS * 1_000 }),
        "goose" => json!({
            "enabled": true, "type": "stdio", "name": "cx", "cmd": program, "args": ["serve"], "envs": {},
            "timeout": CALL_SECONDS,
        }),
        _ if client.layout == Layout::Toml => {
            json!({ "command": program, "args": ["serve"], "tool_timeout_sec": CALL_SECONDS })
        }
        "claude-code" | "cursor" | "vscode" => {
            json!({ "type": "stdio", "command": program, "args": ["serve"] })
        }
        _ => json!({ "command": program, "args": ["serve"] }),
    }
}
