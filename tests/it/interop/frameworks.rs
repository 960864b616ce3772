//! Third-party agent frameworks, from npm and PyPI: see `tests/interop`. Each loads the tools of `cx serve` as its
//! agents do and calls each of them. Its report is compared with the expected one.

use std::process::Command;

use serde_json::json;

use super::clients::{home, seen, serve, similar};
use crate::support::interop::{frameworks_modules, frameworks_python, script};
use crate::support::serve::Client;

/// Frameworks in Python: the lock file, and the name in `agent.py`.
const FIRST: [(&str, &str); 4] = [
    ("first", "smolagents"),
    ("first", "smolagents_structured"),
    ("first", "autogen"),
    ("first", "autogen_workbench"),
];

/// More of them, for `make frameworks`: together they take almost a gigabyte.
const MORE: [(&str, &str); 7] = [
    ("sdk-1", "langchain"),
    ("sdk-1", "mcp_use"),
    ("sdk-2", "openai_agents"),
    ("sdk-2", "openai_agents_strict"),
    ("sdk-2", "pydantic_ai"),
    ("sdk-2", "llama_index"),
    ("sdk-2", "google_adk"),
];

/// Frameworks in JavaScript, by their names in `agent.mjs`, for `make frameworks` too.
const IN_JAVASCRIPT: [&str; 3] = ["langchain", "ai_sdk", "mcp_use"];

#[test]
#[expect(clippy::print_stdout, reason = "which ones were run is for people to read")]
fn agent_frameworks_load_and_call_the_tools() {
    // Frameworks have short timeouts, and need not wait until the first server has compiled Python.
    let mut first = Client::plain();
    let result = first.call("executePython", json!({ "code": "6 * 7", "timeoutMs": 110_000 }));
    assert_eq!(result["structuredContent"]["value"], 42, "{result}");
    first.end();
    let all = std::env::var_os("CX_FRAMEWORKS").is_some_and(|value| value == "all");
    let more = if all { &MORE[..] } else { &[] };
    for (lock, name) in FIRST.iter().chain(more) {
        println!("{name}, in Python");
        let mut framework = Command::new(frameworks_python(lock));
        framework.args([&*script("frameworks/agent.py"), *name]);
        check(framework);
    }
    for name in if all { &IN_JAVASCRIPT[..] } else { &[] } {
        println!("{name}, in JavaScript");
        let mut framework = Command::new("node");
        framework.args([&*script("frameworks/agent.mjs"), *name]).arg(frameworks_modules());
        check(framework);
    }
}

/// Runs a framework and compares its report.
fn check(mut framework: Command) {
    let home = home();
    framework
        .arg(env!("CARGO_BIN_EXE_cx"))
        .args(serve(home.path()))
        // No telemetry, and no downloads.
        .env("DO_NOT_TRACK", "1")
        .env("HF_HUB_OFFLINE", "1")
        .env("MCP_USE_ANONYMIZED_TELEMETRY", "false")
        .env("OPENAI_AGENTS_DISABLE_TRACING", "1")
        .env("OTEL_SDK_DISABLED", "true")
        .env("SCARF_NO_ANALYTICS", "true");
    let expected = json!({
        "tools": ["executePython", "executeTypescript", "health"],
        "parameters": ["allowedTools", "code", "dryRun", "input", "maxToolCalls", "session", "timeZone", "timeoutMs"],
        "typescript": "42",
        "python": "42",
        // With every parameter, as strict modes of models have it.
        "filled": "42",
        "failing": true,
        "health": true,
    });
    similar(&seen(&mut framework, home.path()), &expected);
}
