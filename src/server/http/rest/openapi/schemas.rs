//! The schemas of the OpenAPI document.

use serde_json::{Map, Value, json};

use super::reference;
use crate::engine::engines;
use crate::run::result::LogLevel;
use crate::server::arguments::parameters::{MAX_TIMEOUT, RunParameter};
use crate::server::http::rest::request::{BACKGROUND, LANGUAGE, STREAM};
use crate::server::http::rest_runs::answers::CONTENT;
use crate::server::output_schemas;

/// The body of a request: the parameters of the tools, and those that only REST has.
pub(super) fn request(mut schema: Value) -> Value {
    let languages: Vec<_> = engines::AVAILABLE.iter().map(|&language| language.as_str()).collect();
    if let Some(properties) = schema["properties"].as_object_mut() {
        // Generated clients, unlike those of models, accept a schema of any JSON.
        properties.insert(RunParameter::Input.name().to_owned(), json!({ "description": "any JSON" }));
        let numbers = [
            RunParameter::TimeoutMs,
            RunParameter::MaxToolCalls,
            RunParameter::MaxSamplingRounds,
            RunParameter::MaxSamplingTokens,
        ];
        for number in numbers {
            if let Some(schema) = properties.get_mut(number.name()) {
                schema["minimum"] = 0.into();
            }
        }
        let most = [
            (RunParameter::TimeoutMs, MAX_TIMEOUT.as_millis() as u64),
            (RunParameter::MaxToolCalls, u32::MAX.into()),
        ];
        for (parameter, accepted) in most {
            if let Some(schema) = properties.get_mut(parameter.name()) {
                // The operator's limit is a cap, not a reason to refuse a request.
                if let Some(cap) = schema["maximum"].as_u64().filter(|cap| *cap < accepted) {
                    schema["description"] = format!("more than {cap} counts as {cap}").into();
                }
                schema["maximum"] = accepted.into();
            }
        }
        if let Some(schema) = properties.get_mut(RunParameter::Permissions.name()) {
            let list = json!({ "type": "array", "items": { "type": "string" } });
            schema["properties"] = json!({ "read": list, "write": list, "net": list });
        }
        properties.insert(
            LANGUAGE.to_owned(),
            json!({ "type": "string", "enum": languages, "description": "of `code`" }),
        );
        let flag =
            |description: &str| json!({ "type": "boolean", "default": false, "description": description });
        properties.insert(STREAM.to_owned(), flag("answer with a stream of events"));
        properties.insert(BACKGROUND.to_owned(), flag("answer at once; the run goes on"));
    }
    match schema.get_mut("required").and_then(Value::as_array_mut) {
        Some(required) => required.push(LANGUAGE.into()),
        // A saved script has its own language.
        None => {
            let (code, script) = (RunParameter::Code.name(), RunParameter::Script.name());
            schema["anyOf"] = json!([{ "required": [code, LANGUAGE] }, { "required": [script] }]);
        }
    }
    schema["additionalProperties"] = false.into();
    schema
}

/// A schema of an object with these fields, of which `required` are always there.
fn object(required: &[&str], fields: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": fields })
}

