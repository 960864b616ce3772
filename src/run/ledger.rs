//! What a run has done so far: its calls, its output and its planned calls, each within bounds.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::json::Json;
use crate::run::limits::Limits;
use crate::run::result::{
    ExecuteResult, LogLevel, Outcome, Output, PlannedCall, ToolCallRecord, ToolCallStatus, Usage,
};
use crate::run::returned::{Returned, ReturnedObject};
use crate::text::start_bytes;
use crate::tools::shape::Shape;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum number of calls that wait for a free slot at once. Reached only with a large call limit
/// or none; it bounds the cost of a flood of calls that are not awaited.
const MAX_WAITING_CALLS: u32 = 10_000;

/// Maximum bytes of arguments that all unfinished calls may hold, as a multiple of one call's
/// limit.
pub(super) const MAX_WAITING_ARGUMENTS: usize = 4;

/// Beyond this number of output entries, consecutive lines of one level are merged into one entry:
/// each entry costs about 60 bytes in addition to its text, and all have to be dropped before the
/// next run.
const MAX_SEPARATE_ENTRIES: usize = 10_000;

/// Bytes that each entry beyond them counts against [`Limits::output_bytes`] in addition to its
/// text.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// Bytes that a kept content block costs in addition to its text: the entry, its allocations, and
/// their share of a growing vector.
const BLOCK_OVERHEAD_BYTES: usize = 256;

/// The record of one run while it runs.
#[derive(Default)]
pub(crate) struct Ledger {
    is_over: bool,
    /// Calls that the script requested, including refused ones.
    calls: u64,
    /// Calls that were sent to their server.
    sent: u64,
    /// Calls that failed before they were sent.
    refused: u64,
    unfinished_calls: u32,
    unfinished_argument_bytes: usize,
    /// Calls that were sent and not answered, or that a person is asked about, also those without a record.
    waiting_calls: u32,
    records: Vec<OpenRecord>,
    returned: Returned,
    result_bytes: u64,
    output: Vec<Output>,
    output_bytes: usize,
    output_bytes_dropped: u64,
    emitted_bytes: usize,
    /// The code and delay of the last failure that said when to try again.
    retry: Option<(ToolErrorCode, Duration)>,
    /// The progress that the script has reported.
    progress: f64,
    planned: Vec<PlannedCall>,
    planned_bytes: usize,
    planned_dropped: u64,
    /// CPU time of the scripts that this one has called.
    nested_cpu_time: Duration,
}

struct OpenRecord {
    record: ToolCallRecord,
    started: Instant,
}

/// What was stored of a printed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logged {
    /// This many bytes of it are stored.
    Kept(usize),
    /// Nothing of it is stored, not even an empty line: the output limit is reached.
    Dropped,
    /// The run has its result already, so nothing is stored.
    Over,
}

/// A call whose name was resolved and that the policy permits.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) server: &'a str,
    /// The tool, or the method of a request for resources or prompts.
    pub(crate) tool: &'a str,
    /// Bytes of the arguments as the script wrote them.
    pub(crate) argument_bytes: usize,
}

/// A summary of the calls so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallFacts {
    /// Whether calls are unfinished. If the script has stopped with an error, these are the calls that it does not
    /// await.
    pub(crate) has_unfinished: bool,
    /// Whether any call has returned a value.
    pub(crate) has_returned: bool,
    /// The code of the last call that failed after it was sent.
    pub(crate) last_failure: Option<ToolErrorCode>,
    /// Whether any call has failed, also before it was sent.
    pub(crate) has_failed: bool,
}

/// Identifies the record of a call; `None` if the run has [`ToolCallRecord::KEPT`] records already.
#[derive(Clone, Copy)]
pub(crate) struct RecordId(Option<usize>);

