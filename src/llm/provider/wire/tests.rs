use serde_json::json;

use super::*;
use crate::llm::model::{ModelMessage, ModelRole};

fn request(system_prompt: Option<&str>) -> ModelRequest {
    let message = |role, text: &str| ModelMessage { role, text: text.to_owned() };
    ModelRequest {
        model: None,
        system_prompt: system_prompt.map(str::to_owned),
        messages: vec![
            message(ModelRole::User, "a"),
            message(ModelRole::Assistant, "b"),
            message(ModelRole::User, "c\n\"d\""),
        ],
        max_tokens: 77,
    }
}

fn sent(kind: ProviderKind, model: &str, system_prompt: Option<&str>, is_streamed: bool) -> Value {
    let base = Url::parse(default_address(kind)).unwrap();
    body(kind, &base, model, &request(system_prompt), is_streamed)
}

#[track_caller]
fn whole_part(kind: ProviderKind, answer: &Value) -> AnswerPart {
    whole(kind, &answer.to_string()).unwrap()
}

#[track_caller]
fn message_part(kind: ProviderKind, name: &str, answer: &Value) -> AnswerPart {
    message(kind, name, &answer.to_string()).unwrap()
}

fn text(text: &str) -> AnswerPart {
    AnswerPart { text: text.to_owned(), ..AnswerPart::default() }
}

#[test]
fn requests_have_the_form_of_their_provider() {
    let messages = json!([
        { "role": "user", "content": "a" }, { "role": "assistant", "content": "b" },
        { "role": "user", "content": "c\n\"d\"" },
    ]);
    let after_prompt = json!([
        { "role": "system", "content": "be brief" }, messages[0], messages[1], messages[2],
    ]);
    let prompt = Some("be brief");
    assert_eq!(
        sent(ProviderKind::Anthropic, "m", prompt, false),
        json!({ "model": "m", "stream": false, "system": "be brief", "messages": messages, "max_tokens": 77 })
    );
    assert_eq!(
        sent(ProviderKind::Anthropic, "m", None, true),
        json!({ "model": "m", "stream": true, "messages": messages, "max_tokens": 77 })
    );
    assert_eq!(
        sent(ProviderKind::OpenAi, "m", prompt, false),
        json!({ "model": "m", "stream": false, "messages": after_prompt, "max_completion_tokens": 77 })
    );
    assert_eq!(
        sent(ProviderKind::OpenAi, "m", None, true),
        json!({
            "model": "m", "stream": true, "stream_options": { "include_usage": true }, "messages": messages,
            "max_completion_tokens": 77,
        })
    );
    // It refuses fields that it does not know, of which `stream_options` is one.
    for is_streamed in [false, true] {
        assert_eq!(
            sent(ProviderKind::Mistral, "m", prompt, is_streamed),
            json!({ "model": "m", "stream": is_streamed, "messages": after_prompt, "max_tokens": 77 })
        );
    }
    assert_eq!(
        sent(ProviderKind::Ollama, "m", prompt, true),
        json!({ "model": "m", "stream": true, "options": { "num_predict": 77 }, "messages": after_prompt })
    );
    let contents = json!([
        { "role": "user", "parts": [{ "text": "a" }] }, { "role": "model", "parts": [{ "text": "b" }] },
        { "role": "user", "parts": [{ "text": "c\n\"d\"" }] },
    ]);
    assert_eq!(
        sent(ProviderKind::Gemini, "m", prompt, true),
        json!({
            "contents": contents, "systemInstruction": { "parts": [{ "text": "be brief" }] },
            "generationConfig": { "maxOutputTokens": 77 },
        })
    );
    assert_eq!(
        sent(ProviderKind::Gemini, "m", None, false),
        json!({ "contents": contents, "generationConfig": { "maxOutputTokens": 77 } })
    );
}

