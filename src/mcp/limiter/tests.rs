use std::num::NonZeroU32;

use super::*;
use crate::rate::RateLimit;

fn limiter(change: impl FnOnce(&mut McpServer)) -> Limiter {
    let mut settings = McpServer::stdio("server", "program");
    change(&mut settings);
    Limiter::new(&"server".into(), &settings)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

async fn enter(limiter: &Limiter) -> Result<Admitted, ToolError> {
    limiter.enter(soon(), &CancellationToken::new()).await
}

fn unavailable() -> Result<(), ToolError> {
    Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, "gone"))
}

#[tokio::test]
async fn slots_queue_in_order_and_a_full_queue_refuses() {
    let limiter = Arc::new(limiter(|settings| {
        settings.max_concurrent = 1;
        settings.max_queued = 2;
    }));
    let first = enter(&limiter).await.ok().unwrap();
    let (order, mut ended) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..2 {
        let (shared, order) = (Arc::clone(&limiter), order.clone());
        tokio::spawn(async move {
            let _admitted = enter(&shared).await.ok().unwrap();
            order.send(number).unwrap();
        });
        while limiter.waiting() <= number {
            tokio::task::yield_now().await;
        }
    }
    let refusal = enter(&limiter).await.err().unwrap();
    assert_eq!(refusal.code, ToolErrorCode::QueueFull);
    assert_eq!(refusal.retry_after, Some(QUEUE_RETRY));
    assert_eq!((limiter.active(), limiter.waiting(), limiter.queue_full_total()), (1, 2, 1));
    drop(first);
    assert_eq!((ended.recv().await, ended.recv().await), (Some(0), Some(1)));
    while limiter.active() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(limiter.waiting(), 0);
}

#[tokio::test]
async fn waiting_ends_with_its_time_with_the_run_and_with_cancellation() {
    let limiter = limiter(|settings| {
        settings.max_concurrent = 1;
        settings.queue_timeout = Duration::from_millis(20);
    });
    let _held = enter(&limiter).await.ok().unwrap();
    assert_eq!(enter(&limiter).await.err().unwrap().code, ToolErrorCode::QueueFull);
    let run_ends = Instant::now() + Duration::from_millis(5);
    let error = limiter.enter(run_ends, &CancellationToken::new()).await.err().unwrap();
    assert_eq!(error.code, ToolErrorCode::ToolTimeout);
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    assert_eq!(limiter.enter(soon(), &cancelled).await.err().unwrap().code, ToolErrorCode::Cancelled);
    assert_eq!(limiter.waiting(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tl_147_of_a_hundred_calls_at_once_exactly_the_allowed_ones_pass() {
    let limiter = Arc::new(limiter(|settings| {
        let calls = NonZeroU32::new(30).unwrap();
        settings.rate_limit = Some(RateLimit { calls, period: Duration::from_secs(6_000) });
    }));
    let calls = (0..100).map(|_| {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move { enter(&limiter).await.map(drop) })
    });
    let mut refusals = Vec::new();
    let mut passed = 0;
    for call in futures::future::join_all(calls).await {
        match call.unwrap() {
            Ok(()) => passed += 1,
            Err(error) => refusals.push(error),
        }
    }
    assert_eq!(passed, 30);
    assert_eq!(limiter.rate_limited_total(), 70);
    for refusal in refusals {
        assert_eq!(refusal.code, ToolErrorCode::RateLimited);
        let retry_after = refusal.retry_after.unwrap();
        assert!(retry_after > Duration::ZERO && retry_after <= Duration::from_secs(200), "{retry_after:?}");
    }
}

#[tokio::test]
async fn an_open_circuit_refuses_before_it_queues() {
    let limiter = limiter(|settings| settings.max_concurrent = 1);
    enter(&limiter).await.ok().unwrap().record(&unavailable());
    // The only slot is taken, so that a call that is not refused waits for it.
    let _held = enter(&limiter).await.ok().unwrap();
    for _ in 0..4 {
        limiter.enter_breaker().unwrap().record(CallOutcome::Failed, Instant::now());
    }
    let error = enter(&limiter).await.err().unwrap();
    assert_eq!(error.code, ToolErrorCode::CircuitOpen);
    assert!(error.message.contains("circuit open"), "{error}");
    assert!(error.retry_after.unwrap() > Duration::from_secs(5));
}

#[test]
fn up_226_what_counts_as_a_failure_of_the_server() {
    for code in ToolErrorCode::ALL {
        let expected = match code.as_str() {
            "TOOL_TIMEOUT" | "UPSTREAM_UNAVAILABLE" | "UPSTREAM_PROTOCOL" => CallOutcome::Failed,
            "TOOL_ERROR" | "TOOL_NOT_FOUND" | "INVALID_ARGUMENTS" | "RESULT_TOO_LARGE" => {
                CallOutcome::Healthy
            }
            _ => CallOutcome::Unknown,
        };
        assert_eq!(outcome::<()>(&Err(ToolError::new(*code, ""))), expected, "{code}");
    }
    assert_eq!(outcome(&Ok(())), CallOutcome::Healthy);
}
