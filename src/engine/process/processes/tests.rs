use tokio::runtime::Handle;

use super::*;
use crate::engine::process::tests::{MARK, WORKER, program};
use crate::engine::process::workers::WorkerOptions;
use crate::run::context::{ExecutionContext, RunEnvironment};
use crate::run::limits::Limits;
use crate::run::script::Script;

const SOURCE: &str = "return 1";

/// The end of a process competes with what sends the run's result for the processors, so it comes after that: when the
/// instance is dropped.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_run_of_a_worker_is_answered_before_the_worker_is_killed() {
    let workers = Workers::new(WorkerOptions {
        program: program(WORKER, MARK, 1),
        spare: 1,
        is_python: false,
        counts_fuel: false,
        memory_bytes: Limits::default().memory_bytes,
        caches: Vec::new(),
    });
    let engine = Processes::new(workers.unwrap());
    let limits = Limits { wall_time: Duration::from_secs(60), ..Limits::default() };
    let environment = RunEnvironment::empty(limits, Handle::current());
    let context = Arc::new(ExecutionContext::new(Script::typescript(SOURCE), environment));
    let host: Arc<dyn RunHost> = context;
    let mut run = engine.make().await.unwrap();
    run.survey(&host, SOURCE, &mut ()).await.unwrap();
    let outcome = run.execute(&host, SOURCE, ()).await;
    assert!(matches!(outcome, Outcome::Returned(_)), "{outcome:?}");
    let worker = run.spent.as_mut().unwrap();
    assert_eq!(worker.status(), None, "it has ended before the run's result was sent");
}
