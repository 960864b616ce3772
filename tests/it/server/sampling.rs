//! Scripts that ask the model of the client (sampling), in handshake revisions and the stateless one, and the
//! parameters and fields of the tools.

use std::collections::BTreeSet;
use std::process::Command;

use cx::ProviderKind;
use serde_json::{Value, json};

use crate::support::interop::{node_modules, python, script};
use crate::support::provider::{FakeProvider, KEY, Reply};
use crate::support::serve::{Client, Start, meta};

/// A client of a handshake revision that offers its model.
fn client(start: Start) -> Client {
    start.spawn().shaken_with(json!({ "sampling": {} }))
}

fn question(client: &mut Client) -> Value {
    client.receive_method("sampling/createMessage")
}

fn answer(text: &str) -> Value {
    json!({ "role": "assistant", "content": { "type": "text", "text": text }, "model": "model-of-the-client", "stopReason": "endTurn" })
}

#[test]
fn a_client_of_a_handshake_revision_is_asked_by_requests() {
    let mut client = client(Start::new());
    let code = "return await Promise.all([
        llm.ask('a', { model: 'big', systemPrompt: 's', maxTokens: 50 }), llm.ask('b').catch((error) => error.code)])";
    let call = client.begin_call("executeTypescript", json!({ "code": code, "enableSampling": true }));
    let (first, second) = (question(&mut client), question(&mut client));
    let prompt =
        |asked: &Value| asked["params"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
    let (a, b) = if prompt(&first) == "a" { (first, second) } else { (second, first) };
    assert_eq!((prompt(&a), prompt(&b)), ("a".to_owned(), "b".to_owned()));
    assert_eq!(a["params"]["systemPrompt"], "s");
    assert_eq!(a["params"]["maxTokens"], 50);
    assert_eq!(a["params"]["modelPreferences"]["hints"], json!([{ "name": "big" }]));
    client.send(&json!({ "jsonrpc": "2.0", "id": a["id"], "result": answer("first") }));
    client.send(
        &json!({ "jsonrpc": "2.0", "id": b["id"], "error": { "code": -1, "message": "the user said no" } }),
    );
    let structured = client.answer(&call)["result"]["structuredContent"].clone();
    assert_eq!(structured["value"], json!(["first", "MODEL_DENIED"]), "{structured:#}");
    let calls = structured["samplingCalls"].as_array().unwrap();
    assert!(calls.iter().all(|call| call["provider"] == "client"), "{structured:#}");
    assert!(
        calls.iter().any(|call| call["model"] == "model-of-the-client" && call["tokensEstimated"] == true)
    );
    assert_eq!(structured["samplingMetrics"]["quotaRemaining"]["rounds"], 8);
    client.end();
}

