//! Runs that continue after their call was answered: the client gets the rest with `wait`.
//!
//! For clients that do not support tasks. A run is bound to its session, so a session of many clients that cannot be
//! told apart has no yielded runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use rmcp::model::{CallToolResult, ContentBlock};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::run_in_flight::RunInFlight;
use crate::run::result::Output;
use crate::text::{MAX_SHOWN_NAME, preview};

/// Maximum number of yielded runs of one session. A run beyond it does not yield; its call is answered
/// when it ends.
const MAX_YIELDED: usize = 16;

/// How long a run, or its answer, is kept after it has yielded or was last waited for.
pub(crate) const KEPT: Duration = Duration::from_secs(5 * 60);

/// How long a call of `wait` waits until an earlier one, which it replaces, has left the run. That takes as long as a
/// notification takes to be sent.
const MAX_TAKE_OVER: Duration = Duration::from_secs(10);

/// The yielded runs of one session, by their ids.
#[derive(Clone, Default)]
pub(crate) struct YieldedRuns {
    runs: Arc<Mutex<HashMap<String, Entry>>>,
    /// Is notified when a call has left its run.
    left: Arc<Notify>,
}

enum Entry {
    /// No call of `wait` is waiting for the run. The task drops a run that its client does not wait for; dropping the
    /// set stops that timer.
    Waiting(Box<YieldedRun>, JoinSet<()>),
    /// A call of `wait` is waiting for the run, whose output this is. The token ends the call.
    Awaited(Printed, CancellationToken),
}

impl Entry {
    fn printed(&self) -> &Printed {
        match self {
            Self::Waiting(run, _) => &run.printed,
            Self::Awaited(printed, _) => printed,
        }
    }
}

/// A run that has yielded.
pub(crate) struct YieldedRun {
    pub(crate) id: String,
    pub(crate) run: RunInFlight,
    pub(crate) printed: Printed,
}

/// Why a run cannot be waited for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAwaited {
    #[error("no run `{0}` goes on: it was waited for already, has ended with its session, or was not waited \
             for in {time} minutes", time = KEPT.as_secs() / 60)]
    Unknown(String),
    #[error("another call waits for the run `{0}`")]
    Awaited(String),
}

/// The output of a run, and how much of it the client has received.
#[derive(Clone, Default)]
pub(crate) struct Printed {
    state: Arc<Mutex<PrintedState>>,
    progress: watch::Sender<RunProgress>,
}

/// How far a run is, for those that follow it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunProgress {
    /// Whether the run has ended, and its record can be read if it is kept.
    pub(crate) has_ended: bool,
}

#[derive(Default)]
struct PrintedState {
    /// The whole output. The run's limits bound it.
    text: String,
    /// Bytes of it that the client has received as parts of answers.
    delivered: usize,
    has_lines: bool,
    /// Whether the remaining output belongs to the run's answer.
    is_closed: bool,
    /// The id of the run, once it has yielded.
    id: Option<String>,
}

impl Printed {
    /// The output of a run whose client has its id from the start.
    #[cfg(feature = "http")]
    pub(crate) fn of_run(id: String) -> Self {
        let state = PrintedState { id: Some(id), ..PrintedState::default() };
        Self { state: Arc::new(Mutex::new(state)), ..Self::default() }
    }

    /// The whole output so far. `None` when it belongs to the run's answer.
    pub(crate) fn so_far(&self) -> Option<String> {
        let state = self.state.lock();
        (!state.is_closed).then(|| state.text.clone())
    }

    /// Follows the run: the value is marked as changed whenever the run has printed, and when it has ended.
    pub(crate) fn follow(&self) -> watch::Receiver<RunProgress> {
        self.progress.subscribe()
    }

    /// Records that the run has ended, and that its record is kept if it is at all.
    pub(crate) fn note_end(&self) {
        self.progress.send_modify(|progress| progress.has_ended = true);
    }

    /// Adds kept output. The run's limits bound it.
    pub(crate) fn add(&self, entry: &Output) {
        let Output::Log { text, .. } = entry else { return };
        {
            let mut state = self.state.lock();
            if state.is_closed {
                return;
            }
            if state.has_lines {
                state.text.push('\n');
            }
            state.has_lines = true;
            state.text.push_str(text);
        }
        self.progress.send_modify(|_progress| {});
    }

    /// The output since the last delivery.
    pub(crate) fn deliver(&self) -> String {
        let mut state = self.state.lock();
        let new = state.text.get(state.delivered..).unwrap_or_default();
        let new = new.strip_prefix('\n').unwrap_or(new).to_owned();
        state.delivered = state.text.len();
        new
    }

    /// Ends delivery: the remaining output belongs to the run's answer. Returns how much was delivered, in bytes of the
    /// whole output.
    pub(crate) fn close(&self) -> usize {
        let mut state = self.state.lock();
        (state.is_closed, state.text) = (true, String::new());
        state.delivered
    }

    /// The run's id, if it has yielded.
    pub(crate) fn id(&self) -> Option<String> {
        self.state.lock().id.clone()
    }
}

