use tokio::runtime::Handle;

use super::*;
use crate::engine::process::WorkerProgram;
use crate::engine::process::tests::impostor::{DEAF, deaf, ended};
use crate::engine::process::tests::{MARK, WORKER, program};
use crate::engine::process::workers::WorkerOptions;
use crate::run::context::{ExecutionContext, RunEnvironment};
use crate::run::limits::Limits;
use crate::run::script::Script;

const SOURCE: &str = "return 1";

fn engine(program: WorkerProgram) -> Processes {
    let workers = Workers::new(WorkerOptions {
        program,
        spare: 1,
        is_python: false,
        counts_fuel: false,
        memory_bytes: Limits::default().memory_bytes,
        caches: Vec::new(),
    });
    Processes::new(workers.unwrap())
}

fn host() -> Arc<dyn RunHost> {
    let limits = Limits { wall_time: Duration::from_secs(60), ..Limits::default() };
    let environment = RunEnvironment::empty(limits, Handle::current());
    Arc::new(ExecutionContext::new(Script::typescript(SOURCE), environment))
}

/// The end of a process competes with what sends the run's result for the processors, so it comes after that: when the
/// instance is dropped.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_run_of_a_worker_is_answered_before_the_worker_is_killed() {
    let (engine, host) = (engine(program(WORKER, MARK, 1)), host());
    let mut run = engine.make().await.unwrap();
    run.survey(&host, SOURCE, &mut ()).await.unwrap();
    let outcome = run.execute(&host, SOURCE, ()).await;
    assert!(matches!(outcome, Outcome::Returned(_)), "{outcome:?}");
    let worker = run.spent.as_mut().unwrap();
    assert_eq!(worker.status(), None, "it has ended before the run's result was sent");
}

/// Its reason is there before the run is sent to it, which fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_start_is_heard_although_it_cannot_be_written_to() {
    let (engine, host) = (engine(deaf()), host());
    engine.warm().await;
    let worker = engine.workers.acquire(&None).await.unwrap();
    let count = engine.workers.count_run();
    let mut conversation = Conversation::new(worker, None, &host, 1, count).unwrap();
    conversation.start(&host, SOURCE, true).unwrap();
    let event = conversation.listen(&host).await;
    assert!(matches!(event, Event::Ended(RunEnd::NoWorker(problem)) if problem == DEAF));
}

/// It cannot be written to. What it has said before, such as that it was stopped for its memory, is the end of the run.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_message_of_a_worker_that_has_ended_is_heard() {
    let (engine, host) = (engine(ended()), host());
    let worker = engine.workers.acquire(&None).await.unwrap();
    let count = engine.workers.count_run();
    let mut conversation = Conversation::new(worker, None, &host, 1, count).unwrap();
    conversation.start(&host, SOURCE, true).unwrap();
    assert!(matches!(conversation.listen(&host).await, Event::Surveyed(..)));
    while !conversation.describe_end().await.contains("exit status") {}
    conversation.proceed().unwrap();
    assert!(matches!(conversation.listen(&host).await, Event::Ended(RunEnd::Done(_))));
}