#[test]
fn the_maximum_of_tokens_has_the_name_that_its_service_knows() {
    for (kind, base, model, expected) in [
        (ProviderKind::OpenAi, "https://api.openai.com/v1", "gpt-4o", "max_completion_tokens"),
        (ProviderKind::OpenAi, "https://eu.api.openai.com/v1", "ft:o4-mini:a", "max_completion_tokens"),
        (ProviderKind::OpenAi, "https://r.openai.azure.com/openai/v1", "gpt-5-mini", "max_completion_tokens"),
        (ProviderKind::OpenAi, "https://not-api.openai.com.example/v1", "gpt-4o", "max_tokens"),
        (ProviderKind::OpenAi, "http://localhost:8000/v1", "gpt-oss-20b", "max_tokens"),
        (ProviderKind::Mistral, "https://api.mistral.ai/v1", "o3-mistral", "max_tokens"),
    ] {
        let base = Url::parse(base).unwrap();
        let mut sent = body(kind, &base, model, &request(None), false);
        let has_older = expected == "max_tokens";
        let names = sent.as_object().unwrap().keys().filter(|name| name.starts_with("max_"));
        assert_eq!(names.collect::<Vec<_>>(), [expected], "{base} {model}");
        assert_eq!(openai::use_newer_name(&mut sent), has_older, "{base} {model}");
        assert_eq!((&sent["max_completion_tokens"], sent.get("max_tokens")), (&json!(77), None));
    }
}

/// The names of models are sent as they are written: `-high` and `::` are parts of a name.
#[test]
fn the_name_of_a_model_is_sent_as_it_is() {
    for kind in [ProviderKind::Anthropic, ProviderKind::OpenAi, ProviderKind::Ollama] {
        for model in ["mistral-medium", "o3-high", "openai::m", "org/m:7b"] {
            assert_eq!(sent(kind, model, None, false)["model"], model);
        }
    }
}