/// Twenty questions at once take one round trip, and findings of the filter are hidden.
#[test]
fn a_client_of_the_stateless_revision_is_asked_all_at_once() {
    let mut client = Start::new().spawn();
    let code = "const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => llm.ask(`number ${i}`, { maxTokens: 20 })));
        return [...answers, await llm.ask('last')]";
    let arguments = json!({ "code": code, "enableSampling": true, "maxSamplingRounds": 21 });
    let meta = meta(json!({ "io.modelcontextprotocol/clientCapabilities": { "sampling": {} } }));
    let params = json!({ "name": "executeTypescript", "arguments": arguments, "_meta": meta });
    // On a busy machine the server may hear some of the questions too late to ask all at once.
    let mut ask = || client.request("tools/call", params.clone())["result"].clone();
    let has_all = |asked: &Value| asked["inputRequests"].as_object().is_some_and(|all| all.len() == 20);
    let asked = (0..10).map(|_| ask()).find(has_all).expect("all questions at once");
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    let requests = asked["inputRequests"].as_object().unwrap();
    let prompt =
        |request: &Value| request["params"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
    let prompts: BTreeSet<String> = requests.values().map(prompt).collect();
    assert_eq!(prompts, (0..20).map(|number| format!("number {number}")).collect(), "{asked:#}");
    assert!(requests.values().all(|request| request["method"] == "sampling/createMessage"));
    let responses = |asked: &Value| -> Value {
        let requests = asked["inputRequests"].as_object().unwrap();
        requests
            .iter()
            .map(|(key, request)| (key.clone(), answer(&format!("re: {}", prompt(request)))))
            .collect()
    };
    // Half of the answers: the client is asked again for the other half.
    let mut half = params.clone();
    half["requestState"] = asked["requestState"].clone();
    let all = responses(&asked);
    half["inputResponses"] = all.as_object().unwrap().clone().into_iter().take(10).collect();
    let again = client.request("tools/call", half)["result"].clone();
    assert_eq!(again["inputRequests"].as_object().unwrap().len(), 10, "{again:#}");
    let mut rest = params.clone();
    rest["requestState"] = again["requestState"].clone();
    rest["inputResponses"] = responses(&again);
    let last = client.request("tools/call", rest)["result"].clone();
    assert_eq!(last["inputRequests"].as_object().unwrap().len(), 1, "{last:#}");
    let mut end = params;
    end["requestState"] = last["requestState"].clone();
    let key = last["inputRequests"].as_object().unwrap().keys().next().unwrap();
    end["inputResponses"] = json!({ key: answer("write to jane@example.com") });
    let structured = client.request("tools/call", end)["result"]["structuredContent"].clone();
    let mut expected: Vec<String> = (0..20).map(|number| format!("re: number {number}")).collect();
    expected.push("write to [REDACTED_PII]".to_owned());
    assert_eq!(structured["value"], json!(expected), "{structured:#}");
    assert_eq!(structured["samplingMetrics"]["totalRounds"], 21);
    assert_eq!(structured["samplingCallsOmitted"], 1);
    client.end();
}

#[test]
fn a_client_that_offers_no_model_is_told_the_ways_to_one() {
    let mut client = Start::new().spawn().shaken();
    for (arguments, expected) in [
        (json!({ "code": "await llm.ask('x')" }), "enableSampling: true"),
        (json!({ "code": "await llm.ask('x')", "enableSampling": true }), "ANTHROPIC_API_KEY"),
    ] {
        let structured = client.call("executeTypescript", arguments)["structuredContent"].clone();
        assert_eq!(structured["error"]["toolCode"], "MODEL_UNAVAILABLE", "{structured:#}");
        assert!(structured["error"]["message"].as_str().unwrap().contains(expected), "{structured:#}");
    }
    client.end();
}

fn configured(provider: &FakeProvider, more: Value) -> Start {
    let mut llm =
        json!({ "provider": "openai", "model": "fake-model", "url": provider.url(), "apiKey": KEY });
    for (name, value) in more.as_object().unwrap() {
        llm[name] = value.clone();
    }
    Start::new().config("llm", llm)
}

/// The provider that the operator has chosen comes first, unless the operator says otherwise.
#[test]
fn the_order_of_the_ways_is_the_operators() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("the provider".to_owned()));
    for (prefer, expected) in [("provider", "the provider"), ("client", "the client")] {
        let mut client = client(configured(&provider, json!({ "prefer": prefer })));
        let arguments = json!({ "code": "return await llm.ask('x')", "enableSampling": true });
        let call = client.begin_call("executeTypescript", arguments);
        if prefer == "client" {
            let asked = question(&mut client);
            client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer("the client") }));
        }
        let structured = client.answer(&call)["result"]["structuredContent"].clone();
        assert_eq!(structured["value"], expected, "{structured:#}");
        let name = if prefer == "client" { "client" } else { "openai" };
        assert_eq!(structured["samplingCalls"][0]["provider"], name);
        client.end();
    }
}

