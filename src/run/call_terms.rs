//! What a script gives a call beside its arguments: a number by which it can end the call, and the time for its answer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::run::ledger::RecordId;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum time that a script can give a call, in milliseconds: a day. A run ends long before.
const MAX_TIMEOUT_MS: f64 = 86_400_000.0;

/// The terms of one call, as its script sets them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CallTerms {
    /// The guest's number for the call; `None` if the script cannot end it.
    pub(crate) id: Option<u64>,
    /// The time for the answer, which counts from the call on.
    pub(crate) timeout: Option<Duration>,
}

impl CallTerms {
    /// The terms as a guest writes them: zero for none.
    pub(crate) fn from_guest(id: u64, timeout_ms: f64) -> Self {
        Self { id: (id > 0).then_some(id), timeout: timeout(timeout_ms) }
    }

    pub(super) fn is_none(self) -> bool {
        self.id.is_none() && self.timeout.is_none()
    }
}

/// The time for an answer as a guest writes it: zero for none.
fn timeout(timeout_ms: f64) -> Option<Duration> {
    (timeout_ms > 0.0).then(|| guest_duration(timeout_ms))
}

/// A duration as a guest writes it, at most a day. What is no duration counts as zero.
pub(super) fn guest_duration(milliseconds: f64) -> Duration {
    let milliseconds = milliseconds.clamp(0.0, MAX_TIMEOUT_MS);
    Duration::try_from_secs_f64(milliseconds / 1_000.0).unwrap_or_default()
}

/// The unfinished calls of a run that its script can end, by the guest's numbers for them. There are never more than
/// unfinished calls, which the run's limits bound.
#[derive(Default)]
pub(in crate::run) struct EndableCalls(Mutex<HashMap<u64, Endable>>);

struct Endable {
    end: Arc<CallEnd>,
    /// The call's record, from the moment at which it has one.
    record: Option<RecordId>,
}

/// What ends a call before it has an answer.
#[derive(Default)]
struct CallEnd {
    /// Cancelled when the script ends the call.
    ended: CancellationToken,
    /// When the time for the answer is over, and how long it is.
    deadline: Mutex<Option<(Instant, Duration)>>,
    /// Notified when the deadline is set after the call has begun.
    limited: Notify,
}

impl EndableCalls {
    /// # Errors
    ///
    /// `InvalidArguments` if the number is in use.
    fn insert(&self, id: u64, end: &Arc<CallEnd>) -> Result<(), ToolError> {
        match self.0.lock().entry(id) {
            Entry::Vacant(entry) => {
                entry.insert(Endable { end: Arc::clone(end), record: None });
                Ok(())
            }
            Entry::Occupied(_) => Err(ToolError::new(
                ToolErrorCode::InvalidArguments,
                "there is an unfinished call with this number already",
            )),
        }
    }

    pub(super) fn remove(&self, id: u64) {
        self.0.lock().remove(&id);
    }

    pub(super) fn note_record(&self, id: u64, record: RecordId) {
        if let Some(call) = self.0.lock().get_mut(&id) {
            call.record = Some(record);
        }
    }

    /// Ends the call with this number, if it is unfinished. Returns its record.
    pub(super) fn end(&self, id: u64) -> Option<RecordId> {
        let mut calls = self.0.lock();
        let call = calls.get_mut(&id)?;
        let (end, record) = (Arc::clone(&call.end), call.record.take());
        drop(calls);
        end.ended.cancel();
        record
    }

    /// Gives the call with this number `timeout_ms` for its answer from this moment on, if it is unfinished and has no
    /// time yet.
    pub(super) fn limit(&self, id: u64, timeout_ms: f64) {
        let Some(timeout) = timeout(timeout_ms) else { return };
        let Some(end) = self.0.lock().get(&id).map(|call| Arc::clone(&call.end)) else { return };
        let mut deadline = end.deadline.lock();
        if deadline.is_none() {
            *deadline = Some((Instant::now() + timeout, timeout));
        }
        drop(deadline);
        end.limited.notify_waiters();
    }
}

/// The terms of an unfinished call.
pub(super) struct TermsInForce {
    pub(super) id: Option<u64>,
    end: Arc<CallEnd>,
    /// The call's record, from the moment at which it has one.
    pub(super) record: Mutex<Option<RecordId>>,
    /// The server and the tool, as the script has written them until they are found.
    pub(super) tool: Mutex<Option<(String, String)>>,
}

impl TermsInForce {
    /// # Errors
    ///
    /// `InvalidArguments` if the script has an unfinished call with the same number.
    pub(super) fn begin(terms: CallTerms, calls: &EndableCalls) -> Result<Self, ToolError> {
        let deadline = terms.timeout.map(|timeout| (Instant::now() + timeout, timeout));
        let end = Arc::new(CallEnd { deadline: Mutex::new(deadline), ..CallEnd::default() });
        if let Some(id) = terms.id {
            calls.insert(id, &end)?;
        }
        Ok(Self { id: terms.id, end, record: Mutex::default(), tool: Mutex::default() })
    }

    /// Completes with the call's error when the script ends the call.
    pub(super) async fn ended(&self) -> ToolError {
        self.end.ended.cancelled().await;
        ToolError::new(ToolErrorCode::Cancelled, "the script has ended the call")
    }

    /// Completes with the call's error when the time is over that the script gave it.
    pub(super) async fn too_late(&self) -> ToolError {
        let (deadline, timeout) = self.deadline().await;
        tokio::time::sleep_until(deadline.into()).await;
        let message =
            format!("no answer within the {} ms that the script gave the call", timeout.as_millis());
        let error = ToolError::new(ToolErrorCode::ToolTimeout, message);
        match self.tool.lock().as_ref() {
            Some((server, tool)) => error.for_tool(server, tool),
            None => error,
        }
    }

    /// When the time for the answer is over, and how long it is. Completes when there is one.
    async fn deadline(&self) -> (Instant, Duration) {
        loop {
            // Before the deadline is read, so that one which is set meanwhile is not missed.
            let limited = self.end.limited.notified();
            let deadline = *self.end.deadline.lock();
            match deadline {
                Some(deadline) => return deadline,
                None => limited.await,
            }
        }
    }
}

#[cfg(test)]
mod tests;
