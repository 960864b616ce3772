//! The message that is sent in place of a worker's, when there is no worker.

use super::frames::{self, RunNumber};
use super::wire::FromWorker;
use crate::text::start_bytes;

/// Maximum bytes of the problem.
const MAX_PROBLEM: usize = 4 << 10;

/// Returns the frame with which a worker says that it cannot start. `problem` is the rest of a
/// sentence; what is beyond 4 KiB of it is cut.
pub(crate) fn failed(problem: &str) -> Vec<u8> {
    failed_run(RunNumber::NONE, problem)
}

/// The same for a worker elsewhere that has said that it is ready, in place of its first message about this run.
pub(crate) fn failed_run(run: RunNumber, problem: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    let problem = start_bytes(problem, MAX_PROBLEM).to_owned();
    // The problem was cut, so the frame fits.
    let _fits = frames::append(&mut frame, run, &FromWorker::Failed(problem), 2 * MAX_PROBLEM);
    frame
}