#[test]
fn paths_are_added_to_the_address() {
    for (kind, base, is_streamed, expected) in [
        (ProviderKind::Anthropic, None, false, "https://api.anthropic.com/v1/messages"),
        (ProviderKind::OpenAi, None, true, "https://api.openai.com/v1/chat/completions"),
        (ProviderKind::Mistral, None, false, "https://api.mistral.ai/v1/chat/completions"),
        (
            ProviderKind::Gemini,
            None,
            false,
            "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        ),
        (
            ProviderKind::Gemini,
            Some("http://h/v1beta/"),
            true,
            "http://h/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        (ProviderKind::Ollama, None, true, "http://localhost:11434/api/chat"),
        (ProviderKind::Ollama, Some("http://h:1/o"), true, "http://h:1/o/api/chat"),
        (ProviderKind::OpenAi, Some("http://h:8000/v1"), true, "http://h:8000/v1/chat/completions"),
        (ProviderKind::OpenAi, Some("http://h:8000/v1/"), true, "http://h:8000/v1/chat/completions"),
        (
            ProviderKind::OpenAi,
            Some("https://h/deployments/d?api-version=1"),
            true,
            "https://h/deployments/d/chat/completions?api-version=1",
        ),
    ] {
        let base = Url::parse(base.unwrap_or_else(|| default_address(kind))).unwrap();
        assert_eq!(address(kind, &base, "m", is_streamed).as_str(), expected, "{kind:?}");
    }
    // Google's list of models has the names like this.
    let base = Url::parse(default_address(ProviderKind::Gemini)).unwrap();
    let listed = address(ProviderKind::Gemini, &base, "models/m", false);
    assert_eq!(listed, address(ProviderKind::Gemini, &base, "m", false));
}

/// A script that names a model does not choose the path of a request.
#[test]
fn v_769_the_name_of_a_model_stays_within_its_segment() {
    let base = Url::parse(default_address(ProviderKind::Gemini)).unwrap();
    for model in [
        "..",
        "../../x",
        "models/../x",
        ".\t./.\t./x",
        "a/b",
        "x?key=1#y",
        "%2e%2e/x",
        "%2e%2e%2fx",
        "\\..\\x",
        "//host/x",
    ] {
        for is_streamed in [false, true] {
            let url = address(ProviderKind::Gemini, &base, model, is_streamed);
            let segments: Vec<&str> = url.path_segments().unwrap().collect();
            assert_eq!(segments.len(), 3, "{url}");
            assert_eq!(segments[..2], ["v1beta", "models"], "{url}");
            assert!(segments[2].to_lowercase().ends_with("generatecontent"), "{url}");
            assert_eq!(url.query(), is_streamed.then_some("alt=sse"), "{url}");
            assert_eq!((url.fragment(), url.host_str()), (None, base.host_str()), "{url}");
        }
    }
}

#[test]
fn the_key_is_in_a_header_that_is_not_shown() {
    for (kind, name, value) in [
        (ProviderKind::Anthropic, "x-api-key", "k"),
        (ProviderKind::OpenAi, "authorization", "Bearer k"),
        (ProviderKind::Mistral, "authorization", "Bearer k"),
        (ProviderKind::Gemini, "x-goog-api-key", "k"),
        (ProviderKind::Ollama, "authorization", "Bearer k"),
    ] {
        let headers = headers(kind, Some("k")).unwrap();
        assert_eq!(headers[name], value, "{kind:?}");
        assert!(headers[name].is_sensitive(), "{kind:?}");
        assert!(super::headers(kind, Some("k\nx: y")).is_none(), "{kind:?}");
        assert!(super::headers(kind, None).unwrap().get(name).is_none(), "{kind:?}");
    }
    assert_eq!(headers(ProviderKind::Anthropic, Some("k")).unwrap()["anthropic-version"], "2023-06-01");
}

/// Text blocks are joined; thoughts and what a provider adds later are left out.
#[test]
fn whole_answers_are_read() {
    let expected = |text: &str, reason: &str, model: &str, input, output| AnswerPart {
        text: text.to_owned(),
        model: Some(model.to_owned()),
        stop_reason: Some(reason.to_owned()),
        input_tokens: Some(input),
        output_tokens: Some(output),
        is_last: true,
        error: None,
    };
    let anthropic = json!({
        "model": "m-1", "stop_reason": "end_turn", "content": [
            { "type": "thinking", "thinking": "hm", "signature": "s" }, { "type": "redacted_thinking", "data": "x" },
            { "type": "text", "text": "one " }, { "type": "later", "text": "no" }, { "type": "text", "text": "two" },
        ],
        "usage": {
            "input_tokens": 1, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 7,
        },
    });
    assert_eq!(
        whole_part(ProviderKind::Anthropic, &anthropic),
        expected("one two", "end_turn", "m-1", 111, 7)
    );
    let mut openai = json!({
        "model": "m-1", "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 }, "choices": [{
            "finish_reason": "length",
            "message": { "role": "assistant", "content": " one two\n", "reasoning_content": "hm" },
        }],
    });
    for kind in [ProviderKind::OpenAi, ProviderKind::Mistral] {
        assert_eq!(whole_part(kind, &openai), expected("one two", "length", "m-1", 3, 4));
    }
    openai["choices"][0]["message"]["content"] = json!([
        { "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] }, { "type": "text", "text": "one" },
    ]);
    assert_eq!(whole_part(ProviderKind::Mistral, &openai), expected("one", "length", "m-1", 3, 4));
    let refusal = json!({ "role": "assistant", "content": null, "refusal": "I cannot", "tool_calls": [] });
    openai["choices"][0]["message"] = refusal;
    assert_eq!(whole_part(ProviderKind::OpenAi, &openai), expected("I cannot", "length", "m-1", 3, 4));
    let gemini = json!({
        "modelVersion": "m-1", "candidates": [{ "finishReason": "STOP", "content": { "role": "model", "parts": [
            { "text": "hm", "thought": true }, { "text": "one " }, { "inlineData": {} },
            { "text": "two", "thought": false },
        ] } }],
        "usageMetadata": {
            "promptTokenCount": 1, "toolUsePromptTokenCount": 2, "candidatesTokenCount": 3, "thoughtsTokenCount": 4,
        },
    });
    let expected_of_gemini = AnswerPart { is_last: false, ..expected("one two", "STOP", "m-1", 3, 7) };
    assert_eq!(whole_part(ProviderKind::Gemini, &gemini), expected_of_gemini);
    let ollama = json!({
        "model": "m-1", "done": true, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 6,
        "message": { "role": "assistant", "content": "one", "thinking": "hm" },
    });
    assert_eq!(whole_part(ProviderKind::Ollama, &ollama), expected("one", "stop", "m-1", 5, 6));
}

#[test]
fn numbers_that_are_missing_are_not_made_up() {
    for kind in ProviderKind::ALL {
        assert_eq!(whole_part(kind, &json!({ "what": "is this" })).usage(), None);
    }
    let anthropic = json!({ "usage": { "input_tokens": -1, "output_tokens": 1.5 } });
    assert_eq!(whole_part(ProviderKind::Anthropic, &anthropic).usage(), None);
    let openai = json!({ "usage": { "prompt_tokens": 1 } });
    assert_eq!(whole_part(ProviderKind::OpenAi, &openai).usage(), None);
}

#[test]
fn errors_are_found_in_answers_and_in_streams() {
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "later" } });
    for kind in ProviderKind::ALL {
        assert_eq!(whole_part(kind, &error).error.as_deref(), Some("later"), "{kind:?}");
        assert_eq!(message_part(kind, "error", &error).error.as_deref(), Some("later"), "{kind:?}");
        assert_eq!(message_part(kind, "", &json!({ "error": "later" })).error.as_deref(), Some("later"));
        assert_eq!(
            message_part(kind, "", &json!({ "error": { "code": 5 } })).error.as_deref(),
            Some("{\"code\":5}")
        );
        assert_eq!(message_part(kind, "", &json!({ "error": null })).error, None);
    }
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    let blocked = whole_part(ProviderKind::Gemini, &blocked).error;
    assert_eq!(blocked.as_deref(), Some("the prompt is blocked: SAFETY"));
}

