//! A worker process: it executes runs, one after the other, and decides nothing. Its script can be anything, also
//! what has taken over the process.
//!
//! The first thread makes the engine ready and then only keeps time; the engine's own thread executes.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::connection::{Connection, end_process};
use super::frames::RunNumber;
use super::guest::GuestHost;
use super::surveys;
use super::wall::{self, Walls};
use super::wire::{self, Done, FromWorker, Hello, PROTOCOL, ToWorker};
use crate::engine::compile::CodeForm;
use crate::engine::failure;
use crate::engine::host::RunHost;
use crate::engine::pool::{Engine, Instance, Unprepared};
use crate::engine::stop::{Stop, StopReason};
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, Outcome, ScriptError};

/// How often a run is looked at: its memory, and what it has printed and not sent yet.
const TICK: Duration = Duration::from_millis(5);

/// How long a run that was stopped for its memory may take to end. Then the process says so in its place.
const GRACE: Duration = Duration::from_millis(300);

/// What both threads know of the run.
#[derive(Default)]
struct Watch {
    run: Mutex<Option<(Arc<Stop>, RunNumber)>>,
    begun: Condvar,
}

/// A worker that knows what it is to be, and has no engine yet.
pub(crate) struct Newborn {
    connection: Arc<Connection>,
    walls: Walls,
    hello: Hello,
}

/// Begins to be a worker. `socket` is the connection to the executor.
/// `closed` says whether what was inherited could be closed.
pub(crate) fn begin(socket: OwnedFd, closed: io::Result<()>) -> Newborn {
    let mut walls = Walls::default();
    walls.note("no inherited descriptors", closed.map_err(|error| error.to_string()));
    wall::end_with_parent(&mut walls);
    let connection = Arc::new(Connection::new(socket));
    let ToWorker::Hello(hello) = connection.await_order() else { end_process() };
    // The executor may have ended before its end was this process's end too.
    let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    if parent != hello.parent {
        end_process();
    }
    let newborn = Newborn { connection, walls, hello };
    if newborn.hello.protocol != PROTOCOL {
        let theirs = newborn.hello.protocol;
        newborn
            .fail(&format!("its program is another version: messages {PROTOCOL}, the executor has {theirs}"));
    }
    newborn
}

impl Newborn {
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

    /// Serves runs until the executor has gone.
    pub(crate) fn serve<E: Engine>(self, engine: E) -> ! {
        serve(engine, &self.connection, self.walls, &self.hello)
    }
}

fn fail(connection: &Connection, problem: String) -> ! {
    let _sent = connection.send(&FromWorker::Failed(problem));
    connection.flush();
    end_process()
}

/// Serves runs with an engine. This thread keeps time.
fn serve<E: Engine>(engine: E, connection: &Arc<Connection>, mut walls: Walls, hello: &Hello) -> ! {
    wall::close_files(&mut walls);
    let (engine, watch) = (Arc::new(engine), Arc::new(Watch::default()));
    let worker = Worker {
        engine: Arc::clone(&engine),
        connection: Arc::clone(connection),
        watch: Arc::clone(&watch),
        is_python: hello.is_python,
        requires_walls: hello.requires_walls,
    };
    let spawned = engine.spawn("cx-worker".to_owned(), Box::new(move || worker.work(walls)));
    if let Err(error) = spawned {
        fail(connection, format!("a thread for scripts: {error}"));
    }
    let mut stopping: Option<(Instant, RunNumber)> = None;
    loop {
        let (stop, run) = {
            let mut current = watch.run.lock();
            loop {
                if let Some((stop, run)) = &*current {
                    break (Arc::clone(stop), *run);
                }
                watch.begun.wait(&mut current);
            }
        };
        std::thread::sleep(TICK);
        engine.tick();
        // The executor compares this process with a limit that is lowered meanwhile.
        stop.measure(usize::MAX);
        connection.try_flush();
        let Some(reason) = stop.reason() else { continue };
        // Formatting an error runs code of the script again after a first termination.
        stop.request(reason);
        match stopping {
            Some((since, of)) if of == run => {
                if since.elapsed() >= GRACE {
                    end_process();
                }
            }
            _ => stopping = Some((Instant::now(), run)),
        }
    }
}

