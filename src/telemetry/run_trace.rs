//! The trace of one run, for a page that a person reads: when it made calls, waited and printed.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::run::observer::{Answered, ObservedRun, Refused, RunEvent, RunObserver, Sending};
use crate::run::result::{ExecuteResult, LogLevel, Outcome, ScriptError, ToolCallRecord, Usage};
use crate::run::script::Language;
use crate::text::{panic_message, preview_bytes};

/// Maximum number of traced output entries.
const MAX_OUTPUT: usize = 10_000;

/// Maximum bytes of traced output.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// Maximum bytes of the message of a failed call, and of a content block that is shown.
const MAX_TEXT: usize = 2_000;

/// The server name for questions to a language model.
const MODELS: &str = "llm";

/// Maximum bytes of a name. A script chooses the names of refused calls.
const MAX_NAME: usize = 256;

/// Maximum bytes of the script's value.
const MAX_VALUE: usize = 64 * 1024;

/// The trace of a run. All times are durations since the run was requested.
///
/// It contains the source, the output and the value of the script, and messages of failed calls, all of which may
/// contain secrets. It contains neither arguments nor results of calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunTrace {
    /// The run's id, 16 letters.
    pub id: String,
    /// The script's name.
    pub script: String,
    /// Its language.
    pub language: Language,
    /// Its source.
    pub source: String,
    /// When the run was requested.
    pub requested: SystemTime,
    /// Time until its end.
    pub duration: Duration,
    /// Its calls and its questions to language models, in the order in which they were made: at most
    /// [`ToolCallRecord::KEPT`].
    pub calls: Vec<TracedCall>,
    /// Number of further calls.
    pub calls_dropped: u64,
    /// What it printed and emitted: at most 10,000 entries and 1 MiB.
    pub output: Vec<TracedOutput>,
    /// Number of further entries.
    pub output_dropped: u64,
    /// The value as JSON text, at most 64 KiB of it; `None` if the run failed.
    pub value: Option<String>,
    /// Why the run failed.
    pub error: Option<ScriptError>,
    /// The resources that it used.
    pub usage: Usage,
}

/// A call in a [`RunTrace`], or a question to a language model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedCall {
    /// Number of the call in its run, from 1. Questions to models are numbered separately.
    pub number: u64,
    /// The server, as far as it was resolved; `llm` for a question to a model.
    pub server: String,
    /// The tool, the method of a request for resources or prompts, or the model (the provider's default if none was
    /// named).
    pub tool: String,
    /// When the script made the call.
    pub requested: Duration,
    /// When it was sent; `None` if it was not.
    pub sent: Option<Duration>,
    /// When it ended.
    pub ended: Duration,
    /// How long it waited for an approval.
    pub approval: Duration,
    /// How it ended: `ok`, `in flight`, `simulated`, or a code.
    pub status: &'static str,
    /// Whether it failed.
    pub is_error: bool,
    /// The message of its error, at most 2,000 bytes.
    pub message: Option<String>,
    /// Bytes of the arguments as JSON.
    pub argument_bytes: usize,
    /// Bytes of the result as JSON.
    pub result_bytes: usize,
}

/// Output in a [`RunTrace`]. Its time is the duration since the run was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedOutput {
    /// When it was printed.
    pub at: Duration,
    /// Its level; `None` for a content block.
    pub level: Option<LogLevel>,
    /// The text; of a content block at most 2,000 bytes of its JSON.
    pub text: String,
}

/// Receives the trace of each run that has ended.
pub(crate) type TraceListener = Arc<dyn Fn(RunTrace) + Send + Sync>;

/// Records traces.
pub(crate) struct TraceRecorder {
    listener: TraceListener,
    /// The traces of runs that have not ended. Admission bounds their number, and this module each trace.
    open: Mutex<HashMap<usize, OpenTrace>>,
}

struct OpenTrace {
    trace: RunTrace,
    output_bytes: usize,
    /// The positions of the calls that have not ended; `None` for a call that was only counted.
    positions: HashMap<CallKey, Option<usize>>,
}

/// A call of a run, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CallKey {
    Tool(u64),
    Model(u64),
}

impl CallKey {
    fn number(self) -> u64 {
        match self {
            Self::Tool(number) | Self::Model(number) => number,
        }
    }
}

impl fmt::Debug for TraceRecorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TraceRecorder")
    }
}

impl TraceRecorder {
    pub(crate) fn new(listener: TraceListener) -> Self {
        Self { listener, open: Mutex::default() }
    }

    /// Changes the trace of a run that has not ended.
    fn with(&self, run: &Arc<ObservedRun>, change: impl FnOnce(&mut OpenTrace, Duration)) {
        let now = run.started.elapsed();
        if let Some(open) = self.open.lock().get_mut(&key(run)) {
            change(open, now);
        }
    }

