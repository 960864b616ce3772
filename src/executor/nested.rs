//! Runs that scripts start: stored scripts that a run calls, and checks of those that it would save.

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::admission::Admission;
use super::metrics::CountedRun;
use super::start::{code_without_result, not_run, refused, start_engine};
use crate::engine::engines::Engines;
use crate::engine::pool::job::Job;
use crate::error::Error;
use crate::run::context::{ExecutionContext, Purpose, RunEnvironment};
use crate::run::limits::Limits;
use crate::run::nested::NestedRunner;
use crate::run::observer::{Observation, Observers};
use crate::run::result::{ExecuteResult, Usage};
use crate::run::script::Script;

/// The parts of an executor that a nested run needs. They are shared, so that a run that is in flight
/// when the executor is dropped does not keep all of it.
pub(super) struct Parts {
    pub(super) engines: Arc<Engines>,
    pub(super) admission: Arc<Admission>,
    pub(super) observers: Observers,
    pub(super) runtime: Handle,
}

/// What runs the stored scripts that runs call, with `parts`: `None` once the executor is dropped.
pub(super) fn runner(parts: impl Fn() -> Option<Parts> + Send + Sync + 'static) -> NestedRunner {
    Arc::new(move |script, purpose, caller| match purpose {
        Purpose::Run => run(parts(), script, caller).boxed(),
        Purpose::Check { .. } => check(parts(), script, purpose, caller).boxed(),
    })
}

async fn run(
    parts: Option<Parts>,
    script: Script,
    caller: Arc<ExecutionContext>,
) -> Result<ExecuteResult, Error> {
    let parts = parts.ok_or(Error::Closed)?;
    let limits = limits_of(&script, &caller)?;
    let mut counted = CountedRun::new(script.language);
    let (language, grants) = (Some(script.language), caller.grants());
    let observed = parts.observers.start(&script, language, &limits, grants, &parts.runtime).await;
    let result = match observed.refusal() {
        Some(refusal) => Ok(refused(refusal)),
        None => {
            let observation = observed.observation().clone();
            perform(&parts, script, limits, Purpose::Run, caller, observation).await
        }
    };
    counted.record(result.as_ref());
    observed.finish(result.as_ref().map_err(code_without_result));
    result
}

/// Checks a script. As nothing of it is run, it is not counted among the runs, and observers do not see it.
async fn check(
    parts: Option<Parts>,
    script: Script,
    purpose: Purpose,
    caller: Arc<ExecutionContext>,
) -> Result<ExecuteResult, Error> {
    let parts = parts.ok_or(Error::Closed)?;
    let limits = limits_of(&script, &caller)?;
    perform(&parts, script, limits, purpose, caller, Observation::none()).await
}

/// The limits of a run that another one has called. Those that are invalid are refused before observers hear of the
/// run.
fn limits_of(script: &Script, caller: &ExecutionContext) -> Result<Limits, Error> {
    let limits = script.limits.unwrap_or_else(|| caller.limits());
    limits.validate()?;
    Ok(limits)
}

async fn perform(
    parts: &Parts,
    script: Script,
    limits: Limits,
    purpose: Purpose,
    caller: Arc<ExecutionContext>,
    observation: Observation,
) -> Result<ExecuteResult, Error> {
    let queued = Instant::now();
    let runtime = &parts.runtime;
    // It ends with the run that has called it, and with this future.
    let cancel = caller.cancel.child_token();
    let _stop_on_drop = cancel.clone().drop_guard();
    let start_error = start_engine(&parts.engines, runtime, script.language, &limits, &cancel).await?;
    let engine_start_time = queued.elapsed();
    if let Some(error) = start_error {
        return Ok(not_run(error, Usage { wall_time: engine_start_time, ..Usage::default() }));
    }
    let permit = parts.admission.enter_nested(runtime, caller.depth(), limits.memory_bytes, &cancel).await;
    let permit = match permit {
        Ok(permit) => permit,
        Err(refused) => {
            let queue_time = queued.elapsed().saturating_sub(engine_start_time);
            let usage = Usage { wall_time: engine_start_time, queue_time, ..Usage::default() };
            return Ok(not_run(*refused, usage));
        }
    };
    let (reply, answer) = oneshot::channel();
    parts.engines.submit(Job {
        script,
        environment: RunEnvironment {
            observation,
            cancel,
            queued,
            engine_start_time,
            ..caller.nested_environment(purpose, limits)
        },
        reply,
        permit: Box::new(permit),
    });
    answer.await.unwrap_or(Err(Error::Closed))
}
