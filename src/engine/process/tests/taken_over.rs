//! What a worker that a script has taken over cannot hide from its executor, and what it does not learn.

use super::{Stage, code, printed, processes};
use crate::run::result::ErrorCode;

/// The kernel tells nothing of the memory of a process whose first thread has ended. Here its watchdog goes on.
#[tokio::test(flavor = "multi_thread")]
async fn v_684_a_worker_whose_memory_cannot_be_measured_is_killed() {
    let result = Stage::new(1, 1).run("// hostile: leaderless\nreturn 1").await;
    assert_eq!(code(&result), Some(ErrorCode::EngineCrashed), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v_684_a_worker_has_no_memory_that_is_not_counted() {
    let result = Stage::new(1, 1).run("// hostile: uncounted\nreturn 1").await;
    let expected = "private: possible; shared: refused; huge: refused; pages of zeros: refused; swap space: refused; \
                    merged: refused";
    assert_eq!(printed(&result), expected, "{result:?}");
}

/// When another process computes is a clue about what it computes.
#[tokio::test(flavor = "multi_thread")]
async fn v_704_a_worker_reads_no_clock_of_another_process() {
    let stage = Stage::new(1, 1);
    let result = stage.run(&format!("// hostile: clocks\n// {}\nreturn 1", processes().await)).await;
    assert_eq!(printed(&result), "own: possible; of others: refused; resolution: refused", "{result:?}");
}

/// The kernel looks for the process of a number before it says that it is none of the caller's.
#[tokio::test(flavor = "multi_thread")]
async fn v_719_a_worker_does_not_learn_which_numbers_processes_have() {
    let stage = Stage::new(1, 1);
    let result = stage.run(&format!("// hostile: numbers\n// {}\nreturn 1", processes().await)).await;
    let expected = "own processors: possible; those of others: refused; attributes of threads: possible; \
                    locks: possible; locks with owners: refused";
    assert_eq!(printed(&result), expected, "{result:?}");
}
