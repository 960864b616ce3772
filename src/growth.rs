//! Whether the time of something grows linearly with its size, for tests.
//!
//! A bound on elapsed time fails when the machine is busy. This compares two sizes in one run, and counts the CPU time
//! of its own thread only.

use std::fmt;
use std::time::Duration;

use crate::engine::watchdog::CpuMeter;

/// How much larger the large size is.
const FACTOR: usize = 8;

/// The time for the large size is less than this many times that for the small one. Linear time is 8 times as much, and
/// quadratic time 64 times; between them there is as much to either side.
const MAX_GROWTH: u32 = 24;

/// How often each size is measured. The median counts.
const ROUNDS: usize = 3;

/// A shorter time counts as this one: below it, caches and page faults decide.
const LEAST: Duration = Duration::from_millis(10);

/// Asserts that the CPU time of `work` on this thread grows no faster than about linearly from inputs of size `small`
/// to inputs that are [`FACTOR`] times as large. The time to `make` the inputs is not included.
#[track_caller]
pub(crate) fn assert_linear<T, R>(
    what: impl fmt::Display,
    small: usize,
    make: impl Fn(usize) -> T,
    work: impl Fn(&T) -> R,
) {
    let [few, many] = [small, FACTOR * small].map(|size| {
        let input = make(size);
        let mut times = [(); ROUNDS].map(|()| {
            let cpu = CpuMeter::start();
            work(&input);
            cpu.elapsed()
        });
        times.sort();
        times[ROUNDS / 2]
    });
    assert!(is_linear(few, many), "{what}: {few:?} for {small}, and {many:?} for {FACTOR} times as much");
}

fn is_linear(few: Duration, many: Duration) -> bool {
    many < few.max(LEAST) * MAX_GROWTH
}

#[test]
fn quadratic_time_is_not_linear() {
    let time = Duration::from_millis;
    assert!(is_linear(time(10), time(80)) && is_linear(time(10), time(200)));
    assert!(!is_linear(time(10), time(640)));
    // What is over before it can be measured is no growth.
    assert!(is_linear(Duration::ZERO, time(40)));
    assert_linear("a copy", 100_000, |size| vec![1_u8; size], Vec::clone);
}
