//! Crashes and failures: the next start, its pauses, and the circuit breaker.

use super::*;

/// Case 209.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_ends_all_calls_at_once_and_the_next_call_starts_it_again() {
    let upstream = Upstream::new("well");
    let first = upstream.process().await;
    let crash = async {
        upstream.noted("called never").await;
        upstream.failure("crash").await
    };
    let (waiting, crashed) = watched(async { tokio::join!(upstream.failure("never"), crash) }).await;
    for error in [waiting, crashed] {
        assert_eq!(error.code, UpstreamUnavailable);
        assert!(error.message.contains("exit status 7"), "{error}");
        assert!(error.message.contains("is unknown"), "{error}");
        assert!(error.message.contains("\npanic: the crash was asked for"), "{error}");
    }
    gone(first).await;
    assert_ne!(watched(upstream.process()).await, first);
    assert_eq!(upstream.notes().matches("called never").count(), 1, "a call is not made twice");
}

/// Case 210.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_dying_is_started_after_longer_and_longer_pauses() {
    let upstream = Upstream::new("dies_after_handshake");
    let began = Instant::now();
    let (mut starts, mut refused) = (0, 0);
    while starts < 3 || refused == 0 {
        assert!(began.elapsed() < WATCHDOG, "{starts} starts, {refused} refused");
        let error = upstream.failure("echo").await;
        assert_eq!(error.code, UpstreamUnavailable, "{error}");
        if let Some(retry_after) = error.retry_after {
            assert!(retry_after <= Duration::from_secs(60), "{error}");
            assert!(error.message.contains("is backing off"), "{error}");
            refused += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        starts = upstream.notes().matches("started").count();
    }
    // The first pause is at least half a second, and the least of each is twice that of the one before.
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(500) * ((1 << (starts - 1)) - 1), "{starts} starts in {took:?}");
}

/// Whether it is started for a call or for its list of tools.
#[tokio::test(flavor = "multi_thread")]
async fn five_failed_starts_open_the_circuit() {
    for is_listed in [false, true] {
        let servers =
            McpServers::new(vec![McpServer::stdio("fault", "no-such-program")], None, &Handle::current());
        let attempt = async || {
            servers.server("fault").unwrap().forget_pauses();
            if is_listed {
                watched(servers.tools("fault", Instant::now() + WATCHDOG)).await.unwrap_err()
            } else {
                watched(servers.call(request("fault", "echo", json!({})))).await.unwrap_err()
            }
        };
        for number in 1..=5 {
            let error = attempt().await;
            assert_eq!(error.code, UpstreamUnavailable, "{number}: {error}");
            assert!(error.retry_after > Some(Duration::ZERO), "{number}: {error:?}");
        }
        let error = attempt().await;
        assert_eq!(error.code, ToolErrorCode::CircuitOpen, "{error}");
        assert!(error.retry_after > Some(Duration::from_secs(25)), "{error:?}");
        assert!(error.message.contains("the last failure: server `fault` cannot be started"), "{error}");
        let stats = servers.stats().remove(0);
        assert_eq!((stats.circuit_breaker_state, stats.circuit_breaker_failures_total), (1.0, 5));
    }
}

/// Case 210: the breaker opens and then refuses calls at once.
#[tokio::test(flavor = "multi_thread")]
async fn five_unanswered_calls_open_the_circuit() {
    let upstream = Upstream::with("well", |server| server.call_timeout(Duration::from_millis(50)));
    for number in 1..=5 {
        assert_eq!(watched(upstream.failure("never")).await.code, ToolTimeout, "{number}");
    }
    // The server would answer this one: it is not asked.
    let error = upstream.failure("echo").await;
    assert_eq!(error.code, ToolErrorCode::CircuitOpen, "{error}");
    assert!(error.retry_after.unwrap() > Duration::from_secs(25));
    assert!(error.message.contains("the last failure: no answer within 50 ms"), "{error}");
    let stats = upstream.servers.stats().remove(0);
    assert_eq!(stats.circuit_breaker_state, 1.0);
    assert_eq!((stats.calls_total, stats.failures_total, stats.active, stats.waiting), (5, 5, 0, 0));
    assert!(stats.p50.unwrap() >= Duration::from_millis(50) && stats.p95 >= stats.p50);
}