    fn end(&self, run: &Arc<ObservedRun>, result: Option<&ExecuteResult>) {
        let Some(mut open) = self.open.lock().remove(&key(run)) else { return };
        let trace = &mut open.trace;
        trace.duration = run.started.elapsed();
        for &position in open.positions.values().flatten() {
            if let Some(call) = trace.calls.get_mut(position) {
                call.ended = trace.duration;
                call.status = if call.sent.is_some() { "in flight" } else { "awaiting approval" };
            }
        }
        if let Some(result) = result {
            trace.usage = result.usage;
            match &result.outcome {
                Outcome::Returned(value) => {
                    trace.value = Some(preview_bytes(value.text(), MAX_VALUE).into_owned());
                }
                Outcome::Failed(error) => trace.error = Some(error.clone()),
            }
        }
        // The run has its result, and this may be a destructor.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.listener)(open.trace))) {
            tracing::error!(panic = panic_message(&*panic), "the listener of traces has panicked");
        }
    }
}

impl OpenTrace {
    fn new(run: &ObservedRun, language: Language, source: &str) -> Self {
        let trace = RunTrace {
            id: run.id.clone(),
            script: run.script.clone(),
            language,
            source: source.to_owned(),
            requested: SystemTime::now(),
            duration: Duration::ZERO,
            calls: Vec::new(),
            calls_dropped: 0,
            output: Vec::new(),
            output_dropped: 0,
            value: None,
            error: None,
            usage: Usage::default(),
        };
        Self { trace, output_bytes: 0, positions: HashMap::new() }
    }

    /// The call with this number, which is added if it is missing. `None` if there are too many: the call is then
    /// counted, once for all of its events.
    fn call(&mut self, key: CallKey, server: &str, tool: &str, now: Duration) -> Option<&mut TracedCall> {
        let calls = &mut self.trace.calls;
        if let Some(&position) = self.positions.get(&key) {
            return calls.get_mut(position?);
        }
        if calls.len() >= ToolCallRecord::KEPT {
            self.trace.calls_dropped += 1;
            self.positions.insert(key, None);
            return None;
        }
        self.positions.insert(key, Some(calls.len()));
        calls.push(TracedCall {
            number: key.number(),
            server: preview_bytes(server, MAX_NAME).into_owned(),
            tool: preview_bytes(tool, MAX_NAME).into_owned(),
            requested: now,
            sent: None,
            ended: now,
            approval: Duration::ZERO,
            status: "in flight",
            is_error: false,
            message: None,
            argument_bytes: 0,
            result_bytes: 0,
        });
        calls.last_mut()
    }

    /// The call with this number, which ends now. `None` if there is none.
    fn end(&mut self, key: CallKey, now: Duration) -> Option<&mut TracedCall> {
        let call = self.trace.calls.get_mut(self.positions.remove(&key)??)?;
        call.ended = now;
        Some(call)
    }

    /// A call is sent now.
    fn send(&mut self, sending: &Sending<'_>, now: Duration) {
        let key = CallKey::Tool(sending.call);
        let Some(call) = self.call(key, sending.server, sending.tool, now) else { return };
        call.requested = call.requested.min(now.saturating_sub(sending.waited));
        call.sent = Some(now);
        call.argument_bytes = sending.argument_bytes;
    }

    /// A call that was sent ends now.
    fn answer(&mut self, answered: &Answered<'_>, now: Duration) {
        let Some(call) = self.end(CallKey::Tool(answered.call), now) else { return };
        match answered.result {
            Ok(result) => (call.status, call.result_bytes) = ("ok", result.text().len()),
            Err(code) => {
                (call.status, call.is_error) = (code.as_str(), true);
                call.message = answered.message.map(|message| preview_bytes(message, MAX_TEXT).into_owned());
            }
        }
    }

    /// A call is refused now. One that was sent and then refused by the limits of its server ends with its answer.
    fn refuse(&mut self, refused: &Refused<'_>, now: Duration) {
        let key = CallKey::Tool(refused.call.unwrap_or_default());
        let position = self.positions.get(&key).copied().flatten();
        if position.and_then(|at| self.trace.calls.get(at)).is_some_and(|call| call.sent.is_some()) {
            return;
        }
        let (server, tool) = (refused.server.unwrap_or_default(), refused.tool.unwrap_or_default());
        if let Some(call) = self.call(key, server, tool, now) {
            (call.ended, call.status, call.is_error) = (now, refused.code.as_str(), true);
        }
        self.positions.remove(&key);
    }