impl YieldedRuns {
    /// Keeps a slot under this id for a run that is about to yield, with this output. Returns whether there was one: of
    /// several runs that ask at the same moment, no more than there are get one.
    pub(crate) fn reserve(&self, id: &str, printed: &Printed) -> bool {
        let mut runs = self.runs.lock();
        let has_space = runs.len() < MAX_YIELDED;
        if has_space {
            // The client does not know the id yet, so nobody can wait for the run.
            runs.insert(id.to_owned(), Entry::Awaited(printed.clone(), CancellationToken::new()));
        }
        has_space
    }

    /// Lets the run continue without its call, in the slot that is reserved under this id. Must be called in a tokio
    /// runtime.
    pub(crate) fn start(&self, id: String, mut run: RunInFlight, printed: Printed) {
        printed.state.lock().id = Some(id.clone());
        // A run without a waiting call does not delay a shutdown, which waits for the end of all
        // calls.
        run.guard = None;
        // A task polls the run also while it waits for admission or its engine. Dropping the set drops the run.
        let mut task = JoinSet::new();
        task.spawn(run.run);
        run.run = async move {
            match task.join_next().await {
                Some(Ok(result)) => result,
                _ => {
                    let text = ContentBlock::text("the run has failed; see the server's log");
                    CallToolResult::error(vec![text])
                }
            }
        }
        .boxed();
        self.insert(YieldedRun { id, run, printed });
    }

    /// Keeps the run until it is waited for.
    fn insert(&self, run: YieldedRun) {
        let id = run.id.clone();
        let expired = Instant::now() + KEPT;
        let mut expiry = JoinSet::new();
        expiry.spawn({
            let (runs, id) = (Arc::downgrade(&self.runs), id.clone());
            async move {
                tokio::time::sleep_until(expired).await;
                // Dropping the entry ends the run, after the lock is released.
                let _forgotten = runs.upgrade().and_then(|runs| runs.lock().remove(&id));
            }
        });
        let _replaced = self.runs.lock().insert(id, Entry::Waiting(Box::new(run), expiry));
    }

    /// Takes a run to wait for it, also from another call: the client may have lost that one's connection, without which
    /// it goes on for a while. The run is kept again when the returned value is dropped, unless its result was taken.
    ///
    /// # Errors
    ///
    /// If there is no such run, or another call does not leave it.
    pub(crate) async fn claim(&self, id: &str) -> Result<AwaitedRun, NotAwaited> {
        let claiming = async {
            loop {
                let left = self.left.notified();
                tokio::pin!(left);
                // From now on: the other call may leave before this one waits.
                left.as_mut().enable();
                match self.try_claim(id) {
                    Ok(Some(run)) => return Ok(run),
                    Ok(None) => left.await,
                    Err(error) => return Err(error),
                }
            }
        };
        let not_left = |_elapsed| Err(NotAwaited::Awaited(preview(id, MAX_SHOWN_NAME)));
        timeout(MAX_TAKE_OVER, claiming).await.unwrap_or_else(not_left)
    }

    /// The run, or `None` if another call waits for it, which is ended then.
    fn try_claim(&self, id: &str) -> Result<Option<AwaitedRun>, NotAwaited> {
        let mut runs = self.runs.lock();
        let Some(entry) = runs.get_mut(id) else {
            return Err(NotAwaited::Unknown(preview(id, MAX_SHOWN_NAME)));
        };
        if let Entry::Awaited(_, other) = entry {
            other.cancel();
            return Ok(None);
        }
        let replaced = CancellationToken::new();
        let awaited = Entry::Awaited(entry.printed().clone(), replaced.clone());
        match std::mem::replace(entry, awaited) {
            Entry::Waiting(run, _timer) => {
                Ok(Some(AwaitedRun { of: self.clone(), run: Some(run), replaced }))
            }
            Entry::Awaited(..) => Ok(None),
        }
    }

    /// The output of a run that continues, or whose answer was not fetched.
    pub(crate) fn printed(&self, id: &str) -> Option<Printed> {
        self.runs.lock().get(id).map(|entry| entry.printed().clone())
    }
}

/// A run that a call of `wait` is waiting for.
pub(crate) struct AwaitedRun {
    of: YieldedRuns,
    run: Option<Box<YieldedRun>>,
    /// Is cancelled when a newer call waits for the run.
    replaced: CancellationToken,
}

impl AwaitedRun {
    /// The run; `None` after its result was taken.
    pub(crate) fn run(&mut self) -> Option<&mut YieldedRun> {
        self.run.as_deref_mut()
    }

    /// Says when a newer call waits for the run, which this one must then leave.
    pub(crate) fn replaced(&self) -> CancellationToken {
        self.replaced.clone()
    }

    /// Ends the run, whose answer is delivered.
    pub(crate) fn end(mut self, result: CallToolResult) -> CallToolResult {
        if let Some(run) = self.run.take() {
            self.of.runs.lock().remove(&run.id);
            self.of.left.notify_waiters();
        }
        result
    }
}

impl Drop for AwaitedRun {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            if run.run.cancel.is_cancelled() {
                // The session of the run has ended.
                self.of.runs.lock().remove(&run.id);
            } else {
                self.of.insert(*run);
            }
            self.of.left.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests;