impl Ledger {
    /// Whether the run has its result. Calls that its thread still makes are refused.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether anything was printed or emitted.
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Counts a tool call. Returns its number, from 1.
    ///
    /// # Errors
    ///
    /// `MaxToolCallsExceeded` beyond [`Limits::tool_calls`].
    pub(crate) fn count_call(&mut self, limits: &Limits) -> Result<u64, ToolError> {
        self.calls += 1;
        let max = limits.tool_calls;
        if max > 0 && self.calls > u64::from(max) {
            let message = match max {
                1 => "the script may make 1 tool call".to_owned(),
                _ => format!("the script may make {max} tool calls"),
            };
            return Err(ToolError::new(ToolErrorCode::MaxToolCallsExceeded, message));
        }
        Ok(self.calls)
    }

    /// Counts a call as unfinished until [`release`](Self::release).
    ///
    /// # Errors
    ///
    /// `InvalidArguments` if its arguments are too large, `QueueFull` if too many calls are
    /// unfinished.
    pub(crate) fn hold(&mut self, argument_bytes: usize, limits: &Limits) -> Result<(), ToolError> {
        let max = limits.argument_bytes;
        if argument_bytes > max {
            let message =
                format!("the arguments are {argument_bytes} bytes of JSON, at most {max} can be sent");
            return Err(ToolError::new(ToolErrorCode::InvalidArguments, message));
        }
        if self.unfinished_calls >= MAX_WAITING_CALLS + limits.calls_in_flight
            || self.unfinished_argument_bytes + argument_bytes > MAX_WAITING_ARGUMENTS * max
        {
            let message = format!("{} calls are waiting; await some of them first", self.unfinished_calls);
            return Err(ToolError::new(ToolErrorCode::QueueFull, message));
        }
        self.unfinished_calls += 1;
        self.unfinished_argument_bytes += argument_bytes;
        Ok(())
    }

    pub(crate) fn release(&mut self, argument_bytes: usize) {
        self.unfinished_calls -= 1;
        self.unfinished_argument_bytes -= argument_bytes;
    }

    /// Starts the record of a call. With the status `InFlight` it counts as sent.
    pub(crate) fn begin(&mut self, call: Call<'_>, status: ToolCallStatus) -> RecordId {
        self.sent += u64::from(status == ToolCallStatus::InFlight);
        if self.records.len() >= ToolCallRecord::KEPT {
            return RecordId(None);
        }
        self.records.push(OpenRecord {
            record: ToolCallRecord {
                server: call.server.to_owned(),
                tool: call.tool.to_owned(),
                status,
                approved: false,
                duration: Duration::ZERO,
                argument_bytes: call.argument_bytes,
                result_bytes: 0,
            },
            started: Instant::now(),
        });
        RecordId(Some(self.records.len() - 1))
    }

    /// Records that an approved call is sent now.
    pub(crate) fn send_approved(&mut self, id: RecordId) {
        self.sent += 1;
        let Some(open) = self.open(id) else { return };
        open.record.status = ToolCallStatus::InFlight;
        open.record.approved = true;
        open.started = Instant::now();
    }

    /// Ends the record of a call. Returns it, if there is one that has not ended.
    pub(crate) fn end(
        &mut self,
        id: RecordId,
        status: ToolCallStatus,
        result_bytes: usize,
    ) -> Option<&ToolCallRecord> {
        let OpenRecord { record, started } = self.open(id)?;
        if matches!(
            record.status,
            ToolCallStatus::Ok | ToolCallStatus::Failed(_) | ToolCallStatus::NotApproved(_)
        ) {
            return None;
        }
        record.duration = started.elapsed();
        record.result_bytes = result_bytes;
        record.status = status;
        Some(record)
    }

    fn open(&mut self, id: RecordId) -> Option<&mut OpenRecord> {
        self.records.get_mut(id.0?)
    }

    /// CPU time of the scripts that this one has called, and that have ended.
    pub(crate) fn nested_cpu_time(&self) -> Duration {
        self.nested_cpu_time
    }