    fn print(&mut self, now: Duration, level: Option<LogLevel>, text: &str) {
        let text = if level.is_none() { preview_bytes(text, MAX_TEXT).into_owned() } else { text.to_owned() };
        let bytes = self.output_bytes + text.len();
        if self.trace.output.len() >= MAX_OUTPUT || bytes > MAX_OUTPUT_BYTES {
            self.trace.output_dropped += 1;
            return;
        }
        self.output_bytes = bytes;
        self.trace.output.push(TracedOutput { at: now, level, text });
    }
}

impl RunObserver for TraceRecorder {
    fn observe(&self, run: &Arc<ObservedRun>, event: &RunEvent<'_>) {
        match event {
            RunEvent::Started { source, .. } => {
                // A call without a script has no trace to draw.
                if let Some(language) = run.language {
                    self.open.lock().insert(key(run), OpenTrace::new(run, language, source));
                }
            }
            RunEvent::Ended { result, .. } => self.end(run, *result),
            RunEvent::Printed { level, text } => self.with(run, |open, now| open.print(now, *level, text)),
            RunEvent::Sending(sending) => self.with(run, |open, now| open.send(sending, now)),
            RunEvent::Answered(answered) => self.with(run, |open, now| open.answer(answered, now)),
            RunEvent::Simulated { call, server, tool, .. } => self.with(run, |open, now| {
                let key = CallKey::Tool(*call);
                if let Some(call) = open.call(key, server, tool, now) {
                    (call.ended, call.status) = (now, "simulated");
                }
                open.positions.remove(&key);
            }),
            RunEvent::Refused(refused) => self.with(run, |open, now| open.refuse(refused, now)),
            RunEvent::ApprovalAsked { call, server, tool, .. } => self.with(run, |open, now| {
                open.call(CallKey::Tool(*call), server, tool, now);
            }),
            RunEvent::ApprovalAnswered(answered) => self.with(run, |open, now| {
                let key = CallKey::Tool(answered.call);
                if let Some(call) = open.call(key, answered.server, answered.tool, now) {
                    call.approval = answered.duration;
                }
            }),
            RunEvent::ModelSending(sending) => self.with(run, |open, now| {
                let model = sending.model.unwrap_or(sending.provider);
                if let Some(call) = open.call(CallKey::Model(sending.request), MODELS, model, now) {
                    (call.sent, call.argument_bytes) = (Some(now), sending.messages.len());
                }
            }),
            RunEvent::ModelAnswered(answered) => self.with(run, |open, now| {
                let Some(call) = open.end(CallKey::Model(answered.request), now) else { return };
                match answered.result {
                    Ok(text) => (call.status, call.result_bytes) = ("ok", text.map_or(0, str::len)),
                    Err(code) => (call.status, call.is_error) = (code, true),
                }
            }),
            RunEvent::Discovered(_) => {}
        }
    }
}

/// The address of a run, which is unique because observers keep the run until it has ended.
fn key(run: &Arc<ObservedRun>) -> usize {
    Arc::as_ptr(run).addr()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::run::observer::{ApprovalAnswered, ApproverKind, Arguments};
    use crate::tools::AskReason;

    /// Otherwise the page said "and 3 more calls" for one call with an approval.
    #[test]
    fn a_call_beyond_the_bound_is_counted_once_for_all_its_events() {
        let run = Arc::new(ObservedRun {
            id: "r".to_owned(),
            script: "script.ts".to_owned(),
            language: Some(Language::TypeScript),
            client: None,
            client_name: None,
            trace: None,
            is_dry_run: false,
            started: Instant::now(),
        });
        let recorder = TraceRecorder::new(Arc::new(|_trace| {}));
        recorder.open.lock().insert(key(&run), OpenTrace::new(&run, Language::TypeScript, ""));
        let no_arguments = serde_json::Map::new();
        let ask = |call: u64| {
            let (server, tool) = ("files", "delete");
            let (arguments, reason) = (Arguments::new(&no_arguments), &AskReason::ScriptChange);
            recorder.observe(&run, &RunEvent::ApprovalAsked { call, server, tool, arguments, reason });
            let (approver, refusal, duration) = (ApproverKind::Client, None, Duration::ZERO);
            let answered = ApprovalAnswered { call, server, tool, approver, refusal, duration };
            recorder.observe(&run, &RunEvent::ApprovalAnswered(answered));
        };
        let bound = ToolCallRecord::KEPT as u64;
        (1..=bound + 2).for_each(ask);
        let open = recorder.open.lock();
        let trace = &open[&key(&run)].trace;
        assert_eq!((trace.calls.len() as u64, trace.calls_dropped), (bound, 2));
    }
}
