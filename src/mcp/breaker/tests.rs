use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::growth::assert_linear;

fn breaker() -> (Arc<Breaker>, Instant) {
    (Breaker::new("server".into()), Instant::now())
}

fn call(breaker: &Arc<Breaker>, outcome: CallOutcome, now: Instant) {
    breaker.enter(now).expect("closed").record(outcome, now);
}

fn opened() -> (Arc<Breaker>, Instant) {
    let (breaker, now) = breaker();
    (0..FAILURES).for_each(|_| call(&breaker, CallOutcome::Failed, now));
    assert_eq!(breaker.phase(), Phase::Open { until: now + OPEN_TIME });
    (breaker, now)
}

#[test]
fn up_226_four_failures_and_a_success_leave_it_closed() {
    let (breaker, now) = breaker();
    for _ in 0..3 {
        (0..4).for_each(|_| call(&breaker, CallOutcome::Failed, now));
        assert_eq!(breaker.phase(), Phase::Closed { failures: 4 });
        call(&breaker, CallOutcome::Healthy, now);
        assert_eq!(breaker.phase(), Phase::Closed { failures: 0 });
    }
    assert_eq!(breaker.failures_total(), 12);
}

#[test]
fn failed_starts_open_it_like_failed_calls() {
    let (breaker, now) = breaker();
    (0..FAILURES).for_each(|_| breaker.record_failed_start(now));
    assert_eq!(breaker.phase(), Phase::Open { until: now + OPEN_TIME });
    // More failures do not make it longer, but the start ahead of the next probe does.
    breaker.record_failed_start(now + Duration::from_secs(1));
    assert_eq!(breaker.phase(), Phase::Open { until: now + OPEN_TIME });
    let later = now + OPEN_TIME;
    drop(breaker.enter(later).expect("the probe"));
    breaker.record_failed_start(later);
    assert_eq!(breaker.phase(), Phase::Open { until: later + OPEN_TIME });
    // So does a start that the probe itself waits for.
    let latest = later + OPEN_TIME;
    let probe = breaker.enter(latest).expect("the probe");
    breaker.record_failed_start(latest);
    drop(probe);
    assert_eq!(breaker.phase(), Phase::Open { until: latest + OPEN_TIME });
    assert_eq!(breaker.failures_total(), u64::from(FAILURES) + 3);
}

/// Promise 58 of docs/promises.md: less than 1 ms and 10 KB for each server, however often it has failed.
#[test]
fn a_breaker_costs_the_same_after_many_failures() {
    assert!(size_of::<Breaker>() < 10 << 10);
    let fail = |count: &usize| {
        let (breaker, mut now) = breaker();
        for _ in 0..*count {
            now += OPEN_TIME;
            call(&breaker, CallOutcome::Failed, now);
        }
        assert_eq!(breaker.failures_total(), *count as u64);
    };
    assert_linear("failures", 4_000, |count| count, fail);
}

#[test]
fn up_226_calls_that_say_nothing_do_not_count() {
    let (breaker, now) = breaker();
    (0..4).for_each(|_| call(&breaker, CallOutcome::Failed, now));
    (0..10).for_each(|_| call(&breaker, CallOutcome::Unknown, now));
    drop(breaker.enter(now));
    assert_eq!(breaker.phase(), Phase::Closed { failures: 4 });
}

#[test]
fn up_226_open_refuses_and_says_for_how_long() {
    let (breaker, now) = opened();
    assert_eq!(breaker.enter(now).unwrap_err(), OPEN_TIME);
    let later = now + Duration::from_secs(29);
    assert_eq!(breaker.enter(later).unwrap_err(), Duration::from_secs(1));
}

#[test]
fn up_226_after_the_cooldown_exactly_one_of_a_hundred_callers_passes() {
    let (breaker, now) = opened();
    let later = now + OPEN_TIME;
    let passed = AtomicUsize::new(0);
    let probe = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                if let Ok(permit) = breaker.enter(later) {
                    passed.fetch_add(1, Ordering::Relaxed);
                    *probe.lock() = Some(permit);
                }
            });
        }
    });
    assert_eq!(passed.load(Ordering::Relaxed), 1);
    probe.into_inner().unwrap().record(CallOutcome::Healthy, later);
    assert_eq!(breaker.phase(), Phase::Closed { failures: 0 });
}

#[test]
fn up_226_a_probe_that_fails_opens_it_again() {
    let (breaker, now) = opened();
    let later = now + OPEN_TIME;
    breaker.enter(later).unwrap().record(CallOutcome::Failed, later);
    assert_eq!(breaker.phase(), Phase::Open { until: later + OPEN_TIME });
}

#[test]
fn up_226_a_probe_without_a_waiter_makes_way_for_the_next() {
    let (breaker, now) = opened();
    drop(breaker.enter(now + OPEN_TIME).unwrap());
    let later = Instant::now().max(now + OPEN_TIME);
    assert!(breaker.enter(later).is_ok());
}

#[test]
fn up_226_what_began_before_it_opened_says_nothing_about_the_probe() {
    let (breaker, now) = breaker();
    let late = breaker.enter(now).unwrap();
    (0..FAILURES).for_each(|_| call(&breaker, CallOutcome::Failed, now));
    let later = now + OPEN_TIME;
    let probe = breaker.enter(later).unwrap();
    late.record(CallOutcome::Healthy, later);
    assert_eq!(breaker.phase(), Phase::HalfOpen);
    probe.record(CallOutcome::Failed, later);
    assert_eq!(breaker.phase(), Phase::Open { until: later + OPEN_TIME });
}

/// The values of the gauge `circuit_breaker_state`.
#[test]
fn each_phase_has_its_value_in_metrics() {
    let (breaker, now) = opened();
    assert_eq!(breaker.phase().as_metric(), 1.0);
    let later = now + OPEN_TIME;
    let probe = breaker.enter(later).unwrap();
    assert_eq!(breaker.phase().as_metric(), 0.5);
    probe.record(CallOutcome::Healthy, later);
    assert_eq!(breaker.phase().as_metric(), 0.0);
}
