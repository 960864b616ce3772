use std::num::NonZeroU32;

use super::*;

fn limit(runs: u32) -> Option<RateLimit> {
    NonZeroU32::new(runs).map(RateLimit::per_minute)
}

#[test]
fn each_client_has_its_own_and_all_have_one_together() {
    let rates = RunRates::new(limit(3), limit(5));
    let taken = |client: &str, times: usize| (0..times).filter(|_| rates.acquire(client).is_ok()).count();
    assert_eq!(taken("a", 10), 3);
    // The refused runs of `a` have taken nothing from `b`.
    assert_eq!(taken("b", 10), 2);
    let refusal = rates.acquire("a").err().unwrap();
    assert_eq!(refusal.message, "a client may run 3 scripts in 60 s");
    assert!(refusal.retry_after <= Duration::from_secs(20) && !refusal.retry_after.is_zero());
    let refusal = rates.acquire("c").err().unwrap();
    assert_eq!(refusal.message, "all clients together may run 5 scripts in 60 s");
}

#[test]
fn without_limits_nothing_is_refused() {
    let rates = RunRates::default();
    assert!((0..1_000).all(|_| rates.acquire("a").is_ok()));
}

#[test]
fn another_configured_rate_counts_at_once() {
    let configured = std::sync::Arc::new(parking_lot::Mutex::new(None));
    let source = std::sync::Arc::clone(&configured);
    let rates = RunRates::new(limit(2), None).following(move || *source.lock(), limit(30));
    let taken = |client: &str| (0..10).filter(|_| rates.acquire(client).is_ok()).count();
    assert_eq!((taken("a"), taken("a")), (2, 0));
    *configured.lock() = limit(4);
    assert_eq!((taken("a"), taken("a"), taken("b")), (4, 0, 4));
    // Without one again, what the options say counts.
    *configured.lock() = None;
    assert_eq!(taken("a"), 2);
}
