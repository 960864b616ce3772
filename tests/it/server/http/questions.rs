//! Questions to the user during a call.

use super::*;

#[test]
fn a_person_is_asked_in_the_stream_of_the_call() {
    let server = Server::start(Start::new().server("notes", &["well"]).arguments(&["--ask", "notes.*"]));
    let session = server.session_with(&json!({ "elicitation": { "form": {} } }));
    for (approve, code) in [(true, Value::Null), (false, json!("TOOL_DENIED"))] {
        let mut reply = session.begin_run(1, "return await tools.notes.echo({ text: 'a' })");
        let question = reply.next().unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert!(question["params"]["message"].as_str().unwrap().contains("notes.echo"));
        let answer = json!({ "action": "accept", "content": { "approve": approve } });
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
        assert_eq!(session.post(&answer).status, 202);
        let result = reply.result();
        assert_eq!(result["structuredContent"]["success"], approve, "{result}");
        assert_eq!(result["structuredContent"]["error"]["toolCode"], code, "{result}");
    }
    assert_eq!(server.notes("notes").matches("executed echo").count(), 1);
}

/// Threat 394.
#[test]
fn v_394_an_answer_that_cannot_be_read_is_none_over_http() {
    let server = Server::start(Start::new().server("notes", &["well"]).arguments(&["--ask", "notes.*"]));
    let session = server.session_with(&json!({ "elicitation": {} }));
    for answer in [json!({ "result": null }), json!({ "result": {}, "error": {} }), json!({ "error": null })]
    {
        let mut reply = session.begin_run(1, "return await tools.notes.echo({ text: 'a' })");
        let question = reply.next().unwrap();
        let mut message = json!({ "jsonrpc": "2.0", "id": question["id"] });
        for (name, value) in answer.as_object().unwrap() {
            message[name] = value.clone();
        }
        assert_eq!(session.post(&message).status, 202, "{answer}");
        let error = reply.result()["structuredContent"]["error"].clone();
        assert!(error["message"].as_str().unwrap().contains("no user can be asked"), "{answer}: {error}");
    }
}

/// Without a session the question is a result, and the next request has the answer.
#[test]
fn a_person_is_asked_by_a_result() {
    let server = Server::start(Start::new().server("notes", &["well"]).arguments(&["--ask", "notes.*"]));
    let capabilities = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let call = |more: Value| {
        let mut params = run_params("return await tools.notes.echo({ text: 'a' })");
        params["_meta"] = meta(capabilities.clone());
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        server.stateless("tools/call", params).result()
    };
    for (approve, code) in [(true, Value::Null), (false, json!("TOOL_DENIED"))] {
        let asked = call(json!({}));
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let answer = json!({ "action": "accept", "content": { "approve": approve } });
        let answer = json!({ "approval": answer });
        let result = call(json!({ "requestState": asked["requestState"], "inputResponses": answer }));
        assert_eq!(result["structuredContent"]["success"], approve, "{result}");
        assert_eq!(result["structuredContent"]["error"]["toolCode"], code, "{result}");
    }
    assert_eq!(server.notes("notes").matches("executed echo").count(), 1);
}

#[test]
fn a_question_is_taken_back_when_its_run_ends() {
    let server = Server::start(Start::new().server("notes", &["well"]).arguments(&["--ask", "notes.*"]));
    let session = server.session_with(&json!({ "elicitation": {} }));
    let source = "void tools.notes.echo({ text: 'a' });
        while (!(await state.get('asked'))) await new Promise((done) => setTimeout(done, 20))";
    let mut reply = session.begin_run(1, source);
    let question = reply.next().unwrap();
    session.run("await state.set('asked', true)");
    let taken_back = reply.next().unwrap();
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
}
