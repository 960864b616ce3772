//! The slots of runs that yield.

use super::*;

#[test]
fn runs_that_yield_at_the_same_moment_get_no_more_slots_than_there_are() {
    let yielded = YieldedRuns::default();
    let reserved = |thread: usize| {
        let ids = (0..MAX_YIELDED).map(|number| format!("{thread}-{number}"));
        ids.filter(|id| yielded.reserve(id, &Printed::default())).count()
    };
    let count: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || reserved(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(count, MAX_YIELDED);
    assert_eq!(yielded.runs.lock().len(), MAX_YIELDED);
}