/// All clients read the last failure of a server, in `health` and in the error of an open circuit.
#[tokio::test(flavor = "multi_thread")]
async fn v_517_the_answer_to_a_call_is_no_failure_of_its_server() {
    let upstream = Upstream::new("well");
    let error = watched(upstream.failure("of-one-client")).await;
    assert!(error.message.contains("Unknown tool: of-one-client"), "{error}");
    assert_eq!(upstream.servers.stats()[0].last_error, None);
    assert_eq!(watched(upstream.failure("crash")).await.code, UpstreamUnavailable);
    assert!(upstream.servers.stats()[0].last_error.is_some());
}

/// Threat 530. A file of a skill that differs from the list is refused, and its server is healthy: otherwise a client
/// could open the circuit breaker for the others.
#[tokio::test(flavor = "multi_thread")]
async fn v_530_a_skill_that_is_not_the_listed_one_is_no_failure_of_its_server() {
    let upstream = Upstream::new("skills");
    let send = |request: ServerRequest| {
        let context = RequestContext::new(Instant::now() + Duration::from_secs(30));
        watched(upstream.servers.request("fault".into(), request, context))
    };
    let read = || send(ServerRequest::ReadResource { uri: "skill://fault/SKILL.md".to_owned() });
    let listed = send(ServerRequest::ListResources).await.unwrap();
    assert!(listed.text().contains("skill://fault/SKILL.md"), "{}", listed.text());
    assert!(read().await.unwrap().text().contains("first"));
    upstream.call("change_skill", json!({ "sent": "other" })).await.unwrap();
    for _ in 0..6 {
        let error = read().await.unwrap_err();
        assert_eq!(error.code, UpstreamProtocol, "{error}");
        assert!(error.message.contains("digest"), "{error}");
    }
    let stats = upstream.servers.stats().remove(0);
    assert_eq!((stats.circuit_breaker_failures_total, stats.last_error), (0, None));
    // The list is read again before a file is refused: the skill may have changed.
    upstream.call("change_skill", json!({ "listed": "other" })).await.unwrap();
    assert!(read().await.unwrap().text().contains("other"));
}

/// A model chooses a skill by the list. The digest of the file is the listed one.
#[tokio::test(flavor = "multi_thread")]
async fn v_530_a_skill_that_says_of_itself_what_its_list_does_not_is_refused() {
    let upstream = Upstream::new("skills");
    let send = |request: ServerRequest| {
        let context = RequestContext::new(Instant::now() + Duration::from_secs(30));
        watched(upstream.servers.request("fault".into(), request, context))
    };
    let read = || send(ServerRequest::ReadResource { uri: "skill://fault/SKILL.md".to_owned() });
    send(ServerRequest::ListResources).await.unwrap();
    assert!(read().await.unwrap().text().contains("a skill"));
    upstream.call("change_skill", json!({ "description": "another" })).await.unwrap();
    let error = read().await.unwrap_err();
    assert_eq!(error.code, UpstreamProtocol, "{error}");
    assert!(error.message.contains("`skill://fault/SKILL.md` has another `description`"), "{error}");
}

/// A crash that fails many calls is one failure.
#[tokio::test(flavor = "multi_thread")]
async fn one_crash_is_one_failure() {
    let upstream = Upstream::new("well");
    assert!(upstream.call("echo", json!({})).await.is_ok());
    let mut calls: Vec<_> = (0..20).map(|_| upstream.call("never", json!({})).boxed()).collect();
    calls.push(upstream.call("crash", json!({})).boxed());
    for result in watched(futures::future::join_all(calls)).await {
        assert_eq!(result.unwrap_err().code, UpstreamUnavailable);
    }
    assert_eq!(upstream.servers.stats()[0].circuit_breaker_failures_total, 1);
    assert!(upstream.call("echo", json!({})).await.is_ok());
}
