//! Runs in worker processes, as an engine of the pool. An instance is the executor's side of one
//! run: it finds a worker for it, and makes the run's outcome of how the worker ends.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;

use super::conversation::{Call, Conversation, Event, RunEnd};
use super::surveys;
use super::workers::{WorkerProcess, Workers};
use crate::engine::failure;
use crate::engine::host::RunHost;
use crate::engine::instance::{Engine, Instance, Unprepared};
use crate::engine::stop::{Stop, StopReason};
use crate::engine::thread_root::ThreadRoot;
use crate::machine;
use crate::run::check::survey::Survey;
use crate::run::result::{ErrorCode, Outcome, ScriptError};

/// Stack of the threads that communicate with workers, on which native tools are polled.
const STACK_BYTES: usize = 2 << 20;

/// How often workers are checked for being warm.
const WARM_PAUSE: Duration = Duration::from_millis(5);

/// Maximum workers that a run tries if they end before they are ready.
const MAX_STARTS: u32 = 3;

/// The hint for a run that has timed out before a worker elsewhere had it. Those of other runs are about the script.
const NOT_TAKEN: &str = "nothing of the script was run: no worker on another machine took it in this time; \
     see whether some are free";

/// The hints for a run that has no worker.
const NONE_HERE: &str = "try again in some seconds; `cx doctor` says what the machine lacks";
const NONE_ELSEWHERE: &str = "scripts are executed on other machines here: see whether those can be reached and have \
     free workers, and try again";

/// Runs scripts of one language in worker processes.
pub(crate) struct Processes {
    workers: Arc<Workers>,
    processors: usize,
}

impl Processes {
    pub(crate) fn new(workers: Workers) -> Self {
        Self { workers: Arc::new(workers), processors: machine::processors() }
    }

    /// Completes when the workers that are started ahead of time are warm, or cannot be started.
    pub(crate) async fn warm(&self) {
        while !self.workers.are_warm() {
            tokio::time::sleep(WARM_PAUSE).await;
        }
    }
}

impl Engine for Processes {
    const THREAD: &'static str = "cx-run";
    type Instance = WorkerRun;
    type Prepared = ();

    fn spawn(&self, name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        static ROOT: ThreadRoot = ThreadRoot::new("cx-run-root", || Ok(()), STACK_BYTES);
        ROOT.spawn(name, task)
    }

    async fn make(&self) -> Result<WorkerRun, String> {
        Ok(WorkerRun {
            workers: Arc::clone(&self.workers),
            processors: self.processors,
            stop: Arc::default(),
            conversation: None,
            unfinished: FuturesUnordered::new(),
            spent: None,
            memory_bytes: 0,
            fuel: None,
        })
    }

    /// Does nothing: the worker prepares the source, and this process reads no part of it.
    fn prepare(&self, _host: &dyn RunHost, _source: &str) -> Result<(), Box<Unprepared>> {
        Ok(())
    }
}

/// One run in a worker process.
pub(crate) struct WorkerRun {
    workers: Arc<Workers>,
    processors: usize,
    stop: Arc<Stop>,
    /// While the run is in flight.
    conversation: Option<Conversation>,
    /// Calls that the script has not awaited. They are in flight until the instance is dropped, as
    /// in other engines, because the report of a run names them.
    unfinished: FuturesUnordered<Call>,
    /// The worker after its last run. It is killed when the instance is dropped, which is after the reply: the end of a
    /// process takes as much of the processors as a short run.
    spent: Option<WorkerProcess>,
    memory_bytes: usize,
    fuel: Option<u64>,
}

impl Instance<Processes> for WorkerRun {
    fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// The worker gets the limit with the run.
    fn set_memory_limit(&mut self, _bytes: usize) {}

    async fn survey(
        &mut self,
        host: &Arc<dyn RunHost>,
        source: &str,
        (): &mut (),
    ) -> Result<Survey, Outcome> {
        match self.begin(host, source).await {
            Ok(survey) => Ok(survey),
            Err(end) => Err(self.outcome(end, &**host).await),
        }
    }

    async fn execute(&mut self, host: &Arc<dyn RunHost>, _source: &str, (): ()) -> Outcome {
        let end = self.resume(host).await;
        self.outcome(end, &**host).await
    }

