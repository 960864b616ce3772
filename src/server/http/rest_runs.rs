//! Runs over plain HTTP that can be found by their id: those in the background, and recent ones that have ended.

pub(super) mod answers;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::answers::RunAnswer;
use crate::server::client_slots::{ClientSlot, ClientSlots};
use crate::server::yielded::Printed;

/// Maximum number of runs in the background of one peer, the same as for tasks.
pub(super) const MAX_BACKGROUND: usize = 64;

/// Maximum time that a request waits for the end of a run in the background. Proxies wait for a minute.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(60);

/// How long answers are kept: as long as run records.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// Maximum number of answers that are kept. A client normally fetches its answer within seconds.
const MAX_ANSWERS: usize = 256;

/// Maximum bytes of all kept answers together, which are divided among the tenants, and the minimum for each tenant. An
/// answer has about 100 kB at most, unless its script emitted images.
const MAX_BYTES: usize = 64 << 20;
const MIN_BYTES: usize = 4 << 20;

/// Maximum bytes of the answers that are kept for each tenant.
pub(super) struct AnswerBytes(AtomicUsize);

impl Default for AnswerBytes {
    fn default() -> Self {
        Self(AtomicUsize::new(MAX_BYTES))
    }
}

impl AnswerBytes {
    /// Divides the total among this many tenants.
    pub(super) fn share_among(&self, tenants: NonZeroUsize) {
        self.0.store((MAX_BYTES / tenants).max(MIN_BYTES), Ordering::Relaxed);
    }

    fn each(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The runs of a tenant's clients without a session.
pub(super) struct RestRuns {
    runs: Arc<Mutex<Vec<Arc<RestRun>>>>,
    background: ClientSlots,
    bytes: Arc<AnswerBytes>,
}

/// A run over REST, from its start until no request can find it any more.
pub(super) struct RestRun {
    /// The id, if the client gets it before the answer.
    pub(super) id: Option<String>,
    key: Option<KeyedBody>,
    pub(super) cancel: CancellationToken,
    pub(super) printed: Printed,
    pub(super) answer: watch::Receiver<Option<FinishedRun>>,
    /// The task of the run, which ends with this.
    _task: JoinSet<()>,
}

/// The answer of a run that has ended, and when it ended.
#[derive(Clone)]
pub(super) struct FinishedRun {
    pub(super) answer: RunAnswer,
    at: Instant,
    /// The id of the run record, if the answer leaves something out.
    record: Option<String>,
}

/// An idempotency key, and the body that was sent with it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct KeyedBody {
    key: String,
    hash: [u8; 32],
}

/// The run that an idempotency key refers to.
enum Keyed {
    New,
    Same(Arc<RestRun>),
    Other,
}

impl KeyedBody {
    pub(super) fn new(key: &str, body: &[u8]) -> Self {
        Self { key: key.to_owned(), hash: Sha256::digest(body).into() }
    }
}

impl FinishedRun {
    /// An answer that ended now. Its text names the run record, if there is one.
    pub(super) fn new(answer: RunAnswer, record: Option<String>) -> Self {
        Self { answer, at: Instant::now(), record }
    }
}

impl RestRun {
    pub(super) fn new(
        id: Option<String>,
        key: Option<KeyedBody>,
        cancel: CancellationToken,
        printed: Printed,
        answer: watch::Receiver<Option<FinishedRun>>,
        task: JoinSet<()>,
    ) -> Self {
        Self { id, key, cancel, printed, answer, _task: task }
    }

    /// The answer, if the run has ended.
    pub(super) fn ended(&self) -> Option<FinishedRun> {
        self.answer.borrow().clone()
    }

    /// Waits for the answer. `None` if the run's task has failed.
    pub(super) async fn wait(&self) -> Option<RunAnswer> {
        let mut answer = self.answer.clone();
        let ended = answer.wait_for(Option::is_some).await.ok()?;
        ended.as_ref().map(|ended| ended.answer.clone())
    }

    /// The id that the client gets: before the answer, or in the answer if that leaves something out.
    pub(super) fn told_id(&self) -> Option<String> {
        self.id.clone().or_else(|| self.answer.borrow().as_ref().and_then(|ended| ended.record.clone()))
    }

    fn has_id(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
            || self.answer.borrow().as_ref().is_some_and(|ended| ended.record.as_deref() == Some(id))
    }

