//! A worker process: it executes runs, one after the other, and decides nothing, because a script
//! may have taken it over.
//!
//! The first thread starts the engine and is then the watchdog; a thread of the engine executes
//! scripts. In a worker that a fork server has made, the thread of the scripts is the first one, and starts the
//! watchdog.

mod drive;
mod sample_run;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Runtime;

use self::drive::drive;
use super::connection::{Connection, OVER_MEMORY, end_process, end_process_with};
use super::fork_server;
use super::frames::RunNumber;
use super::guest::GuestHost;
use super::sandbox::{self, Confinement};
use super::spin::Spin;
use super::surveys;
use super::used_pages::UsedPages;
use super::wire::{self, Done, FromWorker, Hello, PROTOCOL, Start, ToWorker};
use crate::durations::nanoseconds;
use crate::engine::compile::CodeForm;
use crate::engine::failure;
use crate::engine::host::RunHost;
use crate::engine::instance::{Engine, Instance, Unprepared};
use crate::engine::stop::{Stop, StopReason};
use crate::engine::watchdog::CpuMeter;
use crate::machine;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, Outcome, ScriptError};

/// How often a run's memory and CPU time are checked and its output is flushed.
const TICK: Duration = Duration::from_millis(5);

/// Maximum time that a run may take to end after it was stopped for its memory or its CPU time. After it the
/// watchdog reports the end, and the process with the run ends.
const GRACE: Duration = Duration::from_millis(300);

/// The name of the thread that executes scripts.
const THREAD: &str = "cx-worker";

/// The state of the run that both threads share.
#[derive(Default)]
struct Watch {
    run: Mutex<Option<Watched>>,
    begun: Condvar,
}

/// A run, as the watchdog needs it.
struct Watched {
    stop: Arc<Stop>,
    run: RunNumber,
    host: Arc<dyn RunHost>,
    /// CPU time of this process since the run began.
    cpu: CpuMeter,
}

impl Watch {
    /// Reports that a run, which does not end by itself, was stopped. Returns the exit status with which the process
    /// has to end now, or `None` if the run has ended meanwhile.
    fn report(&self, run: RunNumber, reason: StopReason, connection: &Connection) -> Option<i32> {
        let current = self.run.lock();
        let watched = current.as_ref().filter(|watched| watched.run == run)?;
        let error = failure::stopped(Some(reason), &*watched.host);
        let memory_bytes = watched.host.limits().memory_bytes;
        let done = Done::from_outcome(Outcome::Failed(error), memory_bytes, None);
        let is_told = connection.try_leave(&FromWorker::Done(done)) || reason != StopReason::Memory;
        Some(if is_told { 0 } else { OVER_MEMORY })
    }
}

/// A worker or a fork server that has the first message of its executor, and no engine yet.
pub(crate) struct StartingProcess {
    connection: Arc<Connection>,
    confinement: Confinement,
    hello: Hello,
}

/// Starts a worker, or a fork server. `socket` is the connection to the executor. `closed` says whether inherited
/// descriptors could be closed.
pub(crate) fn begin(socket: OwnedFd, closed: io::Result<()>) -> StartingProcess {
    let mut confinement = Confinement::default();
    confinement.record("no inherited descriptors", closed.map_err(|error| error.to_string()));
    let starting = StartingProcess::new(socket, confinement);
    if starting.hello.protocol != PROTOCOL {
        let theirs = starting.hello.protocol;
        starting
            .fail(&format!("its program is another version: messages {PROTOCOL}, the executor has {theirs}"));
    }
    starting
}

impl StartingProcess {
    /// Reads the first message.
    fn new(socket: OwnedFd, mut confinement: Confinement) -> Self {
        sandbox::end_with_parent(&mut confinement);
        let connection = Arc::new(Connection::new(socket));
        let ToWorker::Hello(hello) = connection.await_order() else { end_process() };
        let starting = Self { connection, confinement, hello };
        starting.end_if_orphan();
        starting
    }

    /// The parent may have ended before the kernel was asked to kill this process with it.
    fn end_if_orphan(&self) {
        let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
        if parent != self.hello.parent {
            end_process();
        }
    }

    pub(crate) fn is_python(&self) -> bool {
        self.hello.is_python
    }

    pub(crate) fn form(&self) -> CodeForm {
        if self.hello.counts_fuel { CodeForm::CountsFuel } else { CodeForm::Plain }
    }

