//! Unfinished calls of a run: each is counted as it is made, and counts against the run's bounds until it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::answer::ToolAnswer;
use crate::json::Json;
use crate::run::call_terms::{CallTerms, TermsInForce};
use crate::run::context::{ExecutionContext, Purpose};
use crate::run::errors::over;
use crate::run::ledger::{Ledger, RecordId};
use crate::run::observer::{Refused, RunEvent};
use crate::run::result::ToolCallStatus;
use crate::tools::{ToolError, ToolErrorCode};

/// A call that counts against the run's bounds for unfinished calls until this is dropped.
pub(crate) struct HeldCall {
    context: Arc<ExecutionContext>,
    /// Number of the call in its run, from 1; 0 for an operation that is no call.
    number: u64,
    argument_bytes: usize,
    /// When the script made it.
    made: Instant,
    /// Whether the call was sent, or simulated in a dry run.
    is_sent: AtomicBool,
    /// The rule that asked for an approval, or that refuses the call because of its arguments.
    rule: Mutex<Option<String>>,
    /// Keeps the tool's own result, for a call whose caller wants that and not a script's value.
    answer: Option<Mutex<Option<ToolAnswer>>>,
    /// When the call ends although it has no answer. Most calls have none.
    terms: Option<Box<TermsInForce>>,
}

impl HeldCall {
    pub(super) fn context(&self) -> &Arc<ExecutionContext> {
        &self.context
    }

    /// The call on the terms that its script sets.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` if the script has an unfinished call with the same number.
    pub(super) fn on_terms(mut self, terms: CallTerms) -> Result<Self, ToolError> {
        if !terms.is_none() {
            let terms = TermsInForce::begin(terms, &self.context.endable_calls);
            self.terms = Some(Box::new(terms.inspect_err(|error| self.note_refusal(error))?));
        }
        Ok(self)
    }

    /// Completes with the call's error when the script ends the call.
    pub(super) fn ended(&self) -> BoxFuture<'_, ToolError> {
        match &self.terms {
            Some(terms) => terms.ended().boxed(),
            None => std::future::pending().boxed(),
        }
    }

    /// Completes with the call's error when the time is over that the script gave it.
    pub(in crate::run) fn too_late(&self) -> BoxFuture<'_, ToolError> {
        match &self.terms {
            Some(terms) => terms.too_late().boxed(),
            None => std::future::pending().boxed(),
        }
    }

    /// Sets the tool that the call's error names if its time is over before it is sent.
    pub(super) fn note_tool(&self, server: &str, tool: &str) {
        if let Some(terms) = &self.terms {
            *terms.tool.lock() = Some((server.to_owned(), tool.to_owned()));
        }
    }

    /// Sets the record that ends when the call ends by its terms.
    pub(in crate::run) fn note_record(&self, record: RecordId) {
        let Some(terms) = &self.terms else { return };
        *terms.record.lock() = Some(record);
        if let Some(id) = terms.id {
            self.context.endable_calls.note_record(id, record);
        }
    }

    /// Records that the time is over that the script gave the call.
    pub(super) fn note_too_late(&self, result: &Result<Json, ToolError>) {
        let record = self.terms.as_ref().and_then(|terms| *terms.record.lock());
        if let Some(record) = record {
            self.context.end_record(record, ToolCallStatus::Failed(ToolErrorCode::ToolTimeout), 0);
        }
        self.note_failure(result);
    }

    /// Number of the call in its run, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of the arguments as the script wrote them.
    pub(in crate::run) fn argument_bytes(&self) -> usize {
        self.argument_bytes
    }

    /// How long ago the script made the call.
    pub(super) fn waited(&self) -> Duration {
        self.made.elapsed()
    }

    /// Records that the call is sent now, or that a dry run simulates it. Without this a failure is a refusal.
    pub(super) fn note_sent(&self) {
        self.is_sent.store(true, Ordering::Relaxed);
    }

    /// Takes back [`note_sent`](Self::note_sent): the limits of the server have refused the call.
    pub(super) fn note_unsent(&self) {
        self.is_sent.store(false, Ordering::Relaxed);
    }

    /// Records the rule that refuses the call, if it cannot be derived from the tool's name.
    pub(in crate::run) fn note_rule(&self, rule: String) {
        *self.rule.lock() = Some(rule);
    }

    /// Keeps the tool's own result from now on.
    pub(super) fn keep_answer(&mut self) {
        self.answer = Some(Mutex::default());
    }

    pub(super) fn keeps_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Stores the tool's own result, if the caller wants it.
    pub(super) fn put_answer(&self, answer: ToolAnswer) {
        if let Some(kept) = &self.answer {
            *kept.lock() = Some(answer);
        }
    }

    /// The tool's own result, if one was kept.
    pub(super) fn take_answer(&self) -> Option<ToolAnswer> {
        self.answer.as_ref().and_then(|answer| answer.lock().take())
    }

    /// Records a failure: whether the call was refused, and when to try again.
    pub(in crate::run) fn note_failure<T>(&self, result: &Result<T, ToolError>) {
        let Err(error) = result else { return };
        if !self.is_sent.load(Ordering::Relaxed) {
            self.note_refusal(error);
        }
        if let Some(time) = error.retry_after {
            self.context.ledger.lock().note_retry(error.code, time);
        }
    }

    fn note_refusal(&self, error: &ToolError) {
        self.context.count_refusal(Some(self.number), error, self.rule.lock().as_deref());
    }
}