    /// Adds the output and the usage of a script that this one has called, and returns its outcome. Its calls were
    /// counted as they were made.
    pub(crate) fn absorb(&mut self, nested: ExecuteResult) -> Outcome {
        let ExecuteResult { outcome, tool_calls, planned_calls, usage, .. } = nested;
        self.sent += usage.tool_calls;
        self.refused += usage.tool_calls_refused;
        self.result_bytes += usage.tool_result_bytes;
        self.nested_cpu_time += usage.cpu_time;
        self.planned_dropped += usage.planned_calls_dropped;
        let started = Instant::now();
        let room = ToolCallRecord::KEPT.saturating_sub(self.records.len());
        let ended = tool_calls.into_iter().map(|mut record| {
            if matches!(record.status, ToolCallStatus::InFlight | ToolCallStatus::AwaitingApproval) {
                // The nested run is over, and nothing waits for this call.
                record.status = ToolCallStatus::Failed(ToolErrorCode::Cancelled);
            }
            OpenRecord { record, started }
        });
        self.records.extend(ended.take(room));
        planned_calls.into_iter().flatten().for_each(|planned| self.plan(planned));
        outcome
    }

    /// Takes back the count of a call as sent: the limits of its server refused it.
    pub(crate) fn uncount_sent(&mut self) {
        self.sent = self.sent.saturating_sub(1);
    }

    /// The progress after a report of `done`. It never decreases.
    pub(crate) fn advance(&mut self, done: f64) -> f64 {
        self.progress = self.progress.max(done);
        self.progress
    }

    /// Records when a call that failed with this code may be tried again.
    pub(crate) fn note_retry(&mut self, code: ToolErrorCode, time: Duration) {
        self.retry = Some((code, time));
    }

    /// Counts a call that failed before it was sent.
    pub(crate) fn count_refused(&mut self) {
        self.refused += 1;
    }

    /// Counts the bytes of a result that the script received.
    pub(crate) fn count_result(&mut self, bytes: usize) {
        self.result_bytes += bytes as u64;
    }

    /// Whether the shape of another result of the tool is wanted.
    pub(crate) fn wants_shape(&self, server: &str, tool: &str) -> bool {
        !self.is_over && self.returned.wants(server, tool)
    }

    /// Adds the shape of a value that the script received.
    pub(crate) fn add_shape(&mut self, server: &str, tool: &str, shape: Shape) {
        self.returned.add(server, tool, shape);
    }

    /// Whether a value that the script received has a field of this name, at any level.
    pub(crate) fn has_returned_field(&self, name: &str) -> bool {
        self.returned.has_field(name)
    }

    /// The name of the field that all values have which the script received, objects with nothing else.
    pub(crate) fn only_returned_field(&self) -> Option<&str> {
        self.returned.only_field()
    }

    /// The only value that the script received, if it is an object, and small enough that all its fields are known.
    pub(crate) fn only_returned_object(&self) -> Option<ReturnedObject> {
        let is_small = self.result_bytes <= Shape::MAX_WHOLE_BYTES;
        self.returned.only_object().filter(|_| is_small)
    }

    /// The names of all fields of values that the script received, at any level. `None` if there are `max` or more, or
    /// if some are not known.
    pub(crate) fn returned_fields(&self, max: usize) -> Option<BTreeSet<String>> {
        self.returned.fields(max)
    }

    /// Counts a call that is sent, or that a person is asked about, until [`note_waited`](Self::note_waited).
    pub(crate) fn note_waiting(&mut self) {
        self.waiting_calls += 1;
    }

    /// Counts a call that was answered, refused or dropped.
    pub(crate) fn note_waited(&mut self) {
        self.waiting_calls = self.waiting_calls.saturating_sub(1);
    }

    /// Whether a tool has been called that has not answered, or that a person is asked about. In constant time: each of
    /// thousands of questions that wait for a budget asks this twice a second.
    pub(crate) fn waits_for_tool(&self) -> bool {
        self.waiting_calls > 0
    }

    /// What is known of the calls so far.
    pub(crate) fn facts(&self) -> CallFacts {
        let failure = |open: &OpenRecord| match open.record.status {
            ToolCallStatus::Failed(code) => Some(code),
            _ => None,
        };
        let last_failure = self.records.iter().rev().find_map(failure);
        CallFacts {
            has_unfinished: self.unfinished_calls > 0,
            has_returned: !self.returned.is_empty(),
            has_failed: last_failure.is_some() || self.refused > 0,
            last_failure,
        }
    }