struct Worker<E> {
    engine: Arc<E>,
    connection: Arc<Connection>,
    watch: Arc<Watch>,
    is_python: bool,
    requires_walls: bool,
}

impl<E: Engine> Worker<E> {
    /// The thread of the scripts.
    fn work(self, mut walls: Walls) {
        let connection = &self.connection;
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => fail(connection, format!("a runtime: {error}")),
        };
        let readiness = {
            let _entered = runtime.enter();
            #[expect(unsafe_code, reason = "tokio cannot know that the descriptor stays open")]
            // SAFETY: the connection owns its descriptor until it is dropped, and gives it to nobody.
            unsafe {
                AsyncFd::register_with_interest(Arc::clone(connection), Interest::READABLE)
            }
        };
        let readiness = match readiness {
            Ok(readiness) => readiness,
            Err(error) => fail(connection, format!("the connection: {error}")),
        };
        let mut is_first = true;
        loop {
            let mut instance = match runtime.block_on(self.engine.make()) {
                Ok(instance) => instance,
                Err(problem) => fail(connection, problem),
            };
            if std::mem::take(&mut is_first) {
                wall::filter_calls(&mut walls);
                // Said by the worker, because who gives it a run may be on another machine.
                if self.requires_walls && !walls.missing.is_empty() {
                    let missing = walls.missing.join(", ");
                    fail(connection, format!("this machine lacks what confines it: {missing}"));
                }
            }
            let ready = FromWorker::Ready {
                protocol: PROTOCOL,
                walls: walls.up.clone(),
                missing: walls.missing.clone(),
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
            *self.watch.run.lock() = Some((Arc::clone(instance.stop()), run));
            self.watch.begun.notify_one();
            let outcome = runtime
                .block_on(drive(&readiness, self.perform(&host, &mut instance, &source, start.is_check)));
            *self.watch.run.lock() = None;
            let done = Done::of(outcome, instance.memory_bytes(), instance.fuel_used());
            if let Err(error) = connection.leave(&FromWorker::Done(done)) {
                let error = ScriptError::new(ErrorCode::ResultTooLarge, error.to_string());
                let done = Done::of(Outcome::Failed(error), instance.memory_bytes(), instance.fuel_used());
                if connection.leave(&FromWorker::Done(done)).is_err() {
                    end_process();
                }
            }
            let _entered = runtime.enter();
            drop(instance);
        }
    }

    async fn perform(
        &self,
        host: &Arc<dyn RunHost>,
        instance: &mut E::Instance,
        source: &str,
        is_check: bool,
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
        let took_ns = u64::try_from(survey.took.as_nanos()).unwrap_or(u64::MAX);
        let surveyed = FromWorker::Surveyed { survey: surveys::encode(&survey), took_ns };
        if self.connection.send(&surveyed).is_err()
            || !matches!(self.connection.await_order(), ToWorker::Proceed)
        {
            return Outcome::Failed(failure::stopped(Some(StopReason::Cancelled), &**host));
        }
        #[cfg(test)]
        tests::act(&self.connection, source);
        match prepared {
            Ok(prepared) if is_check => instance.check(host, source, prepared).await,
            Ok(prepared) => instance.execute(host, source, prepared).await,
            Err(error) => Outcome::Failed(error),
        }
    }
}

/// Polls `future`, and reads the connection while it waits.
async fn drive<T>(readiness: &AsyncFd<Arc<Connection>>, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let connection = readiness.get_ref();
    std::future::poll_fn(|task| {
        let mut has_news = false;
        loop {
            // What has arrived comes first: it is mostly what the script waits for.
            while let Poll::Ready(Ok(mut guard)) = readiness.poll_read_ready(task) {
                let received = connection.receive(false);
                has_news |= received.messages > 0;
                if !received.may_have_more {
                    guard.clear_ready();
                }
            }
            if !has_news {
                connection.note_computing();
            }
            if let Poll::Ready(outcome) = future.as_mut().poll(task) {
                return Poll::Ready(outcome);
            }
            // A blocking call may have read what the future waits for; then it has been woken.
            match readiness.poll_read_ready(task) {
                Poll::Ready(_) => has_news = true,
                Poll::Pending => break,
            }
        }
        connection.flush_waiting();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests;
