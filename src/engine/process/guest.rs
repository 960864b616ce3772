//! The host interface of a run in a worker process: everything that the script asks for goes to the executor.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Waiter};
use super::frames::FrameError;
use super::wire::{self, FromWorker, Reply, Start, WireTerms};
use crate::engine::host::{Answer, RunHost, RunTape};
use crate::engine::host_calls::files::file_block;
use crate::files::{
    Clock, FileAnswer, FileError, FileErrorCode, FileHost, FileOperation, FileOptions, GrantedDirectory,
    RunFiles,
};
use crate::json::Json;
use crate::run::call_terms::CallTerms;
use crate::run::calls::resolve::ToolName;
use crate::run::errors::over;
use crate::run::limits::Limits;
use crate::run::recording::GuestClock;
use crate::run::result::LogLevel;
use crate::run::script::Language;
use crate::run::tape::Wait;
use crate::run::time_zone::TimeZone;
use crate::text::start_bytes;
use crate::tools::{ToolError, ToolErrorCode};

/// The host of one run, behind a connection.
pub(super) struct GuestHost {
    connection: Arc<Connection>,
    language: Language,
    name: String,
    input: Option<Json>,
    servers: Vec<Arc<str>>,
    time_zone: TimeZone,
    clock_resolution: Duration,
    limits: Limits,
    deadline: Instant,
    cancelled: CancellationToken,
    files: Arc<RunFiles>,
    has_network: bool,
    is_check: bool,
    tape: Option<Arc<GuestTape>>,
}

/// The tape of that run.
struct GuestTape {
    connection: Arc<Connection>,
    started: Instant,
}

impl GuestHost {
    /// # Errors
    ///
    /// If the input is not JSON or the time zone is unknown: another version of the program has sent them.
    pub(super) fn new(
        connection: &Arc<Connection>,
        language: Language,
        start: &mut Start,
    ) -> Result<Self, String> {
        let started = Instant::now();
        let input = start.input.take().map(|text| Json::parse(&text)).transpose();
        let tape = || Arc::new(GuestTape { connection: Arc::clone(connection), started });
        Ok(Self {
            connection: Arc::clone(connection),
            language,
            name: std::mem::take(&mut start.name),
            input: input.map_err(|error| format!("the input is not JSON: {error}"))?,
            servers: start.servers(),
            time_zone: TimeZone::find(&start.time_zone).map_err(|error| error.to_string())?,
            clock_resolution: Duration::from_nanos(start.clock_resolution_ns),
            limits: start.limits.limits(),
            deadline: started + Duration::from_nanos(start.time_left_ns),
            cancelled: CancellationToken::new(),
            files: Arc::new(files(connection, start)),
            has_network: start.has_network,
            is_check: start.is_check,
            tape: start.has_tape.then(tape),
        })
    }

    /// With a tape the executor replies when it has begun a call. An answer that it has immediately
    /// arrives before the reply.
    fn await_begun(&self) {
        if self.tape.is_some() {
            let _begun = self.connection.await_reply();
        }
    }
}

/// The files of the interpreter. Its scratch directory is in this process. The executor serves its
/// granted directories, because a worker can open no file. For TypeScript the executor serves all
/// files.
fn files(connection: &Arc<Connection>, start: &mut Start) -> RunFiles {
    let limits = start.limits.limits();
    let directory = |(path, access): (String, _)| {
        let path = PathBuf::from(path);
        GrantedDirectory { root: path.clone(), path, access }
    };
    let options = FileOptions {
        directories: std::mem::take(&mut start.directories).into_iter().map(directory).collect(),
        memory_bytes: limits.memory_bytes,
        quota: Box::new(move || limits.file_quota()),
        caller: None,
        clock: match start.has_tape {
            true => Clock::counting(),
            false => Clock::Real(Duration::from_nanos(start.clock_resolution_ns)),
        },
        runtime: Handle::current(),
        is_dry_run: false,
    };
    let (connection, has_tape) = (Arc::clone(connection), start.has_tape);
    RunFiles::elsewhere(options, Arc::new(ExecutorFiles { connection, has_tape }))
}

/// The granted directories of the run, which the executor serves.
struct ExecutorFiles {
    connection: Arc<Connection>,
    has_tape: bool,
}

impl FileHost for ExecutorFiles {
    fn perform(&self, operation: FileOperation) -> BoxFuture<'static, Result<FileAnswer, FileError>> {
        let (waiter, answer) = oneshot::channel();
        let message = |call| FromWorker::File { call, operation };
        if self.connection.begin(Waiter::File(waiter), message).is_err() {
            return ready(Err(FileErrorCode::NameTooLong.into())).boxed();
        }
        if self.has_tape {
            let _begun = self.connection.await_reply();
        }
        answer.map(|answer| answer.unwrap_or_else(|_over| Err(FileErrorCode::Io.into()))).boxed()
    }

    fn close(&self, file: u64) {
        self.connection.send_in_run(&FromWorker::CloseFile(file));
    }
}

fn too_long(what: &str, error: FrameError) -> ToolError {
    let message = format!("{what} cannot be passed on: {error}");
    ToolError::new(ToolErrorCode::InvalidArguments, message)
}

impl RunHost for GuestHost {
    fn language(&self) -> Language {
        self.language
    }

    fn script_name(&self) -> &str {
        &self.name
    }

