//! What providers send that is no answer, or has no end. THREATS 767 to 769.

use super::*;

const JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// The response with this head and body.
fn raw(head: &str, body: impl AsRef<[u8]>) -> Reply {
    Reply::Raw([head.as_bytes(), body.as_ref()].concat())
}

/// Asks a question as a whole or in pieces, and returns the pieces that came, and the error's code and message.
async fn ask(executor: &Executor, prompt: &str, is_streamed: bool) -> Value {
    let ask = if is_streamed {
        "for await (const piece of llm.ask(prompt, { stream: true, maxTokens: 10 })) text += piece;"
    } else {
        "text += await llm.ask(prompt, { maxTokens: 10 });"
    };
    let source = format!(
        "const prompt = '{prompt}';
        let text = '';
        try {{ {ask} }} catch (error) {{ return [text, error.code, error.message] }}
        return [text]"
    );
    value(&run(executor, Script::typescript(source)).await)
}

/// A response without an end, and a line, a message or comments without one in a stream: the call fails when the bound
/// is reached, which is long before its time is over, and the connection is closed.
#[tokio::test]
async fn v_767_what_has_no_end_is_read_up_to_its_bound() {
    for kind in ProviderKind::ALL {
        let is_ollama = kind == ProviderKind::Ollama;
        let provider = FakeProvider::start(kind, move |asked| {
            let text = "a".repeat(1_000);
            match &*asked.prompt {
                "body" => Reply::Endless(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"text\":\"",
                    text,
                ),
                "line" => {
                    Reply::Endless("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: \"", text)
                }
                "messages" => {
                    let start = if is_ollama { "" } else { "data: " };
                    let message = format!("{start}{{\"padding\":\"{text}\"}}\n\n");
                    Reply::Endless("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", message)
                }
                "comments" => {
                    let comment = if is_ollama { "\n".to_owned() } else { format!(": {text}\n\n") };
                    Reply::Endless("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", comment)
                }
                "headers" => Reply::Endless("HTTP/1.1 200 OK\r\n", "x-more: and more\r\n".to_owned()),
                "reason" => Reply::Endless(
                    "HTTP/1.1 500 Fake\r\ncontent-type: application/json\r\n\r\n{\"error\":{\"message\":\"",
                    text,
                ),
                other => panic!("{other}"),
            }
        });
        let options = LlmOptions { rounds: Some(100), tokens: Some(100_000), ..provider.options() };
        let executor = executor(options);
        let name = kind.as_str();
        let too_large = |size: u32| format!("{name}'s answer is larger than {size} MB");
        let unexpected = format!("{name} does not answer as expected");
        let failed = format!("{name} answers with status 500");
        for (prompt, is_streamed, message) in [
            ("body", false, &too_large(4)),
            ("line", true, &too_large(4)),
            ("messages", true, &too_large(16)),
            // Lines without a message count among all bytes only.
            ("comments", true, &too_large(if is_ollama { 16 } else { 8 })),
            ("headers", false, &unexpected),
            ("headers", true, &unexpected),
            ("reason", false, &failed),
            ("reason", true, &failed),
        ] {
            let answer = ask(&executor, prompt, is_streamed).await;
            assert_eq!(answer, json!(["", "MODEL_ERROR", message]), "{kind:?} {prompt} {is_streamed}");
        }
        wait_until(|| provider.open() == 0).await;
    }
}

/// Interim responses (1xx) have no bound of their own, but none is kept: they take as long as the call may.
#[tokio::test]
async fn v_767_interim_responses_without_an_end_take_no_longer_than_the_call() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| {
        Reply::Endless("", "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n".to_owned())
    });
    let options = LlmOptions { call_time: Duration::from_secs(1), ..provider.options() };
    let executor = executor(options);
    for is_streamed in [false, true] {
        let answer = ask(&executor, "x", is_streamed).await;
        assert_eq!(answer, json!(["", "MODEL_TIMEOUT", "`openai` did not answer within 1s"]));
        wait_until(|| provider.open() == 0).await;
    }
}

/// The bounds grow with the tokens that were asked for: obeyed and exceeded.
#[tokio::test]
async fn v_767_a_long_answer_is_read_if_it_was_asked_for() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("word ".repeat(1_000_000)));
    let options = LlmOptions { tokens: Some(1_000_000), ..provider.options() };
    let source = "const { length } = await llm.ask('x', { maxTokens: 100_000 });
        return [length, await llm.ask('x', { maxTokens: 10_000 }).catch((error) => error.message)]";
    let result = run(&executor(options), Script::typescript(source)).await;
    // Without the space at its end.
    assert_eq!(value(&result), json!([4_999_999, "openai's answer is larger than 4 MB"]));
    wait_until(|| provider.open() == 0).await;
}