/// A provider that cannot be reached is passed over, and the client is asked.
#[test]
fn the_client_is_asked_if_the_provider_cannot_be_reached() {
    // Nothing listens at this address.
    let llm =
        json!({ "provider": "openai", "model": "fake-model", "url": "http://127.0.0.1:1/v1", "apiKey": KEY });
    let mut client = client(Start::new().config("llm", llm));
    let code = "return await llm.ask('x', { maxTokens: 50 })";
    let call = client.begin_call("executeTypescript", json!({ "code": code, "enableSampling": true }));
    let asked = question(&mut client);
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer("the client") }));
    let structured = client.answer(&call)["result"]["structuredContent"].clone();
    assert_eq!(structured["value"], "the client", "{structured:#}");
    let calls = structured["samplingCalls"].as_array().unwrap();
    let ways: Vec<_> = calls.iter().map(|call| (&call["provider"], &call["status"])).collect();
    let expected = [(json!("openai"), json!("MODEL_UNAVAILABLE")), (json!("client"), json!("ok"))];
    assert_eq!(ways, expected.each_ref().map(|(provider, status)| (provider, status)), "{structured:#}");
    // Each was a call; the one that was never sent took no tokens.
    assert_eq!(calls[0]["tokensUsed"], 0, "{structured:#}");
    assert_eq!(structured["samplingMetrics"]["totalTokens"], calls[1]["tokensUsed"], "{structured:#}");
    assert_eq!(structured["samplingMetrics"]["quotaRemaining"]["rounds"], 8, "{structured:#}");
    client.end();
}

/// What a call asks for is capped by the operator's setting, and otherwise holds.
#[test]
fn sa_174_the_parameters_are_within_what_the_operator_has_set() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("fine".to_owned()));
    let left = |more: Value, arguments: Value| {
        let mut client = configured(&provider, more).spawn().shaken();
        let mut arguments = arguments;
        arguments["code"] = "return await llm.ask('x', { maxTokens: 10 })".into();
        let structured = client.call("executeTypescript", arguments)["structuredContent"].clone();
        client.end();
        assert!(!structured.to_string().contains(KEY));
        let quota = &structured["samplingMetrics"]["quotaRemaining"];
        // The call takes the same each time: two tokens.
        quota["rounds"].as_u64().map(|rounds| (rounds + 1, quota["tokens"].as_u64().unwrap() + 2))
    };
    let on = || json!({ "enabled": true });
    assert_eq!(left(on(), json!({})), Some((10, 10_000)));
    assert_eq!(left(on(), json!({ "maxSamplingRounds": 3, "maxSamplingTokens": 500 })), Some((3, 500)));
    assert_eq!(
        left(on(), json!({ "maxSamplingRounds": 9000, "maxSamplingTokens": 9000000 })),
        Some((100, 100_000))
    );
    let set = || json!({ "enabled": true, "rounds": 5, "tokens": 2000 });
    assert_eq!(left(set(), json!({})), Some((5, 2_000)));
    assert_eq!(left(set(), json!({ "maxSamplingRounds": 50, "maxSamplingTokens": 50000 })), Some((5, 2_000)));
    assert_eq!(left(json!({}), json!({})), None);
    assert_eq!(left(json!({}), json!({ "enableSampling": true })), Some((10, 10_000)));
    // The values that models fill in in strict mode count as not given.
    assert_eq!(left(on(), json!({ "enableSampling": false })), Some((10, 10_000)));
    assert_eq!(left(json!({ "enabled": false }), json!({ "enableSampling": true })), None);
}

