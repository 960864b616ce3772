//! The host functions of Python: they implement an interpreter's imports for its run.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use parking_lot::Mutex;

use super::bindings::{Completion, GuestImports, Operation, OutputStream};
use super::wasi::{GuestState, Sink, StandardStream};
use crate::engine::host::{HostCalls, MAX_CALLS, MAX_QUERY_BYTES, RunHost, encode_answer};
use crate::run::call_terms::CallTerms;
use crate::run::calls::resolve::{MAX_NAME, ToolName};
use crate::run::result::LogLevel;
use crate::run::tape::Wait;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum size in bytes of the answers that one `wait` returns to the guest. While this much is
/// pending, no call is polled. One answer alone may be larger; the guest's memory would not hold
/// many such answers.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Bytes that are counted for each answer in addition to its text.
const ANSWER_OVERHEAD: usize = 64;

/// The state that the imports use. An idle interpreter has no run.
pub(crate) struct Host {
    run: Option<Run>,
    raw: Arc<Mutex<RawOutput>>,
}

/// Output that a script writes directly to the file descriptors 1 and 2, bypassing `sys.stdout`.
#[derive(Default)]
struct RawOutput {
    host: Option<Arc<dyn RunHost>>,
}

impl RawOutput {
    /// Logs each piece as it comes, because such output is not split into lines.
    fn write(&self, stream: StandardStream, bytes: &[u8]) {
        let Some(host) = &self.host else { return };
        let level = match stream {
            StandardStream::Stdout => LogLevel::Info,
            StandardStream::Stderr => LogLevel::Warn,
        };
        let text = String::from_utf8_lossy(bytes);
        host.log(level, text.strip_suffix('\n').unwrap_or(&text).to_owned());
    }
}

struct Run {
    host: HostCalls,
    /// The fuel that the run has started with, if it is limited.
    fuel: Option<u64>,
    started: u64,
    /// Calls in flight. Polled when they are started and while the guest waits.
    calls: FuturesUnordered<Call>,
    /// Bytes of names and queries of the calls in flight.
    held_bytes: usize,
    /// Completed calls whose answers the guest has not received yet.
    ended: VecDeque<Completion>,
    /// Bytes of their answers.
    ended_bytes: usize,
    /// The codes of all errors that were ever returned to the guest.
    codes: BTreeSet<&'static str>,
}

type Call = BoxFuture<'static, FinishedCall>;

struct FinishedCall {
    call: u64,
    answer: String,
    code: Option<ToolErrorCode>,
    /// The call's share of [`MAX_QUERY_BYTES`].
    held_bytes: usize,
}

impl FinishedCall {
    fn new(call: u64, held_bytes: usize, answer: Result<String, ToolError>) -> Self {
        let code = answer.as_ref().err().map(|error| error.code);
        Self { call, answer: encode_answer(answer), code, held_bytes }
    }
}

impl Host {
    /// Creates a host without a run, and the sink for its guest's output.
    pub(crate) fn new() -> (Self, Sink) {
        let raw = Arc::new(Mutex::new(RawOutput::default()));
        let written = Arc::clone(&raw);
        let sink: Sink = Arc::new(move |stream, bytes| written.lock().write(stream, bytes));
        (Self { run: None, raw }, sink)
    }

    /// Assigns a run to the interpreter.
    pub(crate) fn start(&mut self, host: &Arc<dyn RunHost>, fuel: Option<u64>) {
        self.raw.lock().host = Some(Arc::clone(host));
        self.run = Some(Run {
            host: HostCalls::new(Arc::clone(host)),
            fuel,
            started: 0,
            calls: FuturesUnordered::new(),
            held_bytes: 0,
            ended: VecDeque::new(),
            ended_bytes: 0,
            codes: BTreeSet::new(),
        });
    }

    /// The fuel that the run has started with, if it is limited.
    pub(crate) fn fuel(&self) -> Option<u64> {
        self.run.as_ref()?.fuel
    }

    /// Whether the run has used more fuel than the limit in force, if `left` is left of what it started with.
    pub(crate) fn exceeds_fuel(&self, left: u64) -> bool {
        let Some((run, fuel)) = self.run.as_ref().zip(self.fuel()) else { return false };
        run.host.exceeds_fuel(fuel.saturating_sub(left))
    }

    /// Whether one of the run's calls has failed with this code. A guest's report of a tool error
    /// is trusted only if this is true.
    pub(crate) fn has_given(&self, code: ToolErrorCode) -> bool {
        self.run.as_ref().is_some_and(|run| run.codes.contains(code.as_str()))
    }

    fn run(&mut self) -> wasmtime::Result<&mut Run> {
        self.run.as_mut().ok_or_else(|| wasmtime::format_err!("there is no run"))
    }
}

impl Run {
    fn complete(&mut self, finished: FinishedCall) -> Completion {
        if let Some(code) = finished.code {
            self.codes.insert(code.as_str());
        }
        self.held_bytes -= finished.held_bytes;
        Completion { call: finished.call, answer: finished.answer }
    }

    /// Completes a call whose answer the guest receives immediately.
    fn answer(&mut self, finished: FinishedCall) -> (u64, Option<String>) {
        let Completion { call, answer } = self.complete(finished);
        (call, Some(answer))
    }

    /// Completes a call whose answer is kept until the guest waits.
    fn end(&mut self, finished: FinishedCall) {
        let completion = self.complete(finished);
        self.ended_bytes += completion.answer.len() + ANSWER_OVERHEAD;
        self.ended.push_back(completion);
    }

    fn refuse(&mut self, call: u64, code: ToolErrorCode, message: String) -> (u64, Option<String>) {
        self.answer(FinishedCall::new(call, 0, Err(ToolError::new(code, message))))
    }

