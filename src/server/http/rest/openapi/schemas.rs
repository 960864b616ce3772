//! The schemas of the OpenAPI document.

use serde_json::{Map, Value, json};

use crate::engine::engines;
use crate::server::arguments::parameters::RunParameter;
use crate::server::http::rest::request::{BACKGROUND, LANGUAGE, STREAM};
use crate::server::http::rest_runs::answers::CONTENT;
use crate::server::output_schemas;

/// The body of a request: the parameters of the tools, and those that only REST has.
pub(super) fn request(mut schema: Value) -> Value {
    let languages: Vec<_> = engines::AVAILABLE.iter().map(|&language| language.as_str()).collect();
    if let Some(properties) = schema["properties"].as_object_mut() {
        // Generated clients, unlike those of models, accept a schema of any JSON.
        properties.insert(RunParameter::Input.name().to_owned(), json!({ "description": "any JSON" }));
        properties.insert(
            LANGUAGE.to_owned(),
            json!({ "type": "string", "enum": languages, "description": "of `code`" }),
        );
        let flag =
            |description: &str| json!({ "type": "boolean", "default": false, "description": description });
        properties.insert(STREAM.to_owned(), flag("answer with a stream of events"));
        properties.insert(BACKGROUND.to_owned(), flag("answer at once; the run goes on"));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.push(LANGUAGE.into());
    }
    schema["additionalProperties"] = false.into();
    schema
}

/// The types of the fields of a result. It has every field of the tools' output schema.
fn types() -> Map<String, Value> {
    let integer = json!({ "type": "integer", "minimum": 0 });
    let time = json!({ "type": "number", "minimum": 0 });
    let text = json!({ "type": "string" });
    let fields = [
        ("success", json!({ "type": "boolean" })),
        ("value", json!({ "description": "any JSON" })),
        ("valueTruncated", json!({ "type": "object" })),
        ("output", text.clone()),
        ("outputOmitted", integer.clone()),
        ("outputBytesDropped", integer.clone()),
        ("emittedBlocks", integer.clone()),
        (
            "error",
            json!({ "type": "object", "required": ["code", "message"], "properties": {
            "code": text.clone(), "message": text.clone(),
        } }),
        ),
        ("executionTimeMs", time.clone()),
        ("approvalTimeMs", time),
        ("fuelUsed", integer.clone()),
        ("toolCallsMade", integer.clone()),
        ("toolCallsRefused", integer.clone()),
        ("toolCallSummary", json!({ "type": "array", "items": { "type": "object" } })),
        ("toolCallSummaryOmitted", integer.clone()),
        ("plannedCalls", json!({ "type": "array", "items": { "type": "object" } })),
        ("plannedCallsOmitted", integer.clone()),
        ("plannedCallsDropped", integer.clone()),
        ("samplingCalls", json!({ "type": "array", "items": { "type": "object" } })),
        ("samplingCallsOmitted", integer),
        ("samplingMetrics", json!({ "type": "object" })),
        ("runId", text),
    ];
    fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

pub(super) fn result() -> Value {
    let mut schema = output_schemas::run(false);
    let types = types();
    if let Some(properties) = schema["properties"].as_object_mut() {
        for (name, property) in properties.iter_mut() {
            if let Some(known) = types.get(name) {
                *property = known.clone();
            }
        }
        let content = json!({
            "type": "array", "items": { "type": "object" },
            "description": "content blocks of MCP that the script emitted",
        });
        properties.insert(CONTENT.to_owned(), content);
    }
    schema["required"] = json!(["success", "executionTimeMs"]);
    schema
}

pub(super) fn running() -> Value {
    json!({
        "type": "object",
        "required": ["running"],
        "properties": {
            "running": { "const": true },
            "runId": { "type": "string" },
            "output": { "type": "string", "description": "what was printed so far" },
            "outputOmitted": { "type": "integer" },
        },
    })
}

pub(super) fn problem() -> Value {
    json!({
        "type": "object",
        "description": "RFC 9457",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "code": { "type": "string" },
            "hint": { "type": "string" },
            "retryAfterMs": { "type": "number" },
        },
    })
}

/// The data of the event `call`.
pub(super) fn call() -> Value {
    json!({
        "type": "object",
        "description": "the data of the event `call`",
        "required": ["tool", "status", "ms", "argumentBytes", "resultBytes"],
        "properties": {
            "tool": { "type": "string" },
            "status": { "type": "string", "description": "`ok` or an error's code" },
            "ms": { "type": "number" },
            "argumentBytes": { "type": "integer" },
            "resultBytes": { "type": "integer" },
        },
    })
}

#[cfg(test)]
pub(in crate::server::http::rest) fn typed_fields() -> Vec<String> {
    types().keys().cloned().collect()
}