    /// Whether a request can still find the run.
    fn is_known(&self) -> bool {
        let has_record = self.answer.borrow().as_ref().is_some_and(|ended| ended.record.is_some());
        self.id.is_some() || self.key.is_some() || has_record
    }
}

impl RestRuns {
    /// No runs of a tenant, whose answers may take `bytes`.
    pub(super) fn new(bytes: Arc<AnswerBytes>) -> Self {
        Self { runs: Arc::default(), background: ClientSlots::new(MAX_BACKGROUND), bytes }
    }

    /// A slot for a run in the background; `None` if all slots of the peer are in use.
    pub(super) fn background_slot(&self, peer: &str) -> Option<ClientSlot> {
        self.background.acquire(peer)
    }

    /// Starts a run, unless its key already refers to one. Both happen under one lock, so that only one of two
    /// concurrent requests with the same key starts the run. Must be called in a tokio runtime.
    ///
    /// # Errors
    ///
    /// The error of `start`.
    pub(super) fn start<E>(
        &self,
        key: Option<&KeyedBody>,
        start: impl FnOnce() -> Result<RestRun, E>,
    ) -> Result<Started, E> {
        let mut runs = self.runs.lock();
        remove_old(&mut runs, self.bytes.each());
        match key.map_or(Keyed::New, |key| find_key(&runs, key)) {
            Keyed::New => {}
            Keyed::Same(run) => return Ok(Started::Before(run)),
            Keyed::Other => return Ok(Started::KeyOfOther),
        }
        let run = Arc::new(start()?);
        if run.id.is_some() || run.key.is_some() {
            runs.push(Arc::clone(&run));
            self.remove_old_after(&run);
        }
        Ok(Started::Now(run))
    }

    /// Removes old answers when the run ends, because no further request may come.
    fn remove_old_after(&self, run: &RestRun) {
        let (runs, bytes) = (Arc::downgrade(&self.runs), Arc::clone(&self.bytes));
        let mut answer = run.answer.clone();
        tokio::spawn(async move {
            // A run that was dropped has no answer.
            let has_ended = answer.wait_for(Option::is_some).await.is_ok();
            if let Some(runs) = runs.upgrade().filter(|_| has_ended) {
                remove_old(&mut runs.lock(), bytes.each());
            }
        });
    }

    /// Keeps a run that has ended, if its answer names the run's record.
    pub(super) fn keep(&self, run: Arc<RestRun>) {
        let mut runs = self.runs.lock();
        remove_old(&mut runs, self.bytes.each());
        if run.is_known() && !runs.iter().any(|known| Arc::ptr_eq(known, &run)) {
            runs.push(run);
        }
    }

    /// The run with this id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<RestRun>> {
        let mut runs = self.runs.lock();
        remove_old(&mut runs, self.bytes.each());
        runs.iter().find(|run| run.has_id(id)).cloned()
    }
}

/// The outcome of a request for a run.
pub(super) enum Started {
    Now(Arc<RestRun>),
    /// An earlier request with the same idempotency key and body has started this run.
    Before(Arc<RestRun>),
    /// The idempotency key was used with another body.
    KeyOfOther,
}

fn find_key(runs: &[Arc<RestRun>], key: &KeyedBody) -> Keyed {
    // A run that was refused did nothing, so that its key may be sent again.
    let mut begun = runs.iter().filter(|run| !run.ended().is_some_and(|ended| ended.answer.is_refusal()));
    let known = begun.find(|run| run.key.as_ref().is_some_and(|known| known.key == key.key));
    match known {
        None => Keyed::New,
        Some(run) if run.key.as_ref() == Some(key) => Keyed::Same(Arc::clone(run)),
        Some(_) => Keyed::Other,
    }
}

/// Removes the oldest answers beyond a bound. Runs in flight stay.
fn remove_old(runs: &mut Vec<Arc<RestRun>>, max_bytes: usize) {
    let mut ended: Vec<(Instant, usize)> =
        runs.iter().filter_map(|run| run.ended().map(|ended| (ended.at, ended.answer.bytes()))).collect();
    ended.sort_unstable_by_key(|&(at, _)| std::cmp::Reverse(at));
    let mut bytes = 0_usize;
    let kept = ended.iter().take(MAX_ANSWERS).take_while(|&&(at, size)| {
        bytes = bytes.saturating_add(size);
        at.elapsed() <= KEPT && bytes <= max_bytes
    });
    let Some(&(oldest, _)) = kept.last() else {
        return runs.retain(|run| run.ended().is_none());
    };
    runs.retain(|run| run.ended().is_none_or(|ended| ended.at >= oldest));
}

#[cfg(test)]
mod tests;
