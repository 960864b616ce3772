//! The message that is sent in place of a worker's, when there is no worker.

use super::frames::{self, RunNumber};
#[cfg(any(feature = "http", feature = "nats"))]
use super::wire::Done;
use super::wire::FromWorker;
#[cfg(any(feature = "http", feature = "nats"))]
use crate::run::result::{ErrorCode, Outcome, ScriptError};
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

/// Returns the frame with which a run ends whose worker has ended because of its memory, and could not say so.
#[cfg(any(feature = "http", feature = "nats"))]
pub(crate) fn over_memory(run: RunNumber) -> Vec<u8> {
    let message = "the script used more memory than a run may on the machine that executes it";
    let error = ScriptError::new(ErrorCode::MemoryLimit, message).with_hint(
        "keep only what is needed of each result; that machine has a limit of its own, the `--memory` of its worker",
    );
    let mut frame = Vec::new();
    // Both texts are short, so the frame fits.
    let done = FromWorker::Done(Done::from_outcome(Outcome::Failed(error), 0, None));
    let _fits = frames::append(&mut frame, run, &done, 2 * MAX_PROBLEM);
    frame
}
