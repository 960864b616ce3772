//! The description of the REST interface as an OpenAPI 3.1 document. The parameters of runs and the names of fields are
//! those of the tools.

mod schemas;

use serde_json::{Value, json};

use self::schemas::{call, problem, request, result, running};
use super::accept::MAX_KEY;
use crate::server::http::rest_runs::MAX_WAIT;
use crate::server::shared::Shared;
use crate::server::tools::{Descriptions, Offers, run_schema};

/// The document for this server. `has_token` says whether requests need one.
pub(super) fn document(shared: &Shared, has_token: bool) -> Value {
    let executor = &shared.executor;
    let offers = Offers {
        yields: false,
        has_models: executor.lists_models(),
        has_grants: !executor.grants().is_empty(),
        has_scripts: !executor.saved_scripts().is_empty(),
    };
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "cx",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Runs scripts that call tools of MCP servers",
        },
        "servers": [{ "url": "/" }],
        "paths": paths(),
        "components": {
            "schemas": {
                "RunRequest": request(run_schema(Descriptions::Included, &executor.max_limits(), offers)),
                "RunResult": result(),
                "RunningRun": running(),
                "Problem": problem(),
                "ToolCall": call(),
            },
            "responses": {
                "Problem": {
                    "description": "Why there is no result",
                    "headers": {
                        "Retry-After": header("seconds after which the same request may succeed", "integer"),
                    },
                    "content": { "application/problem+json": { "schema": schema("Problem") } },
                },
            },
        },
    });
    if has_token {
        document["components"]["securitySchemes"] =
            json!({ "token": { "type": "http", "scheme": "bearer" } });
        document["security"] = json!([{ "token": [] }]);
    }
    document
}

fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn header(description: &str, kind: &str) -> Value {
    json!({ "description": description, "schema": { "type": kind } })
}

fn json_of(description: &str, schema: Value) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn paths() -> Value {
    let problem = || json!({ "$ref": "#/components/responses/Problem" });
    let id = json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    let part = json!({
        "name": "part", "in": "path", "required": true,
        "schema": { "type": "string", "enum": ["output", "value", "calls"] },
    });
    let wait = json!({
        "name": "waitMs", "in": "query",
        "description": "how long to wait for the end of the run",
        "schema": { "type": "integer", "minimum": 0, "maximum": MAX_WAIT.as_millis() as u64, "default": 0 },
    });
    let key = json!({
        "name": "Idempotency-Key", "in": "header",
        "description": "a second request with the same key and body is answered with the same run",
        "schema": { "type": "string", "minLength": 1, "maxLength": MAX_KEY },
    });
    let mut ended = json_of("What the script came to, also if it failed", schema("RunResult"));
    ended["content"]["text/event-stream"] = json!({
        "schema": {
            "type": "string",
            "description": "events `run`, `output`, `progress`, `call`, `dropped`, and last `result` or `problem`",
        },
    });
    let replayed = header("`true` if the run is that of an earlier request with the same key", "string");
    ended["headers"] = json!({ "Idempotency-Replayed": replayed });
    let mut accepted = json_of("The run goes on without this request", schema("RunningRun"));
    accepted["headers"] =
        json!({ "Idempotency-Replayed": replayed, "Location": header("where its result is", "string") });
    let state = json!({ "oneOf": [schema("RunResult"), schema("RunningRun")] });
    json!({
        "/v1/runs": { "post": {
            "operationId": "createRun",
            "summary": "Runs a script",
            "parameters": [key],
            "requestBody": {
                "required": true,
                "content": { "application/json": { "schema": schema("RunRequest") } },
            },
            "responses": { "200": ended, "202": accepted, "default": problem() },
        } },
        "/v1/runs/{id}": {
            "parameters": [id.clone()],
            "get": {
                "operationId": "readRun",
                "summary": "The result of a run, or what it has printed so far",
                "parameters": [wait],
                "responses": { "200": json_of("The run", state), "default": problem() },
            },
            "delete": {
                "operationId": "cancelRun",
                "summary": "Cancels a run",
                "responses": { "204": { "description": "It is being cancelled" }, "default": problem() },
            },
        },
        "/v1/runs/{id}/{part}": {
            "parameters": [id, part],
            "get": {
                "operationId": "readRunPart",
                "summary": "The whole of what a result has left out",
                "responses": {
                    "200": {
                        "description": "The text that was printed, the value, or the list of calls",
                        "content": {
                            "text/plain": { "schema": { "type": "string" } },
                            "application/json": { "schema": {} },
                        },
                    },
                    "default": problem(),
                },
            },
        },
        "/openapi.json": { "get": {
            "operationId": "describe",
            "summary": "This document",
            "responses": {
                "200": json_of("An OpenAPI 3.1 document", json!({ "type": "object" })),
                "default": problem(),
            },
        } },
    })
}

#[cfg(test)]
pub(super) use self::schemas::typed_fields;
