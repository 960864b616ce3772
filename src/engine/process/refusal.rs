//! What says in place of a worker that there is none.

use super::frames::{self, RunNumber};
use super::wire::FromWorker;
use crate::text::start_bytes;

/// Maximum bytes of the problem.
const MAX_PROBLEM: usize = 4 << 10;

/// The message of a worker that cannot work, as it is sent. `problem` is the rest of a sentence.
pub(crate) fn failed(problem: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    let problem = start_bytes(problem, MAX_PROBLEM).to_owned();
    // It is no longer than that, so that it fits.
    let _fits = frames::append(&mut frame, RunNumber::NONE, &FromWorker::Failed(problem), 2 * MAX_PROBLEM);
    frame
}
