//! Suspended runs: their clients were sent a prompt instead of an answer and have to repeat the call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{InputRequests, InputRequiredResult};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use super::client_slots::{ClientSlot, ClientSlots};
use super::fingerprint::Fingerprint;
use super::prompt::Prompt;
use super::run_in_flight::RunInFlight;
use crate::text::ids::{random_bytes, random_id};

/// The key of a prompt for the user in a result that requires input, and of the answer in the repeated request.
pub(crate) const USER_KEY: &str = "approval";

/// The prefix of the key of a question for the client's model, before its number.
pub(crate) const MODEL_KEY: &str = "sampling";

/// Maximum number of suspended runs of one client. A run beyond this number cannot prompt. The executor bounds the
/// suspended runs of all clients together, because each is one of its runs.
const MAX_SUSPENDED: usize = 64;

/// A suspended run is dropped this long after its approval timeout. Between the two it continues without the approval.
const KEPT: Duration = Duration::from_secs(10);

/// The prompts of one result, by their keys.
pub(crate) type KeyedPrompts = Vec<(String, Prompt)>;

/// Assigns a key to each prompt. At most one prompt is for the user.
pub(crate) fn with_keys(prompts: Vec<Prompt>) -> KeyedPrompts {
    let mut asked = 0;
    let key = |prompt: Prompt| {
        if !prompt.is_for_model() {
            return (USER_KEY.to_owned(), prompt);
        }
        asked += 1;
        (format!("{MODEL_KEY}-{asked}"), prompt)
    };
    prompts.into_iter().map(key).collect()
}

/// Suspended runs, by a random name that cannot be guessed.
pub(crate) struct PendingRuns {
    slots: ClientSlots,
    runs: Mutex<HashMap<String, SuspendedRun>>,
    names: Names,
}

impl Default for PendingRuns {
    fn default() -> Self {
        Self { slots: ClientSlots::new(MAX_SUSPENDED), runs: Mutex::default(), names: Names::default() }
    }
}

/// Makes the names of suspended runs (`requestState`), and recognizes them: a random id and its tag.
///
/// A name that is changed or made up is an error of the protocol. One whose run is gone is an error that the model
/// reads, because it has to run the script again.
struct Names {
    /// Secret, and of this process. `None` if the system provides no random numbers; nothing is suspended then.
    key: Option<[u8; 32]>,
}

impl Default for Names {
    fn default() -> Self {
        Self { key: random_bytes().ok() }
    }
}

impl Names {
    fn make(&self) -> Option<String> {
        let id = random_id().ok()?;
        let tag = self.tag(&id)?;
        Some(id + &tag)
    }

    /// Whether this process has made the name, and nothing has changed it.
    ///
    /// The time that the comparison takes tells nothing of value: a run is found by the whole of its name only.
    fn has_made(&self, name: &str) -> bool {
        let parts = name.split_at_checked(ID);
        parts.is_some_and(|(id, tag)| self.tag(id).is_some_and(|expected| tag == expected))
    }

    /// All ids have one length, so that the end of no hash is the beginning of another.
    fn tag(&self, id: &str) -> Option<String> {
        let hash = Sha256::new().chain_update(self.key?).chain_update(id).finalize();
        Some(hex::encode(&hash[..ID / 2]))
    }
}

/// Length of an id, and of its tag, in hexadecimal digits.
const ID: usize = 32;

struct SuspendedRun {
    /// The client's session, or the session of all clients without one.
    client: String,
    _slot: ClientSlot,
    /// Fingerprint of the call that the client has to repeat.
    call: Fingerprint,
    run: RunInFlight,
    prompts: KeyedPrompts,
    /// Drops the run if its client does not return. Dropping this stops the timer.
    _expiry: JoinSet<()>,
}

/// Why a run is not resumed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotResumed {
    /// No run was ever suspended under this name.
    #[error("`requestState` is not of this server, or was changed; send the call again without it")]
    Forged,
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
        let Some(name) = self.names.make() else { return Err(Box::new(run)) };
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
        let mut expiry = JoinSet::new();
        expiry.spawn({
            let (all, name) = (Arc::downgrade(self), name.clone());
            async move {
                tokio::time::sleep(max).await;
                // Dropping the entry ends the run.
                let _forgotten = all.upgrade().and_then(|all| all.runs.lock().remove(&name));
            }
        });
        let suspended =
            SuspendedRun { client: client.to_owned(), _slot: slot, call, run, prompts, _expiry: expiry };
        runs.insert(name.clone(), suspended);
        Ok(InputRequiredResult::new(Some(requests), Some(name)))
    }

    /// Removes a suspended run and its prompts, for the client that repeats its call.
    ///
    /// # Errors
    ///
    /// If the client has no such run, has called something else, or has changed the name. The run is not removed then.
    pub(crate) fn remove(
        &self,
        client: &str,
        call: Fingerprint,
        name: &str,
    ) -> Result<(RunInFlight, KeyedPrompts), NotResumed> {
        if !self.names.has_made(name) {
            return Err(NotResumed::Forged);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognized_as_they_were_made() {
        let names = Names::default();
        let name = names.make().unwrap();
        assert!(names.has_made(&name));
        assert_eq!(name.len(), 2 * ID);
        let (id, tag) = name.split_at(ID);
        let changed =
            |digit: &str| format!("{}{}", if digit.starts_with('0') { '1' } else { '0' }, &digit[1..]);
        for forged in [
            String::new(),
            id.to_owned(),
            format!("{name}-TAMPERED"),
            format!("{}{tag}", changed(id)),
            format!("{id}{}", changed(tag)),
            "ä".repeat(ID),
            // The byte at which an id ends is within a character.
            format!("a{}", "ä".repeat(ID)),
            "x".repeat(100_000),
            Names::default().make().unwrap(),
        ] {
            assert!(!names.has_made(&forged), "{forged}");
        }
        let without_random_numbers = Names { key: None };
        assert!(without_random_numbers.make().is_none() && !without_random_numbers.has_made(&name));
    }
}