    /// Records a call that a dry run does not make, or only counts it if there is no space.
    pub(crate) fn plan(&mut self, planned: PlannedCall) {
        let bytes = planned.arguments.text().len();
        let has_space =
            self.planned.len() < PlannedCall::KEPT && self.planned_bytes + bytes <= PlannedCall::KEPT_BYTES;
        if has_space {
            self.planned_bytes += bytes;
            self.planned.push(planned);
        } else {
            self.planned_dropped += 1;
        }
    }

    /// Stores as much of a printed line as the output limit allows.
    pub(crate) fn log(&mut self, level: LogLevel, text: &str, limits: &Limits) -> Logged {
        if self.is_over {
            return Logged::Over;
        }
        let is_many = self.output.len() >= MAX_SEPARATE_ENTRIES;
        let joins =
            is_many && matches!(self.output.last(), Some(Output::Log { level: last, .. }) if *last == level);
        let overhead = if is_many && !joins { ENTRY_OVERHEAD_BYTES } else { 0 };
        // More may be stored than the limit in force: an operator can lower it during the run.
        let room = limits.output_bytes.saturating_sub(self.output_bytes).saturating_sub(overhead);
        // The line terminator counts too.
        let cost = text.len() + 1;
        let kept = if cost > room {
            let kept = start_bytes(text, room).len();
            self.output_bytes_dropped += (text.len() - kept) as u64;
            self.output_bytes = self.output_bytes.max(limits.output_bytes);
            if kept == 0 {
                return Logged::Dropped;
            }
            &text[..kept]
        } else {
            self.output_bytes += cost + overhead;
            text
        };
        match self.output.last_mut() {
            Some(Output::Log { text: last, .. }) if joins => {
                last.push('\n');
                last.push_str(kept);
            }
            _ => self.output.push(Output::Log { level, text: kept.to_owned() }),
        }
        Logged::Kept(kept.len())
    }

    /// Stores a content block.
    ///
    /// # Errors
    ///
    /// `ResultTooLarge` if all blocks together are larger than one result may be.
    pub(crate) fn emit(&mut self, block: Json, limits: &Limits) -> Result<(), ToolError> {
        let max = limits.result_bytes;
        // A small block costs memory too; without this a loop could emit millions.
        let bytes = block.text().len() + BLOCK_OVERHEAD_BYTES;
        if self.emitted_bytes + bytes > max {
            let message = format!("a script may emit {max} bytes in all");
            return Err(ToolError::new(ToolErrorCode::ResultTooLarge, message));
        }
        self.emitted_bytes += bytes;
        self.output.push(Output::Emit(block));
        Ok(())
    }

    /// Ends the record of the run and adds the counts to `usage`. If the uncaught error of a call ended the run, the
    /// run's error gets that call's suggested delay before a retry. Must be called once.
    pub(crate) fn finish(&mut self, mut outcome: Outcome, usage: Usage, is_dry_run: bool) -> ExecuteResult {
        self.is_over = true;
        if let Outcome::Failed(error) = &mut outcome
            && let Some((code, time)) = self.retry
            && error.tool_code == Some(code)
        {
            error.retry_after = error.retry_after.or(Some(time));
        }
        let tool_calls = std::mem::take(&mut self.records)
            .into_iter()
            .map(|OpenRecord { mut record, started }| {
                if matches!(record.status, ToolCallStatus::InFlight | ToolCallStatus::AwaitingApproval) {
                    record.duration = started.elapsed();
                }
                record
            })
            .collect();
        let failed = matches!(outcome, Outcome::Failed(_));
        ExecuteResult {
            outcome,
            logs: std::mem::take(&mut self.output),
            tool_calls,
            returned: if failed { self.returned.shapes() } else { Vec::new() },
            sampling: None,
            planned_calls: is_dry_run.then(|| std::mem::take(&mut self.planned)),
            usage: Usage {
                tool_calls: self.sent,
                tool_calls_refused: self.refused,
                tool_result_bytes: self.result_bytes,
                output_bytes_dropped: self.output_bytes_dropped,
                planned_calls_dropped: self.planned_dropped,
                cpu_time: usage.cpu_time + self.nested_cpu_time,
                ..usage
            },
        }
    }
}

#[cfg(test)]
mod tests;