impl Drop for HeldCall {
    fn drop(&mut self) {
        if let Some(id) = self.terms.as_ref().and_then(|terms| terms.id) {
            self.context.endable_calls.remove(id);
        }
        self.context.ledger.lock().release(self.argument_bytes);
    }
}

impl ExecutionContext {
    /// Counts a call, and counts it as unfinished until the returned value is dropped.
    pub(in crate::run) fn hold_call(self: &Arc<Self>, argument_bytes: usize) -> Result<HeldCall, ToolError> {
        let counted = self.count_at_callers();
        let held =
            counted.and_then(|()| self.hold(argument_bytes, |ledger| ledger.count_call(&self.limits())));
        held.inspect_err(|error| self.count_refusal(None, error, None))
    }

    /// As [`hold_call`](Self::hold_call), for an operation that does not count as a call.
    pub(crate) fn hold_uncounted(self: &Arc<Self>, argument_bytes: usize) -> Result<HeldCall, ToolError> {
        self.hold(argument_bytes, |_ledger| Ok(0))
    }

    fn hold(
        self: &Arc<Self>,
        argument_bytes: usize,
        count: impl FnOnce(&mut Ledger) -> Result<u64, ToolError>,
    ) -> Result<HeldCall, ToolError> {
        if let Purpose::Check { .. } = self.purpose() {
            // Nothing of the script runs, unless a back end does not obey.
            let message = "the script is only checked, and makes no calls";
            return Err(ToolError::new(ToolErrorCode::ToolDenied, message));
        }
        let mut ledger = self.ledger.lock();
        // A script that is being stopped may still run for a moment; its calls are refused.
        if ledger.is_over() || self.cancel.is_cancelled() {
            return Err(over());
        }
        let number = count(&mut ledger)?;
        ledger.hold(argument_bytes, &self.limits())?;
        Ok(HeldCall {
            context: Arc::clone(self),
            number,
            argument_bytes,
            made: Instant::now(),
            is_sent: AtomicBool::new(false),
            rule: Mutex::default(),
            answer: None,
            terms: None,
        })
    }

    /// Counts a call that failed before it was sent, unless that is because the run is over. `noted` is the rule that
    /// may have refused it, if it cannot be derived from the tool's name.
    fn count_refusal(&self, call: Option<u64>, error: &ToolError, noted: Option<&str>) {
        if error.code == ToolErrorCode::Cancelled {
            return;
        }
        self.ledger.lock().count_refused();
        if self.observation().is_on() {
            let (server, tool) = (error.server.as_deref(), error.tool.as_deref());
            let is_by_rule = matches!(error.code, ToolErrorCode::ToolDenied | ToolErrorCode::NetDenied);
            let noted = noted.filter(|_| is_by_rule).map(str::to_owned);
            let names = server.zip(tool).filter(|_| error.code == ToolErrorCode::ToolDenied);
            let named = || names.and_then(|(server, tool)| self.in_force().refusing_rule(server, tool));
            let rule = noted.or_else(named);
            let rule = rule.as_deref();
            self.observation()
                .emit(|| RunEvent::Refused(Refused { call, server, tool, code: error.code, rule }));
        }
    }
}