    async fn check(&mut self, host: &Arc<dyn RunHost>, _source: &str, (): ()) -> Outcome {
        let end = self.resume(host).await;
        self.outcome(end, &**host).await
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn fuel_used(&self) -> Option<u64> {
        self.fuel
    }
}

impl WorkerRun {
    /// Gives the run to a worker, and returns the survey of its script.
    async fn begin(&mut self, host: &Arc<dyn RunHost>, source: &str) -> Result<Survey, RunEnd> {
        let tenant = host.tenant();
        let mut problem = String::new();
        for _ in 0..MAX_STARTS {
            let worker = tokio::select! {
                biased;
                () = host.cancelled().cancelled() => return Err(RunEnd::Stopped),
                worker = self.workers.acquire(&tenant) => worker,
            };
            let worker = worker.map_err(|error| RunEnd::NoWorker(error.to_string()))?;
            let is_last = self.workers.is_last_run(&worker);
            let mut conversation =
                Conversation::new(worker, tenant.clone(), host, self.processors, self.workers.count_run())
                    .map_err(|error| RunEnd::NoWorker(error.to_string()))?;
            conversation.watch(&self.stop);
            conversation.start(host, source, is_last).map_err(RunEnd::NoWorker)?;
            let conversation = self.conversation.insert(conversation);
            let end = match conversation.listen(host).await {
                Event::Surveyed(text, took) => {
                    host.compute_elsewhere(false);
                    return Ok(surveys::decode(&text, took, source));
                }
                Event::Ended(end) => end,
            };
            // If a worker has ended before it was ready, the script is not the reason: another
            // worker is tried.
            let is_stopped = self.stop.reason().is_some() || host.cancelled().is_cancelled();
            let is_lost = matches!(end, RunEnd::Gone) && !conversation.was_ready() && !is_stopped;
            if is_lost || matches!(end, RunEnd::NoWorker(_)) {
                self.workers.note_failed_start();
            }
            if !is_lost {
                return Err(end);
            }
            problem = format!("a worker process {} (before it was ready)", conversation.describe_end().await);
            self.conversation = None;
        }
        Err(RunEnd::NoWorker(problem))
    }

    /// Lets the worker execute the script.
    async fn resume(&mut self, host: &Arc<dyn RunHost>) -> RunEnd {
        let Some(conversation) = &mut self.conversation else { return RunEnd::Gone };
        if let Err(problem) = conversation.proceed() {
            return RunEnd::Broken(problem);
        }
        host.compute_elsewhere(true);
        match conversation.listen(host).await {
            Event::Ended(end) => end,
            Event::Surveyed(..) => RunEnd::Broken("a second survey".to_owned()),
        }
    }

    /// Returns the outcome of the run. Its worker is returned to the pool, kept until this is dropped, or killed.
    async fn outcome(&mut self, end: RunEnd, host: &dyn RunHost) -> Outcome {
        host.compute_elsewhere(false);
        let Some(mut conversation) = self.conversation.take() else {
            return match end {
                RunEnd::NoWorker(problem) => {
                    Outcome::Failed(no_worker(&problem, self.workers.are_elsewhere()))
                }
                _ => {
                    let error = failure::stopped(self.stop.reason(), host);
                    let is_told = error.code == ErrorCode::Timeout && self.workers.are_elsewhere();
                    Outcome::Failed(if is_told { error.with_hint(NOT_TAKEN) } else { error })
                }
            };
        };
        self.unfinished = conversation.take_calls();
        self.memory_bytes = conversation.peak_bytes();
        // A run that was stopped has ended for that reason, whatever the worker reports.
        if self.stop.reason().is_some() || host.cancelled().is_cancelled() {
            let error = failure::stopped(self.stop.reason(), host);
            let was_taken = error.code != ErrorCode::Timeout || conversation.was_taken();
            return Outcome::Failed(if was_taken { error } else { error.with_hint(NOT_TAKEN) });
        }
        match end {
            RunEnd::Done(done) => {
                self.fuel = done.fuel.filter(|_| host.limits().fuel.is_some());
                let used = usize::try_from(done.memory_bytes).unwrap_or(usize::MAX);
                self.memory_bytes = used.min(host.limits().memory_bytes.saturating_mul(2));
                match done.outcome(&host.limits(), conversation.failure_codes()) {
                    // A worker whose run reached a limit serves no other run. It does not know the maximum, on which
                    // the hint depends.
                    Ok(Outcome::Failed(error)) if error.code == ErrorCode::CpuLimit => {
                        Outcome::Failed(failure::stopped(Some(StopReason::Cpu), host))
                    }
                    Ok(Outcome::Failed(error)) if error.code.is_limit() => Outcome::Failed(error),
                    Ok(outcome) => {
                        // From here on the watchdog must not kill the worker, which may serve
                        // another run.
                        self.stop.detach();
                        self.spent = conversation.give_back(&self.workers);
                        outcome
                    }
                    Err(problem) => Outcome::Failed(crashed(&format!("sent an invalid result: {problem}"))),
                }
            }
            RunEnd::Stopped => Outcome::Failed(failure::stopped(None, host)),
            RunEnd::OutOfFuel => Outcome::Failed(failure::out_of_fuel(host)),
            RunEnd::Gone => {
                let how = conversation.describe_end().await;
                if conversation.was_out_of_memory() {
                    return Outcome::Failed(failure::stopped(Some(StopReason::Memory), host));
                }
                Outcome::Failed(crashed(&how))
            }
            RunEnd::Broken(problem) => {
                Outcome::Failed(crashed(&format!("broke the protocol and was killed: {problem}")))
            }
            RunEnd::NoWorker(problem) => Outcome::Failed(no_worker(&problem, self.workers.are_elsewhere())),
        }
    }
}

fn crashed(how: &str) -> ScriptError {
    ScriptError::new(ErrorCode::EngineCrashed, format!("the worker process of the script {how}"))
        .with_hint("no other run is affected; calls that were answered have taken effect")
}

fn no_worker(problem: &str, is_elsewhere: bool) -> ScriptError {
    ScriptError::new(
        ErrorCode::EngineUnavailable,
        format!("there is no worker process for the script: {problem}"),
    )
    .with_hint(if is_elsewhere { NONE_ELSEWHERE } else { NONE_HERE })
}

#[cfg(test)]
mod tests;