/// A stream whose pieces have text without an end: the script gets what is within the bound.
#[tokio::test]
async fn v_767_a_stream_of_text_without_an_end_has_a_bound() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| {
        let delta = json!({ "content": "word ", "padding": "a".repeat(10_000) });
        let piece = json!({ "choices": [{ "delta": delta }] });
        Reply::Endless(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
            format!("data: {piece}\n\n"),
        )
    });
    let source = "let length = 0;
        try {
            for await (const piece of llm.ask('x', { stream: true, maxTokens: 10 })) length += piece.length;
        } catch (error) {
            return [error.code, error.message, length > 8_000 && length < 8_500];
        }";
    let result = run(&executor(provider.options()), Script::typescript(source)).await;
    assert_eq!(value(&result), json!(["MODEL_ERROR", "openai's answer is larger than 16 MB", true]));
    wait_until(|| provider.open() == 0).await;
}

/// Each is an error of the provider, and what came before it in a stream has reached the script.
#[tokio::test]
async fn v_768_what_is_no_answer_is_an_error() {
    let deep = |start: &str, end: &str| {
        format!("{start}{{\"choices\":{}{}}}{end}", "[".repeat(100_000), "]".repeat(100_000))
    };
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"one \"}}]}\n\n";
    let no_utf8 = b"{\"choices\":[{\"message\":{\"content\":\"\xff\"},\"finish_reason\":\"stop\"}]}";
    // In a tree each of these takes ninety times as much memory.
    let small = format!("{{\"choices\":[{}0]}}", "{\"\":0},".repeat(500_000));
    let overloaded = format!("{{\"error\":{{\"message\":\"overloaded, {KEY}\"}}}}");
    let whole = [
        ("web page", raw(&JSON.replace("application/json", "text/html"), "{\"choices\":[]}")),
        ("lines", raw(&JSON.replace("application/json", "application/jsonl"), "{\"choices\":[]}")),
        ("no type", raw("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", "{\"choices\":[]}")),
        ("no json", raw(JSON, "<html>")),
        ("empty", raw(JSON, "")),
        ("deep", raw(JSON, deep("", ""))),
        ("small", raw(JSON, &small)),
        ("no utf8", raw(JSON, no_utf8)),
    ];
    let streams = [
        ("no json", raw(STREAM, format!("{piece}data: <html>\n\n"))),
        ("deep", raw(STREAM, format!("{piece}{}", deep("data: ", "\n\n")))),
        ("small", raw(STREAM, format!("{piece}data: {small}\n\n"))),
        ("no utf8", raw(STREAM, [piece.as_bytes(), b"data: ", no_utf8, b"\n\n"].concat())),
    ];
    let unexpected = "openai does not answer as expected";
    let failed = "openai ends its answer with an error: overloaded, [REDACTED_SECRET]";
    let cut = "the provider's answer was cut";
    let cases = whole.map(|(name, reply)| (name, false, reply, "", unexpected));
    let cases = cases.into_iter().chain(streams.map(|(name, reply)| (name, true, reply, "one ", unexpected)));
    let cases = cases.chain([
        ("error", false, raw(JSON, &overloaded), "", failed),
        ("error", true, raw(STREAM, format!("{piece}data: {overloaded}\n\n{piece}")), "one ", failed),
        ("no end", true, raw(STREAM, piece), "one ", cut),
        ("half", true, raw(STREAM, format!("{piece}data: {{\"choices\":[{{")), "one ", cut),
        ("web page", true, raw(&STREAM.replace("event-stream", "html"), "<html>\n</html>\n"), "", cut),
    ]);
    for (name, is_streamed, reply, text, message) in cases {
        let reply = std::sync::Mutex::new(Some(reply));
        let provider =
            FakeProvider::start(ProviderKind::OpenAi, move |_| reply.lock().unwrap().take().unwrap());
        let answer = ask(&executor(provider.options()), "x", is_streamed).await;
        assert_eq!(answer, json!([text, "MODEL_ERROR", message]), "{name}");
    }
}

