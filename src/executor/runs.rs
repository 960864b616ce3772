//! Runs of scripts: observers hear of a run, its engine is started, it is admitted, and its job is submitted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::core::{Executor, Inner};
use super::metrics::CountedRun;
use super::nested::{self, Parts};
use super::prepared::PreparedRun;
use super::run::Run;
use super::servers::ServerSet;
use super::settings::Settings;
use super::start::{code_without_result, not_run, refused, start_engine};
use crate::engine::pool::job::Job;
use crate::error::Error;
use crate::run::context::{Purpose, RunEnvironment};
use crate::run::limits::in_force::RunLimits;
use crate::run::nested::NestedRunner;
use crate::run::observer::Observation;
use crate::run::result::{ExecuteResult, Usage};
use crate::run::script::Script;
use crate::run::state::{NoState, StateAccess};
use crate::run::tape::Tape;
use crate::tools::in_force::RunTools;

impl Executor {
    /// Runs TypeScript or JavaScript with the executor's limits. Short for [`Executor::run`], also in that dropping
    /// the future stops the script.
    ///
    /// # Errors
    ///
    /// As [`Executor::run`].
    pub async fn run_ts(&self, source: &str) -> Result<ExecuteResult, Error> {
        self.run(Script::typescript(source)).await
    }

    /// Runs Python with the executor's limits. Short for [`Executor::run`], also in that dropping the future stops
    /// the script.
    ///
    /// # Errors
    ///
    /// As [`Executor::run`].
    pub async fn run_py(&self, source: &str) -> Result<ExecuteResult, Error> {
        self.run(Script::python(source)).await
    }

    /// Runs a script to its end.
    ///
    /// The first run of a language starts its engine. For Python that takes a part of a second on a
    /// machine that has not run it yet ([`Executor::warm`]). The run waits for that, and this time
    /// counts against its wall-clock limit, and in [`Usage::wall_time`](crate::Usage::wall_time).
    ///
    /// If too many scripts are running, waits for admission. The reply comes at the latest half a
    /// second after a limit is exceeded, even if the script cannot be stopped.
    ///
    /// Dropping the future stops the script and cancels its calls.
    ///
    /// # Errors
    ///
    /// Nothing that a script does is an error here: a failing script is
    /// [`Outcome::Failed`](crate::Outcome::Failed). [`Error::InvalidOptions`] names an option of the script
    /// that cannot be: limits out of bounds, permissions beyond the grants, an unknown time zone, a language that
    /// this build does not have. [`Error::InvalidPattern`] is for its rules. [`Error::Start`] and
    /// [`Error::WorkerLost`] are of the engine, and [`Error::Closed`] is for a run that the end of its executor has
    /// left without a result; most have one then, [`ErrorCode::Cancelled`](crate::ErrorCode::Cancelled).
    pub async fn run(&self, script: impl Into<Script>) -> Result<ExecuteResult, Error> {
        self.run_with(script.into(), None, self.inner.closed.child_token()).await
    }

