use serde_json::json;

use super::*;
use crate::llm::options::ProviderKind;

#[test]
fn the_reason_is_found_where_services_have_it() {
    let refused = json!([{ "type": "extra_forbidden", "loc": ["body", "x"], "msg": "no" }]);
    for (body, expected) in [
        // Anthropic, OpenAI, Gemini, Ollama, Mistral, and services that are made with FastAPI.
        (json!({ "type": "error", "error": { "type": "overloaded_error", "message": "no" } }), Some("no")),
        (json!([{ "error": { "code": 400, "message": "no", "status": "INVALID_ARGUMENT" } }]), Some("no")),
        (json!({ "error": "no" }), Some("no")),
        (json!({ "object": "error", "message": "no", "type": "invalid_request_error" }), Some("no")),
        (json!({ "object": "error", "message": { "detail": refused }, "code": null }), Some("no")),
        (json!({ "detail": "no" }), Some("no")),
        (json!({ "detail": refused }), Some("no")),
        (json!({ "error": { "code": 5 } }), None),
        (json!({ "detail": [] }), None),
        (json!("no"), None),
        (json!(null), None),
    ] {
        assert_eq!(reason_in(&body), expected, "{body}");
    }
}

#[test]
fn the_pause_of_gemini_is_in_its_error() {
    let of = |delay: &Value| {
        let details = json!([{ "@type": "QuotaFailure" }, 5, { "@type": "RetryInfo", "retryDelay": delay }]);
        retry_delay(&json!({ "error": { "code": 429, "details": details } }))
    };
    assert_eq!(of(&json!("22s")), Some(Duration::from_secs(22)));
    assert_eq!(of(&json!("8.5s")), Some(Duration::from_millis(8_500)));
    assert_eq!(of(&json!("1e300s")), Some(MAX_RETRY_AFTER));
    for wrong in [json!("22"), json!("soon"), json!("NaNs"), json!(22), json!(null)] {
        assert_eq!(of(&wrong), None, "{wrong}");
    }
    assert_eq!(retry_delay(&json!(null)), None);
}

fn failures_with(key: &str) -> Failures {
    let options = ModelProvider {
        kind: ProviderKind::OpenAi,
        model: "m".to_owned(),
        url: None,
        key: Some(ApiKey::new(key)),
    };
    Failures::new(&options, ContentFilter::new().unwrap())
}

/// Threat 831.
#[test]
fn v_831_a_part_of_the_key_in_a_reason_is_not_shown() {
    let failures = failures_with("tok-4f9a1c7be2d8");
    let shown = |reason: &str| {
        let body = json!({ "error": { "message": reason } });
        failures.unsuccessful(&FailedResponse { status: 403, retry_after: None, body }).message
    };
    for (reason, expected) in [
        ("the key tok-4f9a1c7be2d8 may not", "the key [REDACTED_SECRET] may not"),
        ("tok-4f9a1c7…", "[REDACTED_SECRET]…"),
        ("…a1c7be2d8, ü a1c7be2d8", "…[REDACTED_SECRET], ü [REDACTED_SECRET]"),
        // Two parts side by side.
        ("9a1c7be2tok-4f9a", "[REDACTED_SECRET][REDACTED_SECRET]"),
        ("a1c7be2d", "[REDACTED_SECRET]"),
        // As services name a key to its owner.
        ("the key tok-*********e2d8 may not", "the key tok-*********e2d8 may not"),
        ("a1c7be2", "a1c7be2"),
        ("ü", "ü"),
    ] {
        assert_eq!(shown(reason), format!("openai answers with status 403: {expected}"));
    }
    // A key that is shorter than a part.
    assert_eq!(without_parts_of("k", "a key"), "a key");
    // Of its last character the reason has the first byte only.
    assert_eq!(without_parts_of("schlüssel-ü", "ein schlüssel-ö"), "ein [REDACTED_SECRET]\u{fffd}");
}

/// The text is cut after the key was replaced, so that no part of it stays at the end of a long text.
#[test]
fn v_793_no_part_of_a_key_is_left_where_a_reason_is_cut() {
    let key = "secret-key-of-a-service-".repeat(5);
    let failures = failures_with(&key);
    // Each is shorter once it is replaced, so that all of them are shown.
    let message = failures.reported(&format!(".{}", key.repeat(12))).message;
    assert_eq!(message, format!("openai ends its answer with an error: .{}", "[REDACTED_SECRET]".repeat(12)));
}
