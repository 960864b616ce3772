//! A server that asks the client before it answers, by the revision that the client speaks.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::server::{Server, Sink, result, result_of};

/// The tool `target`, which asks with the request `method` and `params` of its arguments. The result has the client's
/// answer and its declared capabilities.
pub(crate) fn call(
    server: &Server,
    id: &Value,
    parameters: &Value,
    sink: &Arc<dyn Sink>,
) -> std::io::Result<()> {
    let arguments = &parameters["arguments"];
    let told = |told: Value| {
        let content = json!([{ "type": "text", "text": "asked" }]);
        json!({ "content": content, "structuredContent": told })
    };
    if server.options.variant != "modern" && arguments["first"] == "address" {
        let elicitations = json!([arguments["params"]]);
        let message = "an address has to be opened";
        let error = json!({ "code": -32042, "message": message, "data": { "elicitations": elicitations } });
        return sink.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }
    let request = json!({ "method": arguments["method"], "params": arguments["params"] });
    ask(server, id, parameters, &request, arguments["rounds"].as_u64().unwrap_or(1), told, sink)
}

/// `resources/read` and `prompts/get`, which ask for a color. The address of the resource, or the name of the prompt,
/// ends with the number of questions (`color:2`). The result has the client's answer and its declared capabilities.
pub(crate) fn request(server: &Arc<Server>, id: &Value, parameters: &Value, sink: &Arc<dyn Sink>) {
    let (server, id, parameters, sink) =
        (Arc::clone(server), id.clone(), parameters.clone(), Arc::clone(sink));
    std::thread::spawn(move || {
        let schema = json!({
            "type": "object", "properties": { "color": { "type": "string" } }, "required": ["color"],
        });
        let params = json!({ "mode": "form", "message": "which color?", "requestedSchema": schema });
        let question = json!({ "method": "elicitation/create", "params": params });
        let name = parameters["uri"].as_str().or(parameters["name"].as_str()).unwrap_or_default();
        let rounds = name.rsplit(':').next().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
        server.options.note(&format!("requested {name}"));
        let told = |told: Value| json!({ "contents": [], "messages": [], "told": told });
        let _closed = ask(&server, &id, &parameters, &question, rounds, told, &sink);
    });
}

/// Asks, and answers the request `id` with what `told` makes of the client's answer and capabilities.
fn ask(
    server: &Server,
    id: &Value,
    parameters: &Value,
    request: &Value,
    rounds: u64,
    told: impl Fn(Value) -> Value,
    sink: &Arc<dyn Sink>,
) -> std::io::Result<()> {
    let capabilities = &parameters["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    let told = |answer: &Value| {
        sink.send(&result(id, told(json!({ "answer": answer, "capabilities": capabilities }))))
    };
    if server.options.variant != "modern" {
        return told(&server.question(&json!(format!("question {id}")), request, sink)?);
    }
    let state = parameters["requestState"].as_str().and_then(|state| state.parse().ok()).unwrap_or(0);
    if state >= rounds {
        return told(&parameters["inputResponses"]["question"]);
    }
    let asked = json!({ "inputRequests": { "question": request }, "requestState": (state + 1).to_string() });
    sink.send(&result_of("input_required", id, asked))
}