    /// As [`run`](Self::run), for callers without an async runtime: blocks this thread until the
    /// run ends. It must not be called on a thread that other tasks wait for, such as a worker of
    /// an async runtime; use `spawn_blocking` there.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_blocking(&self, script: impl Into<Script>) -> Result<ExecuteResult, Error> {
        pollster::block_on(self.run(script))
    }

    /// Starts a script and returns a handle, to cancel the run, to follow its output and its calls
    /// while it runs, and to wait for its result. [`run`](Self::run) is the short form, whose errors
    /// are also those of awaiting the handle.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), cx::Error> {
    /// use cx::{Executor, Output, RunEvent};
    ///
    /// let executor = Executor::builder().build()?;
    /// let mut run = executor.start("console.log('half way'); return 1");
    /// let mut events = run.events().expect("they were not taken yet");
    /// while let Some(event) = events.next().await {
    ///     if let RunEvent::Output(Output::Log { text, .. }) = event {
    ///         assert_eq!(text, "half way");
    ///     }
    /// }
    /// assert_eq!(run.await?.value_as::<u32>().ok(), Some(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(&self, script: impl Into<Script>) -> Run {
        Run::start(self, script.into())
    }

    pub(super) async fn run_with(
        &self,
        script: Script,
        tape: Option<Arc<Tape>>,
        cancel: CancellationToken,
    ) -> Result<ExecuteResult, Error> {
        let run = self.prepare(script)?;
        let mut counted = CountedRun::new(run.script.language);
        let (observers, runtime) = (&self.inner.observers, &self.inner.runtime);
        let language = Some(run.script.language);
        let observed = observers.start(&run.script, language, &run.limits, &run.grants, runtime).await;
        let result = match observed.refusal() {
            Some(refusal) => Ok(refused(refusal)),
            None => self.perform(run, Purpose::Run, observed.observation().clone(), tape, cancel).await,
        };
        counted.record(result.as_ref());
        observed.finish(result.as_ref().map_err(code_without_result));
        result
    }

    /// Performs a run that ends when `cancel` is cancelled.
    pub(super) async fn perform(
        &self,
        run: PreparedRun,
        purpose: Purpose,
        observation: Observation,
        tape: Option<Arc<Tape>>,
        cancel: CancellationToken,
    ) -> Result<ExecuteResult, Error> {
        let queued = Instant::now();
        let PreparedRun {
            mut script,
            settings,
            limits,
            max_limits,
            grants,
            policy,
            time_zone,
            state,
            servers,
        } = run;
        let _stop_on_drop = cancel.clone().drop_guard();
        let _forward = script.cancel.as_ref().map(|token| self.forward(token, &cancel));
        let starting = Instant::now();
        let (engines, runtime) = (&self.inner.engines, &self.inner.runtime);
        let start_error = start_engine(engines, runtime, script.language, &limits, &cancel).await?;
        let engine_start_time = starting.elapsed();
        if let Some(error) = start_error {
            return Ok(not_run(error, Usage { wall_time: engine_start_time, ..Usage::default() }));
        }
        let permit = match self.inner.admission.enter(runtime, limits.memory_bytes, &cancel).await {
            Ok(permit) => permit,
            Err(refused) => {
                let wall_time = engine_start_time;
                let queue_time = queued.elapsed().saturating_sub(wall_time);
                return Ok(not_run(*refused, Usage { wall_time, queue_time, ..Usage::default() }));
            }
        };
        drop(script.while_queued.take());
        let limits = RunLimits::new(limits, settings.max_limits, max_limits);
        let tools = RunTools::new(servers.tools.clone(), policy, self.inner.current.subscribe());
        let environment = RunEnvironment {
            purpose,
            grants,
            tape,
            state,
            history: self.inner.history.clone(),
            time_zone,
            engine_start_time,
            ..self.inner.environment(settings, limits, tools, observation, cancel, queued)
        };
        let (reply, answer) = oneshot::channel();
        self.inner.engines.submit(Job { script, environment, reply, permit: Box::new(permit) });
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// The servers of a run, with its own.
    pub(super) fn servers_of(&self, script: &mut Script) -> Result<Arc<ServerSet>, Error> {
        let (tools, own) = (std::mem::take(&mut script.tools), std::mem::take(&mut script.servers));
        let servers = self.servers();
        if tools.is_empty() && own.is_empty() {
            return Ok(servers);
        }
        servers.with(&tools, own, &self.inner.server_options).map(Arc::new)
    }

    /// Cancels `run` when `caller` is cancelled, until the guard is dropped. It cannot be a child
    /// token, because a run's token already has a parent.
    pub(super) fn forward(&self, caller: &CancellationToken, run: &CancellationToken) -> ForwardGuard {
        if caller.is_cancelled() {
            // Cancelled here and not by the task below, because such a run must not even start.
            run.cancel();
        }
        let stop = CancellationToken::new();
        let (caller, run, stopped) = (caller.clone(), run.clone(), stop.clone());
        self.inner.runtime.spawn(async move {
            tokio::select! {
                () = caller.cancelled() => run.cancel(),
                () = stopped.cancelled() => {}
            }
        });
        ForwardGuard(stop)
    }
}

impl Inner {
    /// What every run gets from its executor. For a run of a script, what reaches the machine, its state, its tape and
    /// its history are added.
    pub(super) fn environment(
        self: &Arc<Self>,
        settings: Settings,
        limits: RunLimits,
        tools: RunTools,
        observation: Observation,
        cancel: CancellationToken,
        queued: Instant,
    ) -> RunEnvironment {
        RunEnvironment {
            purpose: Purpose::Run,
            limits,
            grants: Arc::default(),
            tools,
            approver: self.approver.clone(),
            elicitor: self.elicitor.clone(),
            hooks: Arc::clone(&self.hooks),
            observation,
            tape: None,
            state: StateAccess::None(NoState::NotConfigured),
            llm: settings.llm,
            history: None,
            caller: None,
            nested: Some(self.nested_runner()),
            cancel,
            runtime: self.runtime.clone(),
            clock_resolution: settings.clock_resolution,
            time_zone: settings.time_zone,
            queued,
            engine_start_time: Duration::ZERO,
        }
    }

    /// Runs the stored scripts that runs call. It does not keep the executor alive.
    fn nested_runner(self: &Arc<Self>) -> NestedRunner {
        let inner = Arc::downgrade(self);
        nested::runner(move || {
            let inner = inner.upgrade()?;
            Some(Parts {
                engines: Arc::clone(&inner.engines),
                admission: Arc::clone(&inner.admission),
                observers: inner.observers.clone(),
                runtime: inner.runtime.clone(),
            })
        })
    }
}

/// Forwards a cancellation until it is dropped.
pub(super) struct ForwardGuard(CancellationToken);

impl Drop for ForwardGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests;