/// The keys of `llm` in the user's file that say what may be asked, for how long, and what is hidden.
#[test]
fn the_users_file_says_what_may_be_asked_and_what_is_hidden() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| match asked.prompt.as_str() {
        "silent" => Reply::Silence,
        _ => Reply::Text("write to jane@example.com".to_owned()),
    });
    let code = "const outcome = (asked) => asked.catch((error) => error.code);
        return [
            await outcome(llm.ask('a', { model: 'small', systemPrompt: 'be brief', maxTokens: 9 })),
            await outcome(llm.ask('a', { model: 'huge', maxTokens: 9 })),
            await outcome(llm.ask('a', { systemPrompt: 'obey', maxTokens: 9 })),
            await outcome(llm.ask('silent', { maxTokens: 9 })),
        ]";
    for (filter, expected) in [
        ("off", "write to jane@example.com"),
        ("redact", "write to [REDACTED_PII]"),
        ("refuse", "MODEL_DENIED"),
    ] {
        let llm = json!({
            "enabled": true, "allowedModels": ["small"], "allowedSystemPrompts": ["be brief"],
            "contentFilter": filter, "callTimeoutMs": 6_000,
        });
        let mut client = configured(&provider, llm).spawn().shaken();
        let ended = client.run(code);
        let expected = json!([expected, "MODEL_DENIED", "MODEL_DENIED", "MODEL_TIMEOUT"]);
        assert_eq!(ended["value"], expected, "{ended:#}");
        client.end();
    }
}

/// A workspace decides neither where a key is sent nor what is paid for, not even in a trusted file.
#[test]
fn sa_181_a_workspace_has_no_say_in_language_models() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("fine".to_owned()));
    let first = configured(&provider, json!({})).spawn();
    let workspace = json!({ "llm": { "enabled": true, "url": "http://127.0.0.1:1/", "rounds": 10000 } });
    std::fs::write(first.directory().join(".cx.json"), workspace.to_string()).unwrap();
    // Nor has a workspace's file that the user trusts.
    super::state::cx(&first, &["trust", "--yes", ".cx.json"]);
    let mut client = configured(&provider, json!({})).beside(&first).spawn().shaken();
    let structured =
        client.call("executeTypescript", json!({ "code": "await llm.ask('x')" }))["structuredContent"]
            .clone();
    assert_eq!(structured["error"]["toolCode"], "MODEL_UNAVAILABLE", "{structured:#}");
    let arguments = json!({ "code": "return await llm.ask('x')", "enableSampling": true });
    let structured = client.call("executeTypescript", arguments)["structuredContent"].clone();
    assert_eq!(structured["value"], "fine", "{structured:#}");
    client.end();
    first.end();
}

/// Third-party clients: the official SDKs, in handshake revisions and the stateless one.
#[test]
fn the_official_sdks_are_asked_in_both_revisions() {
    let answers: Vec<String> = (1..=5).map(|number| format!("re: number {number}, at most 9")).collect();
    let modules = node_modules();
    let (with_python, with_node) = (python("python"), "node".to_owned());
    for (program, arguments, protocol) in [
        (&with_python, vec![script("sampling.py"), "legacy".to_owned()], "2025-11-25"),
        (&with_python, vec![script("sampling.py"), "auto".to_owned()], "2026-07-28"),
        (&with_node, vec![script("sampling.mjs"), "v1".to_owned(), modules.clone()], "2025-11-25"),
        (&with_node, vec![script("sampling.mjs"), "v2".to_owned(), modules.clone()], "2025-11-25"),
        (&with_node, vec![script("sampling.mjs"), "v2-auto".to_owned(), modules.clone()], "2026-07-28"),
    ] {
        let (command, _directory) = Start::new().command();
        let mut client = Command::new(program);
        client.args(&arguments).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => client.env(name, value),
                None => client.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            client.current_dir(directory);
        }
        let output = client.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"));
        let expected = json!([answers, [["client", "mine"]], 5]);
        assert_eq!(seen["protocol"], protocol, "{arguments:?}: {seen:#}");
        assert_eq!(seen["executeTypescript"], expected, "{arguments:?}: {seen:#}");
        assert_eq!(seen["executePython"], expected, "{arguments:?}: {seen:#}");
    }
}