    pub(crate) fn caches(&self) -> &[PathBuf] {
        &self.hello.caches
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        usize::try_from(self.hello.memory_bytes).unwrap_or(Limits::default().memory_bytes)
    }

    /// Tells the executor why there is no engine, and ends.
    pub(crate) fn fail(self, problem: &str) -> ! {
        fail(&self.connection, problem.to_owned())
    }

    /// Serves runs, or forks workers that do, until the executor has gone.
    pub(crate) fn serve<E: Engine>(mut self, engine: E) -> ! {
        // Read now, because it is in files, which cannot be opened later.
        let processors = machine::processors();
        sandbox::leave_network(&mut self.confinement);
        let engine = Arc::new(engine);
        if self.hello.forks {
            fork_workers(&engine, self, processors)
        }
        sandbox::close_files(&mut self.confinement);
        self.end_if_orphan();
        let confinement = std::mem::take(&mut self.confinement);
        let worker = Worker::new(&engine, &self, processors);
        let (connection, watch) = (Arc::clone(&worker.connection), Arc::clone(&worker.watch));
        let spawned = engine.spawn(THREAD.to_owned(), Box::new(move || worker.work(confinement, None)));
        if let Err(error) = spawned {
            self.fail(&format!("a thread for scripts: {error}"));
        }
        keep_watch(&*engine, &connection, &watch)
    }
}

/// Makes an instance, and forks workers that have it. The first thread has nothing else to do.
fn fork_workers<E: Engine>(engine: &Arc<E>, mut starting: StartingProcess, processors: usize) -> ! {
    sandbox::map_users(&starting.confinement);
    // A change of credentials, such as that of `leave_network`, may clear it.
    sandbox::end_with_parent(&mut starting.confinement);
    starting.end_if_orphan();
    close_stdin();
    let shared = Arc::clone(engine);
    let is_python = starting.is_python();
    let StartingProcess { connection, confinement, .. } = starting;
    let executor = connection.clone_socket();
    let task = move || {
        // V8 keeps the runtime of the thread that makes an isolate, for tasks that can be left undone, such as
        // collecting garbage while nothing runs. This one has no descriptors, which workers must not share.
        let memory_only = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => fail(&connection, format!("a runtime: {error}")),
        };
        let mut instance = match memory_only.block_on(shared.make()) {
            Ok(instance) => instance,
            Err(problem) => fail(&connection, problem),
        };
        if let Err(error) = fork_server::share_memory() {
            fail(&connection, format!("the memory of this process: {error}"));
        }
        let used = UsedPages::measure(|| sample_run::run(&*shared, &mut instance, is_python));
        let Ok(executor) = executor else { end_process() };
        drop(connection);
        let socket = fork_server::become_worker(executor);
        // From here on this is a worker, and the only thread of its process.
        begin_forked(&shared, instance, &used, socket, confinement, processors)
    };
    if engine.spawn(THREAD.to_owned(), Box::new(task)).is_err() {
        end_process();
    }
    loop {
        std::thread::park();
    }
}

/// A worker that a fork server has made, with an instance that is warm.
fn begin_forked<E: Engine>(
    engine: &Arc<E>,
    instance: E::Instance,
    used: &UsedPages,
    socket: OwnedFd,
    confinement: Confinement,
    processors: usize,
) -> ! {
    // A process group of its own, as `Command` gives it to processes that it starts.
    if rustix::process::setpgid(None, None).is_err() {
        end_process();
    }
    let mut starting = StartingProcess::new(socket, confinement);
    // After the first message: the process is in its control group then, which counts this memory.
    used.prefault();
    engine.begin_forked();
    sandbox::begin_forked(&mut starting.confinement);
    sandbox::close_files(&mut starting.confinement);
    starting.end_if_orphan();
    let confinement = std::mem::take(&mut starting.confinement);
    let worker = Worker::new(engine, &starting, processors);
    let (connection, watch) = (Arc::clone(&worker.connection), Arc::clone(&worker.watch));
    let engine = Arc::clone(engine);
    let watchdog = std::thread::Builder::new().name("cx-watchdog".to_owned());
    if let Err(error) = watchdog.spawn(move || keep_watch(&*engine, &connection, &watch)) {
        starting.fail(&format!("a thread that watches scripts: {error}"));
    }
    worker.work(confinement, Some(instance))
}

