//! Suspended runs: their clients were sent an approval prompt instead of an answer and have to
//! repeat the call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{InputRequests, InputRequiredResult, JsonObject};
use sha2::{Digest as _, Sha256};
use tokio::task::AbortHandle;

use super::approval::Question;
use super::call::Underway;
use super::serve::random_name;
use crate::json::Json;

/// Maximum number of suspended runs of all clients together. A run beyond this number cannot ask
/// for approval.
const MOST: usize = 64;

/// A suspended run is dropped this long after its approval timeout. Until then it may have
/// continued without an approval.
const KEPT: Duration = Duration::from_secs(10);

/// The key of the prompt in the result, and of the answer in the repeated request.
pub(crate) const KEY: &str = "approval";

/// Suspended runs, by a random name that cannot be guessed.
#[derive(Default)]
pub(crate) struct PendingRuns {
    runs: Mutex<HashMap<String, Waiting>>,
}

struct Waiting {
    owner: String,
    /// Fingerprint of the call that the client has to repeat.
    call: Fingerprint,
    underway: Underway,
    question: Question,
    _expiry: Expiry,
}

/// Drops a run whose client does not come back. Dropping this stops the timer.
struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Hash of a call: of its tool and the exact bytes of its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// `input` is the input that was detached from the arguments.
    pub(crate) fn new(tool: &str, arguments: &JsonObject, input: Option<&Json>) -> Self {
        let arguments = serde_json::to_vec(arguments).unwrap_or_default();
        let input = input.map_or("", Json::text);
        // JSON text contains no zero bytes, so a zero byte separates the parts.
        let parts = [tool.as_bytes(), &arguments, input.as_bytes()].into_iter();
        let hash = parts.fold(Sha256::new(), |hash, part| hash.chain_update(part).chain_update([0]));
        Self(hash.finalize().into())
    }
}

/// Why a run is not resumed.
pub(crate) enum NotResumed {
    /// There is no run of this name for this client, or it was dropped.
    Unknown,
    /// The name belongs to another call.
    OtherCall,
}

impl PendingRuns {
    /// Suspends a run, and returns the result that asks the client for approval.
    ///
    /// # Errors
    ///
    /// Returns the run, without asking, if too many runs are suspended or the system provides no
    /// random numbers.
    pub(crate) fn add(
        self: &Arc<Self>,
        owner: &str,
        call: Fingerprint,
        mut underway: Underway,
        question: Question,
    ) -> Result<InputRequiredResult, Box<Underway>> {
        let (Some(name), Some(request)) = (random_name(), question.request()) else {
            return Err(Box::new(underway));
        };
        let mut runs = self.runs.lock();
        if runs.len() >= MOST {
            tracing::warn!("too many runs wait for their clients; nobody is asked");
            return Err(Box::new(underway));
        }
        // A suspended run does not delay those that wait for the end of all calls in flight.
        underway.rest();
        let longest = underway.limits.answer_time + KEPT;
        let expiry = tokio::spawn({
            let (all, name) = (Arc::downgrade(self), name.clone());
            async move {
                tokio::time::sleep(longest).await;
                // Dropping the entry ends the run.
                let _forgotten = all.upgrade().and_then(|all| all.runs.lock().remove(&name));
            }
        });
        let expiry = Expiry(expiry.abort_handle());
        let waiting = Waiting { owner: owner.to_owned(), call, underway, question, _expiry: expiry };
        runs.insert(name.clone(), waiting);
        Ok(InputRequiredResult::new(Some(InputRequests::from([(KEY.to_owned(), request)])), Some(name)))
    }

    /// Removes a run and its prompt, for the client that was asked and repeats the call.
    pub(crate) fn take(
        &self,
        owner: &str,
        call: Fingerprint,
        name: &str,
    ) -> Result<(Underway, Question), NotResumed> {
        let mut runs = self.runs.lock();
        let waiting = runs.get(name).filter(|waiting| waiting.owner == owner).ok_or(NotResumed::Unknown)?;
        if waiting.call != call {
            return Err(NotResumed::OtherCall);
        }
        let waiting = runs.remove(name).ok_or(NotResumed::Unknown)?;
        Ok((waiting.underway, waiting.question))
    }

    /// Ends all runs of `owner`, a client that does not come back.
    pub(crate) fn forget(&self, owner: &str) {
        // Collected first, so that the runs are dropped after the lock is released.
        let _forgotten: Vec<_> = self.runs.lock().extract_if(|_, waiting| waiting.owner == owner).collect();
    }
}
