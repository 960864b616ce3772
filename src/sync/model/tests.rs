//! Tests that the checker finds the defects it is made for.

use std::sync::Arc;
use std::time::Duration;

use super::types::{Condvar, Mutex, now, sleep};
use super::*;

fn fails(timeouts: Timeouts, body: impl Fn() + Send + Sync + 'static) -> String {
    explore(500, timeouts, body).expect_err("it is found")
}

#[test]
fn an_update_that_is_lost_is_found_and_found_again_by_its_seed() {
    let body = || {
        let number = Arc::new(Mutex::new(0));
        for name in ["one", "other"] {
            let number = Arc::clone(&number);
            thread(name, move || {
                let before = *number.lock();
                *number.lock() = before + 1;
            });
        }
        join_others();
        if *number.lock() != 2 {
            std::panic::resume_unwind(Box::new("lost"));
        }
    };
    let (first, again) = (fails(Timeouts::Never, body), fails(Timeouts::Never, body));
    assert!(first.contains("a panic: lost"), "{first}");
    assert_eq!(first, again);
}

#[test]
fn locks_in_both_orders_are_found() {
    let failure = fails(Timeouts::Never, || {
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        for order in [[0, 1], [1, 0]] {
            let locks = Arc::clone(&locks);
            thread("locker", move || {
                let _first = locks[order[0]].lock();
                let _second = locks[order[1]].lock();
            });
        }
        join_others();
    });
    assert!(failure.contains("no thread can go on"), "{failure}");
}

/// A waiter that checks its condition without the lock: the notification may come in between.
fn misses_a_notification(timeout: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let (shared, waiter) = {
            let shared = Arc::new((Mutex::new(false), Condvar::default()));
            (Arc::clone(&shared), shared)
        };
        thread("waiter", move || {
            if !*waiter.0.lock() {
                let mut guard = waiter.0.lock();
                if timeout {
                    waiter.1.wait_for(&mut guard, Duration::from_secs(1));
                } else {
                    waiter.1.wait(&mut guard);
                }
            }
        });
        *shared.0.lock() = true;
        shared.1.notify_all();
    }
}

#[test]
fn a_notification_that_is_missed_is_found() {
    assert!(fails(Timeouts::Never, misses_a_notification(false)).contains("no thread can go on"));
    assert!(fails(Timeouts::Never, misses_a_notification(true)).contains("no thread can go on"));
    assert_eq!(explore(500, Timeouts::Random, misses_a_notification(true)), Ok(()));
}

#[test]
fn a_wait_may_time_out_and_may_not_and_time_is_as_late_as_its_deadline() {
    let failure = fails(Timeouts::Random, || {
        let (lock, changed) = (Mutex::new(()), Condvar::default());
        let until = now() + Duration::from_secs(3_600);
        let mut guard = lock.lock();
        assert!(changed.wait_until(&mut guard, until).timed_out(), "no thread notifies");
        assert!(time() >= until);
        std::panic::resume_unwind(Box::new("it did"));
    });
    assert!(failure.contains("it did"), "{failure}");
}

#[test]
fn futures_are_woken_by_their_timers() {
    check(100, Timeouts::Random, || {
        let before = time();
        block_on(sleep(Duration::from_secs(5)));
        assert!(time() >= before + Duration::from_secs(5));
    });
    assert!(
        fails(Timeouts::Never, || block_on(sleep(Duration::from_secs(5)))).contains("no thread can go on")
    );
}

#[test]
fn what_never_ends_is_found() {
    let failure = explore(1, Timeouts::Random, || {
        loop {
            yield_now();
        }
    });
    assert!(failure.unwrap_err().contains("no end after"));
}