/// The standard input is another descriptor of the connection, which workers must not have. It becomes the one of the
/// standard output, which leads nowhere.
fn close_stdin() {
    #[expect(unsafe_code, reason = "only the standard library owns this descriptor")]
    // SAFETY: both descriptors exist from the start of the process to its end, and nothing reads the first one.
    unsafe {
        libc::dup2(libc::STDOUT_FILENO, libc::STDIN_FILENO);
    }
}

/// Tells the executor why this process cannot serve it, as the rest of a sentence, and ends.
fn fail(connection: &Connection, problem: String) -> ! {
    let _sent = connection.send(&FromWorker::Failed(problem));
    connection.flush();
    end_process()
}

/// Registers the connection with the runtime, which then says when it can be read.
fn register(runtime: &Runtime, connection: &Arc<Connection>) -> AsyncFd<Arc<Connection>> {
    let _entered = runtime.enter();
    #[expect(unsafe_code, reason = "tokio cannot know that the descriptor stays open")]
    // SAFETY: the connection owns its descriptor until it is dropped, and never gives it away.
    let registered = unsafe { AsyncFd::register_with_interest(Arc::clone(connection), Interest::READABLE) };
    match registered {
        Ok(readiness) => readiness,
        Err(error) => fail(connection, format!("the connection: {error}")),
    }
}

/// The watchdog: stops runs that exceed a limit, and ends a process whose run does not end by itself.
fn keep_watch<E: Engine>(engine: &E, connection: &Connection, watch: &Watch) -> ! {
    let mut stopping: Option<(Instant, RunNumber)> = None;
    loop {
        let (stop, run, cpu, cpu_time) = {
            let mut current = watch.run.lock();
            loop {
                if let Some(watched) = &*current {
                    let cpu_time = watched.host.limits().cpu_time;
                    break (Arc::clone(&watched.stop), watched.run, watched.cpu, cpu_time);
                }
                watch.begun.wait(&mut current);
            }
        };
        std::thread::sleep(TICK);
        engine.tick();
        // A limit that is lowered during the run is enforced by the executor.
        stop.measure(usize::MAX);
        // An executor on another machine cannot measure this process. One on this machine does so too, and has the last
        // word, because a script that has taken over the process has switched this check off.
        if cpu.elapsed() > cpu_time {
            stop.request(StopReason::Cpu);
        }
        connection.try_flush();
        let Some(reason) = stop.reason() else { continue };
        // Formatting an error runs code of the script again after a first termination.
        stop.request(reason);
        match stopping {
            Some((since, of)) if of == run => {
                if since.elapsed() >= GRACE
                    && let Some(status) = watch.report(run, reason, connection)
                {
                    end_process_with(status);
                }
            }
            _ => stopping = Some((Instant::now(), run)),
        }
    }
}

/// A process that serves runs, with all that it needs for each.
struct Worker<E> {
    engine: Arc<E>,
    connection: Arc<Connection>,
    watch: Arc<Watch>,
    is_python: bool,
    requires_sandbox: bool,
    processors: usize,
}

impl<E: Engine> Worker<E> {
    fn new(engine: &Arc<E>, starting: &StartingProcess, processors: usize) -> Self {
        Self {
            engine: Arc::clone(engine),
            connection: Arc::clone(&starting.connection),
            watch: Arc::default(),
            is_python: starting.hello.is_python,
            requires_sandbox: starting.hello.requires_sandbox,
            processors,
        }
    }

