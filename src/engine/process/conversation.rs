//! The conversation with a worker about one run: the script's requests are forwarded to the [`RunHost`], which
//! decides, and its answers to the worker, which the watchdog can kill.

mod answers;
mod bytes;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::frames::{self, RunNumber};
use super::resources::Resources;
use super::spin::Spin;
use super::wire::{self, Done, FromWorker, PROTOCOL, Reply, Start, ToWorker, WireLimits};
use super::workers::{RunCount, Tenant, WorkerProcess, Workers};
use crate::durations::nanoseconds;
use crate::engine::host::{Answer, RunHost};
use crate::engine::stop::{Stop, StopReason};
use crate::files::{FileAnswer, FileError, HostedFiles};
use crate::json::Json;
use crate::run::result::LogLevel;
use crate::run::script::Language;
use crate::text::ids::random_bytes;
use crate::text::preview;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum bytes that are queued for a worker which does not read them. Beyond it none of its
/// messages is read, and no call is polled.
const MAX_UNSENT: usize = 16 << 20;

/// How often is read what a worker has sent that cannot be written to: more than a socket holds.
const MAX_LAST_READS: u32 = 64;

/// Maximum characters of the reason why a worker cannot start.
const MAX_PROBLEM: usize = 1_000;

/// How a run ends.
pub(super) enum RunEnd {
    Done(Done),
    /// The run has to stop, for the reason in its [`Stop`], or because it was cancelled.
    Stopped,
    /// The script has used more fuel than the limit in force.
    OutOfFuel,
    /// The worker has closed its connection.
    Gone,
    /// The worker has broken the protocol. It was killed.
    Broken(String),
    /// There is no worker.
    NoWorker(String),
}

/// A message of a worker that concerns the run as a whole.
pub(super) enum Event {
    Surveyed(String, Duration),
    Ended(RunEnd),
}

/// A request of the script that its host performs.
pub(super) type Call = BoxFuture<'static, (u64, Answered)>;

pub(super) enum Answered {
    Text(Answer),
    Names(Result<Vec<String>, ToolError>),
    File(Result<FileAnswer, FileError>),
}

/// The conversation with a worker about one run.
pub(super) struct Conversation {
    worker: WorkerProcess,
    tenant: Tenant,
    stream: UnixStream,
    run: RunNumber,
    /// Maximum bytes of a message of the run.
    max_bytes: usize,
    has_begun: bool,
    /// Messages that were sent to the worker.
    sent: u64,
    /// Bytes at the start of the worker's queue that the socket has accepted.
    written: usize,
    calls: FuturesUnordered<Call>,
    /// The codes with which calls of the run have failed.
    failure_codes: Vec<ToolErrorCode>,
    files: Arc<HostedFiles>,
    resources: Arc<Resources>,
    spin: Spin,
    _count: RunCount,
    /// Whether no other run of the engine was in a worker when this one began.
    is_alone: bool,
    /// Whether the worker's next message comes soon.
    expects_message: bool,
}

impl Conversation {
    pub(super) fn new(
        mut worker: WorkerProcess,
        tenant: Tenant,
        host: &Arc<dyn RunHost>,
        processors: usize,
        count: RunCount,
    ) -> io::Result<Self> {
        let socket = worker.socket.take().ok_or(io::ErrorKind::NotConnected)?;
        let stream = UnixStream::from_std(StdUnixStream::from(socket))?;
        let number = random_bytes()?;
        let resources = Arc::new(Resources::new(&worker));
        let is_elsewhere = worker.is_elsewhere;
        Ok(Self {
            worker,
            tenant,
            stream,
            run: RunNumber(u64::from_le_bytes(number) | 1),
            max_bytes: wire::message_bytes(&host.limits()),
            has_begun: false,
            sent: 0,
            written: 0,
            calls: FuturesUnordered::new(),
            failure_codes: Vec::new(),
            files: Arc::new(HostedFiles::new(Arc::clone(host.files()))),
            resources,
            // An answer over a network takes longer than a wait should spin.
            spin: Spin::new(if is_elsewhere { 1 } else { processors }),
            is_alone: count.is_alone && !is_elsewhere,
            _count: count,
            expects_message: false,
        })
    }

