//! The output schemas of the tools. They name every field of structured content.
//!
//! Many clients keep only the fields that a schema names. The list of tools is part of every conversation, so a schema
//! has names and little else: `{}` allows any content. The contents of maps and lists, such as `servers` and
//! `toolCallSummary`, are described in the documentation only.

use serde_json::{Value, json};

/// The schema of the result of a run: see [`super::answer::draft`]. With `yields` it also has the fields of an answer
/// to a run that continues.
pub(super) fn run(yields: bool) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "success": {},
            "value": {},
            "valueTruncated": {},
            "output": {},
            "outputOmitted": {},
            "outputBytesDropped": {},
            "emittedBlocks": {},
            "error": {
                "type": "object",
                "properties": {
                    "code": {},
                    "message": {},
                    "name": {},
                    "toolCode": {},
                    "line": {},
                    "column": {},
                    "sourceLine": {},
                    "hint": {},
                    "stack": {},
                    "retryAfterMs": {},
                    "problems": {},
                },
            },
            "executionTimeMs": {},
            "approvalTimeMs": {},
            "fuelUsed": {},
            "toolCallsMade": {},
            "toolCallsRefused": {},
            "toolCallSummary": {},
            "toolCallSummaryOmitted": {},
            "plannedCalls": {},
            "plannedCallsOmitted": {},
            "plannedCallsDropped": {},
            "samplingCalls": {},
            "samplingCallsOmitted": {},
            "samplingMetrics": {},
            "runId": {},
        },
    });
    if yields {
        schema["properties"]["running"] = json!({});
    }
    schema
}

/// The schema of the health report: see [`super::health`].
pub(super) fn health() -> Value {
    json!({
        "type": "object",
        "properties": {
            "healthy": {},
            "auditLog": {},
            "mcpClients": {},
            "connectionPool": {},
            "memory": {},
            "uptime": {},
            "timestamp": {},
            "version": {},
            "engines": {},
            "isolation": {},
            "residentBytes": {},
            "servers": {},
            "grants": {},
            "config": {},
            "hint": {},
        },
    })
}
