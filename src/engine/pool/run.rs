//! One run on its worker: supervised from before its source is read, executed on an instance, and answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::job::{Job, Reply, UnsentReply};
use crate::engine::host::RunHost;
use crate::engine::instance::{Engine, Instance, Unprepared};
use crate::engine::resident::{self, ResidentRun};
use crate::engine::watchdog::{CpuMeter, RunPhase, Watched};
use crate::engine::{failure, hints};
use crate::error::Error;
use crate::run::compute::Turn;
use crate::run::context::{ExecutionContext, Measured, Purpose};
use crate::run::result::Outcome;
use crate::sync::Mutex;
use crate::text::panic_message;

/// A run that has begun on this worker.
pub(super) struct ActiveRun {
    context: Arc<ExecutionContext>,
    reply: Reply,
    watched: Arc<Watched>,
    resident: ResidentRun,
}

/// How far an execution has come.
#[derive(Default)]
struct Steps {
    is_prepared: bool,
    check_time: Duration,
    /// Whether the script has returned nothing and does not await a call.
    forgets_call: bool,
}

/// A run that its worker has executed, and that may not be answered yet.
pub(super) struct EndedRun {
    context: Arc<ExecutionContext>,
    /// `None` if the watchdog has sent the reply.
    reply: Option<UnsentReply>,
    /// The outcome, or the panic of the worker.
    outcome: std::thread::Result<Outcome>,
    measured: Measured,
    /// Whether the thread has a low priority now, which it cannot raise again.
    pub(super) has_low_priority: bool,
    /// Whether the instance was not used: it can serve another run.
    pub(super) is_instance_fresh: bool,
    /// Bytes of new memory that the run has touched.
    pub(super) touched_bytes: usize,
    forgets_call: bool,
}

impl ActiveRun {
    /// Starts the run's clock. `abandoned` is called when the watchdog replies in place of this worker.
    pub(super) fn begin<E: Engine>(
        job: Job,
        turn: Turn,
        instance: &mut E::Instance,
        abandoned: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let Job { script, environment, reply, permit } = job;
        let cpu = CpuMeter::start();
        let mut context = ExecutionContext::new(script, environment);
        context.turn = turn;
        let context = Arc::new(context);
        instance.set_memory_limit(context.limits().memory_bytes);
        let reply = Reply::new(reply, permit);
        let stop = Arc::clone(instance.stop());
        let resident = resident::guard().enter(context.limits().memory_bytes, Arc::clone(&stop));
        let abandon = {
            let (context, reply, stop) = (Arc::clone(&context), reply.clone(), Arc::downgrade(&stop));
            move |reason| {
                let Some(reply) = reply.take() else { return };
                abandoned();
                tracing::error!(?reason, "a script cannot be stopped; its worker is abandoned");
                let outcome = Outcome::Failed(failure::stopped(Some(reason), &*context));
                let elsewhere = stop.upgrade().map_or(Duration::ZERO, |stop| stop.cpu_time());
                let measured = Measured { cpu_time: cpu.elapsed() + elsewhere, ..Measured::default() };
                reply.send(Ok(context.finish(outcome, measured)));
            }
        };
        let watched = Arc::new(Watched {
            context: Arc::clone(&context),
            stop,
            cpu,
            thread: rustix::thread::gettid(),
            abandon: Box::new(abandon),
            phase: Mutex::new(RunPhase::default()),
            has_low_priority: AtomicBool::new(false),
        });
        Self { context, reply, watched, resident }
    }

    /// The run, for the watchdog.
    pub(super) fn watched(&self) -> &Arc<Watched> {
        &self.watched
    }