/// Lines may end in three ways, a message may have several lines, comments and other fields are left out, and the last
/// message may be missing if the reason why the answer ends has come.
#[tokio::test]
async fn streams_are_read_as_their_standard_says() {
    let stop = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}";
    let lines = [
        "\u{feff}: connected",
        "",
        "retry: 1e12",
        "id: 5",
        "data: {\"choices\":",
        "data: [{\"delta\":{\"content\":\"één \"}}]}",
        "",
        ": still there",
        "event: message",
        "data:{\"choices\":[{\"delta\":{\"content\":\"𝄞\"}}]}",
        "",
        stop,
        "",
        "data: [DONE]",
        "",
        "data: {\"error\":\"never read\"}",
        "",
        "",
    ];
    let without_done = [lines[..13].join("\n"), "\n".to_owned()].concat();
    let ends = ["\n", "\r\n", "\r"].map(|end| lines.join(end));
    for body in ends.into_iter().chain([without_done]) {
        let reply = body.clone();
        let provider = FakeProvider::start(ProviderKind::OpenAi, move |_| raw(STREAM, &reply));
        let answer = ask(&executor(provider.options()), "x", true).await;
        assert_eq!(answer, json!(["één 𝄞"]), "{body:?}");
    }
}

/// A stream that stalls ends with the time of its call, and its connection is closed.
#[tokio::test]
async fn a_stream_that_stalls_ends_with_the_time_of_its_call() {
    let stalls = |kind: ProviderKind| async move {
        let provider = FakeProvider::start(kind, |_| Reply::Stalled("one two ".to_owned()));
        // Long enough for the two pieces, also on a busy machine.
        let options = LlmOptions { call_time: Duration::from_secs(10), ..provider.options() };
        let answer = ask(&executor(options), "x", true).await;
        let message = format!("`{}` did not answer within 10s", kind.as_str());
        assert_eq!(answer, json!(["one two ", "MODEL_TIMEOUT", message]));
        wait_until(|| provider.open() == 0).await;
    };
    tokio::join!(stalls(ProviderKind::OpenAi), stalls(ProviderKind::Ollama));
}

/// The key goes to the configured address only.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = echo(ProviderKind::OpenAi);
    let head = format!(
        "HTTP/1.1 307 Fake\r\nlocation: {}/chat/completions\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        other.url()
    );
    let provider = FakeProvider::start(ProviderKind::OpenAi, move |_| raw(&head, ""));
    let executor = executor(provider.options());
    for is_streamed in [false, true] {
        let answer = ask(&executor, "x", is_streamed).await;
        assert_eq!(answer, json!(["", "MODEL_ERROR", "openai answers with status 307"]));
    }
    assert!(other.asked().is_empty());
}

/// Older models of Gemini, and services that translate to its format, have a reason for the end in each message.
#[tokio::test]
async fn an_answer_of_gemini_ends_with_its_stream() {
    let piece = |text: &str| {
        let candidate = json!({ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" });
        format!("data: {}\n\n", json!({ "candidates": [candidate] }))
    };
    let body = [piece("one "), piece(""), piece("two")].concat();
    let provider = FakeProvider::start(ProviderKind::Gemini, move |_| raw(STREAM, &body));
    assert_eq!(ask(&executor(provider.options()), "x", true).await, json!(["one two"]));
}

/// The name of a model is the script's, and Gemini has it in its address.
#[tokio::test]
async fn v_769_a_script_does_not_choose_the_path_of_a_request() {
    let provider = echo(ProviderKind::Gemini);
    let options = LlmOptions { rounds: Some(100), tokens: Some(100_000), ..provider.options() };
    let source = "const models = ['../../admin', 'x?key=1', 'x#y', '%2e%2e/x', '.\\t./x'];
        for (const model of models) {
            await llm.ask('x', { model, maxTokens: 10 });
            for await (const _piece of llm.ask('x', { model, maxTokens: 10, stream: true }));
        }
        return models.length";
    assert_eq!(value(&run(&executor(options), Script::typescript(source)).await), 5);
    let asked = provider.asked();
    assert_eq!(asked.len(), 10);
    for asked in asked {
        let name = asked.path.strip_prefix("/v1beta/models/").unwrap_or_else(|| panic!("{}", asked.path));
        assert!(!name.contains('/') && !name.replace("?alt=sse", "").contains('?'), "{}", asked.path);
        assert!(name.contains(":generateContent") || name.contains(":streamGenerateContent"), "{name}");
    }
}