    /// The thread of the scripts. `forked` is the instance of the fork server that has made this process.
    fn work(self, mut confinement: Confinement, mut forked: Option<E::Instance>) -> ! {
        let connection = &self.connection;
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => fail(connection, format!("a runtime: {error}")),
        };
        let readiness = register(&runtime, connection);
        let mut is_first = true;
        loop {
            let made = runtime.block_on(async {
                let Some(mut instance) = forked.take() else { return self.engine.make().await };
                self.engine.renew(&mut instance).await.map(|()| instance)
            });
            let mut instance = match made {
                Ok(instance) => instance,
                Err(problem) => fail(connection, problem),
            };
            if std::mem::take(&mut is_first) {
                self.complete_sandbox(&mut confinement);
            }
            let ready = FromWorker::Ready {
                protocol: PROTOCOL,
                active: confinement.active.clone(),
                missing: confinement.missing.clone(),
            };
            if connection.send(&ready).is_err() {
                end_process();
            }
            let ToWorker::Start(mut start) = connection.await_order() else { end_process() };
            let run = RunNumber(start.number);
            connection.enter(run, &start);
            let source = std::mem::take(&mut start.source);
            let entered = runtime.enter();
            let host = GuestHost::new(connection, wire::language(self.is_python), &mut start);
            drop(entered);
            let host = match host {
                Ok(host) => Arc::new(host) as Arc<dyn RunHost>,
                Err(problem) => fail(connection, problem),
            };
            instance.set_memory_limit(host.limits().memory_bytes);
            let (stop, cpu) = (Arc::clone(instance.stop()), CpuMeter::of_this_process());
            let watched = Watched { stop, run, host: Arc::clone(&host), cpu };
            *self.watch.run.lock() = Some(watched);
            let outcome = runtime.block_on(drive(
                &readiness,
                self.processors,
                // V8's calls wait for their answers in tasks.
                self.is_python,
                self.perform(&host, &mut instance, &source, &start),
            ));
            *self.watch.run.lock() = None;
            self.report_end(outcome, &instance);
            if start.is_last {
                // To drop the instance and to make another one would compete with what sends the result.
                let _never = connection.await_order();
                end_process();
            }
            // The thread that waits for the result should run first: dropping the instance takes
            // some milliseconds, and the scheduler would let them pass before it runs a thread that
            // it has woken on this processor.
            std::thread::yield_now();
            let _entered = runtime.enter();
            drop(instance);
        }
    }

    /// Completes the sandbox, after the engine has started. Ends the process if it has to be complete and is not: the
    /// worker checks this itself, because the executor may be on another machine.
    fn complete_sandbox(&self, confinement: &mut Confinement) {
        sandbox::filter_calls(confinement, self.processors);
        if self.requires_sandbox && !confinement.missing.is_empty() {
            let missing = confinement.missing.join(", ");
            fail(&self.connection, format!("this machine lacks what confines it: {missing}"));
        }
    }

    /// Reports the end of a run. A value that is too long for a message is replaced by an error.
    fn report_end(&self, outcome: Outcome, instance: &E::Instance) {
        let done = |outcome| {
            FromWorker::Done(Done::from_outcome(outcome, instance.memory_bytes(), instance.fuel_used()))
        };
        if let Err(error) = self.connection.leave(&done(outcome)) {
            let error = ScriptError::new(ErrorCode::ResultTooLarge, error.to_string());
            if self.connection.leave(&done(Outcome::Failed(error))).is_err() {
                end_process();
            }
        }
    }

    /// Surveys a script, and executes it when the executor says so.
    async fn perform(
        &self,
        host: &Arc<dyn RunHost>,
        instance: &mut E::Instance,
        source: &str,
        start: &Start,
    ) -> Outcome {
        let (survey, prepared) = match self.engine.prepare(&**host, source) {
            Ok(mut prepared) => match instance.survey(host, source, &mut prepared).await {
                Ok(survey) => (survey, Ok(prepared)),
                Err(outcome) => return outcome,
            },
            Err(unprepared) => {
                let Unprepared { error, survey } = *unprepared;
                (survey, Err(error))
            }
        };
        let took_ns = nanoseconds(survey.took);
        let surveyed = FromWorker::Surveyed { survey: surveys::encode(&survey), took_ns };
        let is_sent = self.connection.send(&surveyed).is_ok();
        self.connection.flush();
        // To wake a thread takes as long as much of a short run, and here the executor is at work anyway. Until now no
        // code of the script has run, and the executor measures the process before it lets any run.
        self.watch.begun.notify_one();
        let next = || match start.is_alone {
            true => self.connection.await_order_soon(&Spin::new(self.processors)),
            false => self.connection.await_order(),
        };
        if !is_sent || !matches!(next(), ToWorker::Proceed) {
            return Outcome::Failed(failure::stopped(Some(StopReason::Cancelled), &**host));
        }
        #[cfg(test)]
        tests::act(&self.connection, instance.stop(), source);
        match prepared {
            Ok(prepared) if start.is_check => instance.check(host, source, prepared).await,
            Ok(prepared) => instance.execute(host, source, prepared).await,
            Err(error) => Outcome::Failed(error),
        }
    }
}

#[cfg(test)]
mod tests;
