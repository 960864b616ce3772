//! Messages of a server that are noise, too large, or no answer.

use super::*;

/// Case 212.
#[tokio::test(flavor = "multi_thread")]
async fn noise_on_stdout_is_ignored() {
    let upstream = Upstream::new("noise");
    assert_eq!(
        upstream.call("echo", json!({ "a": 1 })).await.unwrap().structured,
        Some(json!({ "a": 1 }).into())
    );
}

/// Cases 83 and 213.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_cannot_be_read_fail_at_once() {
    let upstream = Upstream::new("well");
    for tool in ["lone_surrogate", "huge_number", "deep", "not_json", "wrong_shape", "no_result"] {
        let error = watched(upstream.failure(tool)).await;
        assert_eq!(error.code, UpstreamProtocol, "{tool}: {error}");
        // Also checks that these failures do not open the circuit.
        assert!(upstream.call("echo", json!({})).await.is_ok());
    }
    assert_eq!(upstream.notes().matches("started").count(), 1);
    let upstream = Upstream::new("broken_handshake");
    assert_eq!(watched(upstream.failure("echo")).await.code, UpstreamProtocol);
}

/// Case 214.
#[tokio::test(flavor = "multi_thread")]
async fn stray_answers_reach_no_caller() {
    let upstream = Upstream::new("well");
    for _ in 0..3 {
        assert_eq!(upstream.text("stray_answers", json!({})).await.unwrap(), "mine");
        assert_eq!(upstream.text("quoted_id", json!({})).await.unwrap(), "quoted");
    }
}

/// Case 215.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_too_large_fail_and_the_connection_stays() {
    let upstream = Upstream::new("well");
    let text = upstream.text("oversized", json!({ "megabytes": 15 })).await.unwrap();
    assert_eq!(text.len(), 15 << 20);
    assert_eq!(upstream.failure("oversized").await.code, ResultTooLarge);
    assert!(upstream.call("echo", json!({})).await.is_ok());
    assert_eq!(upstream.notes().matches("started").count(), 1);
    assert_eq!(upstream.failure("endless").await.code, ResultTooLarge);
    upstream.servers.close();
}

/// Case 216.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_stderr_blocks_no_caller() {
    let upstream = Upstream::new("stderr_flood");
    assert!(upstream.call("echo", json!({})).await.is_ok());
    let error = upstream.failure("crash").await;
    assert!(error.message.len() < 5000 && error.message.contains("panic"), "{error}");
}

/// Case 217.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_asks_is_refused_and_bounded() {
    let upstream = Upstream::new("well");
    assert_eq!(upstream.text("ask_back", json!({})).await.unwrap(), "asked");
    eventually("all are answered", || (upstream.notes().matches("answered").count() == 4).then_some(()))
        .await;
    let notes = upstream.notes();
    assert!(notes.contains(r#""id": "ping-1", "result": {}"#), "{notes}");
    assert_eq!(notes.matches("-32601").count(), 2, "{notes}");
    assert_eq!(notes.matches("no user can be asked here").count(), 1, "{notes}");
    // This server writes its requests without reading the answers in between. As many as may wait
    // are served; beyond them and what a pipe holds it is disconnected.
    let flood = upstream.call("ping_flood", json!({ "count": 1_000 }));
    assert!(watched(flood).await.is_ok());
    let flood = upstream.call("ping_flood", json!({ "count": 100_000 }));
    assert_eq!(watched(flood).await.unwrap_err().code, UpstreamUnavailable);
    assert!(watched(upstream.call("echo", json!({}))).await.is_ok());
}

/// Case 218.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_read_holds_up_only_its_own_calls() {
    let upstream = Upstream::with("stop_reading", |server| server.call_timeout(Duration::from_secs(3)));
    let large = "x".repeat(1 << 20);
    // More calls than may wait for a server that does not read: the last ones are refused at once.
    let calls = (0..90).map(|_| upstream.call("echo", json!({ "text": large })));
    let results = watched(futures::future::join_all(calls)).await;
    let codes: Vec<ToolErrorCode> = results.into_iter().map(|result| result.unwrap_err().code).collect();
    assert!(codes.contains(&ToolTimeout) && codes.contains(&UpstreamUnavailable), "{codes:?}");
    let started = upstream.noted("started ").await.parse().unwrap();
    watched(upstream.servers.shutdown()).await;
    gone(started).await;
}