    /// Whether the answers that are pending for the guest have reached the bound.
    fn is_full(&self) -> bool {
        self.ended_bytes >= MAX_ANSWER_BYTES
    }

    /// Collects completed calls until the bound is reached.
    fn collect(&mut self, task: &mut Context<'_>) {
        while !self.is_full()
            && let Poll::Ready(Some(ended)) = self.calls.poll_next_unpin(task)
        {
            self.end(ended);
        }
    }

    /// Removes and returns completed calls, as many as fit.
    fn take(&mut self) -> Vec<Completion> {
        let mut bytes = 0;
        let mut taken = Vec::new();
        while let Some(next) = self.ended.front() {
            bytes += next.answer.len();
            if bytes > MAX_ANSWER_BYTES && !taken.is_empty() {
                break;
            }
            taken.extend(self.ended.pop_front());
        }
        let bytes: usize = taken.iter().map(|completion| completion.answer.len() + ANSWER_OVERHEAD).sum();
        self.ended_bytes -= bytes;
        taken
    }

    fn begin(
        &mut self,
        operation: Operation,
        server: String,
        name: String,
        arguments: String,
    ) -> (u64, Option<String>) {
        self.started += 1;
        let call = self.started;
        let longest = server.len().max(name.len());
        if longest > MAX_NAME {
            let message =
                format!("a name has {longest} bytes, at most {MAX_NAME} are possible; check how it is made");
            return self.refuse(call, ToolErrorCode::InvalidArguments, message);
        }
        let question = if operation == Operation::Query { arguments.len() } else { 0 };
        let held_bytes = server.len() + name.len() + question;
        // A single query is accepted even if it alone exceeds the bound.
        let too_much = self.held_bytes > 0 && self.held_bytes + held_bytes > MAX_QUERY_BYTES;
        if self.calls.len() >= MAX_CALLS || too_much {
            let message = format!("{} calls are in flight; await some of them first", self.calls.len());
            return self.refuse(call, ToolErrorCode::QueueFull, message);
        }
        self.held_bytes += held_bytes;
        let finished = move |answer| FinishedCall::new(call, held_bytes, answer);
        let mut future: Call = match operation {
            Operation::Tool => self.tool(call, ToolName::Pair { server, tool: name }, arguments, finished),
            Operation::FullName => self.tool(call, ToolName::of_text(&name), arguments, finished),
            Operation::Query => self.host.query(&arguments).map(finished).boxed(),
            Operation::Emit => {
                let answer = self.host.emit(&arguments);
                return self.answer(finished(answer));
            }
        };
        if self.is_full() {
            self.calls.push(future);
            return (call, None);
        }
        // Polled now, so that the call starts while the script computes. `wait` polls it again.
        // Most tools of this process complete at this first poll, and the guest need not call
        // `wait` for them.
        match Pin::new(&mut future).poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(finished) => self.answer(finished),
            Poll::Pending => {
                self.calls.push(future);
                (call, None)
            }
        }
    }

    /// The guest can end the call by the number that it has for it.
    fn tool(
        &self,
        call: u64,
        name: ToolName,
        arguments: String,
        finished: impl FnOnce(Result<String, ToolError>) -> FinishedCall + Send + 'static,
    ) -> Call {
        let terms = CallTerms { id: Some(call), timeout: None };
        self.host.call(name, arguments, terms).map(finished).boxed()
    }
}

impl GuestImports for GuestState<Host> {
    fn start_call(
        &mut self,
        operation: Operation,
        server: String,
        name: String,
        arguments: String,
    ) -> wasmtime::Result<(u64, Option<String>)> {
        Ok(self.run.run()?.begin(operation, server, name, arguments))
    }

    async fn wait(&mut self, timeout_ms: Option<f64>) -> wasmtime::Result<Vec<Completion>> {
        let run = self.run.run()?;
        if !run.ended.is_empty() {
            // Other calls that have completed are returned too, but nothing is awaited for them.
            run.collect(&mut Context::from_waker(std::task::Waker::noop()));
            return Ok(run.take());
        }
        if run.calls.is_empty() && timeout_ms.is_none() {
            return Ok(Vec::new());
        }
        let tape = run.host.tape();
        let opened = tape.as_deref().map_or(Wait::Real, |tape| tape.open_wait(timeout_ms));
        if opened == Wait::Empty {
            return Ok(Vec::new());
        }
        let timeout_ms = timeout_ms.filter(|_| opened == Wait::Real);
        let some_ended = futures::future::poll_fn(|task| {
            run.collect(task);
            if run.ended.is_empty() { Poll::Pending } else { Poll::Ready(()) }
        });
        // A script may pass any timeout; the run's deadline ends the wait in any case.
        let timeout = timeout_ms.map(|milliseconds| {
            Duration::try_from_secs_f64(milliseconds.max(0.0) / 1000.0).unwrap_or(Duration::MAX)
        });
        match timeout {
            Some(Duration::ZERO) => {
                some_ended.now_or_never();
            }
            Some(timeout) => {
                let _in_time = tokio::time::timeout(timeout, some_ended).await;
            }
            None => some_ended.await,
        }
        let ended = run.take();
        if let Some(tape) = tape {
            tape.close_wait(!ended.is_empty());
        }
        Ok(ended)
    }

    fn log(&mut self, to: OutputStream, text: String) -> wasmtime::Result<()> {
        self.run.run()?.host.log(level(to), text);
        Ok(())
    }
}

fn level(stream: OutputStream) -> LogLevel {
    match stream {
        OutputStream::Stdout => LogLevel::Info,
        OutputStream::Stderr => LogLevel::Warn,
    }
}

#[cfg(test)]
mod tests;
