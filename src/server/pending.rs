//! Runs that wait for their client to come back: it was sent a question in the place of the answer.

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

/// Runs of all clients that may wait so. In one more nobody can be asked.
const MOST: usize = 64;

/// How long a client may take beyond the time that a person has. Its run may have gone on without an answer.
const KEPT: Duration = Duration::from_secs(10);

/// What the question is called in the result, and the answer in the request that follows.
pub(super) const KEY: &str = "approval";

/// Runs that wait, by what names them: random, so that it cannot be guessed.
#[derive(Default)]
pub(super) struct PendingRuns {
    runs: Mutex<HashMap<String, Waiting>>,
}

struct Waiting {
    owner: String,
    /// Of the call that the client has to repeat.
    call: Fingerprint,
    underway: Underway,
    question: Question,
    _expiry: Expiry,
}

/// Forgets a run whose client does not come back.
struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a call asks for: the tool and the arguments, to the letter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// `input` is what was taken out of the arguments.
    pub(super) fn new(tool: &str, arguments: &JsonObject, input: Option<&Json>) -> Self {
        let arguments = serde_json::to_vec(arguments).unwrap_or_default();
        let input = input.map_or("", Json::text);
        // JSON has no zeroes.
        let parts = [tool.as_bytes(), &arguments, input.as_bytes()].into_iter();
        let hash = parts.fold(Sha256::new(), |hash, part| hash.chain_update(part).chain_update([0]));
        Self(hash.finalize().into())
    }
}

/// Why a run is not resumed.
pub(super) enum NotResumed {
    /// There is none of this name, any more or for this client.
    Unknown,
    /// It was another call.
    OtherCall,
}

impl PendingRuns {
    /// Puts a run aside, and returns what the client is asked in the place of its answer.
    ///
    /// # Errors
    ///
    /// Gives the run back, with nobody asked, when too many wait already or the system gives no random numbers.
    pub(super) fn add(
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
        // It is not under way for whoever waits for the end of all calls.
        underway.rest();
        let longest = underway.limits.answer_time + KEPT;
        let expiry = tokio::spawn({
            let (all, name) = (Arc::downgrade(self), name.clone());
            async move {
                tokio::time::sleep(longest).await;
                // The run ends with it.
                let _forgotten = all.upgrade().and_then(|all| all.runs.lock().remove(&name));
            }
        });
        let expiry = Expiry(expiry.abort_handle());
        let waiting = Waiting { owner: owner.to_owned(), call, underway, question, _expiry: expiry };
        runs.insert(name.clone(), waiting);
        Ok(InputRequiredResult::new(Some(InputRequests::from([(KEY.to_owned(), request)])), Some(name)))
    }

    /// Takes a run and its question back, for the client that was asked and repeats the call.
    pub(super) fn take(
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

    /// Ends all runs of `owner`, who does not come back.
    pub(super) fn forget(&self, owner: &str) {
        // Dropped after the lock is open again.
        let _forgotten: Vec<_> = self.runs.lock().extract_if(|_, waiting| waiting.owner == owner).collect();
    }
}
