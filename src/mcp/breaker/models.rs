//! Models of the breaker: calls that are admitted, fail, are answered and are dropped concurrently.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::sync::model::{self, Timeouts, advance, any, join_others, time, yield_now};

/// A breaker that was opened and whose open time is over, and calls in flight from before that.
fn cooled_down() -> (Arc<Breaker>, [Permit; 2]) {
    let breaker = Breaker::new("server".into());
    let late = [0, 1].map(|_| breaker.enter(time()).expect("closed"));
    for _ in 0..FAILURES {
        breaker.enter(time()).expect("closed").record(CallOutcome::Failed, time());
    }
    assert!(breaker.enter(time()).is_err());
    advance(OPEN_TIME);
    (breaker, late)
}

/// Probes fail or are dropped, so there is never more than one in flight. Answers to earlier calls
/// do not count.
#[test]
fn v_362_one_probe_at_a_time() {
    model::check(2_000, Timeouts::Never, || {
        let (breaker, late) = cooled_down();
        model::thread("late", move || {
            late.into_iter().for_each(|permit| permit.record(CallOutcome::Healthy, time()));
        });
        let probes = Arc::new(AtomicUsize::new(0));
        for number in 0..4 {
            let (breaker, probes) = (Arc::clone(&breaker), Arc::clone(&probes));
            model::thread(&format!("caller-{number}"), move || {
                for _ in 0..3 {
                    let Ok(permit) = breaker.enter(time()) else { continue };
                    assert_eq!(probes.fetch_add(1, Ordering::Relaxed), 0, "another probe is in flight");
                    yield_now();
                    probes.fetch_sub(1, Ordering::Relaxed);
                    match any(3) {
                        0 => drop(permit),
                        1 => permit.record(CallOutcome::Unknown, time()),
                        _ => {
                            permit.record(CallOutcome::Failed, time());
                            advance(OPEN_TIME);
                        }
                    }
                }
            });
        }
        join_others();
    });
}

/// Whatever the outcomes of earlier calls: once these have ended, a server that answers is used
/// again.
#[test]
fn v_362_no_schedule_leaves_it_open_for_ever() {
    model::check(2_000, Timeouts::Random, || {
        let breaker = if any(2) == 0 { cooled_down().0 } else { Breaker::new("server".into()) };
        for number in 0..4 {
            let breaker = Arc::clone(&breaker);
            model::thread(&format!("caller-{number}"), move || {
                for _ in 0..4 {
                    let Ok(permit) = breaker.enter(sync::now()) else {
                        advance(OPEN_TIME / 4);
                        continue;
                    };
                    yield_now();
                    match any(6) {
                        0 => drop(permit),
                        1 => permit.record(CallOutcome::Unknown, sync::now()),
                        2 => permit.record(CallOutcome::Healthy, sync::now()),
                        _ => permit.record(CallOutcome::Failed, sync::now()),
                    }
                }
            });
        }
        join_others();
        assert_ne!(breaker.phase(), Phase::HalfOpen, "no probe is in flight");
        advance(OPEN_TIME);
        breaker.enter(time()).expect("a probe is admitted").record(CallOutcome::Healthy, time());
        assert_eq!(breaker.phase(), Phase::Closed { failures: 0 });
        let (one, other) = (breaker.enter(time()), breaker.enter(time()));
        assert!(one.is_ok() && other.is_ok(), "a closed circuit admits every call");
    });
}