    fn input(&self) -> Option<&Json> {
        self.input.as_ref()
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn exceeds_fuel(&self, used: u64) -> bool {
        // The message is short, so it fits.
        let _fits = self.connection.send(&FromWorker::Fuel(used));
        false
    }

    fn server_names(&self) -> Vec<Arc<str>> {
        self.servers.clone()
    }

    fn time_zone(&self) -> TimeZone {
        self.time_zone
    }

    fn files(&self) -> &Arc<RunFiles> {
        &self.files
    }

    fn has_network(&self) -> bool {
        self.has_network
    }

    fn clock_resolution(&self) -> Duration {
        self.clock_resolution
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    fn is_check(&self) -> bool {
        self.is_check
    }

    /// The executor counts the runs.
    fn depth(&self) -> usize {
        0
    }

    /// Only the executor tells tenants apart.
    fn tenant(&self) -> Option<String> {
        None
    }

    /// The script computes in this process, whose CPU time the executor measures.
    fn compute_elsewhere(&self, _is_computing: bool) {}

    fn tape(&self) -> Option<Arc<dyn RunTape>> {
        self.tape.clone().map(|tape| tape as Arc<dyn RunTape>)
    }

    fn call(
        self: Arc<Self>,
        name: ToolName,
        arguments: String,
        terms: CallTerms,
    ) -> BoxFuture<'static, Answer> {
        let (waiter, answer) = oneshot::channel();
        let terms = WireTerms::from(terms);
        let message = |call| FromWorker::Call { call, name: name.into(), arguments, terms };
        if let Err(error) = self.connection.begin(Waiter::Answer(waiter), message) {
            return ready(Err(too_long("the arguments", error))).boxed();
        }
        self.await_begun();
        answer.map(|answer| answer.unwrap_or_else(|_| Err(over()))).boxed()
    }

    fn query(self: Arc<Self>, request: &str) -> BoxFuture<'static, Answer> {
        // The interpreter's files are in this process.
        if self.language == Language::Python
            && let Some(block) = file_block(&self.files, self.limits.result_bytes, request)
        {
            return block;
        }
        let (waiter, answer) = oneshot::channel();
        let message = |call| FromWorker::Query { call, text: request.to_owned() };
        if let Err(error) = self.connection.begin(Waiter::Answer(waiter), message) {
            return ready(Err(too_long("the query", error))).boxed();
        }
        self.await_begun();
        answer.map(|answer| answer.unwrap_or_else(|_| Err(over()))).boxed()
    }

    fn tool_names(self: Arc<Self>, server: String) -> BoxFuture<'static, Result<Vec<String>, ToolError>> {
        let (waiter, names) = oneshot::channel();
        let message = |call| FromWorker::ToolNames { call, server };
        if let Err(error) = self.connection.begin(Waiter::Names(waiter), message) {
            return ready(Err(too_long("the name", error))).boxed();
        }
        self.await_begun();
        names.map(|names| names.unwrap_or_else(|_| Err(over()))).boxed()
    }

    fn log(&self, level: LogLevel, mut text: String) {
        // A line that is longer than the limit of a message is cut.
        text.truncate(start_bytes(&text, wire::message_bytes(&self.limits) / 2).len());
        let _fits = self.connection.send(&FromWorker::Log { level: level.number(), text });
    }

    fn emit(&self, block: &str) -> Answer {
        match self.connection.ask(&FromWorker::Emit(block.to_owned())) {
            Ok(Reply::Emitted(answer)) => answer.map(|()| String::new()).map_err(ToolError::from),
            Ok(_) => Err(over()),
            Err(_too_long) => {
                let message = format!("a script may emit {} bytes in all", self.limits.result_bytes);
                Err(ToolError::new(ToolErrorCode::ResultTooLarge, message))
            }
        }
    }

    fn block_on(&self, mut future: Pin<&mut dyn Future<Output = ()>>) {
        // Polled again whenever something has arrived: nothing else can complete it.
        let mut task = Context::from_waker(Waker::noop());
        loop {
            let seen = self.connection.seen();
            if future.as_mut().poll(&mut task).is_ready() {
                return;
            }
            self.connection.flush_waiting();
            self.connection.receive_beyond(seen);
        }
    }
}

impl GuestTape {
    fn ask(&self, message: &FromWorker) -> Option<Reply> {
        self.connection.ask(message).ok()
    }
}

impl RunTape for GuestTape {
    fn open_turn(&self) {
        self.ask(&FromWorker::OpenTurn);
    }

    fn open_wait(&self, timeout_ms: Option<f64>) -> Wait {
        match self.ask(&FromWorker::OpenWait(timeout_ms)) {
            Some(Reply::Wait(wait)) => wait.into(),
            _ => Wait::Real,
        }
    }

    fn close_wait(&self, has_delivered: bool) {
        self.ask(&FromWorker::CloseWait(has_delivered));
    }

    fn read_clock(&self, clock: GuestClock, real: u64) -> u64 {
        match self.ask(&FromWorker::ReadClock { is_wall: clock == GuestClock::Wall, real }) {
            Some(Reply::Clock(reading)) => reading,
            _ => real,
        }
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if let Some(Reply::Random(random)) = self.ask(&FromWorker::Random(count))
            && random.len() == bytes.len()
        {
            bytes.copy_from_slice(&random);
        }
    }

    fn set_blocking(&self, is_blocking: bool) {
        self.ask(&FromWorker::SetBlocking(is_blocking));
    }
}