    /// Executes the script. Returns when this thread is done with it, also if the watchdog has replied meanwhile.
    pub(super) fn execute<E: Engine>(
        self,
        engine: &E,
        runtime: &Runtime,
        instance: &mut E::Instance,
    ) -> EndedRun {
        let mut steps = Steps::default();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.outcome(engine, runtime, instance, &mut steps)));
        let Self { context, reply, watched, resident } = self;
        let memory_bytes = instance.memory_bytes();
        let cpu_time = watched.cpu.elapsed() + watched.stop.cpu_time();
        let check_time = steps.check_time;
        let measured = Measured { cpu_time, check_time, fuel: instance.fuel_used(), memory_bytes };
        let has_low_priority = watched.done();
        let touched_bytes = resident.faulted_bytes();
        drop(resident);
        let reply = reply.take();
        let is_instance_fresh = outcome.is_ok() && !steps.is_prepared && watched.stop.reason().is_none();
        let forgets_call = steps.forgets_call;
        EndedRun {
            context,
            reply,
            outcome,
            measured,
            has_low_priority,
            is_instance_fresh,
            touched_bytes,
            forgets_call,
        }
    }

    fn outcome<E: Engine>(
        &self,
        engine: &E,
        runtime: &Runtime,
        instance: &mut E::Instance,
        steps: &mut Steps,
    ) -> Outcome {
        let context = &self.context;
        // The client may have gone while the run was queued; then nothing of the run may happen.
        if context.cancel.is_cancelled() {
            return self.stopped();
        }
        match engine.prepare(&**context, &context.script.source) {
            Ok(prepared) => {
                steps.is_prepared = true;
                runtime.block_on(context.turn.compute(self.perform::<E>(instance, prepared, steps)))
            }
            // An error in a source that was not processed to its end says nothing about the source.
            Err(_) if self.watched.stop.reason().is_some() => self.stopped(),
            Err(unprepared) => {
                let Unprepared { error, survey } = *unprepared;
                steps.check_time = survey.took;
                let mut outcome = Outcome::Failed(error);
                runtime.block_on(context.turn.compute(async {
                    match context.purpose() {
                        Purpose::Run => context.add_problems(&mut outcome, &survey),
                        Purpose::Check { .. } => context.keep_findings(&survey, &outcome).await,
                    }
                }));
                outcome
            }
        }
    }

    /// Checks a script that is prepared, and runs it if that is the purpose.
    async fn perform<E: Engine>(
        &self,
        instance: &mut E::Instance,
        mut prepared: E::Prepared,
        steps: &mut Steps,
    ) -> Outcome {
        let context = &self.context;
        let source = &context.script.source;
        let host: Arc<dyn RunHost> = Arc::clone(context) as Arc<dyn RunHost>;
        let survey = match instance.survey(&host, source, &mut prepared).await {
            Ok(survey) => survey,
            Err(outcome) => return outcome,
        };
        if let Purpose::Check { .. } = context.purpose() {
            let outcome = instance.check(&host, source, prepared).await;
            context.keep_findings(&survey, &outcome).await;
            return outcome;
        }
        let began = Instant::now();
        let refusal = Arc::clone(context).in_runtime(context.preflight(&survey)).await;
        steps.check_time = survey.took + began.elapsed();
        match refusal {
            Some(_) if context.cancel.is_cancelled() => self.stopped(),
            Some(error) => Outcome::Failed(error),
            None => {
                let mut outcome = instance.execute(&host, source, prepared).await;
                hints::add(&mut outcome, context, &survey);
                steps.forgets_call = hints::forgets_call(&outcome, context, &survey);
                context.add_problems(&mut outcome, &survey);
                outcome
            }
        }
    }

    fn stopped(&self) -> Outcome {
        Outcome::Failed(failure::stopped(self.watched.stop.reason(), &*self.context))
    }
}

impl EndedRun {
    /// Whether the watchdog has replied in place of this worker.
    pub(super) fn is_hung(&self) -> bool {
        self.reply.is_none()
    }

    /// Frees the compute slot and sends the reply, if the watchdog has not sent it.
    pub(super) fn answer(self) {
        let Self { context, reply, outcome, measured, forgets_call, .. } = self;
        context.turn.end();
        let Some(reply) = reply else { return };
        let lost = |message| {
            context.cancel.cancel();
            Err(Error::WorkerLost { message })
        };
        reply.send(match (outcome, context.listening().panic()) {
            (Err(panic), _) => lost(panic_message(&*panic)),
            (Ok(_), Some(message)) => lost(message.to_owned()),
            (Ok(outcome), None) => {
                hints::warn(&outcome, &context, forgets_call);
                Ok(context.finish(outcome, measured))
            }
        });
        // The receiver of the reply should run first: making the next instance takes two milliseconds,
        // and the scheduler often wakes the receiver on this core.
        std::thread::yield_now();
    }
}
