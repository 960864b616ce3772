//! Suspended runs: their clients were sent a prompt instead of an answer and have to repeat the call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{InputRequests, InputRequiredResult};
use tokio::task::AbortHandle;

use super::client_slots::{ClientSlot, ClientSlots};
use super::fingerprint::Fingerprint;
use super::prompt::Prompt;
use super::run_in_flight::RunInFlight;
use crate::text::ids::random_id;

/// The key of a prompt for the user in a result that requires input, and of the answer in the repeated request.
pub(crate) const KEY: &str = "approval";

/// The prefix of the key of a question for the client's model, before its number.
pub(crate) const MODEL_KEY: &str = "sampling";

/// The prompts of one result, by their keys.
pub(crate) type KeyedPrompts = Vec<(String, Prompt)>;

/// Assigns a key to each prompt. At most one prompt is for the user.
pub(crate) fn with_keys(prompts: Vec<Prompt>) -> KeyedPrompts {
    let mut asked = 0;
    let mut shown = 0;
    let key = |prompt: Prompt| {
        let (name, count) = if prompt.is_for_model() { (MODEL_KEY, &mut asked) } else { (KEY, &mut shown) };
        *count += 1;
        let key = if name == KEY && *count == 1 { KEY.to_owned() } else { format!("{name}-{count}") };
        (key, prompt)
    };
    prompts.into_iter().map(key).collect()
}

/// Maximum number of suspended runs of one client. A run beyond this number cannot prompt. The executor bounds the
/// suspended runs of all clients together, because each is one of its runs.
const MAX_SUSPENDED: usize = 64;

/// A suspended run is dropped this long after its approval timeout. Between the two it continues without the approval.
const KEPT: Duration = Duration::from_secs(10);

/// Suspended runs, by a random name that cannot be guessed.
pub(crate) struct PendingRuns {
    slots: ClientSlots,
    runs: Mutex<HashMap<String, SuspendedRun>>,
}

impl Default for PendingRuns {
    fn default() -> Self {
        Self { slots: ClientSlots::new(MAX_SUSPENDED), runs: Mutex::default() }
    }
}

struct SuspendedRun {
    /// The client's session, or the session of all clients without one.
    client: String,
    _slot: ClientSlot,
    /// Fingerprint of the call that the client has to repeat.
    call: Fingerprint,
    run: RunInFlight,
    prompts: KeyedPrompts,
    _expiry: Expiry,
}

/// Drops a run whose client does not return. Dropping this stops the timer.
struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a run is not resumed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotResumed {
    /// There is no run of this name for this client, or it was dropped.
    #[error("no run waits for this answer any more; run the script again")]
    Unknown,
    /// The name belongs to another call.
    #[error("this answer belongs to a call with other arguments; send that call again, with it")]
    OtherCall,
}

impl PendingRuns {
    /// Suspends a run of `client`, which is counted for `holder`, and returns the result with the prompts.
    ///
    /// # Errors
    ///
    /// Returns the run, without asking, if too many runs of the client are suspended or the system
    /// provides no random numbers.
    pub(crate) fn add(
        self: &Arc<Self>,
        client: &str,
        holder: &str,
        call: Fingerprint,
        mut run: RunInFlight,
        prompts: KeyedPrompts,
    ) -> Result<InputRequiredResult, Box<RunInFlight>> {
        let Ok(name) = random_id() else { return Err(Box::new(run)) };
        let Some(slot) = self.slots.acquire(holder) else {
            tracing::warn!("too many runs of one client wait for users; no prompt is sent");
            return Err(Box::new(run));
        };
        let requests: InputRequests =
            prompts.iter().map(|(key, prompt)| (key.clone(), prompt.request())).collect();
        let mut runs = self.runs.lock();
        // A suspended run does not delay tasks that wait for the end of all calls in flight.
        run.guard = None;
        let max = run.limits.answer_time + KEPT;
        let expiry = tokio::spawn({
            let (all, name) = (Arc::downgrade(self), name.clone());
            async move {
                tokio::time::sleep(max).await;
                // Dropping the entry ends the run.
                let _forgotten = all.upgrade().and_then(|all| all.runs.lock().remove(&name));
            }
        });
        let expiry = Expiry(expiry.abort_handle());
        let suspended =
            SuspendedRun { client: client.to_owned(), _slot: slot, call, run, prompts, _expiry: expiry };
        runs.insert(name.clone(), suspended);
        Ok(InputRequiredResult::new(Some(requests), Some(name)))
    }

    /// Removes a suspended run and its prompts, for the client that repeats its call.
    ///
    /// # Errors
    ///
    /// If the client has no such run, or has made a different call. The run is not removed then.
    pub(crate) fn remove(
        &self,
        client: &str,
        call: Fingerprint,
        name: &str,
    ) -> Result<(RunInFlight, KeyedPrompts), NotResumed> {
        let mut runs = self.runs.lock();
        let suspended = runs.get(name).filter(|run| run.client == client).ok_or(NotResumed::Unknown)?;
        if suspended.call != call {
            return Err(NotResumed::OtherCall);
        }
        let suspended = runs.remove(name).ok_or(NotResumed::Unknown)?;
        Ok((suspended.run, suspended.prompts))
    }

    /// Ends all suspended runs of a client that will not return.
    pub(crate) fn forget(&self, client: &str) {
        // Collected first, so that the runs are dropped after the lock is released.
        let _forgotten: Vec<_> = self.runs.lock().extract_if(|_, run| run.client == client).collect();
    }
}
