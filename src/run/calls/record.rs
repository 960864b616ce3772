//! Records of calls: each is begun when its call is sent or waits for an approval, and ended with the call's outcome.

use super::held::HeldCall;
use crate::json::Json;
use crate::run::context::ExecutionContext;
use crate::run::ledger::{Call, RecordId};
use crate::run::result::ToolCallStatus;
use crate::tools::ToolError;

impl ExecutionContext {
    /// Begins the record of a call.
    pub(in crate::run) fn begin_record(&self, call: Call<'_>, status: ToolCallStatus) -> RecordId {
        self.ledger.lock().begin(call, status)
    }

    /// Records that a call is sent now. `approved` is its existing record, if it needed an
    /// approval.
    pub(super) fn record_sent(&self, approved: Option<RecordId>, call: Call<'_>) -> RecordId {
        let Some(record) = approved else { return self.begin_record(call, ToolCallStatus::InFlight) };
        self.ledger.lock().send_approved(record);
        record
    }

    /// Ends the record of a call that was sent, unless the limits of its server have refused it: then it counts as not
    /// sent.
    pub(super) fn record_result(&self, held: &HeldCall, record: RecordId, result: &Result<Json, ToolError>) {
        let bytes = result.as_ref().map_or(0, |value| value.text().len());
        let is_unsent = result.as_ref().is_err_and(|error| error.code.is_before_sending());
        {
            let mut ledger = self.ledger.lock();
            ledger.count_result(bytes);
            if is_unsent {
                ledger.uncount_sent();
                held.note_unsent();
            }
        }
        let status = match result {
            Ok(_) => ToolCallStatus::Ok,
            Err(error) => ToolCallStatus::Failed(error.code),
        };
        self.end_record(record, status, bytes);
    }

    /// Ends the record of a call, and tells the listener of calls.
    pub(in crate::run) fn end_record(&self, record: RecordId, status: ToolCallStatus, result_bytes: usize) {
        let listener = self.script.on_call.as_ref();
        let ended = {
            let mut ledger = self.ledger.lock();
            let ended = ledger.end(record, status, result_bytes);
            listener.zip(ended.cloned())
        };
        // The listener may call functions that lock the ledger.
        if let Some((listener, record)) = ended {
            self.listening.call(|| listener(&record));
        }
    }
}
