//! The description of the REST interface as an OpenAPI 3.1 document. The parameters of runs and the names of fields are
//! those of the tools.

mod schemas;

use serde_json::{Map, Value, json};

use self::schemas::{call, events, problem, request, result, running};
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
        "paths": paths(has_token),
        "components": {
            "schemas": {
                "RunRequest": request(run_schema(Descriptions::Included, &executor.max_limits(), offers)),
                "RunResult": result(),
                "RunningRun": running(),
                "Problem": problem(),
                "Events": events(),
                "ToolCall": call(),
            },
            "responses": problem_responses(),
        },
    });
    if has_token {
        document["components"]["securitySchemes"] =
            json!({ "token": { "type": "http", "scheme": "bearer" } });
        document["security"] = json!([{ "token": [] }]);
    }
    document
}

/// A schema of the document.
fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn header(description: &str, kind: &str) -> Value {
    json!({ "description": description, "schema": { "type": kind } })
}

fn json_of(description: &str, schema: Value) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

/// The statuses of the answers that are no results, and when they are sent. Not among them: 405, because the document
/// has every method of every path.
const PROBLEMS: [(u16, &str); 12] = [
    (400, "The body or a parameter is wrong"),
    (401, "The token is missing or wrong"),
    (403, "The `Host` or the `Origin` is wrong, or the token is not for this"),
    (404, "There is no such run or part"),
    (408, "The body came too slowly"),
    (413, "The body is too long"),
    (415, "The body is compressed, or is not said to be JSON"),
    (422, "The `Idempotency-Key` was sent before with another body"),
    (429, "Too many runs in a minute, or in the background"),
    (431, "The head of the request is too long"),
    (500, "A fault of cx, which is in its log"),
    (503, "The queue is full, no engine takes runs, or the server is being stopped"),
];

/// The statuses with which any request can be answered, in addition to those of [`PROBLEMS`] that its path names. 401
/// only if the server has a token.
const OF_ALL: [u16; 6] = [400, 401, 403, 431, 500, 503];

/// The statuses with the header `Retry-After`.
const FOR_NOW: [u16; 2] = [429, 503];

/// The name of the response with a status.
fn problem_name(status: u16) -> String {
    format!("Problem{status}")
}

fn problem_responses() -> Map<String, Value> {
    let response = |(status, when): (u16, &str)| {
        let mut response = json!({ "description": when });
        // A head that cannot be read is answered before anything knows what was wanted.
        if status != 431 {
            response["content"] = json!({ "application/problem+json": { "schema": reference("Problem") } });
        }
        if FOR_NOW.contains(&status) {
            let retry =
                header("seconds after which the same request may succeed, where that is known", "integer");
            response["headers"] = json!({ "Retry-After": retry });
        }
        (problem_name(status), response)
    };
    PROBLEMS.into_iter().map(response).collect()
}

fn paths(has_token: bool) -> Value {
    let responses = |own: Value, statuses: &[u16]| {
        let mut responses = own;
        for (status, _) in PROBLEMS {
            let is_of_all = OF_ALL.contains(&status) && (status != 401 || has_token);
            if is_of_all || statuses.contains(&status) {
                let name = problem_name(status);
                responses[status.to_string()] = json!({ "$ref": format!("#/components/responses/{name}") });
            }
        }
        responses
    };
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
    let mut ended = json_of("What the script came to, also if it failed", reference("RunResult"));
    ended["content"]["text/event-stream"] = json!({
        "schema": {
            "type": "string",
            "description": "events `run`, `output`, `progress`, `call`, `dropped`, and last `result` or `problem`; \
                the schema `Events` has the data of each",
        },
    });
    let replayed = header("`true` if the run is that of an earlier request with the same key", "string");
    ended["headers"] = json!({ "Idempotency-Replayed": replayed });
    let mut accepted = json_of("The run goes on without this request", reference("RunningRun"));
    accepted["headers"] =
        json!({ "Idempotency-Replayed": replayed, "Location": header("where its result is", "string") });
    let state = json!({ "oneOf": [reference("RunResult"), reference("RunningRun")] });
    json!({
        "/v1/runs": { "post": {
            "operationId": "createRun",
            "summary": "Runs a script",
            "parameters": [key],
            "requestBody": {
                "required": true,
                "content": { "application/json": { "schema": reference("RunRequest") } },
            },
            "responses": responses(json!({ "200": ended, "202": accepted }), &[408, 413, 415, 422, 429]),
        } },
        "/v1/runs/{id}": {
            "parameters": [id.clone()],
            "get": {
                "operationId": "readRun",
                "summary": "The result of a run, or what it has printed so far",
                "parameters": [wait],
                "responses": responses(json!({ "200": json_of("The run", state) }), &[404]),
            },
            "delete": {
                "operationId": "cancelRun",
                "summary": "Cancels a run",
                "responses": responses(json!({ "204": { "description": "It is being cancelled" } }), &[404]),
            },
        },
        "/v1/runs/{id}/{part}": {
            "parameters": [id, part],
            "get": {
                "operationId": "readRunPart",
                "summary": "The whole of what a result has left out",
                "responses": responses(
                    json!({ "200": {
                        "description": "The text that was printed, the value, or the list of calls",
                        "content": {
                            "text/plain": { "schema": { "type": "string" } },
                            "application/json": { "schema": {} },
                        },
                    } }),
                    &[404],
                ),
            },
        },
        "/openapi.json": { "get": {
            "operationId": "describe",
            "summary": "This document",
            "responses": responses(
                json!({ "200": json_of("An OpenAPI 3.1 document", json!({ "type": "object" })) }),
                &[],
            ),
        } },
    })
}

#[cfg(test)]
mod tests;
