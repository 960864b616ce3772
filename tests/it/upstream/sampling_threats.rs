//! Servers that ask the client for sampling, elicitation or roots.
//!
//! cx offers servers no model, and here no user can be asked and there are no roots: each request is refused.
//! `elicitation.rs` has the tests with a user who can be asked.

use serde_json::{Value, json};

use crate::support::chaos::Stage;

/// The answers that the server got, by the id of its request.
fn answers(stage: &Stage) -> Vec<Value> {
    let notes = stage.notes();
    // The last line may not be complete yet.
    let lines = notes.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let answers = lines.filter_map(|line| line.strip_prefix("answered "));
    answers.map(|answer| serde_json::from_str(answer).unwrap()).collect()
}

/// Threats 172 and 176: sampling, questions with and without an address to open, and roots, on connecting and in a
/// call, over both transports.
#[tokio::test]
async fn sa_172_and_176_unsolicited_requests_are_refused() {
    for over_http in [false, true] {
        let stage = if over_http { Stage::http(&["http", "asks"]) } else { Stage::stdio(&["asks"]) };
        stage.beside(stage.target()).await.returned("well");
        // Over HTTP a server can only ask in the stream of a call.
        crate::support::wait_until(|| answers(&stage).len() >= if over_http { 5 } else { 10 }).await;
        for answer in answers(&stage) {
            assert!(answer.get("result").is_none(), "{answer}");
            // Elicitation is known, but no user can be asked; sampling and roots are not.
            let asks_user =
                [" 1", " 2", " 3"].iter().any(|end| answer["id"].as_str().unwrap().ends_with(end));
            assert_eq!(answer["error"]["code"], if asks_user { -32600 } else { -32601 }, "{answer}");
        }
        stage.close().await;
    }
}

/// Threat 172: a thousand at once. `up_217_floods_of_requests_and_notifications_harm_no_other_server` has an endless
/// number.
#[tokio::test]
async fn sa_172_a_thousand_requests_are_refused() {
    let stage = Stage::stdio(&["flood-sampling-requests"]);
    let called = stage.beside(stage.call("tools.faulty.target({ count: 1_000 })")).await;
    called.returned("well");
    crate::support::wait_until(|| answers(&stage).len() >= 1_000).await;
    let refused = answers(&stage).iter().filter(|answer| answer["error"]["code"] == -32601).count();
    assert_eq!((answers(&stage).len(), refused), (1_000, 1_000));
    stage.close().await;
}

/// Threat 173: an answer that is a question is an error, and the call is not made again.
#[tokio::test]
async fn sa_173_an_answer_that_asks_is_asked_for_once() {
    for (revision, code) in [("old", "UPSTREAM_PROTOCOL"), ("modern", "TOOL_DENIED")] {
        let stage = Stage::stdio(&["input-required", revision]);
        let called = stage.beside(stage.target()).await;
        called.failed(code, &["faulty"]);
        assert_eq!(stage.noted("executed target"), 1, "{revision}: {}", stage.notes());
        stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
        stage.close().await;
    }
}
