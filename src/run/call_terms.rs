//! What a script gives a call beside its arguments: a number by which it can end the call, and the time for its answer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::run::ledger::RecordId;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum time that a script can give a call. A run ends long before.
const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

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
        let timeout = (timeout_ms > 0.0).then(|| {
            let longest = MAX_TIMEOUT.as_secs_f64();
            Duration::from_secs_f64((timeout_ms / 1_000.0).min(longest))
        });
        Self { id: (id > 0).then_some(id), timeout }
    }

    pub(super) fn is_none(self) -> bool {
        self.id.is_none() && self.timeout.is_none()
    }
}

/// The unfinished calls of a run that its script can end, by the guest's numbers for them. There are never more than
/// unfinished calls, which the run's limits bound.
#[derive(Default)]
pub(in crate::run) struct EndableCalls(Mutex<HashMap<u64, Endable>>);

struct Endable {
    /// Cancelled when the script ends the call.
    ended: CancellationToken,
    /// The call's record, from the moment at which it has one.
    record: Option<RecordId>,
}

impl EndableCalls {
    /// # Errors
    ///
    /// `InvalidArguments` if the number is in use.
    fn insert(&self, id: u64, ended: &CancellationToken) -> Result<(), ToolError> {
        match self.0.lock().entry(id) {
            Entry::Vacant(entry) => {
                entry.insert(Endable { ended: ended.clone(), record: None });
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
        let (ended, record) = (call.ended.clone(), call.record.take());
        drop(calls);
        ended.cancel();
        record
    }
}

/// The terms of an unfinished call.
pub(super) struct TermsInForce {
    pub(super) id: Option<u64>,
    /// Cancelled when the script ends the call.
    ended: CancellationToken,
    /// When the time for the answer is over, and how long it is.
    deadline: Option<(Instant, Duration)>,
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
        let ended = CancellationToken::new();
        if let Some(id) = terms.id {
            calls.insert(id, &ended)?;
        }
        let deadline = terms.timeout.map(|timeout| (Instant::now() + timeout, timeout));
        Ok(Self { id: terms.id, ended, deadline, record: Mutex::default(), tool: Mutex::default() })
    }

    /// Completes with the call's error when the script ends the call.
    pub(super) async fn ended(&self) -> ToolError {
        self.ended.cancelled().await;
        ToolError::new(ToolErrorCode::Cancelled, "the script has ended the call")
    }

    /// Completes with the call's error when the time is over that the script gave it.
    pub(super) async fn too_late(&self) -> ToolError {
        let Some((deadline, timeout)) = self.deadline else { return std::future::pending().await };
        tokio::time::sleep_until(deadline.into()).await;
        let message =
            format!("no answer within the {} ms that the script gave the call", timeout.as_millis());
        let error = ToolError::new(ToolErrorCode::ToolTimeout, message);
        match self.tool.lock().as_ref() {
            Some((server, tool)) => error.for_tool(server, tool),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests;
