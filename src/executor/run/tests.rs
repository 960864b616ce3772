use super::*;

async fn panics() -> Result<ExecuteResult, Error> {
    std::panic::resume_unwind(Box::new("in the task"))
}

/// Not [`Error::Closed`]: an executor that is closed cannot be used again, and this one can.
#[tokio::test]
async fn a_run_whose_task_panics_is_lost() {
    let mut task = JoinSet::new();
    task.spawn(panics());
    let mut run = Run { task, cancel: CancellationToken::new(), events: None };
    let result = (&mut run).await;
    let Err(Error::WorkerLost { message }) = result else { panic!("{result:?}") };
    assert_eq!(message, "in the task");
    assert!(matches!(run.await, Err(Error::Closed)), "a result is given once");
}