/// The types of the fields of a result. It has every field of the tools' output schema.
fn types() -> Map<String, Value> {
    let integer = json!({ "type": "integer", "minimum": 0 });
    let time = json!({ "type": "number", "minimum": 0 });
    let text = json!({ "type": "string" });
    let list = |of: Value| json!({ "type": "array", "items": of });
    let fields = [
        ("success", json!({ "type": "boolean" })),
        ("value", json!({ "description": "any JSON" })),
        (
            "valueTruncated",
            object(
                &["characters", "head", "tail"],
                json!({ "characters": integer, "head": text, "tail": text, "rest": text }),
            ),
        ),
        ("output", text.clone()),
        ("outputOmitted", integer.clone()),
        ("outputBytesDropped", integer.clone()),
        ("emittedBlocks", integer.clone()),
        ("error", error()),
        ("executionTimeMs", time.clone()),
        ("approvalTimeMs", time.clone()),
        ("fuelUsed", integer.clone()),
        ("toolCallsMade", integer.clone()),
        ("toolCallsRefused", integer.clone()),
        ("toolCallSummary", list(call_summary())),
        ("toolCallSummaryOmitted", integer.clone()),
        (
            "plannedCalls",
            list(object(&["tool", "arguments"], json!({ "tool": text, "arguments": { "type": "object" } }))),
        ),
        ("plannedCallsOmitted", integer.clone()),
        ("plannedCallsDropped", integer.clone()),
        ("samplingCalls", list(model_call())),
        ("samplingCallsOmitted", integer.clone()),
        (
            "samplingMetrics",
            object(
                &["totalRounds", "totalTokens", "totalDurationMs", "averageTokensPerRound", "quotaRemaining"],
                json!({
                    "totalRounds": integer,
                    "totalTokens": integer,
                    "totalDurationMs": time,
                    "averageTokensPerRound": integer,
                    "quotaRemaining": object(&["rounds", "tokens"], json!({ "rounds": integer, "tokens": integer })),
                }),
            ),
        ),
        ("runId", text),
    ];
    fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// Why a script has failed.
fn error() -> Value {
    let (text, position) = (json!({ "type": "string" }), json!({ "type": "integer", "minimum": 1 }));
    object(
        &["code", "message"],
        json!({
            "code": text,
            "message": text,
            "name": text,
            "toolCode": text,
            "line": position,
            "column": position,
            "sourceLine": text,
            "hint": text,
            "stack": text,
            "retryAfterMs": { "type": "number", "minimum": 0 },
            "problems": { "type": "string", "description": "what the check has found, a line each" },
        }),
    )
}

/// The calls of one tool.
fn call_summary() -> Value {
    let count = json!({ "type": "integer", "minimum": 0 });
    object(
        &["tool", "calls", "totalMs", "resultBytes"],
        json!({
            "tool": { "type": "string" },
            "calls": count,
            "failed": count,
            "inFlight": count,
            "approved": count,
            "notApproved": count,
            "awaitingApproval": count,
            "simulated": count,
            "totalMs": { "type": "number", "minimum": 0 },
            "resultBytes": count,
            "returned": { "type": "string", "description": "the shape of a result, if the script failed" },
        }),
    )
}

/// One call of a language model.
fn model_call() -> Value {
    let (count, text) = (json!({ "type": "integer", "minimum": 0 }), json!({ "type": "string" }));
    let violation = object(&["pattern", "count"], json!({ "pattern": text, "count": count }));
    object(
        &["round", "provider", "status", "tokensUsed", "durationMs"],
        json!({
            "round": count,
            "provider": text,
            "status": text,
            "tokensUsed": count,
            "durationMs": { "type": "number", "minimum": 0 },
            "model": text,
            "tokensEstimated": { "type": "boolean" },
            "stopReason": text,
            "contentViolations": { "type": "array", "items": violation },
        }),
    )
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
    object(
        &["running"],
        json!({
            "running": { "const": true },
            "runId": { "type": "string" },
            "output": { "type": "string", "description": "what was printed so far" },
            "outputOmitted": { "type": "integer" },
        }),
    )
}

pub(super) fn problem() -> Value {
    let text = json!({ "type": "string" });
    let mut schema = object(
        &["type", "title", "status", "detail"],
        json!({
            "type": text,
            "title": text,
            "status": { "type": "integer" },
            "detail": text,
            "code": text,
            "hint": text,
            "retryAfterMs": { "type": "number" },
        }),
    );
    schema["description"] = "RFC 9457".into();
    schema
}

/// The data of each event of a stream, by the name of the event.
pub(super) fn events() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "number" }));
    let levels = LogLevel::ALL.map(LogLevel::as_str);
    let mut schema = object(
        &[],
        json!({
            "run": object(&["runId"], json!({ "runId": text })),
            "output": object(&["level", "text"], json!({ "level": { "enum": levels }, "text": text })),
            "progress": object(
                &["progress"],
                json!({ "progress": number, "total": number, "message": text }),
            ),
            "call": reference("ToolCall"),
            "dropped": object(&["events"], json!({ "events": { "type": "integer", "minimum": 1 } })),
            "result": reference("RunResult"),
            "problem": reference("Problem"),
        }),
    );
    schema["description"] = "the data of each event of a stream, by the name of the event".into();
    schema
}

/// The data of the event `call`.
pub(super) fn call() -> Value {
    let count = json!({ "type": "integer", "minimum": 0 });
    let status = "`ok`, an error's code, `not approved`, or `simulated` in a dry run";
    object(
        &["tool", "status", "ms", "argumentBytes", "resultBytes"],
        json!({
            "tool": { "type": "string" },
            "status": { "type": "string", "description": status },
            "ms": { "type": "number", "minimum": 0 },
            "argumentBytes": count,
            "resultBytes": count,
        }),
    )
}
