//! Sessions, and clients without one.

use super::*;

#[test]
fn each_session_has_runs_of_its_own() {
    let server = Server::plain();
    let (one, other) = (server.session(), server.session());
    assert_ne!(one.id, other.id);
    let result = one.begin_run("a", LONG_OUTPUT).result();
    let address = kept_address(&result);
    let read =
        |session: &Session<'_>| session.begin(2, "resources/read", json!({ "uri": address })).message();
    assert_eq!(read(&one)["result"]["contents"][0]["text"].as_str().unwrap().len(), 60_000);
    assert_eq!(read(&other)["error"]["code"], -32002);
    let list = |session: &Session<'_>| {
        let list = session.begin(3, "resources/list", json!({})).result();
        list["resources"].as_array().unwrap().len()
    };
    assert!(list(&one) > 1);
    assert_eq!(list(&other), 1);
    // Without a session the run is not found either.
    let stateless = server.stateless("resources/read", json!({ "uri": address })).message();
    assert!(
        stateless["error"]["message"].as_str().unwrap().contains("no record of this run is kept"),
        "{stateless}"
    );
    // A session's records are removed with it, and the other session's stay.
    assert_eq!(one.delete(), 202);
    assert_eq!(one.begin_run(1, "return 1").status, 404);
    assert_eq!(one.delete(), 404);
    assert_eq!(other.run("return 6 * 7")["value"], 42);
}

/// By default a session has its own state, which is removed with it. A named one belongs to every client that names it.
#[test]
fn each_session_has_a_state_of_its_own() {
    let server = Server::plain();
    let (one, other) = (server.session(), server.session());
    let set = "const before = await state.get('k'); await state.set('k', before + 1); return before";
    let value = |result: Value| result["value"].clone();
    assert_eq!(value(one.run("await state.set('k', 1); return 'kept'")), "kept");
    assert_eq!(value(other.run("return await state.get('k', 'nothing')")), "nothing");
    assert_eq!(value(other.run("await state.set('k', 10); return 'kept'")), "kept");
    assert_eq!(value(one.run(set)), 1);
    assert_eq!(value(one.run(set)), 2);

    let call = |arguments: Value| json!({ "name": "executeTypescript", "arguments": arguments });
    let named = json!({ "code": "await state.update('k', k => k + 1, 0)", "session": "trip" });
    let by_name = |answer: Reply| answer.result()["structuredContent"]["value"].clone();
    assert_eq!(by_name(one.begin(5, "tools/call", call(named.clone()))), 1);
    assert_eq!(by_name(other.begin(5, "tools/call", call(named.clone()))), 2);
    assert_eq!(by_name(server.stateless("tools/call", call(named))), 3);
    // The id of a session does not name its state.
    let guessed = json!({ "code": "return await state.get('k', 'nothing')", "session": one.id });
    assert_eq!(by_name(server.stateless("tools/call", call(guessed))), "nothing");
    let unnamed = server.stateless("tools/call", run_params("await state.set('k', 1)")).result();
    let error = &unnamed["structuredContent"]["error"];
    assert_eq!(error["toolCode"], "STATE_UNAVAILABLE", "{unnamed}");
    assert!(error["message"].as_str().unwrap().contains("with the parameter `session`"), "{unnamed}");

    let kept = || {
        let store = cx::StateStore::new(server.directory().join("cx/scripts.sqlite3"));
        let usage = store.usage().unwrap();
        usage.iter().filter(|usage| usage.scope.as_client().is_some()).count()
    };
    assert_eq!(kept(), 2);
    assert_eq!(one.delete(), 202);
    wait_for(|| (kept() == 1).then_some(()));
    assert_eq!(value(other.run("return await state.get('k')")), 10);
}

#[test]
fn clients_without_a_session_find_what_they_have_the_id_of() {
    let server = Server::plain();
    let result = server.stateless("tools/call", run_params(LONG_OUTPUT)).result();
    let address = kept_address(&result);
    let read = server.stateless("resources/read", json!({ "uri": address })).result();
    assert_eq!(read["contents"][0]["text"].as_str().unwrap().len(), 60_000);
    let list = server.stateless("resources/list", json!({})).result();
    assert_eq!(list["resources"].as_array().unwrap().len(), 1, "{list}");
    let session = server.session();
    assert!(session.begin(2, "resources/read", json!({ "uri": address })).message().get("error").is_some());
}

/// They share one handler and nothing else.
#[test]
fn a_client_without_a_session_sets_nothing_for_the_others() {
    let server = Server::plain();
    let refused = server.stateless("logging/setLevel", json!({ "level": "debug" }));
    assert_eq!(refused.status, 404, "the stateless revision has removed it");
    assert_eq!(refused.message()["error"]["code"], -32601);
    let offered = server.stateless("server/discover", json!({})).result();
    assert_eq!(offered["capabilities"]["tools"], json!({ "listChanged": true }), "if it listens");
    let reply = server.stateless("tools/call", run_params("console.log('secret'); return 1"));
    assert_eq!(reply.header("content-type"), Some("application/json"), "nothing comes before the answer");
    assert_eq!(reply.result()["structuredContent"]["output"], "secret");
}