    /// Lets the watchdog stop and measure the run.
    pub(super) fn watch(&self, stop: &Arc<Stop>) {
        let killer = Arc::clone(&self.worker.killer);
        stop.attach(move || killer.kill());
        let (resources, weak) = (Arc::clone(&self.resources), Arc::downgrade(stop));
        stop.attach_measure(move |memory_bytes| {
            if resources.exceed(memory_bytes)
                && let Some(stop) = weak.upgrade()
            {
                stop.request(StopReason::Memory);
            }
        });
        let resources = Arc::clone(&self.resources);
        stop.attach_cpu_time(move || resources.cpu_time());
    }

    /// Queues the start of the run, which may be the last one of its worker.
    pub(super) fn start(
        &mut self,
        host: &Arc<dyn RunHost>,
        source: &str,
        is_last: bool,
    ) -> Result<(), String> {
        let limits = host.limits();
        let start = ToWorker::Start(Box::new(Start {
            number: self.run.0,
            depth: u8::try_from(host.depth()).unwrap_or(u8::MAX),
            is_check: host.is_check(),
            source: source.to_owned(),
            name: host.script_name().to_owned(),
            input: host.input().map(|input| Json::text(input).to_owned()),
            servers: host.server_names().iter().map(|name| name.to_string()).collect(),
            time_zone: host.time_zone().name().to_owned(),
            clock_resolution_ns: nanoseconds(host.clock_resolution()),
            has_tape: host.tape().is_some(),
            has_network: host.has_network(),
            is_alone: self.is_alone,
            is_last,
            directories: match host.language() {
                Language::Python => host.files().granted_directories().collect(),
                Language::TypeScript => Vec::new(),
            },
            time_left_ns: nanoseconds(host.deadline().saturating_duration_since(Instant::now())),
            limits: WireLimits::from_limits(&limits),
        }));
        frames::append(&mut self.worker.out, RunNumber::NONE, &start, wire::MAX_START_BYTES)
            .map_err(|error| format!("the script and its input are too long: {error}"))?;
        self.expects_message = self.is_alone;
        host.compute_elsewhere(true);
        Ok(())
    }

    /// Queues the order to continue after the survey.
    pub(super) fn proceed(&mut self) -> Result<(), String> {
        self.expects_message = self.is_alone;
        self.send(&ToWorker::Proceed)
    }

    /// Queues a message.
    fn send(&mut self, message: &ToWorker) -> Result<(), String> {
        self.sent += 1;
        frames::append(&mut self.worker.out, self.run, message, wire::MAX_START_BYTES)
            .map_err(|error| format!("an answer cannot be sent: {error}"))
    }

    fn reply(&mut self, reply: Reply) -> Result<(), String> {
        self.send(&ToWorker::Reply(reply))
    }

