use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;

use super::accept::{idempotency_key, wants_events};
use super::request;
use crate::server::answer::{Answer, Format, refusal};
use crate::server::http::rest_runs::answers::RunAnswer;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn events_are_sent_to_those_who_take_nothing_else() {
    for (accept, expected) in [
        ("text/event-stream", true),
        ("TEXT/Event-Stream; q=0.9", true),
        ("application/json, text/event-stream", false),
        ("text/event-stream, */*;q=0.1", false),
        ("*/*", false),
        ("text/html", false),
    ] {
        assert_eq!(wants_events(&headers(&[("accept", accept)])), expected, "{accept}");
    }
    assert!(!wants_events(&headers(&[])));
}

#[test]
fn a_key_is_one_short_value() {
    assert_eq!(idempotency_key(&headers(&[])), Ok(None));
    assert_eq!(idempotency_key(&headers(&[("idempotency-key", "a")])), Ok(Some("a")));
    assert!(idempotency_key(&headers(&[("idempotency-key", "")])).is_err());
    assert!(idempotency_key(&headers(&[("idempotency-key", &"a".repeat(256))])).is_err());
    assert!(idempotency_key(&headers(&[("idempotency-key", "a"), ("idempotency-key", "b")])).is_err());
}

#[test]
fn a_body_is_an_object_of_known_names() {
    let read = |body: &str| request::read(body.as_bytes()).map(|run| (run.stream, run.background));
    assert_eq!(read(r#"{"language":"typescript","code":"return 1"}"#), Ok((false, false)));
    assert_eq!(read(r#"{"language":"python","code":"1","stream":true}"#), Ok((true, false)));
    assert_eq!(read(r#"{"script":"saved","background":true,"stream":null}"#), Ok((false, true)));
    for (body, problem) in [
        ("", "is not JSON"),
        ("[]", "expected a JSON object"),
        ("{}", "`code`"),
        (r#"{"code":"1"}"#, "`language` is missing: expected `typescript` or `python`"),
        (r#"{"code":"1","language":"ruby"}"#, "expected `typescript` or `python`: \"ruby\""),
        (r#"{"code":"1","language":"python","stream":1}"#, "`stream`: expected true or false: 1"),
        (r#"{"code":"1","language":"python","odd":1}"#, "odd"),
        (r#"{"code":"1","language":"python","yieldAfterMs":5}"#, "`\"background\": true`"),
    ] {
        let found = read(body).unwrap_err();
        assert!(found.contains(problem), "{body}: {found}");
    }
    let input = request::read(br#"{"language":"python","code":"1","input":{"a":[1,2]}}"#).unwrap();
    assert_eq!(input.arguments.input.unwrap().text(), r#"{"a":[1,2]}"#);
}

#[test]
fn what_did_not_run_is_a_problem_and_what_failed_is_none() {
    let busy = refusal(Format::Text, "QUEUE_FULL", "too many", None);
    assert_eq!(RunAnswer::new(busy).to_response().status(), StatusCode::SERVICE_UNAVAILABLE);
    let failed = json!({ "success": false, "executionTimeMs": 1, "error": { "code": "RUNTIME_ERROR" } });
    let failed = Answer { structured: failed, content: Vec::new(), is_error: true };
    assert_eq!(RunAnswer::new(failed).to_response().status(), StatusCode::OK);
    let queued = json!({ "success": false, "executionTimeMs": 1, "error": { "code": "QUEUE_FULL" } });
    let queued = Answer { structured: queued, content: Vec::new(), is_error: true };
    assert_eq!(RunAnswer::new(queued).to_response().status(), StatusCode::SERVICE_UNAVAILABLE);
}
