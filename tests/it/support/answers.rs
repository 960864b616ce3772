//! Whether an answer has fields that its tool's output schema does not name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::serve::Start;

/// Fields whose content the schemas leave open: values of scripts, and maps and lists.
const OPEN: [&str; 14] = [
    "auditLog",
    "config",
    "connectionPool",
    "engines",
    "grants",
    "mcpClients",
    "memory",
    "plannedCalls",
    "samplingCalls",
    "samplingMetrics",
    "servers",
    "toolCallSummary",
    "value",
    "valueTruncated",
];

/// The output schemas by tool, as the server lists them.
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    // With every tool and field that there can be.
    let mut client = Start::new().arguments(&["--yield-after", "0s"]).spawn().shaken();
    let list = client.request("tools/list", json!({}));
    client.end();
    let tools = list["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["outputSchema"].clone()))
        .collect()
});

/// Fails if the structured content of a tool's answer has a field that the tool's output schema does
/// not name. `tool` may be one that does not exist; there is no content then.
pub(crate) fn check_fields(tool: &str, answer: &Value) {
    if let Some(content) = answer.get("structuredContent") {
        check(&SCHEMAS[tool], content, "structuredContent");
    }
}

fn check(schema: &Value, content: &Value, path: &str) {
    match content {
        Value::Object(fields) => {
            for (name, content) in fields {
                let named = schema["properties"].get(name);
                let named = named.unwrap_or_else(|| panic!("{path}.{name} is not in the output schema"));
                if !OPEN.contains(&name.as_str()) {
                    check(named, content, &format!("{path}.{name}"));
                }
            }
        }
        Value::Array(_) => panic!("{path} is a list, whose items the output schema does not name"),
        _scalar => {}
    }
}