#[test]
fn messages_of_streams_are_read() {
    let kind = ProviderKind::Anthropic;
    let usage = json!({ "input_tokens": 5, "cache_read_input_tokens": 1, "output_tokens": 1 });
    let start = json!({ "message": { "usage": usage } });
    let counted = AnswerPart { input_tokens: Some(6), output_tokens: Some(1), ..AnswerPart::default() };
    // The event has its type as its name, or in its data.
    assert_eq!(message_part(kind, "message_start", &start), counted);
    let delta = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    assert_eq!(message_part(kind, "", &delta(json!({ "type": "text_delta", "text": "one" }))), text("one"));
    assert_eq!(
        message_part(kind, "", &delta(json!({ "type": "thinking_delta", "thinking": "hm" }))),
        text("")
    );
    assert_eq!(
        message_part(kind, "", &delta(json!({ "type": "signature_delta", "signature": "s" }))),
        text("")
    );
    let block = json!({ "type": "content_block_start", "content_block": { "type": "text", "text": "" } });
    assert_eq!(message_part(kind, "content_block_start", &block), text(""));
    let end = json!({ "delta": { "stop_reason": "max_tokens" }, "usage": { "output_tokens": 9 } });
    let ended = AnswerPart {
        stop_reason: Some("max_tokens".to_owned()),
        output_tokens: Some(9),
        ..AnswerPart::default()
    };
    assert_eq!(message_part(kind, "message_delta", &end), ended);
    assert!(message_part(kind, "", &json!({ "type": "message_stop" })).is_last);
    assert_eq!(message_part(kind, "", &json!({ "type": "ping" })), AnswerPart::default());

    let kind = ProviderKind::OpenAi;
    let piece =
        json!({ "choices": [{ "delta": { "content": " one", "reasoning": "hm" }, "finish_reason": null }] });
    assert_eq!(message_part(kind, "", &piece), text(" one"));
    // Some services have an empty reason until the end.
    let piece =
        json!({ "choices": [{ "delta": { "content": null, "refusal": "no" }, "finish_reason": "" }] });
    assert_eq!(message_part(kind, "", &piece), text("no"));
    let tail = json!({ "choices": [], "usage": { "prompt_tokens": 1, "completion_tokens": 2 } });
    let counted = AnswerPart { input_tokens: Some(1), output_tokens: Some(2), ..AnswerPart::default() };
    assert_eq!(message_part(kind, "", &tail), counted);
    for kind in [ProviderKind::OpenAi, ProviderKind::Mistral, ProviderKind::Gemini] {
        assert!(message(kind, "", "[DONE]").unwrap().is_last);
    }
    assert_eq!(message(ProviderKind::Anthropic, "", "[DONE]"), None);

    let piece = json!({ "candidates": [{ "content": { "parts": [{ "text": "one" }] } }] });
    assert_eq!(message_part(ProviderKind::Gemini, "", &piece), text("one"));
    let piece = json!({ "message": { "role": "assistant", "content": "one" }, "done": false });
    assert_eq!(message_part(ProviderKind::Ollama, "", &piece), text("one"));
}

/// What is no JSON, is too deep, or would be a tree of gigabytes is no answer.
#[test]
fn what_is_no_json_is_no_answer() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let small = format!("{{\"a\":[{}0]}}", "{\"\":0},".repeat(500_000));
    for text in ["", "no", "{", "{} {}", "{\"a\": \"\\ud800\"}", &*deep, &*small] {
        for kind in ProviderKind::ALL {
            assert_eq!(whole(kind, text), None, "{}", crate::text::start(text, 80));
            assert_eq!(message(kind, "", text), None, "{}", crate::text::start(text, 80));
        }
    }
}