    /// Serves the worker until it sends a message about the run as a whole.
    pub(super) async fn listen(&mut self, host: &Arc<dyn RunHost>) -> Event {
        loop {
            match self.handle_arrived(host) {
                Ok(None) => {}
                Ok(Some(event)) => return event,
                Err(problem) => return Event::Ended(RunEnd::Broken(problem)),
            }
            let was_full = self.unsent() > MAX_UNSENT;
            if let Err(_gone) = self.write() {
                return self.end_of_unwritable(host);
            }
            if was_full && self.unsent() <= MAX_UNSENT {
                // Messages that have arrived were not handled yet, and the worker may send no others that would wake
                // this task.
                continue;
            }
            if self.calls.is_empty() && self.unsent() == 0 && self.read_soon() {
                continue;
            }
            let is_full = self.unsent() > MAX_UNSENT;
            let mut interest = if is_full { Interest::WRITABLE } else { Interest::READABLE };
            if self.unsent() > 0 {
                interest |= Interest::WRITABLE;
            }
            tokio::select! {
                biased;
                () = host.cancelled().cancelled() => return Event::Ended(RunEnd::Stopped),
                Some((call, answered)) = self.calls.next(), if !is_full && !self.calls.is_empty() => {
                    host.compute_elsewhere(true);
                    if let Err(problem) = self.answer(call, answered) {
                        return Event::Ended(RunEnd::Broken(problem));
                    }
                }
                ready = self.stream.ready(interest) => match ready {
                    Ok(ready) if ready.is_readable() && !is_full => match self.read() {
                        Ok(0) => return Event::Ended(RunEnd::Gone),
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_gone) => return Event::Ended(RunEnd::Gone),
                    },
                    // A killed worker does not read. Its earlier messages are still handled.
                    Ok(ready) if ready.is_write_closed() && !ready.is_readable() => {
                        return self.end_of_unwritable(host);
                    }
                    Ok(_) => {}
                    Err(_gone) => return Event::Ended(RunEnd::Gone),
                },
            }
        }
    }

    /// How a run ends whose worker cannot be written to: it may have said why before, such as that it cannot start, is
    /// not admitted, or was stopped for its memory.
    fn end_of_unwritable(&mut self, host: &Arc<dyn RunHost>) -> Event {
        // Nothing of it can be sent, and while much is queued no message is handled.
        self.worker.out.clear();
        self.written = 0;
        for _ in 0..MAX_LAST_READS {
            match self.handle_arrived(host) {
                Ok(None) => {}
                Ok(Some(event)) => return event,
                Err(problem) => return Event::Ended(RunEnd::Broken(problem)),
            }
            if !self.read_arrived() {
                break;
            }
        }
        Event::Ended(RunEnd::Gone)
    }

    /// Handles what has arrived, one message after the other. Before a worker is ready, its run may be queued, which
    /// can be long.
    fn handle_arrived(&mut self, host: &Arc<dyn RunHost>) -> Result<Option<Event>, String> {
        while !self.worker.is_ready || self.unsent() <= MAX_UNSENT {
            let run = if self.worker.is_ready { self.run } else { RunNumber::NONE };
            let next = self.worker.decoder.next::<FromWorker>(run).map_err(|error| error.to_string())?;
            let Some(message) = next else { return Ok(None) };
            if let Some(event) = self.handle(message, host)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn handle(&mut self, message: FromWorker, host: &Arc<dyn RunHost>) -> Result<Option<Event>, String> {
        if !self.worker.is_ready {
            return self.handle_start(message, &**host);
        }
        if self.has_begun {
            // The expected message has come.
            self.expects_message = false;
        }
        let is_waiting = matches!(message, FromWorker::Waiting { .. });
        if self.has_begun && !is_waiting {
            host.compute_elsewhere(true);
        }
        match message {
            // The machine that lends it has no permit for the run.
            FromWorker::Failed(problem) if self.worker.is_elsewhere && !self.has_begun => {
                Ok(Some(Event::Ended(RunEnd::NoWorker(preview(&problem, MAX_PROBLEM)))))
            }
            FromWorker::Ready { .. } | FromWorker::Failed(_) => Err("it is ready twice".to_owned()),
            FromWorker::Surveyed { survey, took_ns } => {
                self.has_begun = true;
                // No survey takes longer than a run may.
                let took = Duration::from_nanos(took_ns).min(host.limits().wall_time);
                Ok(Some(Event::Surveyed(survey, took)))
            }
            FromWorker::Done(done) => {
                if !self.worker.decoder.is_empty() {
                    // The next `Ready` may be there already, if nothing else is.
                    self.worker.is_ready = false;
                }
                Ok(Some(Event::Ended(RunEnd::Done(done))))
            }
            _ if !self.has_begun => Err("it asks for something before its script may run".to_owned()),
            FromWorker::Call { call, name, arguments, terms } => {
                let answer = Arc::clone(host).call(name.into(), arguments, terms.into());
                self.begin_call(host, Box::pin(async move { (call, Answered::Text(answer.await)) }), call)
            }
            FromWorker::Query { call, text } => {
                let answer = Arc::clone(host).query(&text);
                self.begin_call(host, Box::pin(async move { (call, Answered::Text(answer.await)) }), call)
            }
            FromWorker::ToolNames { call, server } => {
                let names = Arc::clone(host).tool_names(server);
                self.begin_call(host, Box::pin(async move { (call, Answered::Names(names.await)) }), call)
            }
            FromWorker::File { call, operation } => {
                let answer = self.files.perform(operation);
                self.begin_call(host, Box::pin(async move { (call, Answered::File(answer.await)) }), call)
            }
            FromWorker::CloseFile(file) => {
                self.files.close(file);
                Ok(None)
            }
            FromWorker::Fuel(used) => Ok(host.exceeds_fuel(used).then_some(Event::Ended(RunEnd::OutOfFuel))),
            FromWorker::Log { level, text } => {
                host.log(LogLevel::from_number(level), text);
                Ok(None)
            }
            FromWorker::Emit(block) => {
                let emitted = host.emit(&block).map(drop).map_err(|error| self.record_failure(error));
                self.reply(Reply::Emitted(emitted)).map(|()| None)
            }
            FromWorker::Waiting { seen } => {
                if seen == self.sent && self.unsent() == 0 {
                    host.compute_elsewhere(false);
                }
                Ok(None)
            }
            FromWorker::Computing => Ok(None),
            about_tape => self.handle_tape(about_tape, host).map(|()| None),
        }
    }

    /// Handles messages of a worker before its run.
    fn handle_start(&mut self, message: FromWorker, host: &dyn RunHost) -> Result<Option<Event>, String> {
        match message {
            FromWorker::Ready { protocol: PROTOCOL, missing, .. } => {
                self.worker.warn_of_missing(&missing);
                (self.worker.is_ready, self.worker.was_ready) = (true, true);
                self.worker.decoder.set_max_bytes(self.max_bytes);
                let before = self.resources.begin(host.limits().memory_bytes);
                self.worker.warm_bytes = self.worker.warm_bytes.or(Some(before));
                Ok(None)
            }
            FromWorker::Ready { protocol, .. } => {
                let problem = format!("its messages are of version {protocol}, expected {PROTOCOL}");
                Ok(Some(Event::Ended(RunEnd::NoWorker(problem))))
            }
            FromWorker::Failed(problem) => {
                Ok(Some(Event::Ended(RunEnd::NoWorker(preview(&problem, MAX_PROBLEM)))))
            }
            _ => Err("it speaks before it is ready".to_owned()),
        }
    }

    /// Whether the worker has been ready for its run.
    pub(super) fn was_ready(&self) -> bool {
        self.worker.was_ready
    }

    /// Whether a worker has the run. A process that stands for workers elsewhere may still wait for one.
    pub(super) fn was_taken(&self) -> bool {
        self.has_begun || !self.worker.is_elsewhere
    }

    /// The calls that the script has not awaited.
    pub(super) fn take_calls(&mut self) -> FuturesUnordered<Call> {
        std::mem::take(&mut self.calls)
    }

    /// The codes with which calls of the run have failed.
    pub(super) fn failure_codes(&self) -> &[ToolErrorCode] {
        &self.failure_codes
    }

    /// The most memory in bytes that the worker has had during the run.
    pub(super) fn peak_bytes(&self) -> usize {
        self.resources.peak_bytes()
    }

    /// Whether a worker that has closed its connection has ended because of its memory.
    pub(super) fn was_out_of_memory(&mut self) -> bool {
        self.resources.was_out_of_memory(self.worker.status())
    }

    /// How a worker that has closed its connection has ended.
    pub(super) async fn describe_end(&mut self) -> String {
        let status = self.worker.ended().await;
        self.worker.describe(status)
    }

    /// Returns the worker to the pool after its run, or to the caller if it serves no other run.
    pub(super) fn give_back(mut self, workers: &Workers) -> Option<WorkerProcess> {
        self.remove_written();
        let has_low_priority = self.resources.has_low_priority();
        let Self { mut worker, stream, tenant, .. } = self;
        let Ok(socket) = stream.into_std() else { return Some(worker) };
        worker.socket = Some(OwnedFd::from(socket));
        worker.decoder.set_max_bytes(wire::MAX_READY_BYTES);
        worker.is_ready = false;
        worker.runs += 1;
        if has_low_priority {
            // A lowered priority cannot be raised again.
            return Some(worker);
        }
        workers.give_back(tenant, worker)
    }
}
